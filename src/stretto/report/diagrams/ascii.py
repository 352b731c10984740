"""Draw a plan as text. In: a Diagram and a width. Out: lines no wider than that, or than 20 columns.

What is nested chains and fans is drawn as such, as large as it fits; the rest is listed by layers.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from stretto.report.diagrams.blocks import (
    Block,
    Series,
    SideBySide,
    Tree,
    beside,
    chain,
    fan,
    nest,
    pad,
)
from stretto.report.diagrams.layout import ancestors_of, layers_of
from stretto.report.diagrams.shape import Arrow, Box, Diagram, InnerBox
from stretto.text.short import columns, fit_name

_INDENT = "  "


def list_layers(graph: Diagram, width: int) -> list[str]:
    """A step stands below all that it waits for; a blank line ends what could start together."""
    into: defaultdict[int, list[Arrow]] = defaultdict(list)
    for link in graph.links:
        into[link.after].append(link)
    half = width // 2
    names = {node.index: _name(node, half) for node in graph.nodes}
    margin = min(half, max(map(columns, names.values())))
    lines: list[str] = []
    for layer in graph.layers:
        for index in layer:
            waits = [_show_wait(graph, link, half) for link in into[index]]
            lines += _entry(names[index], waits, margin, width)
            for inside in _inside(graph.nodes[index]):
                lines.append(fit_name(f"{_INDENT * 2}{inside}", width))
        lines.append("")
    return lines[:-1]


def _name(node: Box, most: int) -> str:
    # Brackets, number and dot are kept, so the number can always be read.
    room = most - len(f"[{node.number}. ]")
    with_agent = f"{node.id}: {node.agent}" if node.agent else node.id
    name = with_agent if columns(with_agent) <= room else fit_name(node.id, room)
    return f"[{node.number}. {name}]"


def _show_wait(graph: Diagram, link: Arrow, most: int) -> str:
    before = graph.nodes[link.before]
    name = fit_name(before.id, max(most // 2, 3))
    return f"{name} ({fit_name(link.label, most)})" if link.label else name


def _entry(name: str, waits: Sequence[str], margin: int, width: int) -> Iterator[str]:
    if not waits:
        yield name
        return
    lead = f"{pad(name, margin)} <- "
    line = lead
    for place, wait in enumerate(waits):
        text = wait + (", " if place < len(waits) - 1 else "")
        if line != lead and columns((line + text).rstrip()) > width:
            yield line.rstrip()
            line = lead = " " * columns(lead)
        line += fit_name(text, width - columns(line)) if line == lead else text
    yield line.rstrip()


def _inside(node: Box) -> Iterator[str]:
    """What happens within a step, in words."""
    for note in node.notes:
        yield f"({note})"
    if branches := node.having("branch"):
        yield "side by side: " + ", ".join(part.name for part in branches)
    for part in node.having("choice"):
        yield f"{part.name} ({part.label})"
    for part in node.having("judge", "test"):
        passes = " passes it" if part.role == "judge" else ""
        yield f"again until {part.name}{passes} (max {node.limit} iterations)"
    if node.over:
        yield f"each of {node.over}"
    if len(stages := node.having("stage", "reducer")) > 1:
        yield " --> ".join(part.name for part in stages)


_LEAST_WIDTH = 20  # a step's number, an arrow, and a few letters of its name
_CONTINUED = "   "


@dataclass(frozen=True, slots=True)
class Detail:
    shows_agents: bool
    longest_name: int


_UNCUT = 10_000
_PLAIN = (Detail(False, _UNCUT), Detail(False, 24))


def render(graph: Diagram, width: int) -> str:
    width = max(width, _LEAST_WIDTH)
    return "\n".join(_lines(graph, width)) + "\n"


def _lines(graph: Diagram, width: int) -> list[str]:
    figure = _Figure.of(graph)
    if figure is None:
        return list_layers(graph, width)
    for detail in _PLAIN:
        plain = figure.lines(detail, width)
        if plain is not None:
            # Agents are shown where that makes the drawing no taller.
            richer = figure.lines(Detail(True, detail.longest_name), width)
            return richer if richer is not None and len(richer) <= len(plain) else plain
    return list_layers(graph, width)


@dataclass(frozen=True, slots=True)
class _Figure:
    """Boxes, and how they nest. A part that other steps come after has a box of its own."""

    boxes: tuple[tuple[Box, InnerBox | None], ...]
    conditions: tuple[str, ...]  # by node
    tree: Tree

    @classmethod
    def of(cls, graph: Diagram) -> "_Figure | None":
        boxes: list[tuple[Box, InnerBox | None]] = []
        boxes_of: list[list[int]] = []
        for node in graph.nodes:
            own = [None, *node.having("branch", "choice", "reducer")]
            boxes_of.append(list(range(len(boxes), len(boxes) + len(own))))
            boxes += [(node, part) for part in own]
        routes = {(link.before, link.after): link.label for link in graph.links if link.label}
        waits: list[tuple[int, ...]] = []
        for node, part in boxes:
            after = boxes_of[node.index][0]
            waits.append((after,) if part else tuple(_wait_boxes(graph, node, boxes_of, routes)))
        layers = layers_of(tuple(waits))
        order = [box for layer in layers for box in layer]
        tree = nest(order, ancestors_of(tuple(waits), layers))
        if tree is None:
            return None
        conditions = defaultdict(list)
        for (_, after), label in routes.items():
            conditions[after].append(label)
        said = tuple("; ".join(conditions[node.index]) for node in graph.nodes)
        return cls(tuple(boxes), said, tree)

    def lines(self, detail: Detail, width: int) -> list[str] | None:
        """None: it does not fit."""
        # Apart from each other, chains may be broken each for itself.
        trees = self.tree.items if isinstance(self.tree, SideBySide) else (self.tree,)
        figures = []
        for tree in trees:
            items = tree.items if isinstance(tree, Series) else (tree,)
            figures.append(_wrap(self._series(items, detail, False, False), width))
        # Air between figures, unless all of them are single lines.
        air = [""] if any(len(figure) > 1 for figure in figures) else []
        lines = [line for figure in figures for line in (*figure, *air)]
        lines = lines[: len(lines) - len(air)]
        return lines if all(columns(line) <= width for line in lines) else None

    def _block(self, tree: Tree, detail: Detail, opens: bool, closes: bool) -> Block:
        """`opens`: something goes before it. `closes`: something comes after it."""
        if isinstance(tree, int):
            return self._box(tree, detail, closes)
        if isinstance(tree, Series):
            return chain(self._series(tree.items, detail, opens, closes))
        branches = [self._block(item, detail, opens, closes) for item in tree.items]
        return fan(branches, opens, closes)

    def _series(
        self, items: Sequence[Tree], detail: Detail, opens: bool, closes: bool
    ) -> list[Block]:
        last = len(items) - 1
        return [
            self._block(item, detail, opens or place > 0, closes or place < last)
            for place, item in enumerate(items)
        ]

    def _box(self, box: int, detail: Detail, closes: bool) -> Block:
        node, part = self.boxes[box]
        if part is not None:
            return Block((_part_text(part, detail),))
        text = _step_text(node, self.conditions[node.index], detail)
        if node.kind == "loop":
            return _loop(text, node, detail, closes)
        return Block((text,))


def _wait_boxes(
    graph: Diagram, node: Box, boxes_of: list[list[int]], routes: dict[tuple[int, int], str]
) -> Iterator[int]:
    for before in graph.waits[node.index]:
        # A route leaves from the decision itself, everything else follows all of its parts.
        is_route = (before, node.index) in routes
        yield from boxes_of[before][:1] if is_route else boxes_of[before]


def _wrap(blocks: Sequence[Block], width: int) -> list[str]:
    """One chain, broken where it gets too wide."""
    groups = [blocks[0]]
    for block in blocks[1:]:
        joined = beside(groups[-1], block)
        if joined.width <= width:
            groups[-1] = joined
        else:
            arrow = Block((_CONTINUED,), tail=f" {groups[-1].tail.strip()}")
            groups.append(beside(arrow, block))
    lines = list(groups[0].rows)
    for above, below in pairwise(groups):
        # Air only where something hangs down or sticks up.
        lines += ["", *below.rows] if len(above.rows) > 1 or below.axis > 0 else below.rows
    return [line.rstrip() for line in lines]


def _step_text(node: Box, condition: str, detail: Detail) -> str:
    most = detail.longest_name
    name = f"{node.number}. {fit_name(node.id, most)}"
    stages = node.having("stage")
    if len(stages) > 1:
        name += ": " + " --> ".join(fit_name(stage.name, most) for stage in stages)
    elif node.agent and detail.shows_agents:
        name += f": {fit_name(node.agent, most)}"
    if node.over:
        name += f" × each of {fit_name(node.over, most)}"
    notes = [note for note in (condition, *node.notes) if note]
    return " ".join([f"[{name}]", *(f"({fit_name(note, most)})" for note in notes)])


def _part_text(part: InnerBox, detail: Detail) -> str:
    most = detail.longest_name
    name = f"{part.number}. " if part.number else ""
    name += fit_name(part.name, most)
    if part.agent and detail.shows_agents:
        name += f": {fit_name(part.agent, most)}"
    return f"[{name}] ({fit_name(part.label, most)})" if part.label else f"[{name}]"


def _loop(text: str, node: Box, detail: Detail, closes: bool) -> Block:
    _, verdict = node.parts
    mark = "?" if verdict.role == "test" else ""
    judge = f"[{fit_name(verdict.name, detail.longest_name)}{mark}]"
    top = f"{text} --> {judge}"
    # From the middle of one box to the middle of the other.
    back = min(columns(text) // 2, 8)
    failed = columns(top) - (columns(judge) + 1) // 2
    gap = failed - back - 1
    word = " feedback ".center(gap, "-") if gap >= 12 else "-" * gap
    rows = (
        top if closes else f"{top} --PASS--> [done]",
        f"{'^':>{back + 1}}{'|':>{gap + 1}}",
        f"{'|':>{back + 1}}{'FAIL':>{gap + 3}}",
        f"{' ' * back}\\{word}/ (max {node.limit} iterations)",
    )
    return Block(rows, tail=" --PASS--")
