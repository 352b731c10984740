"""What comes before what. In: for each node, those it waits for. Out: layers, implied waits.

A set of nodes is a bit mask: five hundred steps of "all prior context" are no work at all.
"""

from collections.abc import Sequence
from graphlib import TopologicalSorter
from typing import TypeAlias

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
