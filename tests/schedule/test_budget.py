"""Budgets stop a run before the call that would exceed them (RECIPES §8)."""

from schedule.drive import Fail, Give, drive
from weft.vocabulary.statuses import RunStatus
from weft.vocabulary.usage import Usage

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
    assert [start.part for start in run.starts] == ["worker", "other"]
    assert run.state.order[0].outputs == {"worker": "a/worker", "other": "a/other"}
    assert run.ended == [RunStatus.FAILED]
