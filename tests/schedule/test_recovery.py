"""What a new process takes up from one that died, and how runs are called off."""

from stretto.events.attempts import AttemptId, BranchPart, RetryTimer, StepTimer
from stretto.events.model import (
    Approved,
    AttemptStarted,
    AttemptSucceeded,
    CancelRequested,
    Rejected,
    RunEnded,
    RunResumed,
)
from stretto.schedule.commands import AskApproval, CancelAttempt, EndRun, SetTimer, StartAttempt
from stretto.vocabulary.names import StepId
from stretto.vocabulary.statuses import RunStatus
from support.scheduling import Driven, Fail, Hang, Script, drive, plan_of

A = StepId("a")


def one(extra: str = "") -> str:
    return f"name: t\nsteps: [{{id: a, subagent: worker, prompt: go{extra}}}]"


def crashed(extra: str, script: Script | None = None) -> Driven:
    """Its attempt began, and then the process was gone."""
    run = Driven(plan_of(one(extra)), script or {"a": Hang()}).start()
    run.step()
    assert isinstance(run.journal[-1], AttemptStarted)
    return run


def test_a_command_that_was_not_carried_out_is_given_again() -> None:
    run = Driven(plan_of(one())).start()
    assert run.see(RunResumed(5)) == (run.starts[0],)
    assert [start.attempt.number for start in run.starts] == [1, 1]


def test_an_attempt_in_doubt_of_a_reader_is_done_again_under_the_next_number() -> None:
    run = crashed("")
    (start,) = run.see(RunResumed(5))
    assert isinstance(start, StartAttempt)
    assert start.attempt.number == 2


def test_an_attempt_that_is_done_again_has_the_keys_of_the_interrupted_one() -> None:
    run = crashed(", retry: {max_attempts: 2}", {"a": [Hang(), Hang(), Fail(), "fine"]})
    run.see(RunResumed(5))
    run.step()
    run.see(RunResumed(6))
    run.run()
    names = [start.request.name for start in run.starts]
    first, second, third, retry = names
    assert first.endswith("/a//1")
    assert (second, third) == (first, first)
    # A retry after a failure is another request.
    assert retry.endswith("/a//4")
    assert run.output == "fine"


def test_an_interruption_costs_no_attempt() -> None:
    run = crashed(", retry: {max_attempts: 2}", {"a": [Hang(), Fail(), "fine"]})
    run.see(RunResumed(5))
    run.run()
    assert [start.attempt.number for start in run.starts] == [1, 2, 3]
    assert run.output == "fine"


def test_a_writer_in_doubt_asks_and_an_approval_runs_it_again() -> None:
    run = crashed(", posture: writer", {"a": [Hang(), "fine"]})
    (asked,) = run.see(RunResumed(5))
    assert isinstance(asked, AskApproval)
    assert (asked.step, asked.about) == (A, "again")
    assert run.status is RunStatus.WAITING
    run.see(Approved(6, A))
    run.run()
    assert run.output == "fine"


def test_a_writer_in_doubt_that_is_rejected_fails() -> None:
    run = crashed(", recovery: ask")
    run.see(RunResumed(5))
    run.see(Rejected(6, A, by="ann"))
    assert run.state.steps[A].failure_kind == "in_doubt"
    assert run.ended == [RunStatus.FAILED]


def test_a_step_may_skip_what_is_in_doubt() -> None:
    run = crashed(", recovery: skip, retry: {max_attempts: 5}")
    run.see(RunResumed(5))
    assert run.state.steps[A].failure_kind == "in_doubt"
    assert run.ended == [RunStatus.FAILED]


def test_an_attempt_that_says_itself_in_doubt_is_never_silently_repeated() -> None:
    recipe = one(", recovery: ask, retry: {max_attempts: 5}")
    run = drive(recipe, {"a": [Fail("half done", kind="in_doubt"), "fine"]})
    assert run.asked == ["a"]
    assert len(run.starts) == 1


def test_timers_are_set_again_for_when_they_were_due() -> None:
    run = Driven(plan_of(one(", timeout: 60s, retry: {max_attempts: 2, backoff: linear}")))
    run.script = {"a": Fail()}
    run.start().step()
    run.step()
    due = dict(run.state.timers)
    assert set(due) == {StepTimer(A), RetryTimer(AttemptId(A, 1))}
    assert run.see(RunResumed(5)) == tuple(SetTimer(timer, at) for timer, at in due.items())


def test_gates_ask_again() -> None:
    run = drive(one(", gate: human"))
    (asked,) = run.see(RunResumed(5))
    assert isinstance(asked, AskApproval)
    assert (asked.step, asked.about) == (A, "start")


def test_the_answer_of_an_attempt_in_doubt_comes_too_late() -> None:
    run = crashed("")
    run.see(RunResumed(5))
    assert run.see(AttemptSucceeded(6, AttemptId(A, 1), "late")) == ()
    assert run.state.steps[A].ended_at is None


def test_an_end_that_was_not_recorded_is_said_again() -> None:
    run = drive(one())
    assert run.see(RunResumed(9)) == (EndRun(RunStatus.COMPLETE),)
    run.see(RunEnded(9, "complete"))
    assert run.see(RunResumed(10)) == ()


def test_a_request_to_cancel_stops_everything_and_ends_when_all_have_stopped() -> None:
    recipe = one() + "\n"
    recipe = recipe.replace("]", ", {id: b, subagent: worker, prompt: go, depends_on: [a]}]")
    run = Driven(plan_of(recipe), {"a": Hang()}).start()
    run.step()
    assert run.see(CancelRequested(3, "enough")) == (CancelAttempt(AttemptId(A, 1)),)
    assert run.ended == []
    run.run()
    assert run.statuses() == {"a": "cancelled", "b": "cancelled"}
    assert run.ended == [RunStatus.CANCELLED]
    assert "the run was cancelled: enough" in run.warnings()


def test_a_cancelled_run_keeps_what_ended() -> None:
    two = "name: t\nsteps:\n" + "".join(
        f"  - {{id: {id}, subagent: worker, prompt: go}}\n" for id in "ab"
    )
    run = drive(two, {"b": Hang()})
    run.see(CancelRequested(3))
    run.run()
    assert run.statuses() == {"a": "succeeded", "b": "cancelled"}
    assert run.ended == [RunStatus.CANCELLED]


def test_a_waiting_run_can_be_cancelled() -> None:
    run = drive(one(", gate: human"))
    run.see(CancelRequested(3))
    assert run.ended == [RunStatus.CANCELLED]


def test_a_cancelled_run_that_crashed_ends_when_it_is_resumed() -> None:
    run = crashed("")
    run.see(CancelRequested(3))
    assert run.see(RunResumed(5)) == (EndRun(RunStatus.CANCELLED),)


def test_an_attempt_that_was_called_off_and_began_all_the_same_is_called_back() -> None:
    recipe = """
name: t
steps: [{id: a, wait: any, parallel: [{agent: worker, prompt: x}, {agent: other, prompt: y}]}]
"""
    run = Driven(plan_of(recipe), {"a": Hang()}).start()
    late = next(start for start in run.starts if start.attempt.part == BranchPart("other"))
    commands = run.see(AttemptSucceeded(1, AttemptId(A, 1, BranchPart("worker")), "won"))
    assert CancelAttempt(AttemptId(A, 1, BranchPart("other"))) in commands
    run.see(CancelRequested(1))
    assert run.ended == [RunStatus.COMPLETE]
    began = AttemptStarted(2, AttemptId(A, 1, BranchPart("other")), late.request.agent, late.key)
    assert run.see(began) == (CancelAttempt(AttemptId(A, 1, BranchPart("other"))),)


def test_a_step_that_kills_its_process_again_and_again_is_not_tried_for_ever() -> None:
    run = crashed("")
    for at in (5, 6):
        assert [type(each) for each in run.see(RunResumed(at, is_after_crash=True))] == [
            StartAttempt
        ]
        run.step()
        assert isinstance(run.journal[-1], AttemptStarted)
    run.see(RunResumed(7, is_after_crash=True))
    assert run.statuses() == {"a": "failed"}
    assert run.state.steps[A].error == "the process died 3 times while this step was running"


def test_a_run_that_was_stopped_has_not_crashed() -> None:
    run = crashed("")
    for at in range(5, 15):
        assert [type(each) for each in run.see(RunResumed(at))] == [StartAttempt]
        run.step()


def test_how_many_crashes_are_too_many_is_the_users_to_say() -> None:
    run = crashed("")
    run.see(RunResumed(5, is_after_crash=True, most_crashes=1))
    assert run.statuses() == {"a": "failed"}


def test_a_failed_attempt_counts_also_where_a_person_must_allow_the_next_one() -> None:
    plan = plan_of(
        "name: t\nsteps: [{id: a, subagent: worker, prompt: go, posture: writer,"
        " retry: {max_attempts: 2, backoff: linear}}]"
    )
    run = Driven(plan, {"a": [Fail(), Fail(), Fail()]}).start()
    run.step()
    run.step()
    run.see(RunResumed(run.now, "ask"))
    run.see(Approved(run.now, StepId("a"), key=run.state.steps[StepId("a")].asked_key))
    run.run()
    assert [start.attempt.number for start in run.starts] == [1, 2]
    assert run.statuses() == {"a": "failed"}
