"""Large outputs lie apart from the rows, once, and are read when they are used."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest

from stretto.adapters.clock import SystemClock
from stretto.adapters.stores.sqlite import SqliteJournal
from stretto.events.attempts import AttemptId, StepTimer
from stretto.events.codec import decode, encode
from stretto.events.model import AttemptSucceeded, ModelSpoke, TimerFired
from stretto.execution.history import load
from stretto.execution.reuse import reusable
from stretto.execution.runs import Runs, Start
from stretto.ports.runner import AttemptRequest, AttemptResult, Success, Witness
from stretto.problems.errors import StrettoError
from stretto.schedule.state import RunState
from stretto.vocabulary.json_value import LARGE_BYTES, Json, Large, loaded
from stretto.vocabulary.names import RunId, StepId
from support.scheduling import plan_of

T = TypeVar("T")
RUN, OTHER = RunId("run-1"), RunId("run-2")
BIG = "ä→" * LARGE_BYTES
CHAIN = """
name: t
steps:
  - {id: a, subagent: worker, prompt: go}
  - {id: b, subagent: worker, prompt: "see {{steps.a.output}}", depends_on: [a]}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def told(path: Path, story: Callable[[SqliteJournal], Awaitable[T]]) -> T:
    async def whole() -> T:
        journal = await SqliteJournal.open(path)
        try:
            return await story(journal)
        finally:
            await journal.close()

    return asyncio.run(whole())


def ended(output: Json, step: str = "a") -> AttemptSucceeded:
    return AttemptSucceeded(1.0, AttemptId(StepId(step), 1), output)


def count(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as db:
        (number,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(number)


def longest_row(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        (longest,) = db.execute("SELECT max(length(event)) FROM events").fetchone()
    return int(longest)


@pytest.mark.parametrize(
    "output", [BIG, [BIG], {"a": [1, BIG], "b": None}], ids=["text", "list", "map"]
)
def test_a_large_output_lies_apart_and_is_read_back_as_it_was(path: Path, output: Json) -> None:
    async def story(journal: SqliteJournal) -> None:
        fence = await journal.lease(RUN, "me", 60)
        kept = await journal.append(
            RUN, [TimerFired(1.0, StepTimer("t")), ended(output)], fence=fence
        )
        assert {place: large.value() for place, large in kept.items()} == {1: output}
        (_, row) = await journal.read(RUN)
        assert isinstance(row.event, AttemptSucceeded)
        assert isinstance(row.event.output, Large)
        assert loaded(row.event.output) == output
        assert decode(encode(row.event)) == ended(output), "who prints an event prints all of it"

    told(path, story)
    assert longest_row(path) < 1_000
    assert count(path, "large_values") == 1


def test_a_small_output_stays_in_its_row(path: Path) -> None:
    async def story(journal: SqliteJournal) -> None:
        fence = await journal.lease(RUN, "me", 60)
        assert await journal.append(RUN, [ended("x" * (LARGE_BYTES - 2))], fence=fence) == {}

    told(path, story)
    assert count(path, "large_values") == 0


def test_equal_outputs_of_several_runs_lie_there_once_and_know_who_uses_them(path: Path) -> None:
    async def story(journal: SqliteJournal) -> None:
        for run in (RUN, OTHER):
            fence = await journal.lease(run, "me", 60)
            await journal.append(run, [ended(BIG), ended(BIG, "b")], fence=fence)

    told(path, story)
    assert (count(path, "large_values"), count(path, "large_value_uses")) == (1, 2)


def test_an_append_that_is_refused_leaves_no_value_behind(path: Path) -> None:
    async def story(journal: SqliteJournal) -> None:
        fence = await journal.lease(RUN, "me", 60)
        with pytest.raises(StrettoError):
            await journal.append(RUN, [ended(BIG)], fence=fence + 1)

    told(path, story)
    assert count(path, "large_values") == 0


@pytest.mark.parametrize(
    ("damage", "says"),
    [("DELETE FROM large_values", "lacks"), ("UPDATE large_values SET value = '1'", "is damaged")],
)
def test_a_value_that_is_gone_or_changed_is_said_to_be(path: Path, damage: str, says: str) -> None:
    async def story(journal: SqliteJournal) -> None:
        fence = await journal.lease(RUN, "me", 60)
        (kept,) = (await journal.append(RUN, [ended(BIG)], fence=fence)).values()
        with closing(sqlite3.connect(path)) as db:
            db.execute(damage)
            db.commit()
        with pytest.raises(StrettoError, match=says):
            kept.value()

    told(path, story)


def test_what_models_said_piece_by_piece_is_read_only_by_who_wants_it(path: Path) -> None:
    async def story(journal: SqliteJournal) -> None:
        fence = await journal.lease(RUN, "me", 60)
        said = ModelSpoke(1.0, AttemptId(StepId("a"), 1), "words")
        await journal.append(
            RUN,
            [TimerFired(1.0, StepTimer("t")), said, TimerFired(2.0, StepTimer("u"))],
            fence=fence,
        )
        assert [row.seq for row in await journal.read(RUN)] == [1, 2, 3]
        assert [row.seq for row in await journal.read(RUN, with_speech=False)] == [1, 3]

    told(path, story)


class Worker:
    """Gives a large text for `a`, and for `b` how long its prompt was."""

    def __init__(self, stops: Runs | None = None) -> None:
        self.stops = stops
        self.asked: list[str] = []

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        self.asked.append(request.step)
        if request.step == "a":
            return Success(BIG)
        if self.stops is not None:
            self.stops.stop()
            await asyncio.Event().wait()
        return Success(str(request.prompt.count("→")))


def outputs(state: RunState) -> dict[str, Json]:
    return {step.id: step.output for step in state.order}


def test_a_run_lets_go_of_large_outputs_and_prompts_still_show_them(path: Path) -> None:
    async def story(journal: SqliteJournal) -> RunState:
        return await Runs(journal, SystemClock()).start(Start(plan_of(CHAIN), {}, RUN), Worker())

    state = told(path, story)
    assert isinstance(state.steps[StepId("a")].kept_output, Large)
    assert outputs(state) == {"a": BIG, "b": str(LARGE_BYTES)}


def test_a_resumed_run_holds_large_outputs_by_reference(path: Path) -> None:
    async def first(journal: SqliteJournal) -> None:
        runs = Runs(journal, SystemClock())
        await runs.start(Start(plan_of(CHAIN), {}, RUN), Worker(runs))

    async def again(journal: SqliteJournal) -> RunState:
        history = await load(journal, RUN)
        assert isinstance(history.state.steps[StepId("a")].kept_output, Large)
        return await Runs(journal, SystemClock()).resume(RUN, Worker())

    told(path, first)
    assert outputs(told(path, again)) == {"a": BIG, "b": str(LARGE_BYTES)}


def test_a_retry_shares_what_the_first_run_made(path: Path) -> None:
    worker = Worker()

    async def story(journal: SqliteJournal) -> RunState:
        runs = Runs(journal, SystemClock())
        await runs.start(Start(plan_of(CHAIN), {}, RUN), worker)
        history = await load(journal, RUN)
        offered = reusable(history.state, history.events)
        fence = await journal.lease(OTHER, "me", 60)
        (answer,) = [each for each in offered.answers.values() if isinstance(each.output, Large)]
        await journal.append(OTHER, [ended(answer.output)], fence=fence)  # type: ignore[arg-type]
        ((row),) = await journal.read(OTHER)
        assert isinstance(row.event, AttemptSucceeded)
        assert loaded(row.event.output) == BIG
        return history.state

    told(path, story)
    assert (count(path, "large_values"), count(path, "large_value_uses")) == (1, 2)


WIDE = """
workflow:
  name: t
  inputs: [{name: list, type: json}]
  agents: {a: {prompt: A}, other: {prompt: O}}
  steps:
    - {id: each, map: {over: "{{inputs.list}}", agent: a, reduce: other}}
    - {id: many, map: {over: "{{inputs.list}}", agent: a}}
    - {id: fan, parallel: [{agent: a, input: x}, {agent: other, input: y}]}
    - {id: end, agent: other, input: "{{steps.fan.outputs.a}}{{steps.many.output}}"}
"""


class Wide:
    def __init__(self) -> None:
        self.arrows: dict[str, int] = {}

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        self.arrows[f"{request.step}/{request.attempt.part.text}"] = request.prompt.count("→")
        return Success(BIG if request.agent == "a" else "small")


def test_maps_and_branches_hold_large_outputs_by_reference_too(path: Path) -> None:
    worker = Wide()

    async def story(journal: SqliteJournal) -> tuple[RunState, RunState]:
        start = Start(plan_of(WIDE), {"list": [1, 2]}, RUN)
        state = await Runs(journal, SystemClock()).start(start, worker)
        return state, (await load(journal, RUN)).state

    for state in told(path, story):
        steps = {str(id): step for id, step in state.steps.items()}
        assert steps["many"].items is not None
        assert all(isinstance(each, Large) for each in steps["many"].items.results)
        assert isinstance((steps["fan"].kept_outputs or {})["a"], Large)
        assert outputs(state) == {
            "each": "small", "many": [BIG, BIG], "fan": {"a": BIG, "other": "small"}, "end": "small",
        }  # fmt: skip
    assert worker.arrows["each/reduce"] == 2 * LARGE_BYTES
    assert worker.arrows["end/"] == 3 * LARGE_BYTES


def test_a_value_goes_with_the_last_run_that_uses_it(path: Path) -> None:
    async def story(journal: SqliteJournal) -> None:
        fences = {run: await journal.lease(run, "me", 60) for run in (RUN, OTHER)}
        for run, fence in fences.items():
            said = AttemptSucceeded(1.0, AttemptId(StepId("a"), 1), BIG)
            await journal.append(run, [said], fence=fence)
        await journal.forget(RUN, fence=fences[RUN])
        (left,) = await journal.read(OTHER)
        assert isinstance(left.event, AttemptSucceeded)
        assert loaded(left.event.output) == BIG
        await journal.forget(OTHER, fence=fences[OTHER])
        await journal.compact()

    told(path, story)
    with closing(sqlite3.connect(path)) as db:
        # An empty row may keep the number of the newest event.
        for table in ("events WHERE event != ''", "large_values", "large_value_uses"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
    assert path.stat().st_size < LARGE_BYTES
