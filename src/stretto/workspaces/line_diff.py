"""Compare texts line by line, and merge two edits of one text.

Lines that occur once in each text hold the two together (patience); between them the shortest
edit is sought (Myers). The effort is bounded: past it, what lies between counts as all different.
The answer is then longer than need be, never wrong.

A merge of two edits is divided by the lines that both kept from the base. Between two of them, what
only one side changed is taken, what both changed alike is taken once, and anything else is a clash.
Edits that touch without a kept line between them clash too, as they do in git.
"""

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

EFFORT = 3_000_000  # steps for one pair of texts: about a second
MOST_EDITS = 2_000


class SharedLines(NamedTuple):
    a: int  # where it begins in the first text
    b: int
    length: int


class _Region(NamedTuple):
    a: int
    a_end: int
    b: int
    b_end: int


def split_lines(content: bytes) -> list[bytes]:
    """With their ends, which only "\\n" is: bytes must come out as they went in."""
    lines = content.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def find_shared_lines(
    a: Sequence[bytes], b: Sequence[bytes], effort: int = EFFORT
) -> list[SharedLines]:
    numbers = dict[bytes, int]()
    first = [numbers.setdefault(line, len(numbers)) for line in a]
    second = [numbers.setdefault(line, len(numbers)) for line in b]
    found = sorted(_Search(first, second, effort).runs())
    return list(_join_runs(found))


@dataclass(slots=True)
class _Search:
    a: list[int]
    b: list[int]
    effort: int
    _waiting: list[_Region] = field(default_factory=list)

    def runs(self) -> Iterator[SharedLines]:
        self._waiting.append(_Region(0, len(self.a), 0, len(self.b)))
        while self._waiting:
            region, runs = self._trim(self._waiting.pop())
            yield from runs
            if region.a == region.a_end or region.b == region.b_end:
                continue
            anchors = self._anchors(region)
            if anchors:
                yield from self._divide(region, anchors)
            else:
                yield from self._shortest(region)

    def _trim(self, region: _Region) -> tuple[_Region, list[SharedLines]]:
        a, a_end, b, b_end = region
        while a < a_end and b < b_end and self.a[a] == self.b[b]:
            a, b = a + 1, b + 1
        head = SharedLines(region.a, region.b, a - region.a)
        while a < a_end and b < b_end and self.a[a_end - 1] == self.b[b_end - 1]:
            a_end, b_end = a_end - 1, b_end - 1
        tail = SharedLines(a_end, b_end, region.a_end - a_end)
        return _Region(a, a_end, b, b_end), [run for run in (head, tail) if run.length]

    def _anchors(self, region: _Region) -> list[tuple[int, int]]:
        """Pairs of lines that occur once on either side, as many as keep their order."""
        in_a = Counter(self.a[region.a : region.a_end])
        in_b = Counter(self.b[region.b : region.b_end])
        where = {self.b[j]: j for j in range(region.b, region.b_end)}
        pairs = [
            (i, where[line])
            for i in range(region.a, region.a_end)
            if in_a[line := self.a[i]] == 1 and in_b.get(line) == 1
        ]
        return _longest_rising(pairs)

    def _divide(self, region: _Region, anchors: list[tuple[int, int]]) -> Iterator[SharedLines]:
        a, b = region.a, region.b
        for i, j in anchors:
            yield SharedLines(i, j, 1)
            self._waiting.append(_Region(a, i, b, j))
            a, b = i + 1, j + 1
        self._waiting.append(_Region(a, region.a_end, b, region.b_end))

    def _shortest(self, region: _Region) -> Iterator[SharedLines]:
        """Myers' greedy search: how far each diagonal reaches, one layer for each edit made."""
        a, b = self.a[region.a : region.a_end], self.b[region.b : region.b_end]
        most = min(len(a) + len(b), MOST_EDITS)
        furthest = array("q", [0]) * (2 * most + 3)  # diagonal k stands at most + 1 + k
        layers: list[array[int]] = []
        for edits in range(most + 1):
            layers.append(furthest[most - edits : most + edits + 3])
            for k in range(-edits, edits + 1, 2):
                below, above = furthest[most + k], furthest[most + k + 2]
                x = above if k == -edits or (k != edits and below < above) else below + 1
                start = x
                while x < len(a) and x - k < len(b) and a[x] == b[x - k]:
                    x += 1
                furthest[most + 1 + k] = x
                self.effort -= 1 + x - start
                if x >= len(a) and x - k >= len(b):
                    yield from _walk_back(layers, len(a), len(b), region)
                    return
            if self.effort < 0:
                return


def _walk_back(
    layers: list["array[int]"], x: int, y: int, region: _Region
) -> Iterator[SharedLines]:
    for edits in range(len(layers) - 1, -1, -1):
        k = x - y
        below, above = layers[edits][edits + k], layers[edits][edits + k + 2]
        is_down = k == -edits or (k != edits and below < above)
        from_x, from_k = (above, k + 1) if is_down else (below, k - 1)
        begin = from_x if is_down else from_x + 1  # behind the edit, where equal lines begin
        if edits == 0:
            begin = 0
        if x > begin:
            yield SharedLines(region.a + begin, region.b + begin - k, x - begin)
        x, y = from_x, from_x - from_k


def _longest_rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of pairs, sorted by their first, whose second rises as well."""
    tops, piles = list[int](), list[int]()  # the last second of each pile, and where its pair is
    before = list[int]()
    for at, (_, j) in enumerate(pairs):
        pile = bisect_left(tops, j)
        before.append(piles[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [j]
        piles[pile : pile + 1] = [at]
    chosen = list[tuple[int, int]]()
    at = piles[-1] if piles else -1
    while at >= 0:
        chosen.append(pairs[at])
        at = before[at]
    return chosen[::-1]


def _join_runs(runs: list[SharedLines]) -> Iterator[SharedLines]:
    last: SharedLines | None = None
    for run in runs:
        if last is not None and (last.a + last.length, last.b + last.length) == run[:2]:
            last = SharedLines(last.a, last.b, last.length + run.length)
            continue
        if last is not None:
            yield last
        last = run
    if last is not None:
        yield last


@dataclass(frozen=True, slots=True)
class LineClashes:
    lines: tuple[tuple[int, int], ...]  # first and last line of ours, counted from 1


class _Chunk(NamedTuple):
    base: Sequence[bytes]
    ours: Sequence[bytes]
    theirs: Sequence[bytes]
    at: int  # where ours begins


def merge_text(base: bytes, ours: bytes, theirs: bytes) -> bytes | LineClashes:
    merged, clashes = list[bytes](), list[tuple[int, int]]()
    for chunk in _chunks(split_lines(base), split_lines(ours), split_lines(theirs)):
        if chunk.ours == chunk.base:
            merged.extend(chunk.theirs)
        elif chunk.theirs in (chunk.base, chunk.ours):
            merged.extend(chunk.ours)
        else:
            clashes.append((chunk.at + 1, chunk.at + max(1, len(chunk.ours))))
    return LineClashes(tuple(clashes)) if clashes else b"".join(merged)


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
    for run in find_shared_lines(base, other):
        partners[run.a : run.a + run.length] = range(run.b, run.b + run.length)
    return partners
