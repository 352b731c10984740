"""An isolated writer's changes are collected before anybody builds on them."""

from stretto.events.attempts import AttemptId
from stretto.events.model import (
    Approved,
    AttemptCancelled,
    CancelRequested,
    ChangesApplied,
    ChangesCollected,
    MergeFailed,
    MergeHeld,
    Rejected,
    RunResumed,
)
from stretto.schedule.commands import AskApproval, CollectChanges, EndRun, StartAttempt
from stretto.vocabulary.names import StepId
from stretto.vocabulary.statuses import RunStatus
from support.scheduling import Driven, Fail, Hang, Script, drive, plan_of

A = StepId("a")


def two(extra: str = "") -> str:
    return f"""
name: t
steps:
  - {{id: a, subagent: worker, prompt: go, posture: writer{extra}}}
  - {{id: b, subagent: worker, prompt: then, depends_on: a}}
"""


def collecting(extra: str = "", script: Script | None = None) -> Driven:
    """Its work is done, and its changes are about to be collected."""
    run = Driven(plan_of(two(extra)), script or {}).start()
    while not any(isinstance(command, CollectChanges) for command in run.commands):
        assert run.step()
    return run


def test_dependents_start_once_the_changes_are_merged() -> None:
    run = collecting()
    assert run.started == ["a"]
    assert run.statuses()["a"] == "running"
    commands = run.see(ChangesCollected(5, A, "kept", 1, 2, 3, True))
    assert [c.step for c in commands if isinstance(c, StartAttempt)] == ["b"]
    assert run.state.steps[A].changes is not None


def test_a_conflict_fails_the_step_under_its_policy() -> None:
    run = Driven(plan_of(two(", on_failure: block")), conflicts=frozenset({"a"})).start().run()
    assert run.statuses() == {"a": "failed", "b": "held"}
    step = run.state.steps[A]
    assert step.failure_kind == "conflict"
    assert step.changes is not None
    assert step.changes.conflicts == ("a.txt",)


def test_a_writer_that_failed_leaves_its_changes_unmerged() -> None:
    run = drive(plan_of(two(", on_failure: skip")), {"a": Fail()})
    collected = [c for c in run.commands if isinstance(c, CollectChanges)]
    assert collected == [CollectChanges(A, is_merged=False)]
    assert run.statuses() == {"a": "failed", "b": "succeeded"}


def test_only_auto_is_merged_at_once() -> None:
    for merge_back in ("manual", "never"):
        run = drive(plan_of(two(f", merge_back: {merge_back}")))
        assert CollectChanges(A, is_merged=False) in run.commands
        assert run.status is RunStatus.COMPLETE


def test_what_a_shared_writer_wrote_is_looked_at_too() -> None:
    run = drive(plan_of(two(", workspace_mode: shared")))
    assert CollectChanges(A, is_merged=True) in run.commands


def test_a_reader_and_a_run_without_a_workspace_collect_nothing() -> None:
    reader = drive(plan_of(two().replace("posture: writer", "posture: read_only")))
    nowhere = Driven(plan_of(two()), workspace="").start().run()
    for run in (reader, nowhere):
        assert not [c for c in run.commands if isinstance(c, CollectChanges)]
        assert run.status is RunStatus.COMPLETE


def test_changes_are_collected_only_when_every_loser_has_stopped() -> None:
    text = """
name: t
steps:
  - id: a
    posture: writer
    wait: any
    parallel: [{agent: worker, input: x, output_key: x}, {agent: worker, input: y, output_key: y}]
"""
    run = Driven(plan_of(text), {"a/x": "first", "a/y": Hang()}).start()
    while not run.journal or run.journal[-1].type != "attempt_cancelled":
        assert not [c for c in run.commands if isinstance(c, CollectChanges)]
        assert run.step()
    assert [c for c in run.commands if isinstance(c, CollectChanges)] == [CollectChanges(A, True)]


def test_a_resumed_run_collects_again() -> None:
    run = collecting()
    assert run.see(RunResumed(9)) == (CollectChanges(A, is_merged=True),)


def test_a_merge_is_not_stopped_halfway_by_a_cancel() -> None:
    run = collecting()
    assert not [c for c in run.see(CancelRequested(3)) if isinstance(c, EndRun)]
    assert run.status is RunStatus.RUNNING
    run.see(ChangesCollected(5, A, "kept", 1, 2, 3, True))
    assert run.statuses() == {"a": "succeeded", "b": "cancelled"}
    assert run.status is RunStatus.CANCELLED


def cancelled(keys: str = ", workspace_mode: shared") -> Driven:
    run = Driven(plan_of(two(keys)), {"a": Hang()}).start()
    while not any(event.type == "attempt_started" for event in run.journal):
        assert run.step()
    run.see(CancelRequested(3))
    assert not run.state.has_ended
    return run


def test_what_a_cancelled_shared_writer_wrote_is_looked_at_once_it_has_stopped() -> None:
    run = cancelled()
    (part,) = run.state.steps[A].parts
    assert run.see(AttemptCancelled(4, AttemptId(A, 1, part))) == (
        CollectChanges(A, is_merged=False),
    )
    run.see(ChangesCollected(5, A, "", 1, 0, 0, False, ("a.txt stays",)))
    assert run.statuses() == {"a": "cancelled", "b": "cancelled"}
    assert list(run.state.steps[A].warnings) == ["a.txt stays"]
    assert run.status is RunStatus.CANCELLED
    assert run.state.has_ended


def test_what_a_cancelled_isolated_writer_wrote_is_kept_and_never_merged() -> None:
    run = cancelled("")
    (part,) = run.state.steps[A].parts
    assert run.see(AttemptCancelled(4, AttemptId(A, 1, part))) == (
        CollectChanges(A, is_merged=False),
    )
    run.see(ChangesCollected(5, A, "kept", 1, 1, 0, False))
    assert run.statuses() == {"a": "cancelled", "b": "cancelled"}
    changes = run.state.steps[A].changes
    assert changes is not None
    assert (changes.artifact, changes.is_merged, changes.is_whole) == ("kept", False, False)


def test_a_steps_timeout_does_not_reach_into_its_merge() -> None:
    run = collecting(", timeout: 60")
    assert not run.state.timers


def test_what_a_merge_warns_of_is_on_record() -> None:
    run = collecting()
    run.see(ChangesCollected(5, A, "kept", 1, 2, 3, True, ("b.txt was declared, not written",)))
    assert "b.txt was declared, not written" in run.warnings()


def test_what_a_merge_that_failed_or_is_held_warns_of_is_on_record() -> None:
    said = "a.log is no part of its change: it is ignored"
    failed = collecting(", on_failure: inline")
    failed.see(MergeFailed(5, A, "kept", "it conflicts", warnings=(said,)))
    rejected = collecting(", on_failure: inline")
    rejected.see(MergeHeld(5, A, "kept", "it removes much", warnings=(said,)))
    rejected.see(Rejected(6, A, "ada"))
    for run in (failed, rejected):
        assert run.statuses()["a"] == "failed"
        assert list(run.state.steps[A].warnings) == [said]


def test_an_answer_that_nobody_asked_for_changes_nothing() -> None:
    run = Driven(plan_of(two()), {"a": Hang()}).start()
    run.see(MergeFailed(1, A, "", "what?"))
    assert run.statuses()["a"] == "running"


def held(extra: str = "") -> Driven:
    """Its change removes what no call of the step can have removed."""
    run = collecting(extra)
    run.see(MergeHeld(5, A, "kept", "its change removes 700 of 4,000 files", 700))
    return run


def test_a_change_that_is_held_waits_for_a_person() -> None:
    run = held()
    assert run.status is RunStatus.WAITING
    assert run.asked == ["a"]
    assert run.started == ["a"]
    assert run.state.steps[A].changes is not None


def test_an_approved_change_is_collected_with_that_word() -> None:
    run = held()
    assert run.see(Approved(6, A, "ada")) == (CollectChanges(A, True, is_allowed=True),)
    assert run.status is RunStatus.RUNNING
    assert run.see(RunResumed(7)) == (CollectChanges(A, True, is_allowed=True),)
    run.see(ChangesCollected(8, A, "kept", 700, 0, 0, True))
    assert run.statuses()["a"] == "succeeded"
    assert run.state.collecting == 0


def test_a_rejected_change_fails_the_step_under_its_policy() -> None:
    run = held(", on_failure: block")
    run.see(Rejected(6, A, "ada", "never"))
    assert run.statuses() == {"a": "failed", "b": "held"}
    assert run.state.steps[A].failure_kind == "refused"
    assert run.status is RunStatus.FAILED  # no step succeeded
    assert run.state.collecting == 0


def test_a_resumed_run_asks_again_about_a_change_that_is_held() -> None:
    (asked,) = held().see(RunResumed(9))
    assert isinstance(asked, AskApproval)
    assert (asked.step, asked.about) == (A, "merge")


def test_a_cancel_does_not_wait_for_a_change_that_is_held() -> None:
    run = held()
    assert EndRun(RunStatus.CANCELLED) in run.see(CancelRequested(6))
    assert run.statuses() == {"a": "cancelled", "b": "cancelled"}
    assert run.state.collecting == 0
    assert not run.state.awaiting_approval


def test_a_change_that_a_person_applied_is_merged() -> None:
    run = collecting(", merge_back: manual")
    run.see(ChangesCollected(5, A, "kept", 1, 2, 3, False))
    while run.step():
        pass
    assert run.status is RunStatus.COMPLETE
    assert run.see(ChangesApplied(50, A, "ada")) == ()
    changes = run.state.steps[A].changes
    assert changes is not None
    assert (changes.is_merged, changes.applied_by) == (True, "ada")


def test_the_timeout_of_a_step_does_not_reach_into_a_question_about_its_change() -> None:
    run = held(", timeout: 60")
    assert run.status is RunStatus.WAITING
    assert not run.state.timers


def test_a_held_change_does_not_hang_the_step_that_it_is_merged_after() -> None:
    text = """
name: t
steps:
  - {id: a, subagent: worker, prompt: go, posture: writer, merge_back: after b}
  - {id: b, subagent: worker, prompt: "look at {{steps.a.output}}", depends_on: a}
"""
    run = Driven(plan_of(text)).start()
    while not any(isinstance(c, CollectChanges) and c.is_merged for c in run.commands):
        assert run.step()
    run.see(MergeHeld(9, A, "kept", "its change removes 700 of 4,000 files", 700))
    assert run.statuses() == {"a": "succeeded", "b": "failed"}
    assert "removes 700" in (run.state.steps[StepId("b")].error or "")
    assert run.state.collecting == 0
    assert run.state.has_ended
