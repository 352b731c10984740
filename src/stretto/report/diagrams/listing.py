"""List a graph that is too entangled to draw. In: a Graph and a width. Out: lines, by layers."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from stretto.report.diagrams.blocks import padded
from stretto.report.diagrams.shape import Graph, Link, Node
from stretto.text.short import columns, fit_name

_INDENT = "  "


def list_layers(graph: Graph, width: int) -> list[str]:
    """A step stands below all that it waits for; a blank line ends what could start together."""
    into: defaultdict[int, list[Link]] = defaultdict(list)
    for link in graph.links:
        into[link.after].append(link)
    half = width // 2
    names = {node.index: _name(node, half) for node in graph.nodes}
    margin = min(half, max(map(columns, names.values())))
    lines: list[str] = []
    for layer in graph.layers:
        for index in layer:
            waits = [_awaited(graph, link, half) for link in into[index]]
            lines += _entry(names[index], waits, margin, width)
            for inside in _inside(graph.nodes[index]):
                lines.append(fit_name(f"{_INDENT * 2}{inside}", width))
        lines.append("")
    return lines[:-1]


def _name(node: Node, most: int) -> str:
    # Brackets, number and dot are kept, so the number can always be read.
    room = most - len(f"[{node.number}. ]")
    with_agent = f"{node.id}: {node.agent}" if node.agent else node.id
    name = with_agent if columns(with_agent) <= room else fit_name(node.id, room)
    return f"[{node.number}. {name}]"


def _awaited(graph: Graph, link: Link, most: int) -> str:
    before = graph.nodes[link.before]
    name = fit_name(before.id, max(most // 2, 3))
    return f"{name} ({fit_name(link.label, most)})" if link.label else name


def _entry(name: str, waits: Sequence[str], margin: int, width: int) -> Iterator[str]:
    if not waits:
        yield name
        return
    lead = f"{padded(name, margin)} <- "
    line = lead
    for place, wait in enumerate(waits):
        text = wait + (", " if place < len(waits) - 1 else "")
        if line != lead and columns((line + text).rstrip()) > width:
            yield line.rstrip()
            line = lead = " " * columns(lead)
        line += fit_name(text, width - columns(line)) if line == lead else text
    yield line.rstrip()


def _inside(node: Node) -> Iterator[str]:
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
