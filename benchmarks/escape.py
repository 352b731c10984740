"""Try to get out of the sandbox, in many ways. In: nothing. Out: a table; exit 1 if one got out.

    python benchmarks/escape.py [--sandbox auto|bubblewrap|landlock] [--control] [--quick]
                                [--steps] [--only NAME] [--cost]

Each probe runs in a scene of its own (escape_scene.py), and whether it got out is seen from
outside. `--control` runs the probes with a careless launcher instead: a shell that is started in
the workspace with all that its parent has. There each of them must succeed, or it proves nothing;
those that need root, or a kernel with a certain feature, say so. `--steps` runs each probe as the
command of a step with `run:`, through the runner of such steps. `--cost` measures what the
sandbox adds to the start of a shell.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from escape_probes import PROBES, QUICK, Probe
from escape_scene import Scene
from escape_steps import run_step

from stretto.globs.glob import Glob, parse_glob
from stretto.workspaces.protected import Protected
from stretto.workspaces.sandbox.confinement import (
    PLAIN_ENVIRONMENT,
    CommandRefused,
    Confinement,
    Ran,
)
from stretto.workspaces.sandbox.sandbox import NoSandbox, Sandbox, Setting, find_sandbox

HELD, ESCAPED, NOT_TRIED, REFUSED = "held", "ESCAPED", "not tried", "refused"
MOST_COST_MS = 50.0
_PYTHON = Path(sys.base_prefix)
_INTERPRETER = Path(getattr(sys, "_base_executable", sys.executable)).resolve()


@dataclass(frozen=True, slots=True)
class Outcome:
    probe: Probe
    outcome: str
    why: str = ""


def run_probe(sandbox: Sandbox, probe: Probe, as_step: bool = False) -> Outcome:
    if probe.root_only and os.geteuid() != 0:
        return Outcome(probe, NOT_TRIED, "needs root")  # it could not succeed, so it proves nothing
    with closing(Scene()) as scene:
        probe.prepare(scene)
        confinement = Confinement(
            scene.workspace,
            writes=globs(probe.writes),
            readable=(_PYTHON,),
            limits=probe.limits,
            protected=Protected(probe.protected),
            hidden=probe.hidden,
            environment={**PLAIN_ENVIRONMENT, **scene.environment(), "PYTHON": str(_INTERPRETER)},
        )
        os.environ["STRETTO_ESCAPE_CANARY"] = scene.token
        run = run_step if as_step else Sandbox.run
        ran = asyncio.run(run(sandbox, probe.command, confinement))
        if isinstance(ran, CommandRefused):
            return Outcome(probe, REFUSED, ran.says)
        return Outcome(probe, ESCAPED if probe.escaped(scene, ran) else HELD, _last_line(ran))


def run_control(probe: Probe) -> Outcome:
    if probe.root_only and os.geteuid() != 0:
        return Outcome(probe, NOT_TRIED, "needs root")
    with closing(Scene()) as scene:
        probe.prepare(scene)
        os.environ["STRETTO_ESCAPE_CANARY"] = scene.token
        began = time.monotonic()
        with subprocess.Popen(
            ["/bin/bash", "-c", probe.control or probe.command],
            cwd=scene.workspace,
            env={**os.environ, **scene.environment(), "PYTHON": str(_INTERPRETER)},
            close_fds=False,  # as careless as can be
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
        ) as process:
            output = _read_all(process)
            took = time.monotonic() - began
            ran = Ran(process.returncode, output.decode(errors="replace"), 0, took, None, False)
            escaped = probe.escaped(scene, ran)
        return Outcome(probe, ESCAPED if escaped else HELD, _last_line(ran))


def _read_all(process: "subprocess.Popen[bytes]") -> bytes:
    try:
        return process.communicate(timeout=20)[0]
    except subprocess.TimeoutExpired as expired:
        return expired.stdout or b""
    finally:
        subprocess.run(["/bin/kill", "-9", "--", f"-{process.pid}"], capture_output=True)


def globs(texts: Sequence[str]) -> tuple[Glob, ...]:
    parsed = [parse_glob(text) for text in texts]
    return tuple(glob for glob in parsed if isinstance(glob, Glob))


def cost(sandbox: Sandbox, rounds: int = 40) -> tuple[float, float]:
    """Milliseconds of a shell that does nothing: without and with the sandbox, in turns."""
    bare = find_sandbox("off")
    assert isinstance(bare, Sandbox)
    taken: dict[str, list[float]] = {bare.name: [], sandbox.name: []}

    async def measure() -> None:
        with tempfile.TemporaryDirectory(prefix="stretto-cost-") as place:
            (Path(place) / "src").mkdir()
            confinement = Confinement(Path(place), writes=globs(["src/**"]))
            for number in range(rounds + 3):
                for each in (bare, sandbox):
                    began = time.perf_counter()
                    await each.run("true", confinement)
                    if number >= 3:  # the first ones warm up
                        taken[each.name].append((time.perf_counter() - began) * 1000)

    asyncio.run(measure())
    return median(taken[bare.name]), median(taken[sandbox.name])


def _last_line(ran: Ran) -> str:
    said = (ran.output.strip().splitlines() or [""])[-1]
    shown = "".join(char if char.isprintable() else "·" for char in said)[:60]
    return f"{ran.limit_hit}: {shown}" if ran.limit_hit else shown


def show(outcome: Outcome) -> None:
    probe = outcome.probe
    print(f"{probe.name:18} {probe.tried:66} {outcome.outcome:9} {outcome.why}", flush=True)


def main() -> int:
    options = _options()
    chosen = [it for it in PROBES if options.only in (None, it.name)]
    if options.quick:
        chosen = [it for it in chosen if it.name in QUICK]
    outcomes: list[Outcome] = []
    if options.control:
        for probe in chosen:
            outcomes.append(run_control(probe))
            show(outcomes[-1])
    else:
        sandbox = find_sandbox(options.sandbox)
        if isinstance(sandbox, NoSandbox):
            print(sandbox)
            return 1
        print(f"sandbox: {sandbox.name}, as user {os.geteuid()}")
        for gap in sandbox.adapter.gaps:
            print(f"known gap: {gap}")
        if options.cost:
            return _show_cost(sandbox)
        for probe in chosen:
            outcomes.append(run_probe(sandbox, probe, options.steps))
            show(outcomes[-1])
        if not (options.only or options.quick):
            _show_cost(sandbox)
    succeeded = [it for it in outcomes if it.outcome == ESCAPED]
    tried = [it for it in outcomes if it.outcome != NOT_TRIED]
    print(f"{len(tried)} probes, {len(succeeded)} succeeded")
    if options.control:
        return 0 if len(succeeded) == len(tried) else 1
    return 1 if any(it.outcome in (ESCAPED, REFUSED) for it in outcomes) else 0


def _show_cost(sandbox: Sandbox) -> int:
    without, within = cost(sandbox)
    print(
        f"a shell that does nothing: {without:.1f} ms without, {within:.1f} ms with the sandbox: "
        f"{within - without:+.1f} ms (at most {MOST_COST_MS:.0f})"
    )
    return 0 if within - without <= MOST_COST_MS else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    settings: tuple[Setting, ...] = ("auto", "bubblewrap", "landlock")
    parser.add_argument("--sandbox", choices=settings, default="auto")
    parser.add_argument("--control", action="store_true", help="without a sandbox: all succeed")
    parser.add_argument("--quick", action="store_true", help="one of each kind")
    parser.add_argument("--steps", action="store_true", help="as commands of steps")
    parser.add_argument("--cost", action="store_true", help="measure the cost and nothing else")
    parser.add_argument("--only", metavar="NAME")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
