"""Who waits for whom. In: Draft. Out: every step's edges, written and implied (RECIPES §1, §4)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from stretto.documents.node import Path
from stretto.plan.draft import Draft, DraftStep, Saying, asks_for_all_prior
from stretto.templates.reference import Reference
from stretto.vocabulary.ids import AgentId, StepId

if TYPE_CHECKING:
    from stretto.plan.model import EdgeReason  # a plan's parts, which a check does not need


@dataclass(frozen=True, slots=True)
class DraftEdge:
    before: StepId
    reason: "EdgeReason"
    at: Path  # what causes it
    saying: Saying | None = None  # and, for a reference, the text and the words in it
    reference: Reference | None = None


EdgesOf: TypeAlias = dict[StepId, DraftEdge]  # by the step that goes before; the first reason wins


@dataclass(slots=True)
class Graph:
    edges: dict[StepId, EdgesOf] = field(default_factory=dict)

    def before(self, id: StepId) -> EdgesOf:
        return self.edges.get(id, {})


def connect(draft: Draft) -> Graph:
    graph = Graph({step.id: {} for step in draft.steps})
    routed = _routes(draft)
    stored = stored_names(draft)
    for index, step in enumerate(draft.steps):
        into = graph.edges[step.id]
        for edge in (
            *_written(step),
            *routed.get(step.id, ()),
            *_context(draft, index),
            *_references(draft, step, stored),
            *_listed_before(draft, index),  # last: order alone is the weakest reason
        ):
            # Unknown names are another rule's problem; here they are no edge.
            # A route outranks other reasons: `depends_on: [route]` does not unroute a step.
            if edge.before in draft.by_id and (edge.before not in into or edge.reason == "routed"):
                into[edge.before] = edge
    return graph


def stored_names(draft: Draft) -> dict[str, StepId]:
    stored: dict[str, StepId] = {}
    for step in draft.steps:
        if step.step.output.store_as:
            stored.setdefault(step.step.output.store_as, step.id)
    return stored


def _written(step: DraftStep) -> Iterator[DraftEdge]:
    for position, before in enumerate(step.step.depends_on or ()):
        yield DraftEdge(before, "written", (*step.step.at, "depends_on", position))


def _listed_before(draft: Draft, index: int) -> Iterator[DraftEdge]:
    step = draft.steps[index]
    if draft.recipe.dialect.chains_steps and step.step.depends_on is None and index > 0:
        yield DraftEdge(draft.steps[index - 1].id, "listed before", step.step.at)


def _routes(draft: Draft) -> dict[StepId, list[DraftEdge]]:
    routes: dict[StepId, list[DraftEdge]] = {}
    for step in draft.steps:
        for at, name in step.targets:
            if StepId(name) in draft.by_id:
                routes.setdefault(StepId(name), []).append(DraftEdge(step.id, "routed", at))
    return routes


def _context(draft: Draft, index: int) -> Iterator[DraftEdge]:
    # "All prior context" waits for all that is listed before it; otherwise what it holds would
    # depend on who happened to be quick. A written depends_on says so itself.
    step = draft.steps[index]
    at = asks_for_all_prior(step.step)
    if at is not None and step.step.depends_on is None:
        for earlier in draft.steps[:index]:
            yield DraftEdge(earlier.id, "context", at)


def _references(draft: Draft, step: DraftStep, stored: dict[str, StepId]) -> Iterator[DraftEdge]:
    for saying in all_sayings(draft, step):
        for reference in saying.references:
            before = referred_step(reference, stored, saying)
            if before is None or (before == step.id and saying.may_name_itself):
                continue
            yield DraftEdge(before, "reference", saying.at, saying, reference)


def referred_step(reference: Reference, stored: dict[str, StepId], saying: Saying) -> StepId | None:
    if reference.step is not None:
        return StepId(reference.step)
    name = reference.path[0]
    is_bare = isinstance(name, str) and name not in ("inputs", "steps", "run")
    return stored.get(str(name)) if is_bare and name not in saying.local else None


def all_sayings(draft: Draft, step: DraftStep) -> Iterator[Saying]:
    """The step's own texts, and the prompts of the recipe's agents that it uses."""
    yield from step.sayings
    for use in step.uses:
        for agent in (use.agent, *fallbacks(draft, step, use.agent)):
            if agent in draft.prompts:
                at = (*draft.recipe.agents[agent].at, "prompt")
                yield Saying(at, draft.prompts[agent], use.local)


def fallbacks(draft: Draft, step: DraftStep, agent: AgentId) -> Iterator[AgentId]:
    """Who takes over when this agent fails in this step."""
    defined = draft.agent(agent)
    for on_failure in (
        step.step.on_failure,
        step.step.retry.on_failure,
        defined.retry.on_failure if defined else None,
    ):
        if on_failure is not None:  # the nearest one written is the one that counts
            if on_failure.fallback:
                yield on_failure.fallback
            return
