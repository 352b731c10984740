"""Parallel steps."""

import pytest

from stretto.events.attempts import AttemptId, BranchPart
from stretto.events.model import AttemptCancelled, AttemptStarted, AttemptSucceeded
from stretto.schedule.commands import CancelAttempt
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.names import StepId
from stretto.vocabulary.statuses import RunStatus
from support.scheduling import Driven, Fail, Give, Hang, Script, drive, plan_of

FAN = """
workflow:
  name: t
  agents:
    one: {{prompt: p}}
    two: {{prompt: p, retry: {{max_attempts: 1{two}}}}}
    three: {{prompt: p}}
  steps:
    - id: fan
      parallel:
        - {{agent: one, input: x}}
        - {{agent: two, input: y, output_key: second}}
        - {{agent: three, input: z}}
      wait: {wait}
      {extra}
    - {{id: after, agent: one, input: "{{{{steps.fan.outputs.second}}}}"}}
"""


def fan(wait: str = "all", two: str = "", extra: str = "") -> str:
    return FAN.format(wait=wait, two=two, extra=extra)


def test_all_branches_start_together() -> None:
    run = Driven(plan_of(fan())).start()
    assert [start.attempt.part.text for start in run.starts] == ["one", "second", "three"]


def test_outputs_are_kept_by_key_in_the_order_of_the_branches() -> None:
    run = drive(fan(), {"fan/one": Give("1", after=9), "fan/second": "2", "fan/three": "3"})
    step = run.state.steps[StepId("fan")]
    assert list((step.outputs or {}).items()) == [("one", "1"), ("second", "2"), ("three", "3")]
    assert step.output == step.outputs
    assert run.prompt("after") == "p\n\n## Input\n\n2"


def test_wait_any_ends_with_the_first_and_cancels_the_others() -> None:
    slow = Give("late", after=9, usage=Usage(5))
    run = drive(fan("any"), {"fan/one": slow, "fan/second": "2", "fan/three": Hang()})
    assert run.state.steps[StepId("fan")].output == {"second": "2"}
    assert CancelAttempt(AttemptId(StepId("fan"), 1, BranchPart("one"))) in run.commands
    assert CancelAttempt(AttemptId(StepId("fan"), 1, BranchPart("three"))) in run.commands
    assert run.status is RunStatus.COMPLETE


def test_wait_n_needs_n_that_succeeded() -> None:
    run = drive(fan("2"), {"fan/one": Fail(), "fan/second": "2", "fan/three": Give("3", 4)})
    assert run.state.steps[StepId("fan")].output == {"second": "2", "three": "3"}
    assert run.status is RunStatus.COMPLETE


def test_wait_n_fails_as_soon_as_it_cannot_succeed_any_more() -> None:
    script: Script = {"fan/one": Fail(), "fan/second": Fail(), "fan/three": Give("3", after=50)}
    run = drive(fan("2"), script)
    assert run.state.steps[StepId("fan")].ended_at == 1
    assert CancelAttempt(AttemptId(StepId("fan"), 1, BranchPart("three"))) in run.commands
    assert run.ended == [RunStatus.FAILED]


@pytest.mark.parametrize("policy", ["skip", "inline"])
@pytest.mark.parametrize("wait", ["all", "3"])
def test_branches_that_may_fail_count_the_same_however_many_are_waited_for(
    wait: str, policy: str
) -> None:
    run = drive(fan(wait, f", on_failure: {policy}"), {"fan/second": Fail()})
    output = run.state.steps[StepId("fan")].output
    assert isinstance(output, dict)
    assert (list(output), output["second"] is None) == (
        ["one", "second", "three"],
        policy == "skip",
    )
    assert run.status is RunStatus.PARTIAL


def test_wait_n_prefers_branches_that_succeed_to_one_that_may_fail() -> None:
    slow = Give("3", after=9)
    run = drive(fan("2", ", on_failure: skip"), {"fan/second": Fail(), "fan/three": slow})
    assert run.state.steps[StepId("fan")].output == {"one": "fan/one", "second": None, "three": "3"}
    assert run.state.steps[StepId("fan")].ended_at == 9


def test_when_all_branches_that_may_fail_do_the_step_fails_however_many_are_waited_for() -> None:
    recipe = fan("2", extra="on_failure: block").replace("p}", "p, retry: {on_failure: skip}}")
    run = drive(recipe, {"fan": Fail()})
    assert run.statuses()["fan"] == "failed"


def test_wait_all_lets_the_others_finish_after_a_failure_and_keeps_them() -> None:
    script: Script = {"fan/one": Fail("bad"), "fan/second": "2", "fan/three": Give("3", after=50)}
    run = drive(fan(), script)
    step = run.state.steps[StepId("fan")]
    assert step.ended_at == 50
    assert step.outputs == {"second": "2", "three": "3"}
    assert step.error == "1 of 3 branches failed: one: bad"
    assert run.ended == [RunStatus.FAILED]


def test_a_branch_that_may_fail_gives_null_and_the_run_is_partial() -> None:
    run = drive(fan(two=", on_failure: skip"), {"fan/second": Fail("bad")})
    assert run.state.steps[StepId("fan")].outputs == {
        "one": "fan/one",
        "second": None,
        "three": "fan/three",
    }
    assert run.statuses() == {"fan": "succeeded", "after": "succeeded"}
    assert run.ended == [RunStatus.PARTIAL]
    assert "branch second failed: bad" in run.warnings()


@pytest.mark.parametrize("policy", ["skip", "inline"])
def test_a_step_all_of_whose_branches_failed_has_failed_and_its_dependents_run(policy: str) -> None:
    run = drive(fan(extra=f"on_failure: {policy}"), {"fan": Fail("bad")})
    assert run.statuses() == {"fan": "failed", "after": "succeeded"}
    assert run.ended == [RunStatus.PARTIAL]


def test_a_run_of_which_no_step_succeeded_has_failed_though_a_branch_was_answered() -> None:
    run = drive(fan(extra="on_failure: block"), {"fan/second": Fail("bad")})
    assert run.statuses() == {"fan": "failed", "after": "held"}
    assert run.ended == [RunStatus.FAILED]


def test_a_branch_that_is_inlined_gives_its_error_text() -> None:
    run = drive(fan(extra="on_failure: inline"), {"fan/second": Fail("bad")})
    assert (run.state.steps[StepId("fan")].outputs or {})["second"] == (
        "Error: step 'fan' failed: branch second: bad"
    )
    assert run.ended == [RunStatus.PARTIAL]


def test_a_branch_has_its_own_fallback() -> None:
    run = drive(fan(two=', on_failure: "fallback:three"'), {"fan/second": [Fail(), "saved"]})
    assert (run.state.steps[StepId("fan")].outputs or {})["second"] == "saved"
    assert run.status is RunStatus.COMPLETE


def test_the_cost_of_the_branches_that_lost_still_counts() -> None:
    run = Driven(plan_of(fan("any")), {"fan": Hang()}).start()
    for start in run.starts:
        run.see(AttemptStarted(0, start.attempt, start.request.agent, start.key))
    run.see(AttemptSucceeded(1, AttemptId(StepId("fan"), 1, BranchPart("one")), "1", Usage(1)))
    run.see(AttemptCancelled(2, AttemptId(StepId("fan"), 1, BranchPart("second")), Usage(10)))
    run.see(AttemptCancelled(2, AttemptId(StepId("fan"), 1, BranchPart("three")), Usage(100)))
    assert run.state.usage.tokens == 111
