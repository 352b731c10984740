"""A parsed glob as data: segments, wildcards and sets of characters.

A path is a word of segments, and a segment is a word of characters. `**` in a path and `*` in a
segment both stand for any number of parts, so both levels use the same wildcard, `ANY`.
"""

import sys
from enum import Enum
from functools import lru_cache
from typing import Final, TypeAlias


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


# Cached: this is most of the work of matching, and nearly all names are made of few characters.
@lru_cache(maxsize=4096)
def shared_char(a: CharSet, b: CharSet) -> str | None:
    both = intersect(a, b)
    if not both:
        return None
    # A letter from 'a' on if there is one, because people read the example paths.
    return chr(next((max(low, ord("a")) for low, high in both if high >= ord("a")), both[0][0]))


def plain_names(pattern: Pattern) -> tuple[str, ...]:
    """The names without wildcards that the pattern begins with."""
    names = list[str]()
    for part in pattern:
        if not isinstance(part, str):
            break
        names.append(part)
    return tuple(names)
