"""What templates may refer to. In: Draft. Out: Known, for templates.check."""

from collections.abc import Mapping
from dataclasses import replace

from stretto.plan.branch_keys import branch_keys
from stretto.plan.draft import Draft, DraftStep
from stretto.plan.postures import agents_of, posture_of
from stretto.recipe.model import Delegation, Loop, Map, Parallel, Step
from stretto.templates.check import Known, KnownStep
from stretto.vocabulary.ids import AgentId, StepId
from stretto.vocabulary.values import Json


def known_names(draft: Draft, stored: Mapping[str, StepId]) -> Known:
    return Known(
        inputs={declared.name: declared.type for declared in draft.recipe.inputs},
        steps={id: _with_change(draft, draft.by_id[id]) for id in draft.step_ids()},
        stored=dict(stored),
        local=frozenset(),
    )


def _with_change(draft: Draft, drafted: DraftStep) -> KnownStep:
    known, step = _known_step(draft, drafted.step), drafted.step
    posture = step.posture or posture_of(agents_of(draft, drafted), draft.catalog.changing_tools)
    return replace(known, has_change=posture == "writer" and step.workspace_mode != "shared")


def _known_step(draft: Draft, step: Step) -> KnownStep:
    schema = step.output.schema
    is_text = step.output.format in ("text", "markdown")
    match step.work:
        case Parallel():
            return KnownStep(output_keys=tuple(branch_keys(step.work)))
        case Delegation(agent) if agent:
            schema = schema or _schema_of(draft, agent)
        case Loop(agent) if agent:
            schema = schema or _schema_of(draft, agent)
        case Map(reduce=reduce) if reduce:
            schema = schema or _schema_of(draft, reduce)
        case Map() if schema is None:
            last = step.work.stages[-1].agent if step.work.stages else step.work.agent
            item = _schema_of(draft, last) if last else None
            return KnownStep(schema=item, is_list=True, is_text=is_text)
        case _:
            pass
    return KnownStep(schema=schema, is_text=is_text)


def _schema_of(draft: Draft, id: AgentId) -> Mapping[str, Json] | None:
    agent = draft.agent(id)
    return agent.validation.schema if agent else None
