"""Find what two patterns share, exactly. In: two parsed patterns. Out: a path of both, or None.

A path is a word of segments as a segment is a word of characters, and `**` is to the one what `*`
is to the other. So one search, `_shared_word`, serves both levels.
"""

import sys
from collections.abc import Callable, Hashable, Sequence
from enum import Enum
from functools import lru_cache
from typing import Final, TypeAlias, TypeVar


class Wild(Enum):
    """What may stand in a word beside its parts: any number of any parts, none included."""

    ANY = "any"


ANY: Final = Wild.ANY

CharSet: TypeAlias = tuple[tuple[int, int], ...]  # ranges of code points, sorted and disjoint
Letters: TypeAlias = tuple[CharSet | Wild, ...]
Segment: TypeAlias = str | Letters  # text when it holds no wildcard
Pattern: TypeAlias = tuple[Segment | Wild, ...]

# No file name holds NUL or '/'.
EVERY_CHAR: CharSet = ((1, ord("/") - 1), (ord("/") + 1, sys.maxunicode))
_EVERY_CHAR_BUT_DOT: CharSet = ((1, ord(".") - 1), (ord("/") + 1, sys.maxunicode))
EVERY_NAME: Segment = (ANY,)

_Part = TypeVar("_Part", bound=Hashable)
_Word: TypeAlias = Sequence[_Part | Wild]  # two ANY never stand side by side
_Meet: TypeAlias = Callable[[_Part, _Part], str | None]


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


def naming_forms(segment: Segment) -> list[Letters]:
    """The segment as letters; without a `*`, in forms that cannot match '.' or '..'.

    There are none for a segment like `[.]`, which matches no file name.
    """
    if isinstance(segment, str):
        return [tuple(((ord(char), ord(char)),) for char in segment)]
    if len(segment) > 2 or ANY in segment:
        return [segment]
    undotted = [() if chars is ANY else intersect(chars, _EVERY_CHAR_BUT_DOT) for chars in segment]
    return [
        (*segment[:at], chars, *segment[at + 1 :]) for at, chars in enumerate(undotted) if chars
    ]


def intersect(a: CharSet, b: CharSet) -> CharSet:
    both = ((max(low, start), min(high, end)) for low, high in a for start, end in b)
    return tuple((low, high) for low, high in both if low <= high)


# Kept, because few characters make up nearly all names: it is most of the work of matching.
@lru_cache(maxsize=4096)
def shared_char(a: CharSet, b: CharSet) -> str | None:
    both = intersect(a, b)
    if not both:
        return None
    # From 'a' upwards if there is one: people read the paths we find.
    return chr(next((max(low, ord("a")) for low, high in both if high >= ord("a")), both[0][0]))


def _shared_word(
    a: _Word[_Part], b: _Word[_Part], meet: _Meet[_Part], every: _Part
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


def _reachable(a: _Word[_Part], b: _Word[_Part], meet: _Meet[_Part]) -> list[int]:
    """Row i, bit j: some word uses up a[:i] and b[:j].

    This is the product of the two automata with a row of its states in each integer, so that the
    million states of the two longest globs cost a thousand operations.
    """
    stars, places = 0, dict[_Part, int]()
    for j, y in enumerate(b):
        if y is ANY:
            stars |= 1 << j
        else:
            places[y] = places.get(y, 0) | 1 << j
    meeting: dict[_Part, int] = {}
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
