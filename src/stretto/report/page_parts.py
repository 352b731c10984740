"""Pieces that the sections of a page are made of. In: text, figures and values. Out: Html."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from stretto.report.markup import Content, Html, join, tag
from stretto.report.model import Report
from stretto.report.rendered_markdown import MOST_MARKDOWN_CHARACTERS, render_markdown
from stretto.report.text import MARKS, raw, size
from stretto.text.visible import one_line, visible
from stretto.vocabulary.json_value import Json

# Longer ones are folded, so that a page of 500 steps can still be read.
_MOST_OPEN_CHARACTERS = 1_500
_MOST_OPEN_LINES = 24
_MOST_IN_A_LINE = 160


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    kind: Literal["", "figure", "words"] = ""


def section(id: str, title: str, *content: Content) -> Html:
    heading = tag("h2", title, id=f"{id}-title")
    return tag("section", heading, content, id=id, aria_labelledby=f"{id}-title")


def labelled(title: str, *content: Content) -> Html:
    return tag("div", tag("h4", title), content)


def muted(*content: Content) -> Html:
    return tag("p", content, class_="muted")


def command(words: str) -> Html:
    return tag("code", words, class_="command")


def status_class(status: str) -> str:
    """Statuses are our own words, but a class must be one word."""
    return f"is-{status.replace(' ', '-')}"


def word(status: str, sign: str = "") -> Html:
    """A sign, a colour and a word: none of them alone."""
    drawn = tag("span", sign or MARKS.get(status, "·"), class_="sign", aria_hidden="true")
    # The same word as in expressions, in the graph and on the terminal.
    return tag("span", drawn, status.upper(), class_=f"word {status_class(status)}")


def quote(text: str, name: str, kind: str = "") -> Html:
    return tag(
        "pre", text, tabindex="0", role="group", aria_label=name, class_=kind if kind else False
    )


def folded(title: str, *content: Content) -> Html:
    return tag("details", tag("summary", title), content)


def quoted(text: str, name: str) -> Html:
    """Behind its name where it is long."""
    if len(text) <= _MOST_OPEN_CHARACTERS and text.count("\n") < _MOST_OPEN_LINES:
        return quote(text, name)
    return folded(f"{name}, {len(text):,} characters", quote(text, name))


def beginning(text: str, name: str) -> Content:
    """A short text as it is, a long one behind its beginning and its end."""
    if len(text) <= _MOST_OPEN_CHARACTERS // 3 and text.count("\n") < 4:
        return tag("span", text, class_="said")
    return folded(one_line(text, _MOST_IN_A_LINE), quote(text, name))


def scrolling(content: Html, name: str, kind: str = "") -> Html:
    """What may be larger than its place can be scrolled by keyboard, and says what it is."""
    css = f"scroll {kind}".strip()
    return tag("div", content, class_=css, tabindex="0", role="group", aria_label=name)


def table(caption: str, columns: Sequence[Column], rows: Iterable[Sequence[Content]]) -> Html:
    """The first cell of a row is its heading."""
    body = (
        tag(
            "tr",
            tag("th", cells[0], scope="row"),
            (_cell(column, cell) for column, cell in zip(columns[1:], cells[1:], strict=True)),
        )
        for cells in rows
    )
    heads = (
        tag("th", column.title, scope="col", class_=column.kind or False) for column in columns
    )
    made = tag("table", tag("caption", caption), tag("thead", tag("tr", heads)), tag("tbody", body))
    return scrolling(made, caption)


def _cell(column: Column, content: Content) -> Html:
    return tag("td", content, class_=column.kind or False)


def facts(pairs: Iterable[tuple[str, Content]], kind: str) -> Html:
    each = (tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs)
    return tag("dl", join(each), class_=kind)


_MOST_PAGE_CHARACTERS = 1_500_000
_MOST_VALUE_CHARACTERS = 200_000
_LEAST_VALUE_CHARACTERS = 1_000
_MOST_MARKDOWN_OF_STEPS = 300_000
_DATA = re.compile(r"\s*[\[{<]")
# What only Markdown is written with.
_MARKUP = re.compile(
    r"^ {0,3}(#{1,6} |[-*+] |\d+[.)] |```|~~~|> |\|.*\|\s*$)|\*\*\S|\]\(\S", re.MULTILINE
)
# What would be lost if it were taken for prose: code, columns, drawings.
_LAID_OUT = re.compile(r"^(\t| {2,})\S|\S(\t| {3,})\S", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Room:
    """How many characters a value may take, and up to how many it is rendered."""

    shown: int
    rendered: int


ANSWER_ROOM = Room(_MOST_VALUE_CHARACTERS, MOST_MARKDOWN_CHARACTERS)


def room_of_step(report: Report) -> Room:
    count = max(1, len(report.steps))
    share = min(_MOST_VALUE_CHARACTERS, _MOST_PAGE_CHARACTERS // count)
    rendered = min(MOST_MARKDOWN_CHARACTERS, _MOST_MARKDOWN_OF_STEPS // count)
    return Room(max(_LEAST_VALUE_CHARACTERS, share), rendered)


def show_answer(value: Json, name: str, rest: str) -> Html:
    """In full sight, however long it is."""
    whole = raw(value)
    prose = _prose(value, whole, name, ANSWER_ROOM, under=2)
    if prose is not None:
        return join([prose, folded("The same as it was written", quote(whole, f"{name} as text"))])
    return join([quote(_shorten(whole, ANSWER_ROOM.shown), name), *_rest(whole, ANSWER_ROOM, rest)])


def show_value(value: Json, name: str, room: Room, rest: str) -> Html:
    """`rest`: the command that prints all of it."""
    whole = raw(value)
    prose = _prose(value, whole, name, room, under=4)
    if prose is not None:
        return prose
    if len(whole) <= room.shown:
        return quoted(whole, name)
    shown = quote(_shorten(whole, room.shown), name)
    return folded(f"{name}, {size(value)}", shown, _rest(whole, room, rest))


def _prose(value: Json, whole: str, name: str, room: Room, under: int) -> Html | None:
    is_text = isinstance(value, str) and len(whole) <= room.rendered
    if (
        not is_text
        or _DATA.match(whole)
        or not (_MARKUP.search(whole) or not _LAID_OUT.search(whole))
    ):
        return None
    return render_markdown(whole, under, name)


def _shorten(whole: str, most: int) -> str:
    return whole if len(whole) <= most else f"{visible(whole[:most])}…"


def _rest(whole: str, room: Room, rest: str) -> list[Html]:
    left_out = len(whole) - room.shown
    return [muted(f"{left_out:,} characters more: ", command(rest))] if left_out > 0 else []
