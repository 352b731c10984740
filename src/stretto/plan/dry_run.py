"""What a run would do, as JSON: its waves, its prompts as far as they are known, its cost."""

from collections.abc import Iterable, Iterator, Mapping

from stretto.plan.composed_prompt import compose, under_headings
from stretto.plan.model import (
    Brief,
    Plan,
    PlannedCondition,
    PlannedDelegation,
    PlannedLoop,
    PlannedMap,
    PlannedParallel,
    PlannedStep,
    PlannedSwitch,
    Target,
)
from stretto.plan.waves import max_delegations, max_model_calls, waves
from stretto.problems.render import as_json
from stretto.templates.render import render_known
from stretto.templates.scope import Scope
from stretto.vocabulary.ids import StepId
from stretto.vocabulary.json_value import Json

# What those get to whom the step itself says nothing.
_HANDED = {
    "validator": "(the candidate)",
    "reducer": "(the collected results)",
    "each element": "{{item}}",
    "stage 1": "{{item}}",
}


def dry_run(
    plan: Plan, inputs: Mapping[str, Json], default_model: str | None = None
) -> dict[str, object]:
    scope = Scope(inputs=dict(inputs), steps={}, stored=plan.stored, local={})
    return {
        "ok": True,
        "mode": "dry_run",
        "workflow": plan.name,
        "inputs": dict(inputs),
        "warnings": [as_json(warning) for warning in plan.warnings],
        "would_run": [_step(plan, step, scope, default_model) for step in plan.steps],
        "waves": [list(wave) for wave in waves(plan)],
        "summary": {
            "steps": len(plan.steps),
            "max_concurrency": plan.width,
            "max_model_calls": max_model_calls(plan),
            "max_delegations": max_delegations(plan),
        },
    }


def _step(
    plan: Plan, step: PlannedStep, scope: Scope, default_model: str | None
) -> dict[str, object]:
    delegations = [
        {
            "role": role,
            "agent": brief.agent,
            "model": brief.model or default_model,
            "tools": list(plan.agents[brief.agent].tools),
            "prompt": prompt_of(plan, step, role, brief, scope),
        }
        for role, brief in roles(step)
    ]
    is_single = isinstance(step.work, PlannedDelegation)
    return {
        "id": step.id,
        "type": step.type,
        "agent": delegations[0]["agent"] if is_single else None,
        "depends_on": list(step.depends_on),
        "posture": step.posture,
        "workspace_mode": step.workspace_mode,
        "read_set": list(step.read_set),
        "write_set": list(step.write_set),
        "prompt": delegations[0]["prompt"] if is_single else None,
        "model": delegations[0]["model"] if is_single else None,
        "delegations": delegations,
        "decides": decision_of(step),
        "when": step.when.text if step.when else None,
        "gate": "human" if step.is_gated else None,
        "on_failure": step.on_failure,
        "timeout_seconds": step.timeout_seconds,
    }


def prompt_of(plan: Plan, step: PlannedStep, role: str, brief: Brief, scope: Scope) -> str:
    """All that it would be told; what only a run can know stays `{{…}}`."""
    agent = plan.agents[brief.agent]
    told = render_known(brief.instruction, scope) if brief.instruction is not None else None
    given = _default_input(plan, step, role, brief)

    def results() -> str:
        return _known_only_later(step.depends_on)

    own = render_known(agent.prompt, scope)
    return compose(brief.style, own, told, given, results).prompt


def _default_input(plan: Plan, step: PlannedStep, role: str, brief: Brief) -> str | None:
    if brief.gets_all_prior:
        return _known_only_later([earlier.id for earlier in plan.steps[: step.index]])
    return _HANDED.get(role)


def _known_only_later(ids: Iterable[StepId]) -> str:
    return under_headings((id, f"{{{{steps.{id}.output}}}}") for id in ids)


def roles(step: PlannedStep) -> Iterator[tuple[str, Brief]]:
    """Everyone whom the step may ask, and as what."""
    match step.work:
        case PlannedDelegation(brief):
            yield "agent", brief
        case PlannedParallel(branches):
            for branch in branches:
                yield f"branch {branch.key}", branch.brief
        case PlannedCondition() as route:
            for word, target in (("true", route.if_true), ("false", route.if_false)):
                if target and target.brief:
                    yield f"when {word}", target.brief
        case PlannedSwitch() as choose:
            for case, target in (*choose.cases, ("default", choose.default)):
                if target and target.brief:
                    yield f"case {case}", target.brief
        case PlannedLoop() as loop:
            yield "producer", loop.producer
            if loop.validator:
                yield "validator", loop.validator
        case PlannedMap() as each:
            for number, stage in enumerate(each.stages, start=1):
                yield ("each element" if len(each.stages) == 1 else f"stage {number}"), stage
            if each.reducer:
                yield "reducer", each.reducer


def decision_of(step: PlannedStep) -> dict[str, object] | None:
    match step.work:
        case PlannedCondition() as route:
            chosen = {"true": _name(route.if_true), "false": _name(route.if_false)}
            return {"eval": route.condition.text, **chosen}
        case PlannedSwitch() as choose:
            cases = {case: _name(target) for case, target in choose.cases}
            return {"value": choose.value.text, "cases": cases, "default": _name(choose.default)}
        case _:
            return None


def _name(target: Target | None) -> str | None:
    return target.name if target else None
