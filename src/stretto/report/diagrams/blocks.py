"""See series and parallels in a graph. In: what precedes what. Out: a Tree, or None."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from stretto.text.short import columns


@dataclass(frozen=True, slots=True)
class Series:
    """Each item ends before the next one starts."""

    items: tuple["Tree", ...]


@dataclass(frozen=True, slots=True)
class SideBySide:
    """No item waits for another."""

    items: tuple["Tree", ...]


Tree: TypeAlias = int | Series | SideBySide

# No terminal is wide enough for more, and the recursion stays shallow.
DEEPEST = 24


def nest(order: Sequence[int], ancestors: Sequence[int], depth: int = DEEPEST) -> Tree | None:
    """`order` is topological; `ancestors` are bit masks. None: neither series nor parallel."""
    if len(order) == 1:
        return order[0]
    if depth == 0:
        return None
    series = _split_in_series(order, ancestors)
    groups = series if len(series) > 1 else _components(order, ancestors)
    if len(groups) == 1:
        return None
    items = []
    for group in groups:
        item = nest(group, ancestors, depth - 1)
        if item is None:
            return None
        items.append(item)
    return Series(tuple(items)) if len(series) > 1 else SideBySide(tuple(items))


def _split_in_series(order: Sequence[int], ancestors: Sequence[int]) -> list[list[int]]:
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


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of text. Arrows come in from the left and leave to the right on the row `axis`."""

    rows: tuple[str, ...]
    axis: int = 0
    head: str = "> "  # how an arrow ends here; nothing where it runs into a rail
    tail: str = " --"  # how an arrow starts here

    @property
    def width(self) -> int:
        return max(map(columns, self.rows))


def chain(blocks: Sequence[Block]) -> Block:
    """`[a] --> [b] --> [c]`"""
    return reduce(beside, blocks)


def beside(left: Block, right: Block) -> Block:
    axis = max(left.axis, right.axis)
    lefts = _lower(left, axis)
    rights = _lower(right, axis)
    start = columns(lefts[axis] + left.tail + right.head)
    for row, (one, other) in enumerate(zip(lefts, rights, strict=False)):
        # What hangs below one block may reach under the next, as long as nothing touches.
        if row != axis and one.strip() and other.strip():
            indent = len(other) - len(other.lstrip())
            start = max(start, columns(one) + 2 - indent)
    rows = []
    for row in range(max(len(lefts), len(rights))):
        text = lefts[row] if row < len(lefts) else ""
        if row == axis:
            text += left.tail
            text += "-" * (start - columns(text + right.head)) + right.head
        if row < len(rights) and rights[row]:
            text = pad(text, start) + rights[row]
        rows.append(text)
    return Block(tuple(rows), axis, left.head, right.tail)


def fan(blocks: Sequence[Block], opens: bool, closes: bool) -> Block:
    """Rails where something goes before (`opens`) or comes after (`closes`).

    --+--> [b] --+--
      \\--> [c] --/
    """
    rows: list[str] = []
    joints: list[int] = []  # the rows on which a branch meets the rails
    axis = -1
    for place, block in enumerate(blocks):
        if 2 * place == len(blocks) and (opens or closes):
            axis = len(rows)  # an even number of branches leaves the middle free
            rows.append("")
        joints.append(len(rows) + block.axis)
        if 2 * place + 1 == len(blocks):
            axis = joints[-1]
        entry = f"--{block.head}" if opens else ""
        for row, text in enumerate(block.rows):
            before = entry if row == block.axis else " " * len(entry)
            rows.append(before + text if text else "")
    if opens:
        rows = [_rail(row, joints, axis, "/\\") + text for row, text in enumerate(rows)]
    if closes:
        tails = dict(zip(joints, (block.tail for block in blocks), strict=True))
        rows = _close(rows, joints, axis, tails)
    trimmed = tuple(row.rstrip() for row in rows)
    return Block(trimmed, max(axis, 0), "" if opens else "> ", "--")


def _close(rows: list[str], joints: list[int], axis: int, tails: dict[int, str]) -> list[str]:
    inside = range(joints[0], joints[-1] + 1)
    rail = max(columns(rows[row]) + len(tails.get(row, " ")) for row in inside)
    closed = []
    for row, text in enumerate(rows):
        if row in tails:
            text += tails[row]
            text += "-" * (rail - columns(text))
        closed.append(pad(text, rail) + _rail(row, joints, axis, "\\/"))
    return closed


def _rail(row: int, joints: list[int], axis: int, corners: str) -> str:
    if not joints[0] <= row <= joints[-1]:
        return " "
    if row == joints[0]:
        return corners[0]
    if row == joints[-1]:
        return corners[1]
    return "+" if row == axis or row in joints else "|"


def _lower(block: Block, axis: int) -> list[str]:
    return [""] * (axis - block.axis) + list(block.rows)


def pad(text: str, width: int) -> str:
    return text + " " * (width - columns(text))
