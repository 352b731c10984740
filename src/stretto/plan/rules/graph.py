"""Every dependency, condition and merge leads to a step that exists, and nothing waits for itself."""

from collections import deque
from collections.abc import Iterator

from stretto.plan.draft import Draft
from stretto.plan.edges import Cause, Edges, cause_of, referred_step, stored_names
from stretto.recipe.model import Condition, Step, Switch
from stretto.templates.template import Fault, Reference
from stretto.text.short import did_you_mean, listed
from stretto.vocabulary.names import AgentId, StepId


def check_dependencies(draft: Draft) -> None:
    for step in draft.recipe.steps:
        befores = set(step.depends_on or ())
        if len(befores) == len(step.depends_on or ()) and befores <= draft.by_id.keys():
            continue
        seen: set[str] = set()
        for position, before in enumerate(step.depends_on or ()):
            at = draft.element((*step.at, "depends_on"), position, before)
            if before not in draft.by_id:
                message = (
                    f"step '{step.id}' depends on '{before}', which this recipe does not define"
                )
                if draft.has_nameless_step:
                    continue  # it may well be the one whose id cannot be read
                known = [id for id in draft.step_ids() if id != step.id]
                hint = did_you_mean(before, known)
                if hint is None:
                    hint = (
                        f"its steps: {listed(known)}" if known else "this recipe has no other step"
                    )
                draft.problem_at("RCP104", at, message, hint)
            elif before in seen:
                draft.warning_at("RCP901", at, f"'{before}' is listed twice in depends_on")
            seen.add(before)


def check_targets(draft: Draft) -> None:
    for drafted in draft.steps:
        for at, name in drafted.targets:
            if StepId(name) in draft.by_id or draft.agent(AgentId(name)):
                continue
            hint = did_you_mean(name, [*draft.step_ids(), *draft.agent_ids()])
            if name.strip("_").lower() in ("end", "stop", "done", "finish", "none", "null"):
                hint = "remove it: where no target is written, nothing is chosen"
            draft.problem_at(
                "RCP116",
                at,
                f"'{name}' is neither a step of this recipe nor an agent",
                hint or f"its steps: {listed(draft.step_ids())}",
            )
        work = drafted.step.work
        has_words = (isinstance(work, Condition) and work.eval) or (
            isinstance(work, Switch) and work.value
        )
        if has_words and not drafted.targets and not draft.has_problem_below(drafted.step.at):
            draft.problem_at(
                "RCP116",
                drafted.step.at,
                f"step '{drafted.id}' leads nowhere",
                "name a step or an agent under true:, false: or cases:",
            )


def warn_untold(draft: Draft, edges: Edges) -> None:
    """A wrapped step waits for the one listed before it. If it is told nothing of any step, its agent
    works without what was done so far, or the step need not wait."""
    if not draft.recipe.dialect.chains_steps:
        return
    for drafted in draft.steps:
        reasons = edges[drafted.id]
        if not reasons or set(reasons.values()) != {"listed before"} or not drafted.uses:
            continue
        befores = [draft.by_id[id] for id in reasons]
        # What a writer did is in the files, and a command may be there for its exit code.
        is_carried = any(each.posture == "writer" for each in (drafted, *befores))
        if draft.has_warning_below(drafted.step.at, "RCP907"):
            continue  # it names a step, but not in a way that is read here
        if is_carried or not all(each.uses for each in befores):
            continue
        before = befores[-1].id
        draft.warning_at(
            "RCP908",
            drafted.step.at,
            f"step '{drafted.id}' waits for '{before}' and is told nothing of it",
            f"write {{{{steps.{before}.output}}}} in its input, or depends_on: [] to start at once",
        )


def check_cycles(draft: Draft, edges: Edges) -> None:
    if _is_in_order(edges):
        return
    told: set[StepId] = set()
    while left := _unorderable(edges, told):
        cycle = _first_cycle(edges, left)
        # Which of two steps of one name is meant is not known, and that is told already.
        ids = [step.id for step in draft.recipe.steps]
        if all(ids.count(id) == 1 for id in cycle):
            _report_cycle(draft, edges, cycle)
        # Take this cycle out and look again: two cycles are two problems, told apart.
        told.update(cycle)


def _is_in_order(edges: Edges) -> bool:
    """Whether each step is listed after those that it waits for, as in most recipes."""
    listed = set[StepId]()
    for id, befores in edges.items():
        if not befores.keys() <= listed:
            return False
        listed.add(id)
    return True


def _first_cycle(edges: Edges, left: set[StepId]) -> list[StepId]:
    # Some of `left` only stand behind a cycle; the first listed one that is on it is the start.
    cycles = (_shortest_cycle(edges, id, left) for id in edges if id in left)
    return next(cycle for cycle in cycles if cycle)


def _unorderable(edges: Edges, gone: set[StepId]) -> set[StepId]:
    """Steps on a cycle or behind one: what is left once everything orderable is taken away."""
    waiting = {id: {b for b in befores if b not in gone} for id, befores in edges.items()}
    after: dict[StepId, list[StepId]] = {}
    for id, befores in edges.items():
        for before in befores:
            after.setdefault(before, []).append(id)
    ready = deque(id for id, befores in waiting.items() if not befores and id not in gone)
    left = set(waiting) - gone
    while ready:
        id = ready.popleft()
        left.discard(id)
        for dependent in after.get(id, ()):
            if dependent in left and id in waiting[dependent]:
                waiting[dependent].remove(id)
                if not waiting[dependent]:
                    ready.append(dependent)
    return left


def _shortest_cycle(edges: Edges, start: StepId, within: set[StepId]) -> list[StepId] | None:
    """Backwards over the edges from `start` to itself; listed in the order of running."""
    came_from: dict[StepId, StepId] = {}
    queue = deque([start])
    while queue:
        id = queue.popleft()
        for before in edges[id]:
            if before == start:
                return _walk(came_from, start, id)
            if before in within and before not in came_from:
                came_from[before] = id
                queue.append(before)
    return None


def _walk(came_from: dict[StepId, StepId], start: StepId, last: StepId) -> list[StepId]:
    # came_from leads from a step to the one that waits for it, so this runs forwards.
    path = [last]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    return [start, *path[:-1]]


def _report_cycle(draft: Draft, edges: Edges, cycle: list[StepId]) -> None:
    spelt = " → ".join([*cycle, cycle[0]])
    causes = list(_causes(draft, edges, cycle))
    for cause in causes:
        if cause.site and cause.reference:
            fault = _cycle_fault(cause, cause.reference, cycle, spelt)
            draft.problem_inside(cause.site.at, cause.site.parsed.text, fault)
            return
    written = next((cause for cause in causes if cause.reason == "written"), causes[0])
    if len(cycle) == 1:
        draft.problem_at(
            "RCP106", written.at, f"step '{cycle[0]}' waits for itself: {spelt}", "remove it"
        )
        return
    draft.problem_at(
        "RCP106",
        written.at,
        f"these steps wait for each other: {spelt}",
        "remove one of the dependencies",
    )


def _cycle_fault(cause: Cause, reference: Reference, cycle: list[StepId], spelt: str) -> Fault:
    closes = f"this reference closes a cycle: {spelt}"
    message = f"step '{cycle[0]}' refers to itself" if len(cycle) == 1 else closes
    hint = "a template can use only steps that have ended before"
    if cause.condition is not None:
        meaning = f"the output of '{cause.condition}' is that of the step it chooses"
        message = (
            f"{meaning}, which may be this one" if len(cycle) == 1 else f"{closes} ({meaning})"
        )
        hint = f"steps.{cause.condition}.chosen names what it chose"
    return Fault("RCP211", message, hint, reference.offset, len(reference.text))


def _causes(draft: Draft, edges: Edges, cycle: list[StepId]) -> Iterator[Cause]:
    for before, id in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        yield cause_of(draft, edges, before, id)


_MERGE_ORDER = "RCP127"


def check_merge_order(draft: Draft, edges: Edges) -> None:
    for step in draft.recipe.steps:
        at = (*step.at, "merge_back")
        if step.merge_after is None:
            if step.merge_when is not None:
                message = "'merge_when' decides about 'merge_back: after STEP', and there is none"
                draft.problem_at(
                    _MERGE_ORDER, (*step.at, "merge_when"), message, "write merge_back: after STEP"
                )
        elif step.merge_after not in draft.by_id:
            known = [id for id in draft.step_ids() if id != step.id]
            hint = did_you_mean(step.merge_after, known) or f"its steps: {listed(known)}"
            message = f"'{step.merge_after}' is no step of this recipe"
            draft.problem_at(_MERGE_ORDER, at, message, hint)
        elif not _waits_for(edges, step.merge_after, step.id):
            message = f"step '{step.merge_after}' does not wait for '{step.id}'"
            hint = f"give it depends_on: [{step.id}], or a prompt with {{{{steps.{step.id}.diff}}}}"
            draft.problem_at(_MERGE_ORDER, at, message, hint)
        else:
            _check_merge_condition(draft, edges, step, step.merge_after)


def _check_merge_condition(draft: Draft, edges: Edges, step: Step, after: StepId) -> None:
    """It is looked at once, when the step has ended that the merge comes after."""
    stored = stored_names(draft)
    for site in draft.by_id[step.id].later:
        for reference in site.located:
            named = referred_step(reference, stored, site)
            if named not in draft.by_id or named in (None, step.id, after):
                continue
            if not _waits_for(edges, after, named):
                message = (
                    f"'{named}' may not have ended when the end of '{after}' decides the merge"
                )
                hint = f"name '{after}' or a step that '{after}' waits for"
                fault = Fault(_MERGE_ORDER, message, hint, reference.offset, len(reference.text))
                draft.problem_inside(site.at, site.parsed.text, fault)


def _waits_for(edges: Edges, later: StepId, id: StepId) -> bool:
    waiting, seen = [later], set[StepId]()
    while waiting:
        for before in edges[waiting.pop()]:
            if before == id:
                return True
            if before not in seen:
                seen.add(before)
                waiting.append(before)
    return False
