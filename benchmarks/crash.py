"""Kill Stretto at random moments, and see what is lost. In: nothing. Out: figures; exit 1 if any is bad.

    python benchmarks/crash.py [--kills 300] [--steps 5000] [--seed N] [--quick]

A child drives runs with the real journal and the real driver; its runner appends one line to a
file for every attempt it executes, and fsyncs it. The parent kills it with SIGKILL at random
moments and starts it again; each child takes up what the last one left, and then starts new runs.
Then the journals and the file are compared:

    lost         a run that is not complete, a step that did not end, an event that was
                 acknowledged and is not in the journal, a success without its effect
    run twice    an effect of an attempt that began after its step (or part) had succeeded
    unrecorded   an effect without the durable start that must come before it
    repeated     attempts that were under way when the child died, and were made again: nobody
                 knows what they did, so their effects may be there twice. Allowed, and counted

A second trial fills the disk under a run: a small tmpfs where we may mount one, else a limit on
the size of files. SIGKILL leaves the page cache alone: what a power cut takes is not tried here.
"""

import argparse
import asyncio
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import TypeAlias

from stretto.adapters.clock import SystemClock
from stretto.adapters.stores.sqlite import SqliteJournal
from stretto.agents.agent_files import load_catalog
from stretto.events.attempts import CheckPart
from stretto.events.model import AttemptFailed, AttemptStarted, AttemptSucceeded, Event, RunEnded
from stretto.execution.history import History
from stretto.execution.runs import Runs, Start
from stretto.plan.build import build
from stretto.plan.model import Plan
from stretto.ports.journal import JournalFull, LeaseOwner
from stretto.ports.runner import AttemptRequest, AttemptResult, Failure, Success, Witness
from stretto.problems.errors import StrettoError
from stretto.processes.identity import is_dead, name_of_this_process
from stretto.recipe.read import read_recipe
from stretto.schedule.state import RunState
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import RunId
from stretto.vocabulary.statuses import RunStatus, StepStatus

QUICK = (10, 200)  # kills, steps
AT_ONCE = 6  # runs that one child drives together
LEASE_SKIP_SECONDS = 60.0  # the store's clock goes on by this with each child: leases have run out
FINISH_SECONDS = 600.0
_Place: TypeAlias = list[str | int]  # run, step, part, attempt
DISK_BYTES = 8 * 1024 * 1024
FREE_BYTES = 512 * 1024  # too few for what the run has to say

RECIPES = {
    "chain": """\
name: chain
steps:
  - {id: s0, subagent: writer, prompt: Begin.}
"""
    + "".join(
        f"  - {{id: s{n}, subagent: writer, prompt: 'After {{{{steps.s{n - 1}.output}}}}'}}\n"
        for n in range(1, 12)
    ),
    "fan-out": """\
name: fan-out
steps:
  - {id: first, subagent: writer, prompt: Begin.}
"""
    + "".join(
        f"  - {{id: b{n}, subagent: writer, prompt: 'On {{{{steps.first.output}}}}'}}\n"
        for n in range(10)
    )
    + """\
  - id: both
    depends_on: [first]
    wait: all
    parallel:
      - {agent: writer, input: one, output_key: one}
      - {agent: reviewer, input: two, output_key: two}
      - {agent: writer, input: three, output_key: three}
  - id: join
    subagent: writer
    depends_on: [both, b0, b1, b2, b3, b4, b5, b6, b7, b8, b9]
    prompt: Join {{steps.both.output}}.
""",
    "map": """\
name: map
inputs: [{name: items, type: json}]
steps:
  - id: each
    map:
      over: "{{inputs.items}}"
      batch_size: 4
      stages: [{agent: writer, input: "{{item}}"}, {agent: reviewer, input: "{{item}}"}]
      reduce: writer
  - {id: end, subagent: writer, prompt: "{{steps.each.output}}"}
""",
    "loop": """\
name: loop
steps:
  - id: refine
    loop: {agent: writer, validator: reviewer, max_iterations: 4}
    input: Write it.
  - {id: end, subagent: writer, prompt: "{{steps.refine.output}}"}
""",
    "retry": """\
name: retry
steps:
"""
    + "".join(
        f"  - {{id: flaky{n}, subagent: writer, prompt: Try., retry: {{max_attempts: 4}}}}\n"
        for n in range(6)
    )
    + "  - {id: end, subagent: writer, depends_on: [flaky0, flaky1, flaky2, flaky3, flaky4,"
    + " flaky5], prompt: Done.}\n",
}
INPUTS: dict[str, dict[str, Json]] = {"map": {"items": [f"item {n}" for n in range(8)]}}


def _place(request: AttemptRequest) -> _Place:
    id = request.attempt
    return [request.run_id, id.step, id.part.text, id.number]


def plans() -> dict[str, Plan]:
    catalog = load_catalog((), Path.cwd())
    built = {name: build(read_recipe(text, name), catalog) for name, text in RECIPES.items()}
    for name, plan in built.items():
        assert isinstance(plan, Plan), f"{name}: {plan.problems[0]}"
    return {name: plan for name, plan in built.items() if isinstance(plan, Plan)}


# --- the child -----------------------------------------------------------------------------


class Effects:
    """The runner: what it does to the world is one line of a file, on the disk before it answers."""

    def __init__(self, folder: Path) -> None:
        flags = os.O_APPEND | os.O_CREAT | os.O_WRONLY
        self._effects = os.open(folder / "effects.jsonl", flags, 0o600)
        self._acknowledged = os.open(folder / "acknowledged.jsonl", flags, 0o600)

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        place = _place(request)
        await asyncio.sleep(random.random() * 0.004)
        await asyncio.to_thread(self._write, place)
        await asyncio.sleep(random.random() * 0.004)
        if request.step.startswith("flaky") and request.attempt.number <= 2:
            return Failure("error", "try again")
        if isinstance(request.attempt.part, CheckPart):
            passed = request.attempt.part.iteration >= 3
            return Success({"passed": passed, "feedback": "once more"})
        return Success(
            f"{request.step}/{request.attempt.part.text} is done. " + "x" * random.randrange(200)
        )

    def _write(self, place: _Place) -> None:
        # By the driver's clock: on a busy machine the wall clock may differ by milliseconds.
        os.write(self._effects, f"{json.dumps([SystemClock().now(), *place])}\n".encode())
        os.fsync(self._effects)

    def acknowledge(self, event: Event, state: RunState) -> None:
        """The driver tells its listener what is durable. SIGKILL takes nothing that was written."""
        os.write(self._acknowledged, f"{json.dumps([state.run_id, *_name(event)])}\n".encode())


def _name(event: Event) -> tuple[str, str, str, int]:
    if isinstance(event, AttemptStarted | AttemptSucceeded | AttemptFailed):
        id = event.attempt
        return event.type, id.step, id.part.text, id.number
    return event.type, "", "", 0


async def open_runs(folder: Path, generation: int) -> tuple[SqliteJournal, Runs]:
    # The dead child's leases would last half a minute: to the store, a minute has passed.
    skipped = generation * LEASE_SKIP_SECONDS
    store = await SqliteJournal.open(folder / "runs.db", lambda: time.time() + skipped)
    owner = LeaseOwner(name_of_this_process(), is_dead)
    # Every kill counts as a crash of the steps under way, and none of them shall be given up on.
    return store, Runs(store, SystemClock(), owner=owner, most_crashes=1_000_000)


async def child(folder: Path, generation: int, steps: int) -> None:
    """`steps` 0: start new runs until killed. Else: end everything, with that many steps in all."""
    store, runs = await open_runs(folder, generation)
    effects = Effects(folder)
    by_name = plans()
    os.write(1, b"!")  # ready
    listed = await runs.recent(1_000_000)
    left = [row.run_id for row in listed if row.status == RunStatus.RUNNING]
    begun = sum(len(by_name[row.workflow].steps) for row in listed)
    places = asyncio.Semaphore(AT_ONCE)

    async def drive(run_id: RunId | None, plan: Plan | None) -> None:
        async with places:
            if run_id is not None:
                await runs.resume(run_id, effects, effects.acknowledge)
            elif plan is not None:
                start = Start(plan, INPUTS.get(plan.name, {}))
                await runs.start(start, effects, effects.acknowledge)

    await asyncio.gather(*(drive(run_id, None) for run_id in left))
    tasks: set[asyncio.Task[None]] = set()
    names = list(by_name)
    while not steps or begun < steps:
        plan = by_name[random.choice(names)]
        begun += len(plan.steps)
        tasks.add(asyncio.create_task(drive(None, plan)))
        if len(tasks) > AT_ONCE:
            ended, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
    await asyncio.gather(*tasks)
    await store.close()


# --- the parent ----------------------------------------------------------------------------


def kill_often(folder: Path, kills: int, chance: random.Random) -> int:
    """How many children died by our hand, at whatever moment."""
    killed = 0
    for generation in range(kills):
        with _child(folder, generation, 0) as process:
            if chance.random() < 0.05:
                time.sleep(chance.random() * 0.3)  # perhaps while it opens the journal
            else:
                assert process.stdout is not None
                process.stdout.read(1)
                time.sleep(chance.random() * 0.35)
            process.kill()
            process.wait()
            if process.returncode != -signal.SIGKILL:
                raise SystemExit(f"child {generation} ended by itself: {process.returncode}")
            killed += 1
    return killed


def _child(folder: Path, generation: int, steps: int) -> "subprocess.Popen[bytes]":
    words = [sys.executable, __file__, "--child", str(folder), str(generation), str(steps)]
    return subprocess.Popen(words, stdout=subprocess.PIPE)


def finish(folder: Path, generation: int, steps: int) -> None:
    with _child(folder, generation, steps) as process:
        if process.wait(FINISH_SECONDS) != 0:
            raise SystemExit(f"the last child ended with {process.returncode}")


@dataclass(slots=True)
class Verdict:
    runs: int = 0
    resumed: int = 0
    steps: int = 0
    attempts: int = 0
    effects: int = 0
    acknowledged: int = 0
    repeated: int = 0  # attempts in doubt that were made again
    repeated_effects: int = 0  # of these, the ones that had had their effect
    lost: list[str] = field(default_factory=list)
    run_twice: list[str] = field(default_factory=list)
    unrecorded: list[str] = field(default_factory=list)

    kills: int = 0

    @property
    def is_good(self) -> bool:
        return not any(self.bad.values())

    @property
    def bad(self) -> dict[str, int]:
        """How often what must never happen did happen."""
        names = ("lost", "run_twice", "unrecorded")
        return {name: len(getattr(self, name)) for name in names}


def try_kills(folder: Path, kills: int, steps: int, chance: random.Random) -> Verdict:
    folder.mkdir()
    killed = kill_often(folder, kills, chance)
    finish(folder, kills, steps)
    verdict = asyncio.run(compare(folder))
    verdict.kills = killed
    return verdict


async def compare(folder: Path) -> Verdict:
    store = await SqliteJournal.open(folder / "runs.db")
    runs = Runs(store, SystemClock(), owner=LeaseOwner(name_of_this_process(), is_dead))
    verdict = Verdict()
    effects = _by_run(folder / "effects.jsonl", run_at=1)
    acknowledged = _by_run(folder / "acknowledged.jsonl", run_at=0)
    for row in await runs.recent(1_000_000):
        history = await runs.history(row.run_id)
        judge(verdict, history, effects.pop(row.run_id, []), acknowledged.pop(row.run_id, []))
    await store.close()
    verdict.lost += [f"run {run}: acknowledged, and not in the store" for run in acknowledged]
    verdict.unrecorded += [f"run {run}: effects, and not in the store" for run in effects]
    return verdict


def _by_run(file: Path, run_at: int) -> dict[str, list[list[object]]]:
    found = defaultdict(list)
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found[row[run_at]].append(row)
    return found


def judge(
    verdict: Verdict,
    history: History,
    effects: list[list[object]],
    acknowledged: list[list[object]],
) -> None:
    state, run = history.state, history.started.run_id
    verdict.runs += 1
    verdict.steps += len(state.order)
    verdict.effects += len(effects)
    verdict.acknowledged += len(acknowledged)
    verdict.resumed += any(event.type == "run_resumed" for event in history.events)
    if state.status is not RunStatus.COMPLETE or not isinstance(history.events[-1], RunEnded):
        verdict.lost.append(f"run {run} is {state.status.value}")
    for step in state.order:
        if step.ended_at is None or step.status is not StepStatus.SUCCEEDED:
            verdict.lost.append(f"run {run}: step {step.id} is {step.status.value}")
    stored: Counter[tuple[object, ...]] = Counter(map(_name, history.events))
    for name, times in Counter(tuple(row[1:]) for row in acknowledged).items():
        if stored[name] < times:
            verdict.lost.append(f"run {run}: {name} acknowledged {times}×, stored {stored[name]}×")
    _judge_attempts(verdict, history, effects)


def _judge_attempts(verdict: Verdict, history: History, effects: list[list[object]]) -> None:
    run = history.started.run_id
    open_attempts: set[tuple[object, ...]] = set()
    started: set[tuple[object, ...]] = set()
    succeeded_at: dict[tuple[object, ...], float] = {}  # by step and part
    has_effect = Counter(tuple(row[2:]) for row in effects)
    for event in history.events:
        if not isinstance(event, AttemptStarted | AttemptSucceeded | AttemptFailed):
            continue
        part = (event.step, event.attempt.part.text)
        attempt = (*part, event.attempt.number)
        if isinstance(event, AttemptStarted):
            if part in succeeded_at or attempt in started:
                verdict.run_twice.append(f"run {run}: {attempt} started after it had ended")
            open_attempts.add(attempt)
            started.add(attempt)
            continue
        open_attempts.discard(attempt)
        if isinstance(event, AttemptSucceeded):
            succeeded_at[part] = event.at
            if not has_effect[attempt]:
                verdict.lost.append(f"run {run}: {attempt} succeeded without its effect")
    verdict.attempts += len(started)
    verdict.repeated += len(open_attempts)
    verdict.repeated_effects += sum(bool(has_effect[attempt]) for attempt in open_attempts)
    for at, _, *place in effects:
        if tuple(place) not in started:
            verdict.unrecorded.append(f"run {run}: {place}")
        ended_at = succeeded_at.get(tuple(place[:2]), inf)
        if has_effect[tuple(place)] > 1 or (isinstance(at, float) and at > ended_at):
            verdict.run_twice.append(f"run {run}: {place} had its effect after the end")


# --- a full disk ---------------------------------------------------------------------------


@contextmanager
def small_disk(folder: Path) -> Iterator[tuple[str, Path, Iterator[None]]]:
    """How it is made small, where it is, and a generator whose next step gives the space back."""
    folder.mkdir()
    if _is_mounted(folder):
        try:
            yield "a tmpfs with 512 KiB left", folder, _ballast(folder)
        finally:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
    else:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        was = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            yield "files of at most 512 KiB", folder, _size_limit(soft, hard)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            signal.signal(signal.SIGXFSZ, was)


def _is_mounted(folder: Path) -> bool:
    """Only root may, and not everywhere."""
    options = f"size={DISK_BYTES},mode=700"
    words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    try:
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _ballast(folder: Path) -> Iterator[None]:
    ballast = folder / "ballast"
    ballast.write_bytes(b"x" * (DISK_BYTES - FREE_BYTES))
    yield
    ballast.unlink()
    yield


def _size_limit(soft: int, hard: int) -> Iterator[None]:
    resource.setrlimit(resource.RLIMIT_FSIZE, (FREE_BYTES, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    yield


@dataclass(frozen=True, slots=True)
class FullDisk:
    how: str
    said: str
    acknowledged_before: int  # events, when the disk was full
    verdict: Verdict


def fill_disk(folder: Path) -> FullDisk:
    """One run, until the journal has no space; then space, and the run goes on."""
    folder.mkdir()
    with small_disk(folder / "small") as (how, disk, space):
        # Links: the effects are not what shall run out of space.
        for name in ("effects.jsonl", "acknowledged.jsonl"):
            (folder / name).touch()
            (disk / name).symlink_to(folder / name)
        said, before = asyncio.run(_until_full(disk, space))
        return FullDisk(how, said, before, asyncio.run(compare(disk)))


async def _until_full(folder: Path, space: Iterator[None]) -> tuple[str, int]:
    steps = "".join(
        f"  - {{id: s{n}, subagent: writer, prompt: 'After {{{{steps.s{n - 1}.output}}}}'}}\n"
        for n in range(1, 60)
    )
    text = "name: large\nsteps:\n  - {id: s0, subagent: writer, prompt: Begin.}\n" + steps
    plan = build(read_recipe(text, "large"), load_catalog((), Path.cwd()))
    assert isinstance(plan, Plan)
    large = _Large(folder)
    store, runs = await open_runs(folder, 0)
    next(space)
    run_id, said = RunId("full-disk"), ""
    try:
        await runs.start(Start(plan, {}, run_id), large, large.acknowledge)
    except JournalFull as full:
        said = str(full)
    await _closed(store)
    before = len((folder / "acknowledged.jsonl").read_text().splitlines())
    next(space)
    store, runs = await open_runs(folder, 1)
    await runs.resume(run_id, large, large.acknowledge)
    await store.close()
    return said, before


async def _closed(store: SqliteJournal) -> None:
    try:
        await store.close()
    except StrettoError as error:
        print(f"closing says: {error}", file=sys.stderr)


class _Large(Effects):
    """Answers that fill a small disk within one run."""

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        self._write(_place(request))
        return Success("x" * 10_000)


# --- figures -------------------------------------------------------------------------------


def show(verdict: Verdict, seconds: float) -> None:
    rows = (
        ("kills", verdict.kills),
        ("runs", verdict.runs),
        ("of these, resumed at least once", verdict.resumed),
        ("steps", verdict.steps),
        ("attempts", verdict.attempts),
        ("effects", verdict.effects),
        ("events acknowledged", verdict.acknowledged),
        ("attempts in doubt, repeated", verdict.repeated),
        ("of these, with an effect", verdict.repeated_effects),
        ("lost", len(verdict.lost)),
        ("ended steps run twice", len(verdict.run_twice)),
        ("effects without a durable start", len(verdict.unrecorded)),
    )
    print(f"killed at random moments, in {seconds:.0f} s")
    for what, number in rows:
        print(f"  {what:34} {number:>8,}")


def show_full(full: FullDisk) -> None:
    print(f"a full disk: {full.how}")
    print(f"  the journal said: {full.said or 'nothing: the disk was never full'}")
    print(f"  {'events acknowledged before that':34} {full.acknowledged_before:>8,}")
    print(f"  {'steps, after space was made':34} {full.verdict.steps:>8,}")
    print(f"  {'lost':34} {len(full.verdict.lost):>8,}")
    print(f"  {'ended steps run twice':34} {len(full.verdict.run_twice):>8,}")


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        asyncio.run(child(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--steps", type=int, default=5_000, help="at least as many in all")
    parser.add_argument("--seed", type=int, default=None, help="of the moments of the kills")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK[0]} kills, {QUICK[1]} steps")
    wanted = parser.parse_args()
    kills, steps = QUICK if wanted.quick else (wanted.kills, wanted.steps)
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        verdict = try_kills(Path(place) / "killed", kills, steps, random.Random(wanted.seed))
        full = fill_disk(Path(place) / "full")
    show(verdict, time.perf_counter() - begun)
    show_full(full)
    bad = [*verdict.lost, *verdict.run_twice, *verdict.unrecorded]
    bad += [*full.verdict.lost, *full.verdict.run_twice, *full.verdict.unrecorded]
    for line in bad[:20]:
        print(f"BAD  {line}")
    return 1 if bad or not full.said else 0


if __name__ == "__main__":
    sys.exit(main())
