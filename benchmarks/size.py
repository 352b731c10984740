"""How much memory large outputs take. Prints peaks, and their ratio to the size of all outputs.

    PYTHONPATH=src python benchmarks/size.py [steps] [kilobytes each]

A run whose last step never came is resumed, and then reported in all forms, each in a process of its
own; what that process takes without a run is subtracted. A ratio well below 1 means that outputs lie
in the store and are read when they are used.
"""

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from stretto.adapters.clock import SystemClock
from stretto.adapters.stores.sqlite import SqliteJournal
from stretto.cli.main import main as main_of_stretto
from stretto.execution.runs import Runs, Start
from stretto.plan.build import build
from stretto.plan.catalog import Catalog
from stretto.plan.model import Plan
from stretto.ports.runner import AttemptRequest, AttemptResult, Success, Witness
from stretto.recipe.read import read_recipe
from stretto.vocabulary.amounts import Limits
from stretto.vocabulary.names import RunId

RUN = RunId("large")
STEPS, KILOBYTES = 500, 100
MEGA = 1_000_000


def shown(size: int) -> int:
    """How many outputs the last prompt shows: a prompt has a limit."""
    return min(3, 3_000_000 // size)


def plan_of(steps: int, size: int) -> Plan:
    listed = [{"id": f"s{n}", "subagent": "w", "prompt": "go"} for n in range(steps)]
    reads = " ".join(f"{{{{steps.s{n}.output}}}}" for n in range(min(shown(size), steps)))
    listed.append({"id": "last", "subagent": "w", "prompt": f"see {reads}"})
    depends = [step["id"] for step in listed[:-1]]
    listed[-1]["depends_on"] = depends  # type: ignore[assignment]
    recipe = {"name": "large", "agents": {"w": {"prompt": "p"}}, "steps": listed}
    limits = Limits(steps=10**6, nodes=10**7, text_bytes=2**30)
    plan = build(read_recipe(json.dumps(recipe), "large", limits), Catalog({}, {}), limits, 8)
    assert isinstance(plan, Plan), plan
    return plan


class Answers:
    """Every step gives a text of its own; the last one stops the run before it answers."""

    def __init__(self, size: int, runs: Runs | None = None) -> None:
        self.size, self.runs = size, runs
        self.prompt_characters = 0

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        if request.step == "last" and self.runs is not None:
            self.runs.stop()
            await asyncio.sleep(3_600)
        if request.step == "last":
            self.prompt_characters = len(request.prompt)
            return Success("Done.")
        return Success(f"{request.step:>10}" * (self.size // 10))


async def begin(home: Path, steps: int, size: int) -> None:
    store = await SqliteJournal.open(home / "runs.db")
    runs = Runs(store, SystemClock())
    await runs.start(Start(plan_of(steps, size), {}, RUN), Answers(size, runs))
    await store.close()


async def resume(home: Path, size: int) -> int:
    store = await SqliteJournal.open(home / "runs.db")
    answers = Answers(size)
    state = await Runs(store, SystemClock()).resume(RUN, answers)
    await store.close()
    assert state.status == "complete", state.status
    assert answers.prompt_characters >= shown(size) * size * 0.9
    return answers.prompt_characters


def report(home: Path, form: str) -> int:
    """How many bytes it has."""
    file = home / f"report.{form}"
    sys.argv = ["stretto", "report", RUN, "--format", form]
    kept = os.dup(1)
    with file.open("wb") as out:
        os.dup2(out.fileno(), 1)
        with suppress(SystemExit):
            main_of_stretto()
        sys.stdout.flush()
        os.dup2(kept, 1)
    return file.stat().st_size


def child(work: str, home: Path, size: int) -> None:
    begun, made = time.perf_counter(), 0
    if work == "run":
        asyncio.run(begin(home, size // 10**9, size % 10**9))
    elif work == "resume":
        asyncio.run(resume(home, size))
    elif work != "nothing":
        made = report(home, work)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024
    print(json.dumps({"peak": peak, "bytes": made, "seconds": time.perf_counter() - begun}))


def measured(work: str, home: Path, size: int) -> dict[str, float]:
    environ = {**os.environ, "STRETTO_HOME": str(home)}
    command = [sys.executable, __file__, "--child", work, str(home), str(size)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def measure(steps: int, kilobytes: int) -> dict[str, dict[str, float]]:
    """By work; "nothing" is what an interpreter needs that does none."""
    size = kilobytes * 1_000
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        works = {"nothing": measured("nothing", home, 0)}
        works["run"] = measured("run", home, steps * 10**9 + size)
        return works | {
            work: measured(work, home, size) for work in ("resume", "html", "json", "md")
        }


def main(steps: int, kilobytes: int) -> None:
    total = steps * kilobytes * 1_000
    print(f"{steps:,} steps of {kilobytes} kB: {total / MEGA:,.0f} MB of outputs")
    works = measure(steps, kilobytes)
    idle = works.pop("nothing")["peak"]
    for work, figures in works.items():
        above = max(0.0, figures["peak"] - idle)
        made = f", {figures['bytes'] / MEGA:,.1f} MB made" if figures["bytes"] else ""
        print(
            f"{work:>7}: {above / MEGA:7,.0f} MB above {idle / MEGA:.0f}, "
            f"{above / total:5.2f} of the outputs, {figures['seconds']:.1f} s{made}"
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
    else:
        given = [int(word) for word in sys.argv[1:]]
        main(*(given + [STEPS, KILOBYTES][len(given) :])[:2])
