"""The waves of a plan: which steps run together if every step takes equally long.

Every route is taken. Steps of which a condition chooses one are no hindrance to one another: they never
both run.
"""

from collections import defaultdict
from collections.abc import Mapping
from heapq import heappop, heappush
from typing import TypeAlias

from stretto.plan.claims import ConflictIndex
from stretto.plan.model import Plan, PlannedMap, PlannedParallel, PlannedStep, PlannedWorkflow
from stretto.plan.workflow_steps import precedence
from stretto.vocabulary.names import StepId

_UNKNOWN: Mapping[StepId, int] = {}
# What was chosen where, on the way to a step.
_Choices: TypeAlias = Mapping[StepId, StepId]


def waves(plan: Plan, lengths: Mapping[StepId, int] = _UNKNOWN) -> tuple[tuple[StepId, ...], ...]:
    """`lengths`: of the lists of maps, as far as they are known."""
    index = ConflictIndex([step.claims for step in plan.steps])
    choices, waiting = choices_of(plan), _Waiting(plan)
    ready, result = waiting.ready, list[tuple[StepId, ...]]()
    while ready:
        wave, held_back, free = list[int](), list[int](), plan.width
        # Where nothing is free, there is still room for a rival: it runs instead, not besides.
        while ready and (free > 0 or any(choices[i] for i in wave)):
            i = heappop(ready)
            own = choices[i]
            rivals = [other for other in wave if own and are_rivals(own, choices[other])]
            places = [places_of(plan.steps[each], lengths) for each in (i, *rivals)]
            more = max(0, places[0] - max(places[1:], default=0))
            others = (other for other in wave if other not in rivals)
            if (free <= 0 < more) or any(index.conflicts(i, other) for other in others):
                held_back.append(i)
            else:
                wave.append(i)
                free -= more
                if isinstance(plan.steps[i].work, PlannedWorkflow):
                    waiting.free(i)  # it takes no time itself: the first steps in it start with it
        for i in held_back:
            heappush(ready, i)
        for i in wave:
            if not isinstance(plan.steps[i].work, PlannedWorkflow):
                waiting.free(i)
        result.append(tuple(plan.steps[i].id for i in wave))
    return tuple(result)


class _Waiting:
    """Which steps wait for how many others; `ready`: those that wait for none, in listing order."""

    def __init__(self, plan: Plan) -> None:
        befores = precedence(plan)
        self._waits_for = [len(befores[step.id]) for step in plan.steps]
        self._followers: defaultdict[int, list[int]] = defaultdict(list)
        place = {step.id: step.index for step in plan.steps}
        for step in plan.steps:
            for before in befores[step.id]:
                self._followers[place[before]].append(step.index)
        self.ready = [i for i, count in enumerate(self._waits_for) if count == 0]  # a heap

    def free(self, i: int) -> None:
        for follower in self._followers[i]:
            self._waits_for[follower] -= 1
            if self._waits_for[follower] == 0:
                heappush(self.ready, follower)


def places_of(step: PlannedStep, lengths: Mapping[StepId, int] = _UNKNOWN) -> int:
    """How many subagents it would set to work at once, if they were free."""
    match step.work:
        case PlannedParallel(branches):
            return len(branches)
        case PlannedMap(batch_size=size, max_items=most):
            return min(size, lengths.get(step.id, most))
        case PlannedWorkflow():
            return 0
        case _:
            return 1


def are_rivals(one: _Choices, other: _Choices) -> bool:
    """Whether a run that has the one never has the other."""
    return any(other.get(condition, target) != target for condition, target in one.items())


def choices_of(plan: Plan) -> list[_Choices]:
    """For each step, in listing order: which conditions must have chosen what before it runs."""
    known: dict[StepId, _Choices] = {}
    by_id = {step.id: step for step in plan.steps}
    for first in plan.steps:
        waiting = [first.id]
        while waiting:
            step = by_id[waiting[-1]]
            needed = (*step.edges, *((step.inside,) if step.inside is not None else ()))
            unknown = [id for id in needed if id not in known]
            if unknown:
                waiting.extend(unknown)
            else:
                around = known[step.inside] if step.inside is not None else {}
                known[waiting.pop()] = {**around, **_choices(step, known)}
    return [known[step.id] for step in plan.steps]


def _choices(step: PlannedStep, known: Mapping[StepId, _Choices]) -> _Choices:
    routes = [id for id, reason in step.edges.items() if reason == "routed"]
    if len(routes) == 1:
        return {**known[routes[0]], routes[0]: step.id}
    # It runs if any of its needs did, so only what they have in common is sure.
    needs = [known[id] for id, reason in step.edges.items() if reason != "listed before"]
    if routes or not needs:
        return {}
    first, *others = needs
    return {at: to for at, to in first.items() if all(each.get(at) == to for each in others)}
