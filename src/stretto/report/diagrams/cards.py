"""What stands on the card of a step. In: a Node. Out: its lines, its inner boxes and its size."""

from collections.abc import Iterator
from dataclasses import dataclass

from stretto.report.diagrams.layout import Size
from stretto.report.diagrams.shape import Node
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


def card_of(node: Node) -> Card:
    title = fit_name(node.title, _LONGEST_LINE)
    lines = tuple(fit_name(line, _LONGEST_LINE) for line in _lines(node))
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


def _lines(node: Node) -> Iterator[str]:
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


def _pills(node: Node, top: float) -> tuple[Pill, ...]:
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
