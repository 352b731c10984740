"""What a model call costs besides the model. In: nothing. Out: tables, against what others need.

    python benchmarks/models.py [--rounds 5] [--peers PYTHON] [--quick] [--check]

A server in its own process answers every call after 50 ms, streamed. Each way of calling it has a
process of its own, and all take their turn in every round, so that a busy machine is busy to all;
medians are shown. `--peers` names a Python that has aiohttp, openai, pydantic-ai-slim[openai],
langgraph and langchain-openai.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from models_worker import CHAIN, FAN

HERE = Path(__file__).parent
LATENCY_SECONDS = 0.05
WHOLE_SECONDS = 2.0
IDEAL = {"chain": CHAIN * LATENCY_SECONDS, "fan": LATENCY_SECONDS}
SHOWN = {"chain": f"chain of {CHAIN}", "fan": f"fan-out of {FAN}"}
ENGINE, MODEL = "stretto, whole engine", "stretto's model alone"
OURS = {ENGINE: "engine", MODEL: "model"}
# The same model over other HTTP clients (decision 0021).
CLIENTS = {"… over httpcore2's pool": "pool", "… over httpcore2 alone": "httpcore2"}
PEERS = {
    "aiohttp, bare": "aiohttp",
    "openai SDK": "openai",
    "pydantic-ai agent": "pydantic-ai",
    "langgraph": "langgraph",
}


@dataclass(frozen=True, slots=True)
class Taken:
    wall: float  # seconds, the median of one turn
    cpu: float  # seconds a call
    mb: float  # at the most so far


class Worker:
    """One way of calling, asked line by line."""

    def __init__(self, python: str, file: str, way: str, url: str) -> None:
        self._process = subprocess.Popen(
            [python, str(HERE / file), way, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, shape: str, times: int) -> Taken:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"shape": shape, "times": times}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit("a worker gave up")
        said = json.loads(answer)
        return Taken(median(said["walls"]), said["cpu"], said["mb"])

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()


@contextmanager
def serving(latency_seconds: float) -> Iterator[str]:
    words = [
        sys.executable,
        "-m",
        "stretto.testing.openai_server",
        "--latency",
        str(latency_seconds),
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def measure(
    peers: str | None, rounds: int, times: int, clients: bool
) -> dict[tuple[str, str], list[Taken]]:
    """By way and shape."""
    taken: dict[tuple[str, str], list[Taken]] = {}
    with ExitStack() as stack:
        url = stack.enter_context(serving(LATENCY_SECONDS))
        workers = {name: Worker(sys.executable, "models_ours.py", way, url) for name, way in (OURS | (CLIENTS if clients else {})).items()}  # fmt: skip
        for name, way in PEERS.items() if peers else ():
            assert peers is not None
            workers[name] = Worker(peers, "peer_models.py", way, url)
        for worker in workers.values():
            stack.callback(worker.close)
            for shape in IDEAL:
                worker.run(shape, 2)  # to warm up: imports, connections
        for _ in range(rounds):
            for shape in IDEAL:
                for name, worker in workers.items():
                    taken.setdefault((name, shape), []).append(worker.run(shape, times))
    return taken


def show(taken: dict[tuple[str, str], list[Taken]]) -> dict[tuple[str, str], float]:
    """Prints the tables, and gives back the CPU of a call by way and shape, in ms."""
    cpus = {key: median(each.cpu for each in some) * 1e3 for key, some in taken.items()}
    for shape, ideal in IDEAL.items():
        print(
            f"{SHOWN[shape] + f', at best {ideal * 1e3:.0f} ms':36}{'ms':>8}{'over':>8}"
            f"{'CPU ms a call':>15}{'× stretto':>8}{'MB':>6}"
        )
        for name in [name for name, of in taken if of == shape]:
            wall = median(each.wall for each in taken[name, shape]) * 1e3
            megabytes = max(each.mb for each in taken[name, shape])
            print(
                f"  {name:34}{wall:8.1f}{wall - ideal * 1e3:8.1f}{cpus[name, shape]:15.2f}"
                f"{cpus[name, shape] / cpus[ENGINE, shape]:8.2f}{megabytes:6.0f}"
            )
    return cpus


def goals_missed(cpus: dict[tuple[str, str], float]) -> list[str]:
    """The whole engine needs less than LangGraph; the model alone, less than the SDK."""
    missed = []
    for ours, theirs in ((ENGINE, "langgraph"), (MODEL, "openai SDK")):
        for shape in IDEAL:
            if (theirs, shape) in cpus and cpus[ours, shape] >= cpus[theirs, shape]:
                missed.append(f"{SHOWN[shape]}: {ours} needs more CPU than {theirs}")
    return missed


def whole_command(rounds: int) -> float:
    """CPU seconds of `stretto run` with three model calls, from its start to its exit."""
    recipe = "name: three\nsteps:\n" + "".join(
        f"  - {{id: s{n}, subagent: analyst, prompt: Go.{f', depends_on: s{n - 1}' if n else ''}}}\n"
        for n in range(CHAIN)
    )
    taken = []
    with serving(LATENCY_SECONDS) as url, tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "three.yaml").write_text(recipe)
        environ = {**os.environ, "OPENAI_BASE_URL": url, "STRETTO_HOME": f"{folder}/home"}
        words = [sys.executable, "-m", "stretto", "run", "three.yaml", "--model", "openai:m"]
        for _ in range(rounds):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(words, cwd=folder, env=environ, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            taken.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    print(
        f"\nstretto run, {CHAIN} calls, as a whole command: {median(taken):.2f} s of CPU (goal: 2)"
    )
    return median(taken)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", metavar="PYTHON", help="an interpreter that has the others")
    parser.add_argument("--clients", action="store_true", help="also other HTTP clients")
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--check", action="store_true", help="exit 1 if a goal is missed")
    wanted = parser.parse_args()
    # As Ctrl-C does: the server and the workers must not outlive this.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    rounds, times = (1, 1) if wanted.quick else (wanted.rounds, 5)
    missed = goals_missed(show(measure(wanted.peers, rounds, times, wanted.clients)))
    if whole_command(rounds) > WHOLE_SECONDS:
        missed.append(f"a whole command needs at most {WHOLE_SECONDS:.0f} s of CPU")
    for goal in missed:
        print(f"missed: {goal}")
    return 1 if missed and wanted.check else 0


if __name__ == "__main__":
    sys.exit(main())
