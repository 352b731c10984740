"""Budgets stop a run before the call that would exceed them."""

import pytest

from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.names import StepId
from stretto.vocabulary.statuses import RunStatus
from support.scheduling import Fail, Give, drive

THREE = """
name: t
budget: {budget}
steps:
  - {{id: a, subagent: worker, prompt: go}}
  - {{id: b, subagent: worker, prompt: go}}
  - {{id: c, subagent: worker, prompt: go, depends_on: [a]}}
"""


def test_no_more_agents_are_deployed_than_the_budget_has() -> None:
    run = drive(THREE.format(budget="{agents: 2}"), {"b": Give("b", after=9)})
    assert run.started == ["a", "b"]
    assert run.statuses() == {"a": "succeeded", "b": "succeeded", "c": "cancelled"}
    assert run.ended == [RunStatus.FAILED]
    assert "budget exhausted: 2 of 2 agents deployed" in run.warnings()


def test_a_budget_that_is_just_enough_is_enough() -> None:
    assert drive(THREE.format(budget="{agents: 3}")).status is RunStatus.COMPLETE


def test_spent_tokens_let_the_running_finish_and_start_nothing() -> None:
    spent = Give("a", usage=Usage(input_tokens=60, output_tokens=40))
    run = drive(THREE.format(budget="{tokens: 100}"), {"a": spent, "b": Give("b", after=9)})
    assert run.statuses() == {"a": "succeeded", "b": "succeeded", "c": "cancelled"}
    assert run.ended == [RunStatus.FAILED]
    assert "budget exhausted: 100 of 100 tokens used" in run.warnings()


SPENT = Usage(input_tokens=60, output_tokens=40, usd=0.5)


@pytest.mark.parametrize("budget", ["{tokens: 100}", "{agents: 1}", "{usd: 0.5}"])
def test_a_command_costs_nothing_and_runs_though_all_is_spent(budget: str) -> None:
    recipe = f"""
name: t
budget: {budget}
steps:
  - {{id: a, subagent: worker, prompt: go}}
  - {{id: test, run: pytest, depends_on: [a]}}
"""
    run = drive(recipe, {"a": Give("a", usage=SPENT)})
    assert run.statuses() == {"a": "succeeded", "test": "succeeded"}
    assert run.ended == [RunStatus.COMPLETE]


def test_the_last_candidate_that_could_be_paid_for_is_still_judged_by_its_command() -> None:
    recipe = """
name: t
budget: {tokens: 100}
steps: [{id: a, prompt: go, loop: {agent: worker, validator: {run: pytest}}}]
"""
    passed = Give({"passed": True, "feedback": ""})
    run = drive(recipe, {"a/try.1": Give("a", usage=SPENT), "a/check.1": passed})
    assert run.ended == [RunStatus.COMPLETE]


def test_spent_money_does_too() -> None:
    spent = Give("a", usage=Usage(usd=0.5))
    run = drive(THREE.format(budget="{usd: 0.5}"), {"a": spent})
    assert run.ended == [RunStatus.FAILED]
    assert "budget exhausted: $0.5000 of $0.5000 spent" in run.warnings()


def test_a_retry_that_cannot_be_afforded_fails_its_step() -> None:
    recipe = """
name: t
budget: {agents: 1}
steps: [{id: a, subagent: worker, prompt: go, retry: {max_attempts: 3}}]
"""
    run = drive(recipe, {"a": Fail("bad")})
    assert len(run.starts) == 1
    assert run.statuses() == {"a": "failed"}
    assert run.ended == [RunStatus.FAILED]


def test_branches_that_cannot_be_afforded_do_not_stop_those_that_run() -> None:
    recipe = """
name: t
budget: {agents: 2}
steps:
  - {id: a, parallel: [{agent: worker, prompt: x}, {agent: other, prompt: y},
                       {agent: default, prompt: z}]}
"""
    run = drive(recipe)
    assert [start.attempt.part.text for start in run.starts] == ["worker", "other"]
    assert run.state.order[0].outputs == {"worker": "a/worker", "other": "a/other"}
    assert run.ended == [RunStatus.FAILED]


def test_an_attempt_that_got_no_budget_closes_the_run_and_lets_the_others_finish() -> None:
    nothing = Fail("budget exhausted: 990 of 1,000 tokens used", kind="budget")
    recipe = THREE.format(budget="{tokens: 1000}").replace(
        "worker", "worker, on_failure: inline", 1
    )
    run = drive(recipe, {"a": nothing, "b": Give("b", after=9)})
    assert run.statuses() == {"a": "failed", "b": "succeeded", "c": "cancelled"}
    assert run.ended == [RunStatus.FAILED]
    assert "budget exhausted: 990 of 1,000 tokens used" in run.warnings()


def test_a_map_enters_no_more_elements_once_nothing_is_left() -> None:
    recipe = """
workflow:
  name: t
  inputs: [{name: list, type: json}]
  budget: {tokens: 1000}
  agents: {worker: {prompt: w}}
  steps: [{id: each, map: {over: "{{inputs.list}}", agent: worker, batch_size: 3, on_item_failure: skip}}]
"""
    nothing = Fail("budget exhausted", kind="budget")
    run = drive(recipe, {"each/item.1.stage.0": nothing}, list=list(range(100)))
    assert len(run.starts) <= 6
    assert run.ended == [RunStatus.FAILED]
    assert "budget exhausted" in (run.state.steps[StepId("each")].error or "")


def test_what_was_spent_beyond_the_budget_is_told_with_its_reason() -> None:
    spent = Give("c", usage=Usage(input_tokens=900, output_tokens=340))
    run = drive(THREE.format(budget="{tokens: 1000}"), {"c": spent})
    assert run.ended == [RunStatus.COMPLETE]
    assert "the budget was exceeded by 240 tokens (1,240 of 1,000)" in "".join(run.warnings())
    assert "more than was reserved" in "".join(run.warnings())
