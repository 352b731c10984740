"""The loop of a goal as a pure function: events in, the next move out."""

import pytest
from hypothesis import given, strategies as st

from stretto.goals.goal import (
    CheckEnded,
    CheckStarted,
    Conclude,
    GoalEnded,
    GoalEvent,
    GoalLimits,
    GoalReopened,
    GoalSpec,
    GoalStanding,
    GoalState,
    Iterate,
    IterationEnded,
    IterationStarted,
    IterationWaits,
    Verify,
    decode_event,
    decode_spec,
    encode_goal,
    fold,
    goal_word,
    next_move,
)
from stretto.vocabulary.amounts import Usage


def goal(*events: GoalEvent, **limits: object) -> GoalStanding:
    spec = GoalSpec("All tests pass", "test:", "/work", limits=GoalLimits(**limits))  # type: ignore[arg-type]
    return fold("g", spec, 0.0, events)


def checked(
    number: int, evidence: str = "", is_met: bool = False, **more: object
) -> list[GoalEvent]:
    said = evidence or f"failure {number}"
    end = CheckEnded(0, 0, number, is_met, said, said, **more)  # type: ignore[arg-type]
    return [CheckStarted(0, 0, number), end]


def worked(number: int, tokens: int = 0, worked: float = 0, **more: object) -> list[GoalEvent]:
    end = IterationEnded(0, worked, number, "complete", Usage(0, tokens), **more)  # type: ignore[arg-type]
    return [IterationStarted(0, 0, number, f"run-{number}"), end]


def test_it_is_verified_before_anything_runs() -> None:
    assert next_move(goal()) == Verify(0, None)


def test_what_is_achieved_already_costs_no_run() -> None:
    assert next_move(goal(*checked(0, is_met=True))) == Conclude(GoalState.ACHIEVED)


def test_a_failed_check_is_followed_by_an_iteration_and_that_by_a_check() -> None:
    events = checked(0)
    assert next_move(goal(*events)) == Iterate(1, None)
    events += worked(1)
    assert next_move(goal(*events)) == Verify(1, None)
    events += checked(1)
    assert next_move(goal(*events)) == Iterate(2, None)
    assert goal(*events).evidence == "failure 1"


def test_what_was_in_flight_goes_on_and_is_counted_once() -> None:
    begun = IterationStarted(0, 0, 1, "run-1")
    cut_off = goal(*checked(0), begun)
    assert next_move(cut_off) == Iterate(1, begun)
    assert len(cut_off.iterations) == 1
    check = CheckStarted(0, 0, 1, "judge-1")
    assert next_move(goal(*checked(0), *worked(1), check)) == Verify(1, check)


def test_the_same_evidence_several_times_is_a_standstill() -> None:
    events = checked(0, "same")
    for number in (1, 2, 3):
        assert isinstance(next_move(goal(*events)), Iterate)
        events += [*worked(number), *checked(number, "same")]
    move = next_move(goal(*events))
    assert isinstance(move, Conclude)
    assert move.state == GoalState.STALLED
    assert isinstance(next_move(goal(*events, stall_after=0)), Iterate)


def test_evidence_that_swings_between_two_is_a_standstill_too_and_new_evidence_is_progress() -> (
    None
):
    events = checked(0, "a")
    for number, said in enumerate("babab", 1):
        events += [*worked(number), *checked(number, said)]
    assert goal(*events).unmoved == 4
    events += [*worked(6), *checked(6, "c")]
    assert goal(*events).unmoved == 0


@pytest.mark.parametrize(
    ("limits", "events", "limit"),
    [
        ({"iterations": 1}, worked(1), "iterations"),
        ({"tokens": 100}, worked(1, tokens=100), "tokens"),
        ({"tokens": 100}, worked(1, tokens=60, spent="tokens"), "tokens"),
        ({"usd": 0.5}, worked(1, spent="usd"), "usd"),
        ({"seconds": 5.0}, worked(1, worked=5.0), "time"),
    ],
)
def test_each_limit_exhausts_it_and_is_named(
    limits: dict[str, object], events: list[GoalEvent], limit: str
) -> None:
    spent = goal(*checked(0), *events, *checked(1), **limits)
    move = next_move(spent)
    assert isinstance(move, Conclude)
    assert (move.state, move.limit) == (GoalState.EXHAUSTED, limit)
    assert next_move(goal(*checked(0), *events, *checked(1, is_met=True), **limits)) == Conclude(
        GoalState.ACHIEVED
    ), "the verifier beats a spent budget"


def test_the_verifier_beats_a_give_up() -> None:
    gave_up = [*checked(0), *worked(1, declared="no such file")]
    assert next_move(goal(*gave_up)) == Verify(1, None)
    assert next_move(goal(*gave_up, *checked(1, is_met=True))) == Conclude(GoalState.ACHIEVED)
    assert next_move(goal(*gave_up, *checked(1))) == Conclude(
        GoalState.UNACHIEVABLE, "no such file"
    )


def test_a_verifier_that_cannot_run_ends_it_before_a_model_is_asked() -> None:
    move = next_move(goal(*checked(0, "no gh", cannot_run=True)))
    assert move == Conclude(GoalState.STALLED, "the verifier cannot run: no gh")


def test_it_waits_with_its_run_and_its_word_is_the_run_s() -> None:
    waits = IterationWaits(0, 0, 1, "waiting", "g awaits approval")
    events = [*checked(0), IterationStarted(0, 0, 1, "r"), waits]
    assert goal_word(goal(*events), is_driven=False) == "waiting"
    assert goal_word(goal(*events[:-1]), is_driven=False) == "interrupted"
    assert goal_word(goal(*events[:-1]), is_driven=True) == "active"
    assert isinstance(next_move(goal(*events)), Iterate)


def test_a_goal_that_has_ended_makes_no_move_until_it_is_opened_again_with_what_it_has_used() -> (
    None
):
    end = GoalEnded(0, 9.0, GoalState.EXHAUSTED, "spent", "iterations")
    ended = [*checked(0), *worked(1, tokens=7), *checked(1), end]
    assert next_move(goal(*ended, iterations=1)) is None
    again = goal(*ended, GoalReopened(0, 9.0, GoalLimits(iterations=2)), iterations=1)
    assert next_move(again) == Verify(1, None)
    assert (again.usage.tokens, again.worked_seconds) == (7, 9.0)
    again = goal(*ended, GoalReopened(0, 9.0, GoalLimits(iterations=2)), *checked(1))
    assert next_move(again) == Iterate(2, None)
    assert again.unmoved == 0


def test_specs_and_events_come_back_as_they_were_written() -> None:
    events = [
        *checked(0),
        *worked(1, tokens=3),
        IterationWaits(1, 2, 1, "waiting"),
        GoalEnded(1, 2, GoalState.CLEARED, "why"),
        GoalReopened(1, 2, GoalLimits(usd=0.1), "me"),
    ]
    assert [decode_event(encode_goal(each)) for each in events] == events
    spec = GoalSpec("t", "command:x", "/f", inputs={"a": [1, None, {"b": "ü"}]})
    assert decode_spec(encode_goal(spec)) == spec
    with pytest.raises(ValueError, match="type"):
        decode_event('{"type": "nonsense"}')


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc"), st.booleans()), max_size=30))
def test_whatever_checks_say_it_ends_within_its_iterations(
    said: list[tuple[bool, str, bool]],
) -> None:
    """A worker that follows the moves: iterations never exceed the limit, and are numbered in order."""
    events: list[GoalEvent] = []
    for is_met, evidence, gives_up in [*said, *[(False, "z", False)] * 30]:
        move = next_move(goal(*events, iterations=5))
        if isinstance(move, Conclude):
            events.append(GoalEnded(0, 0, move.state, move.why, move.limit))
        elif isinstance(move, Verify):
            events += checked(move.number, evidence, is_met)
        elif isinstance(move, Iterate):
            events += worked(move.number, declared="no" if gives_up else "")
        else:
            break
    end = goal(*events, iterations=5)
    assert end.state != GoalState.ACTIVE
    assert [each.number for each in end.iterations] == list(range(1, len(end.iterations) + 1))
    assert len(end.iterations) <= 5
