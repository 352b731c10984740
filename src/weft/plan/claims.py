"""What a step may read and write. In: the Claims of all steps. Out: which of them conflict."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from weft.plan.glob_overlap import Pattern
from weft.plan.globs import Glob, sets_overlap

_Stem: TypeAlias = tuple[str, ...]


class _Access(Enum):
    READS = auto()
    WRITES_SHARED = auto()
    WRITES_COPY = auto()


# RECIPES §9. Writers always mind each other: their changes meet when copies are merged. A reader
# never sees a copy. What a writer *reads* is not here: only its write-set counts.
_MAY_CONFLICT = {
    _Access.READS: (_Access.WRITES_SHARED,),
    _Access.WRITES_SHARED: (_Access.READS, _Access.WRITES_SHARED, _Access.WRITES_COPY),
    _Access.WRITES_COPY: (_Access.WRITES_SHARED, _Access.WRITES_COPY),
}


@dataclass(frozen=True, slots=True)
class Claims:
    reads: tuple[Glob, ...]
    writes: tuple[Glob, ...]
    is_writer: bool
    is_isolated: bool

    def conflicts(self, other: "Claims") -> bool:
        """Whether the two may not run at the same time."""
        if other._access not in _MAY_CONFLICT[self._access]:
            return False
        return sets_overlap(self._globs, other._globs)

    @property
    def _access(self) -> _Access:
        if not self.is_writer:
            return _Access.READS
        return _Access.WRITES_COPY if self.is_isolated else _Access.WRITES_SHARED

    @property
    def _globs(self) -> tuple[Glob, ...]:
        """The one set of the two that can conflict."""
        return self.writes if self.is_writer else self.reads


class ConflictIndex:
    """The conflicts between all steps of a plan, each step known by its place in the list.

    Steps with the same claims form a group. Two groups are compared when somebody first asks, and
    only if their paths begin alike. No step conflicts with itself.
    """

    def __init__(self, claims: Sequence[Claims]) -> None:
        groups: dict[tuple[_Access, frozenset[Pattern]], _Group] = {}
        self._group_of: list[_Group] = []
        self._stems = {access: _StemIndex() for access in _Access}
        self._decided: dict[tuple[int, int], bool] = {}
        for step, claim in enumerate(claims):
            key = claim._access, frozenset(p for glob in claim._globs for p in glob.patterns)
            if key not in groups:
                stems = frozenset(stem for glob in claim._globs for stem in glob.stems())
                groups[key] = _Group(claim, stems, [])
                self._stems[claim._access].add(groups[key])
            groups[key].steps.append(step)
            self._group_of.append(groups[key])

    def conflicts(self, i: int, j: int) -> bool:
        a, b = self._group_of[i], self._group_of[j]
        return i != j and a.may_meet(b) and self._groups_conflict(a, b)

    def partners(self, i: int) -> frozenset[int]:
        """All steps that conflict with step i. The answer is not kept: where everything conflicts,
        keeping it for each step would cost the square of the plan."""
        group = self._group_of[i]
        rivals = (near for near in self._near(group) if self._groups_conflict(group, near))
        # Sorted, so that even who walks over the set sees the same order in every run.
        return frozenset(sorted(step for rival in rivals for step in rival.steps if step != i))

    def _near(self, group: "_Group") -> Iterator["_Group"]:
        for access in _MAY_CONFLICT[group.claims._access]:
            yield from self._stems[access].near(group.stems)

    def _groups_conflict(self, a: "_Group", b: "_Group") -> bool:
        pair = (min(a.steps[0], b.steps[0]), max(a.steps[0], b.steps[0]))
        if pair not in self._decided:
            self._decided[pair] = a.claims.conflicts(b.claims)
        return self._decided[pair]


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Steps whose claims come to the same; they are added only while the index is built."""

    claims: Claims
    stems: frozenset[_Stem]
    steps: list[int]

    def may_meet(self, other: "_Group") -> bool:
        return any(a[: len(b)] == b[: len(a)] for a in self.stems for b in other.stems)


class _StemIndex:
    """Finds the groups whose paths may begin like those of another."""

    def __init__(self) -> None:
        self._at: defaultdict[_Stem, set[_Group]] = defaultdict(set)
        self._below: defaultdict[_Stem, set[_Group]] = defaultdict(set)

    def add(self, group: _Group) -> None:
        for stem in group.stems:
            self._at[stem].add(group)
            for length in range(len(stem) + 1):
                self._below[stem[:length]].add(group)

    def near(self, stems: frozenset[_Stem]) -> set[_Group]:
        found = set[_Group]()
        for stem in stems:
            found |= self._below.get(stem, set())
            for length in range(len(stem)):
                found |= self._at.get(stem[:length], set())
        return found
