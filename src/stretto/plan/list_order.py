"""Which steps a step follows by its place in the list, where it does not say what it waits for.

That is the step listed before it. Where conditions lead to steps, the list forks: a step that a
condition may choose follows that condition alone, and the step after the fork follows the ends of
all its ways, or of those ways that it refers to.
"""

from collections.abc import Mapping, Sequence, Set as AbstractSet

from msgspec import Struct

from stretto.vocabulary.ids import StepId


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
