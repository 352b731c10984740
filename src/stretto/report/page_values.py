"""Outputs and inputs on a page. In: a value, and how much of it has room. Out: Html.

Prose is rendered, everything else is shown as it is. A page must open in any browser, so the
values of many steps are cut, each with the command that prints all of it.
"""

import re
from dataclasses import dataclass

from stretto.report.markup import Html, join
from stretto.report.model import Report
from stretto.report.page_parts import command, folded, muted, quote, quoted
from stretto.report.rendered_markdown import MOST_MARKDOWN_CHARACTERS, render_markdown
from stretto.report.text import raw, size
from stretto.text.visible import visible
from stretto.vocabulary.json_value import Json

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
