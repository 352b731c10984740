"""Merge two edits of one text, line by line. In: base, ours, theirs. Out: text, or where they meet.

Lines that both kept from the base divide the texts; between two of them, what only one side
changed is taken, what both changed alike is taken once, and anything else is a clash. Edits that
touch without a kept line between them clash too, as they do in git.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from stretto.workspaces.lines import shared_runs, split_lines


@dataclass(frozen=True, slots=True)
class Clashes:
    lines: tuple[tuple[int, int], ...]  # first and last line of ours, counted from 1


class _Chunk(NamedTuple):
    base: Sequence[bytes]
    ours: Sequence[bytes]
    theirs: Sequence[bytes]
    at: int  # where ours begins


def merge_text(base: bytes, ours: bytes, theirs: bytes) -> bytes | Clashes:
    merged, clashes = list[bytes](), list[tuple[int, int]]()
    for chunk in _chunks(split_lines(base), split_lines(ours), split_lines(theirs)):
        if chunk.ours == chunk.base:
            merged.extend(chunk.theirs)
        elif chunk.theirs in (chunk.base, chunk.ours):
            merged.extend(chunk.ours)
        else:
            clashes.append((chunk.at + 1, chunk.at + max(1, len(chunk.ours))))
    return Clashes(tuple(clashes)) if clashes else b"".join(merged)


def is_text(content: bytes) -> bool:
    return b"\0" not in content


def _chunks(
    base: Sequence[bytes], ours: Sequence[bytes], theirs: Sequence[bytes]
) -> Iterator[_Chunk]:
    """Kept stretches and changed ones, in turn."""
    in_ours, in_theirs = _partners(base, ours), _partners(base, theirs)
    at = (0, 0, 0)
    for line in range(len(base)):
        o, t = in_ours[line], in_theirs[line]
        if o is None or t is None:
            continue
        if at != (line, o, t):
            yield _chunk(base, ours, theirs, at, (line, o, t))
        kept = base[line : line + 1]
        yield _Chunk(kept, kept, kept, o)
        at = (line + 1, o + 1, t + 1)
    end = (len(base), len(ours), len(theirs))
    if at != end:
        yield _chunk(base, ours, theirs, at, end)


def _chunk(
    base: Sequence[bytes],
    ours: Sequence[bytes],
    theirs: Sequence[bytes],
    start: tuple[int, int, int],
    end: tuple[int, int, int],
) -> _Chunk:
    (b, o, t), (b_end, o_end, t_end) = start, end
    return _Chunk(base[b:b_end], ours[o:o_end], theirs[t:t_end], o)


def _partners(base: Sequence[bytes], other: Sequence[bytes]) -> list[int | None]:
    """For each line of the base, where the other text kept it."""
    partners: list[int | None] = [None] * len(base)
    for run in shared_runs(base, other):
        partners[run.a : run.a + run.length] = range(run.b, run.b + run.length)
    return partners
