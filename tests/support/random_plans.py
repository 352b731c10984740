"""Any plan, for properties: a random DAG listed in random order, of all kinds of work."""

import json
from typing import Any

from hypothesis import strategies as st
from msgspec import structs

from stretto.plan.model import Plan
from support.recipes import Shelf
from support.scheduling import AGENTS, plan_of

_SETS = (["x"], ["y"], ["x", "y"], ["x/a"], ["**"])
_TELLS = {"flat": "prompt", "wrapped": "input", "structural": "task"}
CALM_POLICIES = ("inline", "skip", "block")
POLICIES = (None, *CALM_POLICIES, "abort", "fallback:other")
KINDS = ("sequential", "sequential", "parallel", "conditional", "loop", "map")


@st.composite
def plans(
    draw: st.DrawFn,
    kinds: tuple[str, ...] = KINDS,
    policies: tuple[str | None, ...] = POLICIES,
    is_calm: bool = False,  # its outcome follows from its parts' alone, not from who is quick
    most_steps: int = 8,
) -> Plan:
    recipe = draw(recipes(kinds, policies, is_calm, most_steps))
    return plan_of(json.dumps(recipe), width=draw(st.integers(1, 4)))


@st.composite
def nested_plans(
    draw: st.DrawFn,
    policies: tuple[str | None, ...] = POLICIES,
    is_calm: bool = False,
    most_steps: int = 4,
) -> Plan:
    """Recipes that use recipes, two or three deep."""
    shelf, names = Shelf(), ["deep", "inner"][draw(st.integers(0, 1)) :]
    used = ""
    for name in (*names, "any"):
        recipe = draw(recipes(KINDS, policies, is_calm, most_steps))
        if used:
            _add_workflow(draw, recipe.get("workflow", recipe)["steps"], used, policies, is_calm)
        shelf.texts[name] = json.dumps(recipe)
        used = name
    text, width = shelf.texts["any"], draw(st.integers(1, 4))
    return plan_of(text, width=width, catalog=structs.replace(AGENTS, recipes=shelf))


def _add_workflow(
    draw: st.DrawFn,
    steps: list[dict[str, Any]],
    used: str,
    policies: tuple[str | None, ...],
    is_calm: bool,
) -> None:
    ids = [step["id"] for step in steps]
    step: dict[str, Any] = {"id": "w", "workflow": used}
    step["depends_on"] = draw(st.lists(st.sampled_from(ids), unique=True))
    policy = draw(st.sampled_from(policies))
    if policy is not None and not policy.startswith("fallback"):
        step["on_failure"] = policy
    for key, value in (("gate", "human"), ("when", "false"), ("when", "true")):
        if draw(st.integers(0, 5)) == 0:
            step[key] = value
    if not is_calm and draw(st.integers(0, 3)) == 0:
        step["timeout"] = draw(st.integers(1, 20))
    tells = next((key for key in ("prompt", "input", "task") if key in steps[0]), "prompt")
    own = {"on_failure": "inline", tells: "go {{steps.w.output}}"}
    steps += [step, {"id": "z", "agent": "worker", "depends_on": ["w"], **own}]
    if draw(st.booleans()):
        chooses = {"eval": draw(st.sampled_from(("true", "false"))), "true": "w", "false": "worker"}
        own = {"on_failure": "inline", tells: "go"}
        steps.insert(0, {"id": "c", "depends_on": [], "condition": chooses, **own})


@st.composite
def recipes(
    draw: st.DrawFn,
    kinds: tuple[str, ...],
    policies: tuple[str | None, ...],
    is_calm: bool,
    most_steps: int,
) -> dict[str, Any]:
    dialect = draw(st.sampled_from(sorted(_TELLS)))
    count = draw(st.integers(1, most_steps))
    # Edges lead from an earlier place to a later one; the listing is another order.
    steps: list[dict[str, Any]] = []
    for place in range(count):
        steps.append(_step(draw, place, count, dialect, kinds, policies, is_calm, steps))
    listed = list(draw(st.permutations(steps)))
    body: dict[str, Any] = {"name": "any", "steps": listed}
    if not is_calm and draw(st.booleans()):
        body["budget"] = {"agents": draw(st.integers(1, 12))}
    if not is_calm and draw(st.booleans()):
        body["timeout"] = draw(st.integers(1, 30))
    return {"workflow": body} if dialect == "wrapped" else body


def _step(
    draw: st.DrawFn,
    place: int,
    count: int,
    dialect: str,
    kinds: tuple[str, ...],
    policies: tuple[str | None, ...],
    is_calm: bool,
    earlier: list[dict[str, Any]],
) -> dict[str, Any]:
    before = [f"s{n}" for n in range(place)]
    depends_on = draw(st.lists(st.sampled_from(before), unique=True)) if before else []
    step: dict[str, Any] = {"id": f"s{place}", "depends_on": depends_on}
    step |= _work(draw, place, count, draw(st.sampled_from(kinds)), is_calm)
    # The output of a condition is that of the step it chooses, which may be this one.
    facets = {each["id"]: "chosen" if "condition" in each else "output" for each in earlier}
    named = (f"{{{{steps.{id}.{facets[id]}}}}}" for id in depends_on)
    step[_TELLS[dialect]] = "go " + " ".join(named)
    policy = draw(st.sampled_from(policies))
    if policy is not None:
        step["on_failure"] = policy
    if draw(st.booleans()):
        backoff = draw(st.sampled_from(("none", "linear", "exponential")))
        step["retry"] = {"max_attempts": draw(st.integers(1, 3)), "backoff": backoff}
    if draw(st.booleans()):
        step["posture"] = "writer"
        step["write_set"] = draw(st.sampled_from(_SETS))
        step["workspace_mode"] = draw(st.sampled_from(("shared", "isolated")))
        step["recovery"] = draw(st.sampled_from(("rerun", "ask")))
    elif draw(st.booleans()):
        step["read_set"] = draw(st.sampled_from(_SETS))
    if draw(st.integers(0, 5)) == 0:
        step["when"] = draw(st.sampled_from(("true", "false", "run.id == 3")))
    if draw(st.integers(0, 5)) == 0:
        step["gate"] = "human"
    if not is_calm and draw(st.integers(0, 5)) == 0:
        step["timeout"] = draw(st.integers(1, 20))
    return step


def _work(draw: st.DrawFn, place: int, count: int, kind: str, is_calm: bool) -> dict[str, Any]:
    match kind:
        case "parallel":
            wait = "all" if is_calm else draw(st.sampled_from(("all", "any", 2)))
            return {"parallel": [{"agent": "worker"}, {"agent": "other"}], "wait": wait}
        case "conditional":
            after = [f"s{n}" for n in range(place + 1, count)]
            targets = st.sampled_from([*after, "worker"])
            says = draw(st.sampled_from(("true", "false", "run.id == 3")))
            return {"condition": {"eval": says, "true": draw(targets), "false": draw(targets)}}
        case "loop":
            loop: dict[str, Any] = {"agent": "worker", "max_iterations": 2}
            loop |= draw(st.sampled_from(({"validator": "other"}, {"until": "iteration > 1"})))
            return {"loop": loop}
        case "map":
            over = json.dumps(list(range(draw(st.integers(0, 4)))))
            work: dict[str, Any] = {"over": over, "batch_size": draw(st.integers(1, 3))}
            work |= draw(
                st.sampled_from(
                    (
                        {"agent": "worker"},
                        {"agent": "worker", "reduce": "other", "on_item_failure": "skip"},
                        {"stages": [{"agent": "worker"}, {"agent": "other"}]},
                    )
                )
            )
            return {"map": work}
        case _:
            return {"agent": "worker"}
