"""Print and ask on the terminal, for all commands.

Whatever a command prints passes through here, so that no secret is shown and no character that a
terminal would obey. Only the live view draws by itself.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING

import click

from stretto.cli import streams
from stretto.problems import Problem
from stretto.problems.render import as_text
from stretto.text.short import columns as screen_columns, wrap, wrap_prose
from stretto.text.visible import (
    encodable,
    escaped,
    harmless,
    plain_signs,
    visible,
    visible_line,
)

if TYPE_CHECKING:
    from stretto.report.model import Report
    from stretto.text.redaction import Redactor


def say(
    text: str = "", err: bool = False, mark: str = "", colour: str = "", is_exact: bool = False
) -> None:
    """On a terminal, lines that are too long for it are broken between words. `mark`: a word in
    front of the text, in a colour. `is_exact`: it is copied or read by programs as it stands, such
    as a recipe, so its lines stay whole."""
    whole = f"{mark} {text}" if mark else text
    shown = for_terminal(
        whole if is_exact else wrap_prose(whole, terminal_columns(err)), err, is_exact
    )
    if mark and _wants_colours(err):
        word = _encodable(mark, err)
        shown = click.style(word, fg=colour or None, bold=True) + shown.removeprefix(word)
    click.echo(shown, err=err)


def say_piece(text: str, err: bool = False) -> None:
    """Words as they come, without a line break, shown at once."""
    click.echo(for_terminal(text, err), nl=False, err=err)
    (sys.stderr if err else sys.stdout).flush()


def for_terminal(text: str, err: bool = False, is_exact: bool = False) -> str:
    shown = visible(hide_secrets(text))
    return _encodable(shown if is_exact or not _is_plain() else plain_signs(shown), err)


def _wants_colours(err: bool) -> bool:
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not is_plain and (sys.stderr if err else sys.stdout).isatty()


def hide_secrets(text: str) -> str:
    return _redactor().text(text)


def confirm(question: str, default: bool = False, err: bool = False) -> bool:
    shown = _question(question, " [Y/n]: ", err) + (" [Y/n]: " if default else " [y/N]: ")
    while True:
        typed = _read_answer(shown, err).strip().lower()
        if typed in ("", "y", "yes", "n", "no"):
            return typed.startswith("y") if typed else default
        say("answer y or n", err=err)


_ROOM_FOR_ANSWER = 4  # columns


def _question(text: str, suffix: str = ": ", err: bool = True) -> str:
    """Broken between words where it is too long, with room for the answer behind the last word."""
    room = terminal_columns(err) - len(suffix) - _ROOM_FOR_ANSWER
    return wrap_prose(visible_line(_redactor().text(text)), max(0, room))


def prompt(name: str, check: Callable[[str], str]) -> str:
    """Ask until `check` accepts the answer; it raises click.UsageError for one that it rejects."""
    while True:
        try:
            answer = _read_answer(f"{visible_line(name)}: ")
            if answer:
                return check(answer)
        except click.UsageError as error:
            say(f"Error: {error.message}", err=True)
        except click.Abort:
            click.echo(err=True)  # the next message begins on a new line
            raise


def ask(question: str, suffix: str = ": ") -> str:
    """The answer, stripped, perhaps empty. Raises click.Abort at Ctrl-C and Ctrl-D."""
    return ask_line(question, suffix).strip()


def ask_line(question: str, suffix: str) -> str:
    """The answer with the blanks around it, such as the indentation of a line of YAML."""
    return _read_answer(f"{_question(question, suffix)}{suffix}")


def _read_answer(question: str, err: bool = True) -> str:
    """Not by `input`, which drops a Ctrl-C that comes while it flushes the streams."""
    try:
        with streams.woken_by_signals():
            click.echo(question, nl=False, err=err)
            typed = sys.stdin.readline()
    except KeyboardInterrupt:
        raise click.Abort from None
    if not typed:
        raise click.Abort
    return typed.removesuffix("\n")


def page(text: str) -> None:
    """Show text one screen at a time; stdout is left alone where it is not a terminal."""
    if sys.stdout.isatty():
        click.echo_via_pager(for_terminal(wrap_prose(text, terminal_columns())) + "\n")
    else:
        say(text, err=True)


def print_json(value: object) -> None:
    print_json_text(json.dumps(value, ensure_ascii=_wants_ascii()))


def print_json_text(text: str) -> None:
    """Print text that is JSON already, such as an event."""
    print(_safe_json(text), flush=True)


def print_report_json(report: "Report") -> None:
    """Print the report on one line, piece by piece, so that it is never all in memory."""
    from stretto.report.json_form import report_as_json_text

    for piece in report_as_json_text(report, ensure_ascii=_wants_ascii()):
        sys.stdout.write(_safe_json(piece))
    print(flush=True)


def _safe_json(text: str) -> str:
    return escaped(_redactor().text(text))


def _wants_ascii() -> bool:
    """Whether stdout is not UTF-8, or the locale is C: then JSON escapes all but ASCII."""
    return _is_plain() or (sys.stdout.encoding or "ascii").lower().replace("-", "") != "utf8"


@cache
def _is_plain() -> bool:
    return streams.wants_ascii()


def print_bytes(content: bytes) -> None:
    """Print bytes unchanged for another program; on a terminal, as text that it can show safely."""
    if sys.stdout.isatty():
        say(content.decode("utf-8", "replace").rstrip("\n"), is_exact=True)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)


def print_for_program(text: str) -> None:
    """Print text unchanged, except for characters that control a terminal: it may end up on one."""
    sys.stdout.flush()
    # UTF-8 whatever the locale says: a stand-in character would change the text.
    sys.stdout.buffer.write(harmless(text).encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def print_traceback(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """Print the traceback of a bug; it may hold text from outside, so it is made safe as well."""
    from traceback import format_exception

    said = "".join(format_exception(kind, error, traceback))
    say(said.rstrip("\n"), err=True, is_exact=True)


@cache
def _redactor() -> "Redactor":
    from stretto.text.redaction import Redactor

    return Redactor(os.environ)


def _encodable(text: str, err: bool) -> str:
    return encodable(text, (sys.stderr if err else sys.stdout).encoding or "ascii")


def print_problems(problems: Iterable[Problem], to_stderr: bool = False) -> None:
    for problem in problems:
        code, _, rest = as_text(problem, terminal_columns(to_stderr)).partition(" ")
        say(f"{rest}\n", err=to_stderr, mark=code, colour="red")


def print_warnings(warnings: Iterable[Problem]) -> None:
    for warning in warnings:
        named = replace(warning, message=f"warning: {warning.message}")
        code, _, rest = as_text(named, terminal_columns(err=True)).partition(" ")
        say(f"{rest}\n", err=True, mark=code, colour="yellow")


def local_time(at: float, *, has_seconds: bool = False) -> str:
    """In the time zone of this machine."""
    return datetime.fromtimestamp(at).strftime(f"%Y-%m-%d %H:%M{':%S' if has_seconds else ''}")


_NARROWEST_PROSE = 30  # columns; below that a sentence is a column of single words
_INDENT = 4


def columns(
    rows: Sequence[tuple[str, ...]],
    gap: str = "  ",
    margin: int = 0,
    has_head: bool = False,
    err: bool = False,
) -> list[str]:
    """Rows as aligned text, one for each. On a terminal they fit its width: a long last column is
    wrapped in its place; where there is no room for that, it is put below its row, together with
    the columns before it that do not fit either. Nothing is cut: half a name says little.

    `margin`: columns that the caller puts before each row. `has_head`: the first row names the
    columns, of which those that say nothing in any row are left out on a terminal.
    """
    if not rows:
        return []
    rows = [(*map(visible_line, row[:-1]), row[-1]) for row in rows]
    room = terminal_columns(err) - margin
    rows = _without_empty(rows) if has_head and room > 0 else rows
    widths = [max(screen_columns(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    if room <= 0:
        return [(_align(row, widths, gap) + row[-1]).rstrip() for row in rows]
    beside = room - sum(widths) - len(gap) * len(widths)
    lasts = [screen_columns(row[-1]) for row in rows]
    if beside >= min(max(lasts), _NARROWEST_PROSE):
        return [_beside(_align(row, widths, gap), row[-1], room, margin) for row in rows]
    is_prose = max(lasts) >= _NARROWEST_PROSE
    if not is_prose and 2 * sum(last <= beside for last in lasts) > len(rows):
        # Only the few that are too long go below their rows.
        heads = [_align(row, widths, gap) for row in rows]
        return [
            head + row[-1] if last <= beside else _below(head, [row[-1]], room, margin)
            for head, row, last in zip(heads, rows, lasts, strict=True)
        ]
    return _stack(rows, widths, gap, room, margin, is_prose, has_head)


def _stack(
    rows: Sequence[tuple[str, ...]],
    widths: Sequence[int],
    gap: str,
    room: int,
    margin: int,
    is_prose: bool,
    has_head: bool,
) -> list[str]:
    """Each last column below its row, with those before it that do not fit either."""
    kept = max(1, sum(sum(widths[: i + 1]) + len(gap) * i <= room for i in range(len(widths))))
    made = []
    for place, row in enumerate(rows):
        # Prose needs no heading, and below its rows there is no column for one.
        last = "" if place == 0 and has_head and is_prose else row[-1]
        pushed = gap.join(filter(None, row[kept:-1]))
        more = [pushed, last] if is_prose else [gap.join(filter(None, (pushed, last)))]
        made.append(_below(_align(row, widths[:kept], gap), more, room, margin))
    return made


def _align(row: tuple[str, ...], widths: Sequence[int], gap: str) -> str:
    padded = (c + " " * (w - screen_columns(c)) for c, w in zip(row, widths, strict=False))
    return "".join(cell + gap for cell in padded)


def _beside(head: str, last: str, room: int, margin: int) -> str:
    left = room - screen_columns(head)
    if max(map(screen_columns, _wrap(last, left))) > left:
        return _below(head, [last], room, margin)
    indent = "\n" + " " * (margin + screen_columns(head))
    return (head + indent.join(_wrap(last, left))).rstrip()


def _below(head: str, more: Sequence[str], room: int, margin: int) -> str:
    indent = "\n" + " " * (margin + _INDENT)
    # With a backslash, a command that goes on in the next line can still be copied.
    end = " \\" if head.startswith("stretto ") else ""
    heads = [head.rstrip()]
    if screen_columns(heads[0]) > room:
        heads = wrap(heads[0], room - _INDENT - len(end))
    lines = [line for each in more if each for line in _wrap(each, room - _INDENT)]
    return indent.join([f"{end}{indent}".join(heads), *(line.rstrip() for line in lines)])


def _without_empty(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    told = [
        i for i in range(1, len(rows[0]) - 1) if any(row[i] not in ("", "-") for row in rows[1:])
    ]
    kept = (0, *told, len(rows[0]) - 1)
    return [tuple(row[i] for i in kept) for row in rows]


def _wrap(text: str, width: int) -> list[str]:
    return [part for line in text.split("\n") for part in wrap(line, width)]


def terminal_columns(err: bool = False) -> int:
    """0: not a terminal, where nothing is cut."""
    stream = sys.stderr if err else sys.stdout
    if not stream.isatty():
        return 0
    with suppress(OSError):
        return os.get_terminal_size(stream.fileno()).columns
    return 80
