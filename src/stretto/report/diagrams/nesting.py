"""See series and parallels in a graph. In: what precedes what. Out: a Tree, or None."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Series:
    """Each item ends before the next one starts."""

    items: tuple["Tree", ...]


@dataclass(frozen=True, slots=True)
class Parallel:
    """No item waits for another."""

    items: tuple["Tree", ...]


Tree: TypeAlias = int | Series | Parallel

# No terminal is wide enough for more, and the recursion stays shallow.
DEEPEST = 24


def nest(order: Sequence[int], ancestors: Sequence[int], depth: int = DEEPEST) -> Tree | None:
    """`order` is topological; `ancestors` are bit masks. None: neither series nor parallel."""
    if len(order) == 1:
        return order[0]
    if depth == 0:
        return None
    series = _cut(order, ancestors)
    groups = series if len(series) > 1 else _components(order, ancestors)
    if len(groups) == 1:
        return None
    items = []
    for group in groups:
        item = nest(group, ancestors, depth - 1)
        if item is None:
            return None
        items.append(item)
    return Series(tuple(items)) if len(series) > 1 else Parallel(tuple(items))


def _cut(order: Sequence[int], ancestors: Sequence[int]) -> list[list[int]]:
    """Cut wherever everything to the left precedes everything to the right."""
    common = [-1]  # the ancestors that all nodes from here on share
    for node in reversed(order):
        common.append(common[-1] & ancestors[node])
    common.reverse()
    groups: list[list[int]] = [[]]
    seen = 0
    for place, node in enumerate(order):
        if seen and seen & ~common[place] == 0:
            groups.append([])
        groups[-1].append(node)
        seen |= 1 << node
    return groups


def _components(order: Sequence[int], ancestors: Sequence[int]) -> list[list[int]]:
    everyone = sum(1 << node for node in order)
    masks: list[int] = []
    for node in order:
        mask = ancestors[node] & everyone | 1 << node
        apart = [other for other in masks if not other & mask]
        for other in masks:
            if other & mask:
                mask |= other
        masks = [*apart, mask]
    # The lowest bit is the first in the listing.
    masks.sort(key=lambda mask: mask & -mask)
    return [[node for node in order if mask >> node & 1] for mask in masks]
