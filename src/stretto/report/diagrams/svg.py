"""Draw a plan or a run as a picture. In: a Diagram. Out: one SVG that needs nothing else and runs nothing.

The text is the page's own colour, or follows the reader's scheme where there is no page.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, starmap
from xml.sax.saxutils import escape, quoteattr

from stretto.report.diagrams.layout import Placement, Position, Size, place
from stretto.report.diagrams.shape import Box, Diagram
from stretto.report.text import MARKS
from stretto.text.short import columns, fit_name

LINE = 17.0
PILL_HEIGHT = 40.0
PILL_GAP = 10.0
PADDING = 12.0
POINT = 18.0  # how far the ends of a decision stick out
STACK = 4.0  # by how much the cards of a map are offset
ARC = 22.0  # how far the arrow of a loop reaches
_LONGEST_LINE = 48
_PILLS_A_ROW = 4
# A column of a monospaced font is 0.6 of its size, and a little more in the widest ones.
TITLE_COLUMN, TEXT_COLUMN = 13 * 0.62, 11 * 0.62


@dataclass(frozen=True, slots=True)
class Pill:
    lines: tuple[str, ...]
    x: float  # its corner, from the corner of the card
    y: float
    width: float


@dataclass(frozen=True, slots=True)
class Card:
    title: str
    lines: tuple[str, ...]
    pills: tuple[Pill, ...]
    size: Size
    slot: Size  # with what sticks out of it


def card_of(node: Box) -> Card:
    title = fit_name(node.title, _LONGEST_LINE)
    lines = tuple(fit_name(line, _LONGEST_LINE) for line in _card_lines(node))
    text_width = max([columns(title) * TITLE_COLUMN, *(columns(t) * TEXT_COLUMN for t in lines)])
    top = PADDING + LINE * (1 + len(lines))
    pills = _pills(node, top + PADDING / 2)
    width = max([text_width, *(pill.x + pill.width - PADDING for pill in pills)]) + 2 * PADDING
    height = max([top, *(pill.y + PILL_HEIGHT for pill in pills)]) + PADDING
    if node.kind == "conditional":
        width += 2 * POINT
    more = {"loop": Size(2 * ARC, 0), "map": Size(2 * STACK, 2 * STACK)}.get(node.kind, Size(0, 0))
    slot = Size(width + more.width, height + more.height)
    return Card(title, lines, pills, Size(width, height), slot)


def _card_lines(node: Box) -> Iterator[str]:
    if node.status:
        yield f"{MARKS.get(node.status, '')} {node.status}".strip()
    if node.kind == "loop":
        producer, verdict = node.parts
        yield f"{producer.name} ⇄ {verdict.name}"
        yield f"max {node.limit} iterations"
    elif node.kind == "map":
        yield f"× each of {node.over}"
        yield " → ".join(part.name for part in node.having("stage"))
        yield from (f"reduce: {part.name}" for part in node.having("reducer"))
    elif node.agent:
        yield node.agent
    yield from (f"{part.label} → {part.name}" for part in node.having("choice"))
    yield from (f"({note})" for note in node.notes)


def _pills(node: Box, top: float) -> tuple[Pill, ...]:
    branches = node.having("branch")
    texts = [
        tuple(fit_name(t, _LONGEST_LINE // 2) for t in (b.title, b.agent) if t) for b in branches
    ]
    width = max((columns(text) * TEXT_COLUMN for lines in texts for text in lines), default=0)
    width += 2 * PADDING
    return tuple(
        Pill(
            lines,
            PADDING + place % _PILLS_A_ROW * (width + PILL_GAP),
            top + place // _PILLS_A_ROW * (PILL_HEIGHT + PILL_GAP),
            width,
        )
        for place, lines in enumerate(texts)
    )


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
# How a step stands: by colour, by the weight and kind of its outline, and in words.
_STATE_STYLE = """
.stretto .stated { --tone: #56616d }
.stretto .stated .card, .stretto .stated .pill, .stretto .stated .tip { color: var(--tone) }
.stretto .state { fill: var(--tone); font-weight: 600; opacity: 1 }
.stretto .is-succeeded { --tone: #17704a }
.stretto .is-failed { --tone: #b3261e } .stretto .is-failed .card { stroke-width: 3.2 }
.stretto .is-running, .stretto .is-merging, .stretto .is-retrying, .stretto .is-interrupted {
--tone: #2459b8 }
.stretto .is-awaiting-approval, .stretto .is-overdue { --tone: #8a5a00 }
.stretto .is-awaiting-approval .card, .stretto .is-overdue .card { stroke-width: 3.2 }
.stretto .is-skipped .card, .stretto .is-held .card, .stretto .is-cancelled .card,
.stretto .is-waiting .card { stroke-dasharray: 2 4 }
.stretto a { cursor: pointer; outline-offset: 3px }
.stretto a:hover .title, .stretto a:focus-visible .title { text-decoration: underline }
@media (prefers-color-scheme: dark) {
.stretto .stated { --tone: #a3adb8 } .stretto .is-succeeded { --tone: #56c795 }
.stretto .is-failed { --tone: #ff8a80 }
.stretto .is-running, .stretto .is-merging, .stretto .is-retrying, .stretto .is-interrupted {
--tone: #82b0ff }
.stretto .is-awaiting-approval, .stretto .is-overdue { --tone: #e5b454 }
}
"""


def render(graph: Diagram, width: int) -> str:
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
        *_opening(graph, layout.size),
        *_links(links, layout, len(cards)),
        *(_text(label, at.x, at.y + 4) for label, at in signs),
        *(element for node, card, at in steps for element in _step(node, card, at)),
        "</g>",
        "</svg>",
    ]
    return "\n".join(elements) + "\n"


def _opening(graph: Diagram, size: Size) -> Iterator[str]:
    name, is_run = graph.name, any(node.status for node in graph.nodes)
    # What is in a picture cannot be reached from the keyboard, and so neither can its links.
    role = "group" if any(node.link for node in graph.nodes) else "img"
    wide, high = f"{size.width + 2 * _MARGIN:.0f}", f"{size.height + 2 * _MARGIN:.0f}"
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="stretto" text-anchor="middle" role="{role}"'
        f" aria-label={quoteattr(name)}"
        f' width="{wide}" height="{high}" viewBox="0 0 {wide} {high}">'
    )
    yield f"<title>{escape(name)}</title>"
    yield f"<style>{_STYLE}{_STATE_STYLE if is_run else ''}</style>"
    yield f'<g transform="translate({_MARGIN:.0f} {_MARGIN:.0f})">'


def _links(links: Sequence[tuple[int, int]], layout: Placement, boxes: int) -> Iterator[str]:
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


def _piece(here: Position, there: Position, is_curved: bool) -> str:
    if not is_curved:
        return f"M{_at(here)}V{there.y:.1f}" if here != there else ""
    middle = (here.y + there.y) / 2
    return f"M{_at(here)}C{here.x:.1f} {middle:.1f} {there.x:.1f} {middle:.1f} {_at(there)}"


def _step(node: Box, card: Card, centre: Position) -> Iterator[str]:
    left, top = centre.x - card.size.width / 2, centre.y - card.size.height / 2
    if node.kind == "map":
        left, top = left - STACK, top + STACK
    corner, middle = Position(left, top), left + card.size.width / 2
    said = " · ".join([node.title, node.kind, *card.lines])
    state = f' class="stated is-{node.status.replace(" ", "-")}"' if node.status else ""
    if node.link:
        yield f"<a href={quoteattr(node.link)} aria-label={quoteattr(said)}>"
    yield f"<g{state}><title>{escape(said)}</title>"
    yield from _outline(node, card.size, corner)
    y = top + PADDING + LINE - 5
    yield _text(card.title, middle, y, 'class="title"')
    for number, line in enumerate(card.lines):
        y += LINE
        is_state = bool(node.status) and number == 0
        yield _text(line, middle, y, 'class="state"' if is_state else 'class="quiet"')
    for pill in card.pills:
        yield from _pill(pill, corner)
    yield "</g></a>" if node.link else "</g>"


def _outline(node: Box, size: Size, corner: Position) -> Iterator[str]:
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
        yield _tip(Position(right, middle - 9), "M0 0l8 -4v8z", "loop")


def _pill(pill: Pill, corner: Position) -> Iterator[str]:
    at = Position(corner.x + pill.x, corner.y + pill.y)
    yield _box('class="pill tint parallel"', at, Size(pill.width, PILL_HEIGHT), 6)
    y = at.y + PILL_HEIGHT / 2 + 4 - 7 * (len(pill.lines) - 1)
    for line, style in zip(pill.lines, ("", 'class="quiet"'), strict=False):
        yield _text(line, at.x + pill.width / 2, y, style)
        y += 14


def _box(style: str, corner: Position, size: Size, radius: float) -> str:
    return (
        f'<rect {style} x="{corner.x:.1f}" y="{corner.y:.1f}" width="{size.width:.1f}"'
        f' height="{size.height:.1f}" rx="{radius:.0f}"/>'
    )


def _tip(at: Position, path: str, kind: str = "") -> str:
    style = f"tip {kind}".strip()
    return f'<path class="{style}" transform="translate({_at(at)})" d="{path}"/>'


def _text(text: str, x: float, y: float, style: str = "") -> str:
    return f'<text {style} x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'.replace("  ", " ")


def _at(point: Position) -> str:
    return f"{point.x:.1f} {point.y:.1f}"
