"""Which step gets the next slot: of those that are ready, the first in listing order that fits.

The outcome is this: pass over the ready steps in listing order and start each that fits under the
width and conflicts with no step that holds its files. It costs less than that: steps with the same
claims form a group, only the first of a group is ever looked at, and a group that is blocked is
looked at again when the step that blocks it releases its files.

A slot is for one delegation. A step that has begun keeps its files and may want more slots, for its
branches or elements or to retry. The next slot is for the step that has the fewest, a step that has
not begun having none; of several such steps, for the first in listing order. So no map keeps the
others from working, and a step that has begun never waits for one that has not, unless it has a slot.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from heapq import heappop, heappush

from stretto.plan.claims import Claims, ConflictIndex

# More partners of one group are not remembered: memory would grow with the square of the groups.
_MOST_PARTNERS = 64


class ReadyQueue:
    def __init__(self, claims: Sequence[Claims], width: int) -> None:
        groups: dict[Claims, int] = {}
        self._group_of = list(_group(claims, groups))
        self._claims = list(groups)
        self._partners: dict[int, tuple[int, ...] | None] = {}
        self._queues: list[list[int]] = [[] for _ in groups]
        self._heads: list[int] = []  # a heap of first steps; outdated ones are skipped
        self._parked: dict[int, int] = {}  # group → the step that blocks it
        self._parked_on: dict[int, list[int]] = {}
        self._holders: dict[int, dict[int, None]] = {}  # group with rivals → steps that hold files
        self._slots: dict[int, int] = {}  # step → how many it has
        self._wants: dict[int, int] = {}  # step that has begun → how many more it wants
        # A heap of (slots, step); outdated ones are skipped.
        self._wanting: list[tuple[int, int]] = []
        self.width = width
        self.running = 0  # delegations

    def push(self, step: int) -> None:
        group = self._group_of[step]
        queue = self._queues[group]
        heappush(queue, step)
        if queue[0] == step and group not in self._parked:
            heappush(self._heads, step)

    def want(self, step: int) -> None:
        """A step that has begun wants one more slot."""
        self._wants[step] = self._wants.get(step, 0) + 1
        heappush(self._wanting, (self._slots.get(step, 0), step))

    def forget(self, step: int) -> None:
        """The step wants one slot less."""
        left = self._wants[step] - 1
        if left:
            self._wants[step] = left
        else:
            del self._wants[step]

    def may_take(self, step: int, *, is_starting: bool) -> bool:
        """Whether a slot is free that no other step should have before this one. A step that starts
        takes what is free: its branches begin together."""
        if self.running >= self.width:
            return False
        return is_starting or step not in self._slots or not (self._heads or self._wants)

    def take(self, step: int) -> None:
        self.running += 1
        slots = self._slots[step] = self._slots.get(step, 0) + 1
        if step in self._wants:
            heappush(self._wanting, (slots, step))

    def pop(self) -> int | None:
        """The step that may take a slot: one that wants another, or one to start, which from now on
        holds its files if other steps want them."""
        while self.running < self.width and (self._heads or self._wants):
            wanting = self._first_wanting()
            if wanting is not None and (not self._heads or wanting < (0, self._heads[0])):
                self.forget(wanting[1])
                return wanting[1]
            step = heappop(self._heads)
            group = self._group_of[step]
            queue = self._queues[group]
            if group in self._parked or not queue or queue[0] != step:
                continue
            rivals = self._rivals(group)
            if rivals != ():  # without rivals, no group blocks another
                blocker = self._blocker(group, rivals)
                if blocker is not None:
                    self._parked[group] = blocker
                    self._parked_on.setdefault(blocker, []).append(group)
                    continue
                self._holders.setdefault(group, {})[step] = None
            heappop(queue)
            if queue:
                heappush(self._heads, queue[0])
            return step
        return None

    def _first_wanting(self) -> tuple[int, int] | None:
        while self._wanting:
            slots, step = self._wanting[0]
            if step in self._wants and self._slots.get(step, 0) == slots:
                return self._wanting[0]
            heappop(self._wanting)
        return None

    def release_slot(self, step: int) -> None:
        """A delegation of the step has ended."""
        self.running -= 1
        left = self._slots[step] - 1
        if left:
            self._slots[step] = left
        else:
            del self._slots[step]
        if step in self._wants:
            heappush(self._wanting, (left, step))

    def release_files(self, step: int) -> None:
        """No delegation works on the step's files any more: steps that conflict with it may start."""
        group = self._group_of[step]
        holders = self._holders.get(group)
        if holders is None or step not in holders:
            return
        del holders[step]
        if not holders:
            del self._holders[group]
        for parked in self._parked_on.pop(step, ()):
            del self._parked[parked]
            if self._queues[parked]:
                heappush(self._heads, self._queues[parked][0])

    def clear(self) -> None:
        """No step starts any more."""
        self._heads.clear()
        for queue in self._queues:
            queue.clear()

    def blocker_of(self, step: int) -> int | None:
        """The step whose files this one waits for, if that is known already."""
        return self._parked.get(self._group_of[step])

    @cached_property
    def _index(self) -> ConflictIndex:
        """Made when it is first asked: where all steps claim the same, it has nothing to say."""
        return ConflictIndex(self._claims)

    def _blocker(self, group: int, rivals: tuple[int, ...] | None) -> int | None:
        if rivals is None:
            held = (other for other in self._holders if self._conflict(group, other))
        else:
            held = (other for other in rivals if other in self._holders)
        found = next(held, None)
        return None if found is None else next(iter(self._holders[found]))

    def _rivals(self, group: int) -> tuple[int, ...] | None:
        """The groups it conflicts with; None: too many to remember."""
        if group not in self._partners:
            rivals = sorted(self._index.partners(group)) if len(self._claims) > 1 else []
            if self._conflict(group, group):
                rivals.insert(0, group)
            self._partners[group] = tuple(rivals) if len(rivals) <= _MOST_PARTNERS else None
        return self._partners[group]

    def _conflict(self, a: int, b: int) -> bool:
        if a == b:
            return self._claims[a].conflicts(self._claims[a])
        return self._index.conflicts(a, b)


def _group(claims: Sequence[Claims], groups: dict[Claims, int]) -> Iterator[int]:
    last, group = None, 0
    for claim in claims:
        # Most steps share one value with their neighbours, and its hash is that of all its globs.
        if claim is not last:
            last, group = claim, groups.setdefault(claim, len(groups))
        yield group
