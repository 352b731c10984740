"""Draw a plan as a picture. In: a Graph. Out: one SVG that needs nothing else and runs nothing.

The text is the page's own colour, or follows the reader's scheme where there is no page.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise, starmap
from xml.sax.saxutils import escape, quoteattr

from stretto.report.diagrams.cards import (
    ARC,
    LINE,
    PADDING,
    PILL_HEIGHT,
    POINT,
    STACK,
    TEXT_COLUMN,
    Card,
    Pill,
    card_of,
)
from stretto.report.diagrams.layout import Layout, Point, Size, place
from stretto.report.diagrams.shape import Graph, Node
from stretto.text.short import columns

_MARGIN = 16.0
_LABEL_HEIGHT = 14.0
_STYLE = """
.stretto { color: #1f2933; font: 11px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace }
.stretto text { fill: currentColor }
.stretto .title { font-size: 13px; font-weight: 600 }
.stretto .quiet { opacity: .72 }
.stretto .link, .stretto .card, .stretto .pill { fill: none; stroke: currentColor; stroke-width: 1.4 }
.stretto .link { opacity: .6 }
.stretto .tip { fill: currentColor }
.stretto .tint { fill: currentColor; fill-opacity: .07 }
.stretto .pill { stroke-width: 1 }
.stretto .gated { stroke-dasharray: 5 3 }
.stretto .parallel { color: #2f6fdb } .stretto .conditional { color: #b7791f }
.stretto .loop { color: #8250df } .stretto .map { color: #0f8a7e }
@media (prefers-color-scheme: dark) {
.stretto { color: #e4e7eb }
.stretto .parallel { color: #79a8ff } .stretto .conditional { color: #e3b341 }
.stretto .loop { color: #bc9bff } .stretto .map { color: #4cc9b8 }
}
"""


def render(graph: Graph, width: int) -> str:
    cards = [card_of(node) for node in graph.nodes]
    sizes = [card.slot for card in cards]
    links: list[tuple[int, int]] = []
    labels: list[str] = []
    for link in graph.links:
        stops = [link.before, link.after]
        if link.label:
            # A label is placed like a box, so nothing can run through it.
            stops.insert(1, len(sizes))
            sizes.append(Size(columns(link.label) * TEXT_COLUMN, _LABEL_HEIGHT))
            labels.append(link.label)
        links += pairwise(stops)
    layout = place(sizes, links)
    steps = zip(graph.nodes, cards, layout.centres, strict=False)
    signs = zip(labels, layout.centres[len(cards) :], strict=True)
    elements = [
        *_opening(graph.name, layout.size),
        *_links(links, layout, len(cards)),
        *(_text(label, at.x, at.y + 4) for label, at in signs),
        *(element for node, card, at in steps for element in _step(node, card, at)),
        "</g>",
        "</svg>",
    ]
    return "\n".join(elements) + "\n"


def _opening(name: str, size: Size) -> Iterator[str]:
    wide, high = f"{size.width + 2 * _MARGIN:.0f}", f"{size.height + 2 * _MARGIN:.0f}"
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="stretto" text-anchor="middle" role="img"'
        f" aria-label={quoteattr(name)}"
        f' width="{wide}" height="{high}" viewBox="0 0 {wide} {high}">'
    )
    yield f"<title>{escape(name)}</title>"
    yield f"<style>{_STYLE}</style>"
    yield f'<g transform="translate({_MARGIN:.0f} {_MARGIN:.0f})">'


def _links(links: Sequence[tuple[int, int]], layout: Layout, boxes: int) -> Iterator[str]:
    # Links share pieces. One path holds each piece once, so that none is drawn darker.
    pieces = dict.fromkeys(
        (here, there, place % 2 == 1)
        for route in layout.routes
        for place, (here, there) in enumerate(pairwise(route))
    )
    yield f'<path class="link" d="{"".join(starmap(_piece, pieces))}"/>'
    ends = zip(links, layout.routes, strict=True)
    for end in dict.fromkeys(route[-1] for (_, after), route in ends if after < boxes):
        yield _tip(end, "M0 0l-4 -8h8z")


def _piece(here: Point, there: Point, is_curved: bool) -> str:
    if not is_curved:
        return f"M{_at(here)}V{there.y:.1f}" if here != there else ""
    middle = (here.y + there.y) / 2
    return f"M{_at(here)}C{here.x:.1f} {middle:.1f} {there.x:.1f} {middle:.1f} {_at(there)}"


def _step(node: Node, card: Card, centre: Point) -> Iterator[str]:
    left, top = centre.x - card.size.width / 2, centre.y - card.size.height / 2
    if node.kind == "map":
        left, top = left - STACK, top + STACK
    corner, middle = Point(left, top), left + card.size.width / 2
    said = " · ".join([node.title, node.kind, *card.lines])
    yield f"<g><title>{escape(said)}</title>"
    yield from _outline(node, card.size, corner)
    y = top + PADDING + LINE - 5
    yield _text(card.title, middle, y, 'class="title"')
    for line in card.lines:
        y += LINE
        yield _text(line, middle, y, 'class="quiet"')
    for pill in card.pills:
        yield from _pill(pill, corner)
    yield "</g>"


def _outline(node: Node, size: Size, corner: Point) -> Iterator[str]:
    x, y, w, h = corner.x, corner.y, size.width, size.height
    style = f'class="card tint {node.kind}{" gated" if node.is_gated else ""}"'
    if node.kind == "conditional":
        yield (
            f'<path {style} d="M{x:.1f} {y + h / 2:.1f}l{POINT:.0f} {-h / 2:.1f}'
            f"h{w - 2 * POINT:.1f}l{POINT:.0f} {h / 2:.1f}l{-POINT:.0f} {h / 2:.1f}"
            f'h{2 * POINT - w:.1f}z"/>'
        )
        return
    radius = {"loop": min(h / 2, 22), "parallel": 10}.get(node.kind, 4)
    yield _box(style, corner, size, radius)
    if node.kind == "map":
        for back in (STACK, 2 * STACK):
            # Only what can be seen of the cards behind: cards are translucent.
            yield (
                f'<path class="card map" d="M{x + back:.1f} {y - back + STACK:.1f}'
                f'v{-STACK:.0f}h{w:.1f}v{h:.1f}h{-STACK:.0f}"/>'
            )
    if node.kind == "loop":
        right, middle = x + w, y + h / 2
        yield (
            f'<path class="card loop" d="M{right:.1f} {middle + 9:.1f}'
            f"c{ARC:.0f} 8 {ARC:.0f} -26 6 -18"
            f'"/>'
        )
        yield _tip(Point(right, middle - 9), "M0 0l8 -4v8z", "loop")


def _pill(pill: Pill, corner: Point) -> Iterator[str]:
    at = Point(corner.x + pill.x, corner.y + pill.y)
    yield _box('class="pill tint parallel"', at, Size(pill.width, PILL_HEIGHT), 6)
    y = at.y + PILL_HEIGHT / 2 + 4 - 7 * (len(pill.lines) - 1)
    for line, style in zip(pill.lines, ("", 'class="quiet"'), strict=False):
        yield _text(line, at.x + pill.width / 2, y, style)
        y += 14


def _box(style: str, corner: Point, size: Size, radius: float) -> str:
    return (
        f'<rect {style} x="{corner.x:.1f}" y="{corner.y:.1f}" width="{size.width:.1f}"'
        f' height="{size.height:.1f}" rx="{radius:.0f}"/>'
    )


def _tip(at: Point, path: str, kind: str = "") -> str:
    style = f"tip {kind}".strip()
    return f'<path class="{style}" transform="translate({_at(at)})" d="{path}"/>'


def _text(text: str, x: float, y: float, style: str = "") -> str:
    return f'<text {style} x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'.replace("  ", " ")


def _at(point: Point) -> str:
    return f"{point.x:.1f} {point.y:.1f}"
