"""Whatever comes, `advance` answers: it never raises, and what is about nothing changes nothing."""

from itertools import product

from stretto.events.attempts import WHOLE_STEP, AttemptId, BranchPart, RetryTimer, StepTimer
from stretto.events.model import (
    Approved,
    AttemptCancelled,
    AttemptFailed,
    AttemptStarted,
    AttemptSucceeded,
    CancelRequested,
    Event,
    Rejected,
    RunEnded,
    RunResumed,
    RunStarted,
    TimerFired,
)
from stretto.schedule.advance import advance
from stretto.schedule.state import begin
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.names import AgentId, StepId
from stretto.vocabulary.statuses import RunStatus
from support.scheduling import NO_PLAN, Driven, Hang, drive, plan_of

PLAN = plan_of("name: t\nsteps: [{id: a, subagent: worker, prompt: go}]")


def strangers() -> list[Event]:
    """Events about steps, parts and attempts that are not there."""
    events: list[Event] = [
        TimerFired(1, StepTimer(StepId("nobody"))),
        TimerFired(1, RetryTimer(AttemptId(StepId("a"), 1))),
    ]
    for step, part, attempt in product(("a", "nobody"), (WHOLE_STEP, BranchPart("x")), (-1, 0, 2)):
        at = AttemptId(StepId(step), attempt, part)
        events += [
            AttemptStarted(1, at, AgentId("worker"), ""),
            AttemptSucceeded(1, at, "x", Usage(9)),
            AttemptFailed(1, at, "error", "x"),
            AttemptCancelled(1, at),
        ]
    for step in ("a", "nobody"):
        events += [Approved(1, StepId(step)), Rejected(1, StepId(step))]
    return events


def test_events_about_nothing_that_is_known_change_nothing() -> None:
    run = Driven(PLAN, {"a": Hang()}).start()
    for event in strangers():
        assert run.see(event) == ()
    assert run.state.usage == Usage()
    assert run.statuses() == {"a": "running"}


def test_every_event_is_taken_before_the_start_and_after_the_end() -> None:
    others: list[Event] = [CancelRequested(1), RunResumed(1), RunEnded(1, "complete")]
    state = begin(PLAN)
    for event in (*strangers(), *others):
        assert advance(state, event)[1] == ()
    run = drive(PLAN)
    run.see(RunEnded(2, "complete"))
    again = RunStarted(3, "run-1", "t", "", NO_PLAN, {}, 0)
    answer = AttemptSucceeded(3, AttemptId(StepId("a"), 1), "again")
    for event in (*strangers(), *others, again, answer):
        assert run.see(event) == ()
    assert run.output == "a"
    assert run.ended == [RunStatus.COMPLETE]


def test_an_attempt_ends_once() -> None:
    run = Driven(PLAN, {"a": Hang()}).start()
    run.see(AttemptSucceeded(1, AttemptId(StepId("a"), 1), "first", Usage(1)))
    run.see(AttemptFailed(1, AttemptId(StepId("a"), 1), "error", "second", Usage(1)))
    assert (run.output, run.state.usage) == ("first", Usage(1))


def test_a_plan_is_never_changed_and_serves_many_runs() -> None:
    before = repr(PLAN)
    assert drive(PLAN).journal == drive(PLAN).journal
    assert repr(PLAN) == before
