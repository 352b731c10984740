"""Do two patterns share a path? In: two Words of names. Out: yes or no, exactly, and quickly.

`glob_overlap` spells such a path; a plan only asks whether there is one, for each pair of its
steps. What makes that quick: a star takes any run of parts, so where both words have one, all of
what stands between the stars of one fits behind all of the other's. Only what stands before the
first star and behind the last can disagree.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import product, starmap
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from stretto.plan.glob_overlap import (
    ANY,
    CharSet,
    Pattern,
    Segment,
    Wild,
    naming_forms,
    shared_char,
    shared_name,
)

_Part = TypeVar("_Part")
# Up to here, trying every place is quicker than the search that never tries one twice.
_LONGEST_TRIED = 64


class Word(NamedTuple, Generic[_Part]):
    """Parts and stars, taken apart at the stars. Without a star, everything is the head."""

    head: tuple[_Part, ...]
    middle: tuple[tuple[_Part, ...], ...]
    tail: tuple[_Part, ...]  # the last part first
    has_star: bool
    least: int  # how many parts what it matches has at least


class Name(NamedTuple):
    segment: Segment
    text: str | None  # of a plain name
    letters: Word[CharSet]
    needs_search: bool  # see _name


PathWord: TypeAlias = Word[Name]


def word_of(pattern: Pattern) -> PathWord:
    return _word([part if isinstance(part, Wild) else _name(part) for part in pattern])


def any_meet(a: Iterable[PathWord], b: Iterable[PathWord]) -> bool:
    return any(starmap(paths_meet, product(a, b)))


def paths_meet(a: PathWord, b: PathWord) -> bool:
    """Whether some path is matched by both."""
    return _meet(a, b, _names_meet)


# Kept, so that equal names are one: to find two heads alike then costs next to nothing.
@lru_cache(maxsize=4096)
def _name(segment: Segment) -> Name:
    text = segment if isinstance(segment, str) else None
    letters = _word(naming_forms(segment)[0] if isinstance(segment, str) else segment)
    # A short one might match nothing but '.' and '..', which name no file.
    might_be_dots = text is None and letters.least < 3
    is_special = might_be_dots or letters.least > _LONGEST_TRIED
    return Name(segment, text, letters, is_special and not letters.has_star)


def _word(parts: Sequence[_Part | Wild]) -> Word[_Part]:
    runs: list[list[_Part]] = [[]]
    for part in parts:
        if isinstance(part, Wild):
            runs.append([])
        else:
            runs[-1].append(part)
    head, *middle = map(tuple, runs)
    tail = middle.pop()[::-1] if middle else ()
    return Word(head, tuple(middle), tail, ANY in parts, sum(map(len, runs)))


def _names_meet(a: Name, b: Name) -> bool:
    if a.text is not None and b.text is not None:
        return a.text == b.text
    if a.needs_search or b.needs_search:
        return shared_name(a.segment, b.segment) is not None
    return _meet(a.letters, b.letters, _chars_meet)


def _chars_meet(a: CharSet, b: CharSet) -> bool:
    return a == b or shared_char(a, b) is not None


def _meet(a: Word[_Part], b: Word[_Part], meet: Callable[[_Part, _Part], bool]) -> bool:
    # What equals meets. `map` stops with the shorter one: the rest of the longer falls to a star.
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
    word: Word[_Part], parts: tuple[_Part, ...], meet: Callable[[_Part, _Part], bool]
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
