"""Which step waits for which: every step's edges, written and implied.

A step that does not say what it waits for follows the step listed before it. Where conditions lead
to steps, the list forks: a step that a condition may choose follows that condition alone, and the
step after the fork follows the ends of all its ways, or of those ways that it refers to.
"""

from collections.abc import Iterable, KeysView, Mapping, Sequence, Set as AbstractSet
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from msgspec import Struct

from stretto.documents.node import Path
from stretto.plan.draft import Draft, DraftStep, TemplateSite, asks_for_all_prior
from stretto.templates.template import Reference
from stretto.vocabulary.names import StepId

if TYPE_CHECKING:
    from stretto.plan.model import EdgeReason  # a plan's parts, which a check does not need


class ListedStep(Struct, frozen=True):
    id: StepId
    conditions: tuple[StepId, ...]  # that may choose it
    is_chained: bool  # it has no depends_on of its own
    refers_to: AbstractSet[StepId]


class _Way(Struct):
    """Steps that follow one another; other ways of the same fork stand beside them."""

    end: StepId
    members: set[StepId]
    is_routed: bool  # it begins at a step that a condition may choose


def follow_list(steps: Sequence[ListedStep]) -> Mapping[StepId, tuple[StepId, ...]]:
    follows: dict[StepId, tuple[StepId, ...]] = {}
    ways: list[_Way] = []
    for step in _in_order(steps):
        if step.conditions:
            # The condition is no end any more: whoever follows this step follows it too.
            ways = [way for way in ways if way.end not in step.conditions]
            ways.append(_Way(step.id, {step.id}, is_routed=True))
        elif not step.is_chained:
            ways = [way for way in ways if way.is_routed and way.members.isdisjoint(step.refers_to)]
            ways.append(_Way(step.id, {step.id}, is_routed=False))
        else:
            followed = [way for way in ways if not way.members.isdisjoint(step.refers_to)] or ways
            follows[step.id] = tuple(way.end for way in followed)
            ways = _continue(ways, followed, step.id)
    return follows


def _continue(ways: list[_Way], followed: list[_Way], id: StepId) -> list[_Way]:
    if not followed:
        return [_Way(id, {id}, is_routed=False)]
    if len(followed) == 1:
        followed[0].end = id
        followed[0].members.add(id)
        return ways
    left = [way for way in ways if way not in followed]
    members = {id}.union(*(way.members for way in followed)) if left else {id}
    return [*left, _Way(id, members, is_routed=bool(left))]


def _in_order(steps: Sequence[ListedStep]) -> list[ListedStep]:
    """A step that is listed before the condition that chooses it stands behind it."""
    place = {step.id: index for index, step in enumerate(steps)}
    if not any(step.conditions for step in steps):
        return list(steps)

    def rank(index: int) -> tuple[int, bool, int]:
        last = max((place[id] for id in steps[index].conditions if id in place), default=-1)
        return max(index, last), last > index, index

    return [steps[index] for index in sorted(range(len(steps)), key=rank)]


# By step, the steps that go before it and why; of several reasons the first counts.
Edges: TypeAlias = "dict[StepId, dict[StepId, EdgeReason]]"


class Cause(NamedTuple):
    """What in the file makes a step wait for another."""

    reason: "EdgeReason"
    at: Path
    site: TemplateSite | None = None  # for a reference, the text and the words in it
    reference: Reference | None = None
    condition: StepId | None = None  # whose output it names, which is that of the other step


def connect(draft: Draft) -> Edges:
    edges: Edges = {step.id: {} for step in draft.steps}  # of two with one id, both fill one
    routed = _routes(draft)
    stored = stored_names(draft)
    known = draft.by_id.keys()
    for index, step in enumerate(draft.steps):
        into = edges[step.id]
        # Unknown names are another rule's problem; here they are no edge.
        _add(into, [id for id in step.step.depends_on or () if id in known], "written")
        # A route outranks other reasons: `depends_on: [route]` does not unroute a step.
        into.update(dict.fromkeys(routed.get(step.id, ()), "routed"))
        _add(into, _context(draft, index), "context")
        _add_referenced(into, step, stored, known)
    if draft.recipe.dialect.chains_steps:
        _chain(draft, edges, routed)
    if routed:
        _wait_for_chosen(draft, edges, stored)
    return edges


def _chain(draft: Draft, edges: Edges, routed: dict[StepId, list[StepId]]) -> None:
    listed = [
        ListedStep(
            id=each.id,
            conditions=tuple(routed.get(each.id, ())),
            is_chained=each.step.depends_on is None,
            refers_to=edges[each.id].keys(),
        )
        for each in draft.steps
    ]
    for id, befores in follow_list(listed).items():
        _add(edges[id], befores, "listed before")  # order is the weakest reason


def _wait_for_chosen(draft: Draft, edges: Edges, stored: dict[str, StepId]) -> None:
    """The output of a condition is that of the step it chose, so whoever waits for a condition
    waits for the steps that it may choose. A step that goes before one of them does not, unless it
    uses the output, which is then a cycle."""
    chosen_by = {each.id: outcomes_of(draft, each) for each in draft.steps if each.targets}
    for step in draft.steps:
        into = edges[step.id]
        conditions = [before for before in into if chosen_by.get(before)]
        used = _used_outputs(step, stored) if conditions else ()
        for condition in conditions:
            if condition in used:
                _add(into, chosen_by[condition], "reference")
            elif into[condition] in ("written", "context"):
                sooner = (id for id in chosen_by[condition] if not _goes_before(edges, step.id, id))
                _add(into, sooner, into[condition])


def outcomes_of(draft: Draft, condition: DraftStep) -> tuple[StepId, ...]:
    """The steps whose output may be that of the condition; one of them may be a condition too."""
    found: dict[StepId, None] = {}
    waiting = [condition]
    while waiting:
        for _, name in waiting.pop().targets:
            target = draft.by_id.get(StepId(name))
            if target is not None and target.id not in found and target is not condition:
                found[target.id] = None
                waiting.append(target)
    return tuple(found)


def _used_outputs(step: DraftStep, stored: dict[str, StepId]) -> set[StepId]:
    return {
        before
        for site in step.sites
        for reference in site.references
        if (before := referred_step(reference, stored, site)) and _is_output(reference)
    }


def _is_output(reference: Reference) -> bool:
    """Also by the name under which a step keeps it."""
    return reference.path[0] != "steps" or reference.path[2:3] == ("output",)


def _goes_before(edges: Edges, id: StepId, target: StepId) -> bool:
    """Whether the target is the step, or waits for it."""
    seen, waiting = {target}, [target]
    while waiting:
        for before in edges[waiting.pop()]:
            if before not in seen:
                seen.add(before)
                waiting.append(before)
    return id in seen


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


def _add_referenced(
    into: "dict[StepId, EdgeReason]",
    step: DraftStep,
    stored: dict[str, StepId],
    known: KeysView[StepId],
) -> None:
    for site in step.sites:
        for reference in site.references:
            before = referred_step(reference, stored, site)
            # Most are written in depends_on as well.
            if before is None or before in into or before not in known:
                continue
            if not (before == step.id and site.may_name_itself):
                into[before] = "reference"


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
            return _reference_to(draft, drafted, before)
    return None


def _reference_to(draft: Draft, drafted: DraftStep, before: StepId) -> Cause | None:
    stored = stored_names(draft)
    indirect = None
    for site in drafted.sites:
        for reference in site.located:
            named = referred_step(reference, stored, site)
            if named == before:
                return Cause("reference", site.at, site, reference)
            condition = draft.by_id.get(named) if named else None
            if condition and _is_output(reference) and before in outcomes_of(draft, condition):
                indirect = Cause("reference", site.at, site, reference, condition.id)
    return indirect
