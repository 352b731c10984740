"""What a run may do to files, and what an earlier run might do."""

import pytest

from stretto.plan.codec import plan_from_json, plan_to_text
from stretto.plan.model import Plan
from stretto.plan.permission import permitted
from stretto.problems.errors import PermissionDenied
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
    assert gated(permitted(PLAN, "ask")) == ["write", "gated"]
    assert gated(permitted(PLAN, "auto")) == ["gated"]


def test_a_plan_of_a_run_that_asked_is_permitted_anew() -> None:
    import json

    stored = plan_from_json(json.loads(plan_to_text(permitted(PLAN, "ask"))))
    assert gated(stored) == ["write", "gated"], "resumed, it asks as the first time"
    assert gated(permitted(stored, "auto")) == ["gated"]
    assert gated(permitted(stored, "ask")) == ["write", "gated"]
    with pytest.raises(PermissionDenied):
        permitted(stored, "read_only")
