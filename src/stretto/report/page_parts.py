"""Pieces that the sections of a page are made of. In: text and figures. Out: Html."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from stretto.report.markup import Content, Html, join, tag
from stretto.report.text import MARKS
from stretto.text.visible import one_line

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
