"""What steps may read and write, and which of them may not run at the same time."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from itertools import chain
from typing import TypeAlias

from stretto.globs.glob import Glob, GlobFault, parse_glob, sets_overlap
from stretto.globs.intersection import PathWord, any_intersect
from stretto.globs.pattern import Pattern

_Stem: TypeAlias = tuple[str, ...]


class _Access(Enum):
    READS = auto()
    WRITES_SHARED = auto()
    WRITES_COPY = auto()


# Writers always conflict with each other: their changes meet when copies are merged. A reader
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


@lru_cache(maxsize=1024)  # most steps of a plan claim the same: one value for all, parsed once
def claims_of(
    reads: tuple[str, ...], writes: tuple[str, ...], is_writer: bool, is_isolated: bool
) -> Claims:
    """Raises ValueError for a text that is no glob."""
    return Claims(_parse_globs(reads), _parse_globs(writes), is_writer, is_isolated)


def _parse_globs(texts: Sequence[str]) -> tuple[Glob, ...]:
    globs = []
    for text in texts:
        glob = parse_glob(text)
        if isinstance(glob, GlobFault):
            raise ValueError(f"no glob: {glob.message}")
        globs.append(glob)
    return tuple(globs)


class ConflictIndex:
    """The conflicts between all steps of a plan, each step known by its place in the list.

    Steps with the same claims form a group. Two groups are compared at the first question about them, and
    only if their paths begin alike. No step conflicts with itself.
    """

    def __init__(self, claims: Sequence[Claims]) -> None:
        groups: dict[tuple[_Access, frozenset[Pattern]], _Group] = {}
        self._group_of: list[_Group] = []
        self._stems = {access: _StemIndex() for access in _Access}
        self._decided: dict[int, bool] = {}
        self._rivals_of: dict[_Group, list[_Group]] = {}
        for step, claim in enumerate(claims):
            access, globs = claim._access, claim._globs
            key = access, frozenset(p for glob in globs for p in glob.patterns)
            if key not in groups:
                stems = frozenset(stem for glob in globs for stem in glob.stems())
                words = tuple(word for glob in globs for word in glob.words)
                groups[key] = _Group(words, access, _MAY_CONFLICT[access], stems, [])
                self._stems[access].add(groups[key])
            groups[key].steps.append(step)
            self._group_of.append(groups[key])

    def conflicts(self, i: int, j: int) -> bool:
        a, b = self._group_of[i], self._group_of[j]
        return i != j and a.may_meet(b) and self._groups_conflict(a, b)

    def partners(self, i: int) -> frozenset[int]:
        """All steps that conflict with step i. The answer is not kept: where everything conflicts,
        keeping it for each step would cost the square of the plan."""
        # Sorted, so that iterating over the set gives the same order in every run.
        rivals = self._rivals(self._group_of[i])
        return frozenset(sorted(step for rival in rivals for step in rival.steps if step != i))

    def _rivals(self, group: "_Group") -> list["_Group"]:
        rivals = self._rivals_of.get(group)
        if rivals is None:
            near = chain.from_iterable(self._stems[it].near(group.stems) for it in group.minds)
            rivals = [other for other in near if self._groups_conflict(group, other)]
            if len(group.steps) > 1:  # the next step of the group asks for the same
                self._rivals_of[group] = rivals
        return rivals

    def _groups_conflict(self, a: "_Group", b: "_Group") -> bool:
        i, j = a.steps[0], b.steps[0]
        # The pair as a number: a hundred thousand tuples would keep the collector busy.
        pair = (i if i < j else j) * len(self._group_of) + (j if i < j else i)
        decided = self._decided.get(pair)
        if decided is None:
            decided = self._decided[pair] = any_intersect(a.words, b.words)
        return decided


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Steps whose claims come to the same; they are added only while the index is built."""

    words: tuple[PathWord, ...]
    access: _Access
    minds: tuple[_Access, ...]  # whose access to the same files it must not share
    stems: frozenset[_Stem]
    steps: list[int]

    def may_meet(self, other: "_Group") -> bool:
        """Cheap, and right when it says no."""
        if other.access not in self.minds:
            return False
        if not self.stems.isdisjoint(other.stems):
            return True
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
