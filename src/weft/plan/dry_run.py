"""A run without running. In: Plan and inputs. Out: the JSON of a dry run, its prompts as far as known."""

from collections.abc import Iterator, Mapping

from weft.plan.brief_text import Section, compose
from weft.plan.model import (
    Brief,
    Choose,
    Delegate,
    Each,
    Fan,
    Plan,
    PlannedStep,
    Refine,
    Route,
    Target,
)
from weft.plan.waves import max_delegations, max_model_calls, waves
from weft.templates.render import render_known
from weft.templates.scope import Scope
from weft.templates.template import Template
from weft.vocabulary.values import Json


def dry_run(plan: Plan, inputs: Mapping[str, Json]) -> dict[str, object]:
    scope = Scope(inputs=dict(inputs), steps={}, stored=plan.stored, local={})
    return {
        "ok": True,
        "mode": "dry_run",
        "workflow": plan.name,
        "inputs": dict(inputs),
        "would_run": [_step(plan, step, scope) for step in plan.steps],
        "waves": [list(wave) for wave in waves(plan)],
        "summary": {
            "steps": len(plan.steps),
            "max_concurrency": plan.width,
            "max_model_calls": max_model_calls(plan),
            "max_delegations": max_delegations(plan),
        },
    }


def _step(plan: Plan, step: PlannedStep, scope: Scope) -> dict[str, object]:
    delegations = [
        {
            "role": role,
            "agent": brief.agent,
            "model": brief.model,
            "tools": list(plan.agents[brief.agent].tools),
            "prompt": prompt_of(plan, step, brief, scope),
        }
        for role, brief in roles(step)
    ]
    is_single = isinstance(step.work, Delegate)
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


def prompt_of(plan: Plan, step: PlannedStep, brief: Brief, scope: Scope) -> str:
    """All that it would be told; what only a run can know stays `{{…}}`."""

    def say(template: Template) -> str:
        return render_known(template, scope)

    def results() -> list[Section]:
        ids = (
            [s.id for s in plan.steps if s.index < step.index]
            if brief.gets_all_prior
            else step.depends_on
        )
        return [(id, f"{{{{steps.{id}.output}}}}") for id in ids]

    told = compose(brief, plan.agents[brief.agent], say, results)
    return told.prompt


def roles(step: PlannedStep) -> Iterator[tuple[str, Brief]]:
    """Everyone whom the step may ask, and as what."""
    match step.work:
        case Delegate(brief):
            yield "agent", brief
        case Fan(branches):
            for branch in branches:
                yield f"branch {branch.key}", branch.brief
        case Route() as route:
            for word, target in (("true", route.if_true), ("false", route.if_false)):
                if target and target.brief:
                    yield f"when {word}", target.brief
        case Choose() as choose:
            for case, target in (*choose.cases, ("default", choose.default)):
                if target and target.brief:
                    yield f"case {case}", target.brief
        case Refine() as loop:
            yield "producer", loop.producer
            if loop.validator:
                yield "validator", loop.validator
        case Each() as each:
            for number, stage in enumerate(each.stages, start=1):
                yield ("each element" if len(each.stages) == 1 else f"stage {number}"), stage
            if each.reducer:
                yield "reducer", each.reducer


def decision_of(step: PlannedStep) -> dict[str, object] | None:
    match step.work:
        case Route() as route:
            chosen = {"true": _name(route.if_true), "false": _name(route.if_false)}
            return {"eval": route.condition.text, **chosen}
        case Choose() as choose:
            cases = {case: _name(target) for case, target in choose.cases}
            return {"value": choose.value.text, "cases": cases, "default": _name(choose.default)}
        case _:
            return None


def _name(target: Target | None) -> str | None:
    return target.name if target else None
