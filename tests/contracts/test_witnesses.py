"""What every witness of an attempt must do: the driver's own, and those that stand before it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from stretto.agents.judge import _Quiet
from stretto.agents.redacted import _RedactedWitness
from stretto.events.model import Event, ModelRetried, ToolStarted
from stretto.execution.driver import _Witness
from stretto.execution.runs import Start
from stretto.ports.journal import Fenced
from stretto.ports.runner import AttemptRequest, AttemptResult, Failure, Success, Witness
from stretto.schedule.state import RunState
from stretto.text.redaction import Redactor
from stretto.vocabulary.amounts import Usage
from support.driven_runs import RUN, Stage, statuses

PORTS = (Witness,)
RECIPE = """\
name: one
steps:
  - id: look
    subagent: writer
    prompt: Look.
"""
TOOK = Usage(input_tokens=30, output_tokens=4, usd=0.5, model_calls=1)

Story = Callable[[AttemptRequest, Witness, Stage], Awaitable[AttemptResult | None]]


@dataclass(frozen=True)
class Told:
    """A runner whose only attempt does what a test says, before the witness of one kind."""

    wrap: Callable[[Witness], Witness]
    story: Story
    stage: Stage

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        assert isinstance(witness, _Witness), "the driver's own stands behind all others"
        return await self.story(request, self.wrap(witness), self.stage) or Success("done")


KINDS: dict[str, Callable[[Witness], Witness]] = {
    "the driver's": lambda witness: witness,
    "redacting": lambda witness: _RedactedWitness(witness, Redactor({"TOKEN": "open sesame"})),
    "of the judge": _Quiet,
    "of the judge, redacting": lambda witness: _Quiet(_RedactedWitness(witness, Redactor({}))),
}


@pytest.fixture(params=KINDS)
def wrap(request: pytest.FixtureRequest) -> Callable[[Witness], Witness]:
    return KINDS[request.param]


def play(wrap: Callable[[Witness], Witness], story: Story) -> tuple[RunState, Stage]:
    stage = Stage(RECIPE)
    start = Start(stage.plan, {}, RUN, seed=7)
    return stage.do(stage.runs().start(start, Told(wrap, story, stage))), stage


def call(request: AttemptRequest, at: float) -> ToolStarted:
    return ToolStarted(at, request.attempt, 1, "Bash", {"command": "true"}, "in_doubt")


def retry(request: AttemptRequest, at: float, number: int = 1) -> ModelRetried:
    return ModelRetried(at, request.attempt, "a:model", "it was busy", number, 9, 1.0)


async def rows(stage: Stage) -> list[object]:
    return [stored.event for stored in await stage.store.read(RUN)]


def test_it_knows_the_time_of_the_run(wrap: Callable[[Witness], Witness]) -> None:
    async def story(request: AttemptRequest, witness: Witness, stage: Stage) -> None:
        before = witness.now()
        assert before == stage.clock.now()
        await asyncio.sleep(5)
        assert witness.now() == before + 5

    assert statuses(play(wrap, story)[0]) == {"look": "succeeded"}


def test_it_knows_whether_somebody_reads_along(wrap: Callable[[Witness], Witness]) -> None:
    async def story(request: AttemptRequest, witness: Witness, stage: Stage) -> None:
        assert not witness.is_followed()
        stage.made[-1].follow(RUN, 60)
        assert witness.is_followed()
        stage.made[-1].follow(RUN, 0)
        assert not witness.is_followed()

    assert statuses(play(wrap, story)[0]) == {"look": "succeeded"}


def test_what_is_recorded_is_durable_before_anything_follows_from_it(
    wrap: Callable[[Witness], Witness],
) -> None:
    async def story(request: AttemptRequest, witness: Witness, stage: Stage) -> None:
        event = call(request, witness.now())
        assert event not in await rows(stage)
        await witness.record(event)
        assert event in await rows(stage)

    assert statuses(play(wrap, story)[0]) == {"look": "succeeded"}


def test_what_is_noted_is_journaled_in_order_and_before_the_attempt_ends(
    wrap: Callable[[Witness], Witness],
) -> None:
    said: list[Event] = []

    async def story(request: AttemptRequest, witness: Witness, stage: Stage) -> None:
        said.extend(retry(request, witness.now(), number) for number in (1, 2))
        for event in said:
            witness.note(event)
        said.append(call(request, witness.now()))
        await witness.record(said[-1])
        said.append(retry(request, witness.now(), 3))
        witness.note(said[-1])

    _, stage = play(wrap, story)
    journal = stage.journal()
    assert [event for event in journal if event in said] == said
    assert [event.type for event in journal[-2:]] == ["attempt_succeeded", "run_ended"]


def test_a_run_that_is_driven_here_confirms_at_once(wrap: Callable[[Witness], Witness]) -> None:
    async def story(request: AttemptRequest, witness: Witness, stage: Stage) -> None:
        before = len(stage.store.commits)
        for _ in range(100):
            await witness.confirm()
        assert len(stage.store.commits) == before
        assert witness.now() == stage.clock.now()

    assert statuses(play(wrap, story)[0]) == {"look": "succeeded"}


def test_nothing_is_confirmed_once_another_process_drives_the_run(
    wrap: Callable[[Witness], Witness],
) -> None:
    refused: list[bool] = []

    async def story(request: AttemptRequest, witness: Witness, stage: Stage) -> None:
        stage.clock.skip(3_600)  # this process was suspended
        await stage.store.lease(RUN, "another process", 60)
        try:
            await witness.confirm()
        except Fenced:
            refused.append(True)
            raise

    with pytest.raises(Fenced):
        play(wrap, story)
    assert refused == [True]


def test_what_was_spent_counts_also_where_the_attempt_breaks_off(
    wrap: Callable[[Witness], Witness],
) -> None:
    async def story(request: AttemptRequest, witness: Witness, stage: Stage) -> AttemptResult:
        witness.spend(TOOK)
        witness.spend(TOOK)
        raise ValueError("a fault in the runner")

    state, _ = play(wrap, story)
    assert statuses(state) == {"look": "failed"}
    assert state.usage == TOOK + TOOK


def test_what_was_spent_counts_also_where_the_attempt_is_cancelled(
    wrap: Callable[[Witness], Witness],
) -> None:
    async def story(request: AttemptRequest, witness: Witness, stage: Stage) -> AttemptResult:
        witness.spend(TOOK)
        await stage.runs().cancel(RUN, "enough")
        await asyncio.sleep(3_600)
        return Failure("error", "nobody has cancelled it")

    state, _ = play(wrap, story)
    assert state.status.value == "cancelled"
    assert state.usage == TOOK
