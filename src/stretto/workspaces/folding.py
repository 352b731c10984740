"""Names where case does not count. In: a folder, a name, a pattern. Out: does it count; folded.

Two spellings of one file fold alike, and what a pattern matches, folded, its folded form matches.
So two patterns may name one file only if their folded forms overlap.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from unicodedata import normalize

from stretto.globs.pattern import ANY, CharSet, Letters, Pattern, Segment, Wild

_MOST_PROBED = 64


def ignores_case(folder: Path) -> bool:
    """Whether a name there may be spelt in another case. An empty folder is judged by its own."""
    probed = _probe_names(folder)
    return _probe_itself(folder) if probed is None else probed


def fold(name: str) -> str:
    return normalize("NFC", normalize("NFC", name).casefold())


def fold_pattern(pattern: Pattern) -> Pattern:
    return tuple(part if isinstance(part, Wild) else _fold_segment(part) for part in pattern)


def _fold_segment(segment: Segment) -> Segment:
    if isinstance(segment, str):
        return fold(segment)
    letters = list[CharSet | Wild]()
    for letter in segment:
        for folded in _fold_letter(letter):
            if folded is not ANY or letters[-1:] != [ANY]:
                letters.append(folded)
    return tuple(letters)


def _fold_letter(letter: CharSet | Wild) -> Letters:
    if letter is not ANY and len(letter) == 1 and letter[0][0] == letter[0][1]:
        return tuple(((ord(char), ord(char)),) for char in fold(chr(letter[0][0])))
    # Any other set becomes a star: one of its characters may fold to several, as 'ß' does.
    return (ANY,)


def _probe_names(folder: Path) -> bool | None:
    """None: no name there has a case."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for _, entry in zip(range(_MOST_PROBED), entries, strict=False)]
    except OSError:
        return None
    answers = list(_answers(folder, names))
    return any(answers) if answers else None


def _probe_itself(folder: Path) -> bool:
    resolved = Path(os.path.realpath(folder))
    return any(_answers(resolved.parent, [resolved.name]))


def _answers(folder: Path, names: list[str]) -> Iterator[bool]:
    for name in names:
        other = name.swapcase()
        if other == name or other in names:
            continue
        try:
            here = os.lstat(folder / name)
            there = os.lstat(folder / other)
        except FileNotFoundError:
            yield False
        except OSError:
            continue
        else:
            # Two hard links are one file too, but a listing shows both of them.
            yield os.path.samestat(here, there) and not _is_listed(folder, other)


def _is_listed(folder: Path, name: str) -> bool:
    try:
        return name in os.listdir(folder)
    except OSError:
        return False
