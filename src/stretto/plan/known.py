"""What templates may refer to. In: Draft. Out: Known, for templates.check."""

from collections.abc import Mapping

from stretto.plan.branch_keys import branch_keys
from stretto.plan.draft import Draft, DraftStep
from stretto.recipe.model import Delegation, Loop, Map, Parallel
from stretto.templates.check import Known, KnownStep
from stretto.vocabulary.ids import AgentId, StepId
from stretto.vocabulary.values import Json


def known_names(draft: Draft, stored: Mapping[str, StepId]) -> Known:
    return Known(
        inputs={declared.name: declared.type for declared in draft.recipe.inputs},
        steps={id: _known_step(draft, draft.by_id[id]) for id in draft.step_ids()},
        stored=dict(stored),
        local=frozenset(),
    )


def _known_step(draft: Draft, drafted: DraftStep) -> KnownStep:
    step = drafted.step
    schema = step.output.schema
    has_change = drafted.posture == "writer" and step.workspace_mode != "shared"
    is_text = step.output.format in ("text", "markdown")
    match step.work:
        case Parallel():
            return KnownStep(tuple(branch_keys(step.work)), has_change=has_change)
        case Delegation(agent) if agent:
            schema = schema or _schema_of(draft, agent)
        case Loop(agent) if agent:
            schema = schema or _schema_of(draft, agent)
        case Map(reduce=reduce) if reduce:
            schema = schema or _schema_of(draft, reduce)
        case Map() if schema is None:
            last = step.work.stages[-1].agent if step.work.stages else step.work.agent
            item = _schema_of(draft, last) if last else None
            return KnownStep(None, item, True, is_text, has_change)
        case _:
            pass
    return KnownStep(None, schema, False, is_text, has_change)


def _schema_of(draft: Draft, id: AgentId) -> Mapping[str, Json] | None:
    agent = draft.agent(id)
    return agent.validation.schema if agent else None
