"""Plans to draw. In: recipe text, or who waits for whom. Out: a Plan."""

from collections.abc import Sequence
from pathlib import Path

from stretto.plan.build import Problems, build
from stretto.plan.catalog import Catalog
from stretto.plan.model import (
    Brief,
    Plan,
    PlannedDelegation,
    PlannedStep,
    PlannedWork,
)
from stretto.recipe.model import Agent, Budget, Output
from stretto.recipe.read import read_recipe
from stretto.vocabulary.names import AgentId, StepId

_AGENTS = [
    "researcher",
    "writer",
    "reviewer",
    "worker",
    "threat_scanner",
    "vuln_analyst",
    "intel_reporter",
]
_EXAMPLES = Path(__file__).parents[2] / "examples"
_CATALOG = Catalog({AgentId(id): Agent(AgentId(id)) for id in _AGENTS})


def planned(text: str) -> Plan:
    plan = build(read_recipe(text), _CATALOG)
    assert not isinstance(plan, Problems), plan.problems
    return plan


def flat(steps: str, input: str = "") -> Plan:
    """Steps of a flat recipe, each from `{id: …` on."""
    lines = [line.strip() for line in steps.strip().splitlines()]
    lines = [f"  - {line}" if line.startswith("{id:") else f"    {line}" for line in lines]
    declared = [f"inputs: [{{name: {input}}}]"] if input else []
    return planned("\n".join(["name: drawn", *declared, "steps:", *lines]))


def example(name: str) -> Plan:
    return planned((_EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8"))


def brief(agent: str = "worker") -> Brief:
    return Brief(AgentId(agent), None, "prompt")


def graph(
    waits: Sequence[Sequence[int]],
    ids: Sequence[str] = (),
    works: Sequence[PlannedWork] = (),
    name: str = "drawn",
) -> Plan:
    """Any graph at all, ids that no recipe may have included."""
    names = [StepId(ids[i] if i < len(ids) else f"s{i}") for i in range(len(waits))]
    delegated = PlannedDelegation(brief())
    steps = tuple(
        _step(i, names[i], works[i] if i < len(works) else delegated, [names[b] for b in before])
        for i, before in enumerate(waits)
    )
    return Plan(
        name=name,
        description="",
        version="",
        dialect="flat",
        digest="",
        file="",
        inputs=(),
        agents={},
        steps=steps,
        output=None,
        stored={},
        width=4,
        timeout_seconds=None,
        budget=Budget(),
        warnings=(),
    )


def _step(index: int, id: StepId, work: PlannedWork, before: Sequence[StepId]) -> PlannedStep:
    return PlannedStep(
        id=id,
        index=index,
        work=work,
        edges=dict.fromkeys(before, "written"),
        when=None,
        timeout_seconds=None,
        on_failure="inline",
        is_gated=False,
        posture="read_only",
        read_set=(),
        write_set=(),
        workspace_mode="shared",
        merge_back="auto",
        recovery="rerun",
        output=Output(),
        is_cached=False,
    )
