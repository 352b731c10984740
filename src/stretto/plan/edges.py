"""Which step waits for which: every step's edges, written and implied (RECIPES §1, §4)."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from stretto.documents.node import Path
from stretto.plan.draft import Draft, DraftStep, TemplateSite, asks_for_all_prior
from stretto.templates.template import Reference
from stretto.vocabulary.ids import StepId

if TYPE_CHECKING:
    from stretto.plan.model import EdgeReason  # a plan's parts, which a check does not need

# By step, the steps that go before it and why; of several reasons the first counts.
Edges: TypeAlias = "dict[StepId, dict[StepId, EdgeReason]]"


class Cause(NamedTuple):
    """What in the file makes a step wait for another."""

    reason: "EdgeReason"
    at: Path
    site: TemplateSite | None = None  # for a reference, the text and the words in it
    reference: Reference | None = None


def connect(draft: Draft) -> Edges:
    edges: Edges = {step.id: {} for step in draft.steps}
    routed = _routes(draft)
    stored = stored_names(draft)
    known = draft.by_id.keys()
    for index, step in enumerate(draft.steps):
        into = edges[step.id]
        # Unknown names are another rule's problem; here they are no edge.
        _add(into, (id for id in step.step.depends_on or () if id in known), "written")
        # A route outranks other reasons: `depends_on: [route]` does not unroute a step.
        into.update(dict.fromkeys(routed.get(step.id, ()), "routed"))
        _add(into, _context(draft, index), "context")
        _add(into, _referenced_steps(step, stored, draft), "reference")
        _add(into, _listed_before(draft, index), "listed before")  # order is the weakest reason
    return edges


def _add(into: "dict[StepId, EdgeReason]", befores: Iterable[StepId], reason: "EdgeReason") -> None:
    for before in befores:
        if before not in into:
            into[before] = reason


def stored_names(draft: Draft) -> dict[str, StepId]:
    stored: dict[str, StepId] = {}
    for step in draft.steps:
        if step.step.output.store_as:
            stored.setdefault(step.step.output.store_as, step.id)
    return stored


def _routes(draft: Draft) -> dict[StepId, list[StepId]]:
    routes: dict[StepId, list[StepId]] = {}
    for step in draft.steps:
        for _, name in step.targets:
            if StepId(name) in draft.by_id:
                routes.setdefault(StepId(name), []).append(step.id)
    return routes


def _context(draft: Draft, index: int) -> list[StepId]:
    # "All prior context" waits for all that is listed before it; otherwise what it holds would
    # depend on who happened to be quick. A written depends_on says so itself.
    step = draft.steps[index].step
    if step.depends_on is not None or asks_for_all_prior(step) is None:
        return []
    return [earlier.id for earlier in draft.steps[:index]]


def _listed_before(draft: Draft, index: int) -> list[StepId]:
    if not draft.recipe.dialect.chains_steps or index == 0:
        return []
    return [draft.steps[index - 1].id] if draft.steps[index].step.depends_on is None else []


def _referenced_steps(step: DraftStep, stored: dict[str, StepId], draft: Draft) -> Iterator[StepId]:
    for site in step.sites:
        for reference in site.references:
            before = referred_step(reference, stored, site)
            if before in draft.by_id and not (before == step.id and site.may_name_itself):
                yield before


def referred_step(
    reference: Reference, stored: dict[str, StepId], site: TemplateSite
) -> StepId | None:
    path = reference.path
    name = path[0]
    if name == "steps":
        return StepId(path[1]) if len(path) > 1 and isinstance(path[1], str) else None
    if name in ("inputs", "run") or name in site.local:
        return None
    return stored.get(str(name))


def cause_of(draft: Draft, edges: Edges, before: StepId, id: StepId) -> Cause:
    """Where the file says that `id` waits for `before`, to point a problem at."""
    reason = edges[id][before]
    # Two steps may have the same id, which is a problem of its own: either may be the cause.
    steps = [step for step in draft.steps if step.id == id]
    causes = (cause for step in steps if (cause := _cause_in(draft, step, before, reason)))
    return next(causes, Cause(reason, steps[0].step.at))


def _cause_in(
    draft: Draft, drafted: DraftStep, before: StepId, reason: "EdgeReason"
) -> Cause | None:
    step = drafted.step
    match reason:
        case "written" if before in (step.depends_on or ()):
            position = (step.depends_on or ()).index(before)
            return Cause(reason, (*step.at, "depends_on", position))
        case "routed":
            targets = (
                target for each in draft.steps if each.id == before for target in each.targets
            )
            return next((Cause(reason, at) for at, name in targets if name == step.id), None)
        case "context":
            at = asks_for_all_prior(step)
            return Cause(reason, at) if at is not None else None
        case "reference":
            stored = stored_names(draft)
            for site in drafted.sites:
                for reference in site.references:
                    if referred_step(reference, stored, site) == before:
                        return Cause(reason, site.at, site, reference)
    return None
