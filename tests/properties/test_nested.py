"""A recipe does the same as a step of another one as it does by itself."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings, strategies as st
from msgspec import structs

from stretto.plan.bound_sets import bind_plan
from stretto.schedule.commands import StartAttempt
from stretto.vocabulary.json_value import Json
from support.random_plans import CALM_POLICIES, KINDS, recipes
from support.recipes import Shelf
from support.scheduling import AGENTS, Driven, plan_of

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=12)
GIVEN = WORDS.filter(str.strip) | st.integers() | st.lists(st.integers(), max_size=3)


def started(run: Driven, prefix: str = "") -> list[tuple[str, str, str, str, str]]:
    """Everything that was asked: who, in which step, in which words, under which key."""
    return [
        (each.step.removeprefix(prefix), each.attempt.part.text, each.request.agent, told(each), each.key)
        for each in run.starts
        if each.step.startswith(prefix)
    ]  # fmt: skip


def told(start: StartAttempt) -> str:
    # The error of a step that failed has its full id in it.
    return f"{start.request.instructions}{start.request.prompt}".replace("'sub/", "'")


def drive(text: str, inputs: dict[str, Json], shelf: Shelf | None = None) -> Driven:
    plan = plan_of(text, width=3, catalog=structs.replace(AGENTS, recipes=shelf))
    bound, problems = bind_plan(plan, inputs)
    assert problems == ()
    # A recipe in the structural form has another width of its own, which counts for nothing within a step.
    bound = structs.replace(bound, width=3)
    return (
        Driven(bound, {"worker": "done", "other": json.dumps({"passed": True})}, inputs)
        .start()
        .run()
    )


@given(recipes(KINDS, CALM_POLICIES, True, 6), GIVEN)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_the_steps_of_a_workflow_step_are_asked_what_they_are_asked_alone(
    recipe: dict[str, Any], value: Json
) -> None:
    body = recipe.get("workflow", recipe)
    body["inputs"] = {"x": {"type": "string" if isinstance(value, str) else "json"}}
    for step in body["steps"]:
        key = next(key for key in ("prompt", "input", "task") if key in step)
        step[key] += " of {{inputs.x}}"
    alone = drive(json.dumps(recipe), {"x": value})
    outer: dict[str, Any] = {
        "name": "outer",
        "inputs": {"y": {"type": "string" if isinstance(value, str) else "json"}},
        "steps": [{"id": "sub", "workflow": "any", "inputs": {"x": "{{inputs.y}}"}}],
    }
    nested = drive(json.dumps(outer), {"y": value}, Shelf(any=json.dumps(recipe)))
    assert started(nested, "sub/") == started(alone)
    assert nested.asked == [f"sub/{step}" for step in alone.asked]
    ended = {id: status for id, status in nested.statuses().items() if id != "sub"}
    assert ended == {f"sub/{id}": status for id, status in alone.statuses().items()}
    if nested.statuses()["sub"] == "succeeded":
        assert nested.output == alone.output
