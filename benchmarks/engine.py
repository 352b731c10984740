"""How fast the engine is, and against what. In: nothing. Out: tables of µs a step, and the goals.

    python benchmarks/engine.py [--rounds 5] [--peers PYTHON] [--quick] [--check]

Every way of running one graph takes its turn in every round, so that a busy machine is busy to
all, and medians are shown. Stretto's figures are those of a whole run: from Runs.start() to the end,
with the plan stored, every prompt rendered and every key made; reading the YAML and planning are
shown apart. A prompt names the output of every step that its step waits for: one in a chain and in
the branches of a fan-out, 50 in the layers, all branches in the join. asyncio and the limits put
the same prompts together in plain Python. `--peers` names a Python that has langgraph and langgraph-checkpoint-sqlite.
"""

import argparse
import asyncio
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from limits import durable, in_turns, plain
from shapes import TOPIC, Shape, chain, fan, layers, reversed_chain

from stretto.adapters.clock import SystemClock
from stretto.adapters.stores.memory import MemoryJournal
from stretto.adapters.stores.sqlite import SqliteJournal
from stretto.execution.leases import Store
from stretto.execution.runs import Runs, Start
from stretto.plan.model import Plan
from stretto.ports.runner import AttemptRequest, AttemptResult, Success, Witness
from stretto.vocabulary.names import RunId
from stretto.vocabulary.statuses import RunStatus

PLAIN, LIMIT, FLOOR = "asyncio", "the durable limit", "the same, in turns"
MEMORY, SQLITE = "stretto, in memory", "stretto, SQLite"
GRAPH, GRAPH_SQLITE = "langgraph", "langgraph, SQLite"
PEER = Path(__file__).with_name("peer_langgraph.py")
INPUTS = {"topic": TOPIC}
MOST_BYTES = 1_000_000_000
MOST_PEER_STEPS = 2_000


class Instant:
    """A runner that has nothing to do: what remains is the engine's own cost."""

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        return Success(f"{request.step} is done.")


@dataclass(frozen=True, slots=True)
class Taken:
    wall: float  # seconds
    cpu: float


@dataclass(frozen=True, slots=True)
class Goal:
    what: str
    reached: float
    most: float
    unit: str

    @property
    def is_reached(self) -> bool:
        return self.reached <= self.most


async def run(plan: Plan, store: Store) -> None:
    state = await Runs(store, SystemClock()).start(Start(plan, INPUTS), Instant())
    assert state.status is RunStatus.COMPLETE, state.status


async def timed(work: Callable[[], Awaitable[object]]) -> Taken:
    gc.collect()
    began, spent = time.perf_counter(), time.process_time()
    await work()
    return Taken(time.perf_counter() - began, time.process_time() - spent)


# --- the shapes, every way -----------------------------------------------------------------


class Peer:
    """Another interpreter, asked line by line."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, PEER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, shape: Shape, file: Path | None) -> Taken:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        befores = {step: list(some) for step, some in shape.befores.items()}
        asked = {"befores": befores, "file": str(file) if file else ""}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit("the peer gave up")
        taken = json.loads(answer)
        return Taken(taken["wall"], taken["cpu"])

    def close(self) -> None:
        with self._process:  # closes its pipes and waits
            pass


async def measure(
    shape: Shape, folder: Path, rounds: int, peer: Peer | None
) -> dict[str, list[Taken]]:
    plan = shape.plan()
    store = await SqliteJournal.open(folder / f"{shape.steps}.db")
    taken: dict[str, list[Taken]] = {}
    for number in range(rounds + 1):
        one = {
            PLAIN: await timed(lambda: plain(shape)),
            LIMIT: await timed(lambda: durable(shape, folder / "limit.db")),
            FLOOR: await timed(lambda: in_turns(shape, folder / "floor.db")),
            MEMORY: await timed(lambda: run(plan, MemoryJournal())),
            SQLITE: await timed(lambda: run(plan, store)),
        }
        # Peers take minutes for the largest graphs: two rounds of the others, and none of those.
        if peer is not None and number in (1, 2) and shape.steps <= MOST_PEER_STEPS:
            one[GRAPH] = await asyncio.to_thread(peer.run, shape, None)
            one[GRAPH_SQLITE] = await asyncio.to_thread(peer.run, shape, folder / "peer.db")
        # The first round is to warm up, unless there is no other.
        if number or not rounds:
            for way, figure in one.items():
                taken.setdefault(way, []).append(figure)
    await store.close()
    return taken


def show(shape: Shape, taken: dict[str, list[Taken]]) -> dict[str, float]:
    """Prints the table, and gives back the ratios of wall time to the limit."""
    named = sum(map(len, shape.befores.values())) / shape.steps
    walls = {way: median(each.wall for each in some) for way, some in taken.items()}
    cpus = {way: median(each.cpu for each in some) for way, some in taken.items()}
    print(f"{shape.name:24} {'µs a step':>10} {'× limit':>8} {'CPU':>8} {'× limit':>8}")
    for way, wall in walls.items():
        print(
            f"  {way:22} {wall / shape.steps * 1e6:10.1f} {wall / walls[LIMIT]:8.2f}"
            f" {cpus[way] / shape.steps * 1e6:8.1f} {cpus[way] / cpus[LIMIT]:8.2f}"
        )
    print(f"  (outputs named in a prompt: {named:.1f} on average)")
    return {way: wall / walls[LIMIT] for way, wall in walls.items()}


async def compare(
    shapes: Sequence[tuple[Shape, float]], folder: Path, rounds: int, peer: Peer | None
) -> list[Goal]:
    goals = []
    for shape, most in shapes:
        ratios = show(shape, await measure(shape, folder, rounds, peer))
        goals.append(Goal(f"{shape.name}: × the durable limit", ratios[SQLITE], most, "×"))
        if GRAPH in ratios:
            ratio = ratios[SQLITE] / ratios[GRAPH]
            goals.append(Goal(f"{shape.name}: × langgraph, which keeps nothing", ratio, 1, "×"))
    return goals


# --- flat ----------------------------------------------------------------------------------


async def flatness(
    families: dict[str, Callable[[int], Shape]], sizes: Sequence[int], rounds: int
) -> list[Goal]:
    """CPU a step, by size: what a step costs must not depend on how many there are."""
    goals = []
    print(f"{'CPU µs a step, in memory':34}" + "".join(f"{size:>10,}" for size in sizes))
    for name, family in families.items():
        plans = {size: family(size).plan() for size in sizes}
        cost: dict[int, list[float]] = {size: [] for size in sizes}
        for _ in range(rounds):
            for size, plan in plans.items():
                # As much work for the small as for the large, or the small ones are all noise.
                times = max(1, sizes[-1] // size // 5)
                taken = await timed(partial(_repeat, plan, times))
                cost[size].append(taken.cpu / times / len(plan.steps))
        middles = [median(cost[size]) * 1e6 for size in sizes]
        print(f"  {name:32}" + "".join(f"{middle:10.1f}" for middle in middles))
        goals.append(
            Goal(
                f"{name}: {sizes[-1]:,} steps against {sizes[0]:,}",
                middles[-1] / middles[0],
                1.5,
                "×",
            )
        )
    return goals


async def _repeat(plan: Plan, times: int) -> None:
    for _ in range(times):
        await run(plan, MemoryJournal())


def planning(shapes: Sequence[Shape], rounds: int) -> None:
    print("reading and planning, CPU µs a step (once for a recipe, before any run)")
    for shape in shapes:
        spent = []
        for _ in range(rounds):
            gc.collect()
            began = time.process_time()
            shape.plan()
            spent.append(time.process_time() - began)
        print(f"  {shape.name:32}{median(spent) / shape.steps * 1e6:10.1f}")


# --- many runs -----------------------------------------------------------------------------


class Gathering:
    """A runner whose first steps wait for each other: every run is under way at the same time."""

    def __init__(self, runs: int) -> None:
        self._missing = runs
        self._are_all_here = asyncio.Event()

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        if request.step == "s0":
            self._missing -= 1
            if not self._missing:
                self._are_all_here.set()
            await self._are_all_here.wait()
        return Success(f"{request.step} is done.")


async def many(runs: int, folder: Path) -> None:
    plan = chain(3).plan()
    store = await SqliteJournal.open(folder / "many.db")
    runner, driver = Gathering(runs), Runs(store, SystemClock())
    began = time.perf_counter()
    states = await asyncio.gather(
        *(driver.start(Start(plan, INPUTS, RunId(f"run-{n}")), runner) for n in range(runs)),
    )
    seconds = time.perf_counter() - began
    assert all(state.status is RunStatus.COMPLETE for state in states)
    await store.close()
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"bytes": peak_bytes, "seconds": seconds}))


def concurrency(runs: int) -> Goal:
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, __file__, "--many", str(runs), folder]
        done = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True)
    said = json.loads(done.stdout)
    print(
        f"{runs:,} runs of 3 steps at once: {said['bytes'] / 1e6:,.0f} MB at the most,"
        f" {said['seconds']:.1f} s"
    )
    return Goal(f"{runs:,} runs at once, MB", said["bytes"] / 1e6, MOST_BYTES / 1e6, "")


# --- all of it -----------------------------------------------------------------------------


def main() -> int:
    if sys.argv[1:2] == ["--many"]:
        asyncio.run(many(int(sys.argv[2]), Path(sys.argv[3])))
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", metavar="PYTHON", help="an interpreter that has langgraph")
    parser.add_argument("--quick", action="store_true", help="small graphs, one round")
    parser.add_argument("--check", action="store_true", help="exit 1 if a goal is missed")
    wanted = parser.parse_args()
    goals = measure_quickly() if wanted.quick else _all(wanted.rounds, wanted.peers)
    width = max(len(goal.what) for goal in goals)
    print(f"{'':{width}}  {'goal':>9}  {'reached':>9}")
    for goal in goals:
        most, reached = f"{goal.most:g}{goal.unit}", f"{goal.reached:.2f}{goal.unit}"
        print(
            f"{goal.what:{width}}  {most:>9}  {reached:>9}{'' if goal.is_reached else '  missed'}"
        )
    missed = sum(not goal.is_reached for goal in goals)
    print(f"\n{len(goals) - missed} of {len(goals)} goals reached")
    return 1 if missed and wanted.check else 0


def _all(rounds: int, python: str | None) -> list[Goal]:
    shapes = [(chain(1_000), 1.3), (fan(1_000), 3.0), (fan(10_000), 3.0), (layers(20, 50), 3.0)]
    families = {"chain": chain, "chain, listed in reverse": reversed_chain, "fan-out": fan}
    peer = Peer(python) if python else None
    with tempfile.TemporaryDirectory() as folder:
        goals = asyncio.run(compare(shapes, Path(folder), rounds, peer))
    if peer is not None:
        peer.close()
    goals += asyncio.run(flatness(families, (100, 1_000, 10_000), min(rounds, 3)))
    planning([shape for shape, _ in shapes], 3)
    goals.append(concurrency(10_000))
    return goals


def measure_quickly() -> list[Goal]:
    shapes = [(chain(20), 1.3), (fan(20), 3.0), (layers(3, 5), 3.0)]
    with tempfile.TemporaryDirectory() as folder:
        goals = asyncio.run(compare(shapes, Path(folder), 0, None))
    goals += asyncio.run(flatness({"chain": chain}, (10, 100), 1))
    planning([shape for shape, _ in shapes], 1)
    goals.append(concurrency(20))
    return goals


if __name__ == "__main__":
    os.environ.pop("PYTHONASYNCIODEBUG", None)  # it would be measured too
    sys.exit(main())
