"""What a user allows a run is put into its plan before it starts."""

import pytest

from stretto.plan.model import Plan, decode_plan, encode_plan
from stretto.plan.prepare import RunPolicy, prepare
from stretto.problems.errors import PermissionDenied
from stretto.recipe.model import Budget
from support.recipes import flat, plan_of

PLAN = plan_of(
    flat(
        "{id: read, subagent: writer, prompt: x}",
        "{id: write, subagent: worker, prompt: x}",
        "{id: gated, subagent: worker, prompt: x, gate: human}",
    )
)


def gated(plan: Plan) -> list[str]:
    return [step.id for step in plan.steps if step.is_gated]


def test_who_asks_is_asked_for_every_writer() -> None:
    assert gated(prepare(PLAN, RunPolicy("ask"))) == ["write", "gated"]
    assert gated(prepare(PLAN, RunPolicy("auto"))) == ["gated"]


def test_a_plan_of_a_run_that_asked_is_permitted_anew() -> None:

    stored = decode_plan(encode_plan(prepare(PLAN, RunPolicy("ask"))))
    assert gated(stored) == ["write", "gated"], "resumed, it asks as the first time"
    assert gated(prepare(stored, RunPolicy("auto"))) == ["gated"]
    assert gated(prepare(stored, RunPolicy("ask"))) == ["write", "gated"]
    with pytest.raises(PermissionDenied):
        prepare(stored, RunPolicy("read_only"))


def test_the_lesser_of_two_budgets_counts() -> None:
    limited = prepare(PLAN, RunPolicy(budget=Budget(tokens=100, usd=2.0)))
    assert limited.budget == Budget(tokens=100, usd=2.0)
    again = prepare(limited, RunPolicy(budget=Budget(tokens=500, usd=1.0, agents=3)))
    assert again.budget == Budget(tokens=100, usd=1.0, agents=3)


def test_preparing_twice_changes_nothing() -> None:
    aliases = {step.write_set: ("elsewhere/**",) for step in PLAN.steps}
    policy = RunPolicy("ask", Budget(agents=9))
    once = prepare(PLAN, policy, aliases)
    assert prepare(once, policy, aliases) == once
    assert prepare(once, policy) == once, "what is not looked at stays"
