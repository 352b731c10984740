"""Place boxes in layers, Sugiyama's way. In: sizes and links. Out: centres and routes.

Long links pass through points of their own in every layer between, so nothing runs under a box;
links to one box share them.
"""

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import TypeAlias

SWEEPS = 12
MOST_LINKS = 20_000
COLUMN_GAP = 28.0
LAYER_GAP = 46.0
_BEND_WIDTH = 4.0
# How much a link pulls, by how many of its ends are bends: long links are to be straight.
_PULL = (1.0, 2.0, 8.0)


@dataclass(frozen=True, slots=True)
class Position:
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Size:
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Placement:
    centres: tuple[Position, ...]
    # Straight from point 0 to 1, a curve to 2, straight to 3, a curve to 4 …
    routes: tuple[tuple[Position, ...], ...]
    size: Size


@dataclass(slots=True)
class _Slots:
    """Boxes, then bends: what has a place in a layer."""

    sizes: list[Size]
    layer: list[int]
    above: list[list[int]] = field(default_factory=list)
    below: list[list[int]] = field(default_factory=list)
    bends: dict[tuple[int, int], int] = field(default_factory=dict)

    def is_bend(self, slot: int) -> bool:
        return self.sizes[slot].height == 0

    def path(self, before: int, after: int) -> list[int]:
        between = range(self.layer[before] + 1, self.layer[after])
        return [before, *(self._bend(layer, after) for layer in between), after]

    def connect(self, paths: Sequence[Sequence[int]]) -> None:
        self.above = [[] for _ in self.sizes]
        self.below = [[] for _ in self.sizes]
        for before, after in dict.fromkeys(pair for path in paths for pair in pairwise(path)):
            self.below[before].append(after)
            self.above[after].append(before)

    def _bend(self, layer: int, after: int) -> int:
        """Links to one box run together: fewer lines, and they mean the same."""
        if (layer, after) not in self.bends:
            self.bends[layer, after] = len(self.sizes)
            self.sizes.append(Size(_BEND_WIDTH, 0))
            self.layer.append(layer)
        return self.bends[layer, after]


def place(sizes: Sequence[Size], links: Sequence[tuple[int, int]]) -> Placement:
    layer_of = _layers(len(sizes), links)
    slots = _Slots(list(sizes), layer_of)
    paths = [slots.path(before, after) for before, after in links]
    slots.connect(paths)
    rows: list[list[int]] = [[] for _ in range(max(slots.layer) + 1)]
    for slot, layer in enumerate(slots.layer):
        rows[layer].append(slot)
    rows = _order(rows, slots)
    return _assemble(len(sizes), paths, rows, _columns(rows, slots), slots)


def _layers(count: int, links: Sequence[tuple[int, int]]) -> list[int]:
    """The layer of each box: further down where that shortens more links than it lengthens."""
    before: list[list[int]] = [[] for _ in range(count)]
    after: list[list[int]] = [[] for _ in range(count)]
    for start, end in links:
        before[end].append(start)
        after[start].append(end)
    layers = layers_of(tuple(map(tuple, before)))
    layer_of = [0] * count
    for number, layer in enumerate(layers):
        for box in layer:
            layer_of[box] = number
    for layer in reversed(layers):
        for box in layer:
            if len(after[box]) > len(before[box]):
                layer_of[box] = min(layer_of[end] for end in after[box]) - 1
    first = min(layer_of)
    return [number - first for number in layer_of]


def _order(rows: list[list[int]], slots: _Slots) -> list[list[int]]:
    """Sort every layer by where its neighbours stand, up and down, and keep the best."""
    if sum(map(len, slots.below)) > MOST_LINKS:
        return rows  # no order would make this readable
    best, fewest = rows, _crossings(rows, slots)
    for sweep in range(SWEEPS):
        if fewest == 0:
            break
        is_down = sweep % 2 == 0
        sides = slots.above if is_down else slots.below
        rows = [list(row) for row in rows]
        position = {slot: place for row in rows for place, slot in enumerate(row)}
        for row in rows if is_down else reversed(rows):
            centre = {
                slot: sum(position[near] for near in sides[slot]) / len(sides[slot])
                if sides[slot]
                else position[slot]
                for slot in row
            }
            row.sort(key=centre.__getitem__)
            position.update((slot, place) for place, slot in enumerate(row))
        crossings = _crossings(rows, slots)
        if crossings < fewest:
            best, fewest = rows, crossings
    return best


def _crossings(rows: Sequence[Sequence[int]], slots: _Slots) -> int:
    crossings = 0
    for upper, lower in pairwise(rows):
        position = {slot: place for place, slot in enumerate(lower)}
        ends: list[int] = []
        for slot in upper:
            mine = [position[end] for end in slots.below[slot]]
            crossings += sum(len(ends) - bisect_right(ends, end) for end in mine)
            for end in mine:
                insort(ends, end)
    return crossings


def _columns(rows: Sequence[Sequence[int]], slots: _Slots) -> list[float]:
    """Every slot below the middle of its neighbours, as near as the others in its layer allow."""
    x = [0.0] * len(slots.sizes)
    for sweep in range(SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wanted = []
            for slot in row:
                # The first time down, only what is above has a place yet.
                near = slots.above[slot] if sweep == 0 else slots.above[slot] + slots.below[slot]
                pulls = [_PULL[slots.is_bend(slot) + slots.is_bend(other)] for other in near]
                pulled = sum(x[other] * pull for other, pull in zip(near, pulls, strict=True))
                wanted.append((pulled / sum(pulls) if near else x[slot], sum(pulls) or 1.0))
            for slot, settled in zip(row, _settle(row, wanted, slots), strict=True):
                x[slot] = settled
    return x


def _settle(
    row: Sequence[int], wanted: Sequence[tuple[float, float]], slots: _Slots
) -> list[float]:
    """The places nearest to those wanted that keep order and distance: isotonic regression."""
    offsets = [0.0]
    for left, right in pairwise(row):
        gap = COLUMN_GAP / 2 if slots.is_bend(left) and slots.is_bend(right) else COLUMN_GAP
        apart = (slots.sizes[left].width + slots.sizes[right].width) / 2 + gap
        offsets.append(offsets[-1] + apart)
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many
    for (want, weight), offset in zip(wanted, offsets, strict=True):
        pool = (want - offset, weight, 1)
        while pools and pools[-1][0] > pool[0]:
            mean, heavier, many = pools.pop()
            total = heavier + pool[1]
            pool = ((mean * heavier + pool[0] * pool[1]) / total, total, many + pool[2])
        pools.append(pool)
    means = [mean for mean, _, many in pools for _ in range(many)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _assemble(
    count: int,
    paths: Sequence[Sequence[int]],
    rows: Sequence[Sequence[int]],
    x: list[float],
    slots: _Slots,
) -> Placement:
    left = min(x[slot] - slots.sizes[slot].width / 2 for slot in range(len(x)))
    right = max(x[slot] + slots.sizes[slot].width / 2 for slot in range(len(x)))
    heights = [max(slots.sizes[slot].height for slot in row) for row in rows]
    tops, bottoms = [0.0], [heights[0]]
    for upper, lower in pairwise(heights):
        # Low layers hold words, not boxes, and stand closer.
        tops.append(bottoms[-1] + min(LAYER_GAP, 16 + upper, 16 + lower))
        bottoms.append(tops[-1] + lower)
    middle = [(top + bottom) / 2 for top, bottom in zip(tops, bottoms, strict=True)]
    centres = tuple(Position(x[box] - left, middle[slots.layer[box]]) for box in range(count))
    routes = []
    for path in paths:
        first, last = path[0], path[-1]
        route = [Position(centres[first].x, centres[first].y + slots.sizes[first].height / 2)]
        for slot in path:
            at, layer = x[slot] - left, slots.layer[slot]
            route += [Position(at, tops[layer])] if slot != first else []
            route += [Position(at, bottoms[layer])] if slot != last else []
        route.append(Position(centres[last].x, centres[last].y - slots.sizes[last].height / 2))
        routes.append(tuple(route))
    return Placement(centres, tuple(routes), Size(right - left, bottoms[-1]))


Waits: TypeAlias = tuple[tuple[int, ...], ...]


def layers_of(waits: Waits) -> tuple[tuple[int, ...], ...]:
    """Each node one layer below the lowest that it waits for; listing order within a layer."""
    sorter = TopologicalSorter(dict(enumerate(waits)))
    sorter.prepare()
    layers = []
    while sorter.is_active():
        layer = sorted(sorter.get_ready())
        sorter.done(*layer)
        layers.append(tuple(layer))
    return tuple(layers)


def ancestors_of(waits: Waits, layers: Sequence[Sequence[int]]) -> list[int]:
    masks = [0] * len(waits)
    for layer in layers:
        for node in layer:
            for before in waits[node]:
                masks[node] |= masks[before] | 1 << before
    return masks


def without_implied(waits: Waits, ancestors: Sequence[int]) -> Waits:
    """a → c goes without saying where a → b → c."""

    def needed(node: int) -> tuple[int, ...]:
        implied = 0
        for before in waits[node]:
            implied |= ancestors[before]
        return tuple(before for before in waits[node] if not implied >> before & 1)

    return tuple(map(needed, range(len(waits))))
