"""Decide exactly whether two patterns share a path, and find one that they share.

A plan asks the first question for each pair of its steps, so `intersects` answers it quickly: a
star takes any run of parts, so where both patterns have one, everything between the stars of one
fits behind everything of the other. Only what stands before the first star and behind the last can
disagree. `shared_path` spells an example of such a path for messages, by a full search.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from itertools import product, starmap
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from stretto.globs.pattern import (
    ANY,
    EVERY_CHAR,
    EVERY_NAME,
    CharSet,
    Pattern,
    Segment,
    Wild,
    naming_forms,
    shared_char,
)

_Part = TypeVar("_Part")
_Key = TypeVar("_Key", bound=Hashable)
_Search: TypeAlias = Callable[[_Key, _Key], str | None]
# Up to this many parts, trying every place is quicker than the search, which tries none twice.
_LONGEST_TRIED = 64


class SplitWord(NamedTuple, Generic[_Part]):
    """Parts and stars, taken apart at the stars. Without a star, everything is the head."""

    head: tuple[_Part, ...]
    middle: tuple[tuple[_Part, ...], ...]
    tail: tuple[_Part, ...]  # the last part first
    has_star: bool
    least: int  # how many parts what it matches has at least


class PathName(NamedTuple):
    segment: Segment
    text: str | None  # of a plain name
    letters: SplitWord[CharSet]
    needs_search: bool  # only shared_name can decide it; _name says why


PathWord: TypeAlias = SplitWord[PathName]


def word_of(pattern: Pattern) -> PathWord:
    return _word([part if isinstance(part, Wild) else _name(part) for part in pattern])


def any_intersect(a: Iterable[PathWord], b: Iterable[PathWord]) -> bool:
    return any(starmap(intersects, product(a, b)))


def intersects(a: PathWord, b: PathWord) -> bool:
    """Whether some path is matched by both."""
    return _intersects(a, b, _names_intersect)


# Cached, so that equal names are one object, and comparing two equal heads is cheap.
@lru_cache(maxsize=4096)
def _name(segment: Segment) -> PathName:
    text = segment if isinstance(segment, str) else None
    letters = _word(naming_forms(segment)[0] if isinstance(segment, str) else segment)
    # A short segment might match nothing but '.' and '..', which name no file.
    might_be_dots = text is None and letters.least < 3
    is_special = might_be_dots or letters.least > _LONGEST_TRIED
    return PathName(segment, text, letters, is_special and not letters.has_star)


def _word(parts: Sequence[_Part | Wild]) -> SplitWord[_Part]:
    runs: list[list[_Part]] = [[]]
    for part in parts:
        if isinstance(part, Wild):
            runs.append([])
        else:
            runs[-1].append(part)
    head, *middle = map(tuple, runs)
    tail = middle.pop()[::-1] if middle else ()
    return SplitWord(head, tuple(middle), tail, ANY in parts, sum(map(len, runs)))


def _names_intersect(a: PathName, b: PathName) -> bool:
    if a.text is not None and b.text is not None:
        return a.text == b.text
    if a.needs_search or b.needs_search:
        return shared_name(a.segment, b.segment) is not None
    return _intersects(a.letters, b.letters, _chars_intersect)


def _chars_intersect(a: CharSet, b: CharSet) -> bool:
    return a == b or shared_char(a, b) is not None


def _intersects(
    a: SplitWord[_Part], b: SplitWord[_Part], meet: Callable[[_Part, _Part], bool]
) -> bool:
    # Equal parts intersect. `map` stops at the end of the shorter head: what is left of the longer
    # one has to be matched by the star of the other.
    if a.head != b.head and not all(map(meet, a.head, b.head)):
        return False
    if a.has_star and b.has_star:
        return a.tail == b.tail or all(map(meet, a.tail, b.tail))
    if a.has_star:
        return _fits(a, b.head, meet)
    if b.has_star:
        return _fits(b, a.head, meet)
    return a.least == b.least


def _fits(
    word: SplitWord[_Part], parts: tuple[_Part, ...], meet: Callable[[_Part, _Part], bool]
) -> bool:
    """Whether the word, whose head fits already, can be laid over exactly these parts."""
    if word.least > len(parts) or not all(map(meet, word.tail, reversed(parts))):
        return False
    at, end = len(word.head), len(parts) - len(word.tail)
    # Each run goes as far to the front as it can: that leaves the most room for the next.
    for run in word.middle:
        while not all(map(meet, run, parts[at : at + len(run)])):
            at += 1
        at += len(run)
        if at > end:
            return False
    return True


def shared_path(a: Pattern, b: Pattern) -> str | None:
    """A path that both match; '.' is the workspace itself."""
    segments = _shared_word(a, b, shared_name, EVERY_NAME)
    return None if segments is None else "/".join(segments) or "."


def shared_name(a: Segment, b: Segment) -> str | None:
    """A file name that both match. '', '.' and '..' name no file, so they do not count."""
    if isinstance(a, str) and isinstance(b, str):
        return a if a == b else None
    for x in naming_forms(a):
        for y in naming_forms(b):
            chars = _shared_word(x, y, shared_char, EVERY_CHAR)
            if chars is not None:
                # If this is '', '.' or '..', both hold a `*` and at most two other characters,
                # which may be dots: then both match '...' too. '' comes of two bare stars only.
                name = "".join(chars)
                return {"": "a", ".": "...", "..": "..."}.get(name, name)
    return None


def _shared_word(
    a: Sequence[_Key | Wild], b: Sequence[_Key | Wild], meet: _Search[_Key], every: _Key
) -> list[str] | None:
    """A word that both match, spelt part by part, walking back from the end of both.

    `meet` finds what two parts share, and `every` is the part that matches anything.
    """
    rows = _reachable(a, b, meet)
    i, j = len(a), len(b)
    if not rows[i] >> j & 1:
        return None
    word: list[str] = []
    while i or j:
        a_repeats, b_repeats = i > 0 and a[i - 1] is ANY, j > 0 and b[j - 1] is ANY
        # A star takes nothing wherever it can, so the word comes out short.
        if a_repeats and rows[i - 1] >> j & 1:
            i -= 1
        elif b_repeats and rows[i] >> (j - 1) & 1:
            j -= 1
        else:
            x, y = a[i - 1], b[j - 1]
            part = meet(every if x is ANY else x, every if y is ANY else y)
            assert part is not None, "the rows hold only what can be spelt"
            word.append(part)
            i, j = i - (not a_repeats), j - (not b_repeats)
    return word[::-1]


def _reachable(
    a: Sequence[_Key | Wild], b: Sequence[_Key | Wild], meet: _Search[_Key]
) -> list[int]:
    """Row i, bit j: some word uses up a[:i] and b[:j].

    This is the product of the two automata with a row of its states in each integer, so that the
    million states of the two longest globs cost a thousand operations.
    """
    stars, places = 0, dict[_Key, int]()
    for j, y in enumerate(b):
        if y is ANY:
            stars |= 1 << j
        else:
            places[y] = places.get(y, 0) | 1 << j
    meeting: dict[_Key, int] = {}
    rows = [1 | (1 & stars) << 1]
    for x in a:
        row = rows[-1]
        if x is ANY:
            row = -(row & -row) & (2 << len(b)) - 1  # it may take any run of b's parts
        elif row:
            if x not in meeting:
                meeting[x] = sum(places[y] for y in places if meet(x, y) is not None)
            row = row & stars << 1 | (row & meeting[x]) << 1
            row |= (row & stars) << 1  # a star of b may take nothing
        rows.append(row)
    return rows
