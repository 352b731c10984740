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
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING

import click

from stretto.problems import Problem
from stretto.problems.render import as_text
from stretto.text.short import columns as screen_columns, fit, fit_name, wrap, wrap_prose
from stretto.text.visible import encodable, escaped, harmless, visible, visible_line

if TYPE_CHECKING:
    from stretto.report.model import Report
    from stretto.text.redaction import Redactor


def say(
    text: str = "", err: bool = False, mark: str = "", colour: str = "", is_prose: bool = False
) -> None:
    """`mark`: a word in front of the text, in a colour. `is_prose`: nobody copies it as it stands,
    so on a terminal its long lines are broken between words."""
    shown = for_terminal(wrap_prose(text, terminal_columns(err)) if is_prose else text, err)
    if mark:
        word = _encodable(mark, err)
        if _wants_colours(err):
            word = click.style(word, fg=colour or None, bold=True)
        shown = f"{word} {shown}"
    click.echo(shown, err=err)


def say_piece(text: str, err: bool = False) -> None:
    """Words as they come, without a line break, shown at once."""
    click.echo(for_terminal(text, err), nl=False, err=err)
    (sys.stderr if err else sys.stdout).flush()


def for_terminal(text: str, err: bool = False) -> str:
    return _encodable(visible(hide_secrets(text)), err)


def _wants_colours(err: bool) -> bool:
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not is_plain and (sys.stderr if err else sys.stdout).isatty()


def hide_secrets(text: str) -> str:
    return _redactor().text(text)


def confirm(question: str, default: bool = False, err: bool = False) -> bool:
    return click.confirm(visible_line(_redactor().text(question)), default=default, err=err)


def prompt(name: str, check: Callable[[str], str]) -> str:
    """Ask until `check` accepts the answer; it raises click.UsageError for one that it rejects."""

    def check_answer(answer: str) -> str:
        try:
            return check(answer)
        except click.UsageError as error:
            raise click.UsageError(for_terminal(error.message, err=True)) from None

    answer = click.prompt(visible_line(name), value_proc=check_answer, err=True)
    assert isinstance(answer, str)
    return answer


def ask(question: str, suffix: str = ": ") -> str:
    """The answer as it is typed, perhaps empty. Raises click.Abort at Ctrl-C and Ctrl-D."""
    shown = visible_line(_redactor().text(question))
    typed = click.prompt(shown, default="", show_default=False, prompt_suffix=suffix, err=True)
    return str(typed).strip()


def page(text: str) -> None:
    """Show text one screen at a time; stdout is left alone where it is not a terminal."""
    if sys.stdout.isatty():
        click.echo_via_pager(for_terminal(text) + "\n")
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
    """Whether the terminal can show only ASCII; JSON can escape everything else."""
    return (sys.stdout.encoding or "ascii").lower().replace("-", "") != "utf8"


def print_bytes(content: bytes) -> None:
    """Print bytes unchanged for another program; on a terminal, as text that it can show safely."""
    if sys.stdout.isatty():
        say(content.decode("utf-8", "replace").rstrip("\n"))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)


def print_for_program(text: str) -> None:
    """Print text as it is but for what a terminal would obey, should it end up on one."""
    sys.stdout.flush()
    # UTF-8 whatever the locale says: another character would be another text.
    sys.stdout.buffer.write(harmless(text).encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def print_traceback(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """Print the traceback of a bug; it may hold text from outside, so it is made safe as well."""
    from traceback import format_exception

    say("".join(format_exception(kind, error, traceback)).rstrip("\n"), err=True)


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


_NARROWEST = 6  # columns of a cell; what is left of a name then still says something
_NARROWEST_PROSE = 30  # columns; below that a sentence is a column of single words
_INDENT = 4


def columns(
    rows: Sequence[tuple[str, ...]],
    gap: str = "  ",
    margin: int = 0,
    has_head: bool = False,
    err: bool = False,
) -> list[str]:
    """Rows as aligned text, one for each. On a terminal they fit its width: the last column goes on
    below itself, or stands below its row where there is no room beside it; names are cut in their
    middle only then, the first column never (it is for copying).

    `margin`: columns that the caller puts before each row. `has_head`: the first row names the
    columns, of which those that say nothing in any row are left out on a terminal.
    """
    if not rows:
        return []
    rows = [(*map(visible_line, row[:-1]), row[-1]) for row in rows]
    room = terminal_columns(err) - margin
    if room <= 0:
        return [(head + row[-1]).rstrip() for head, row in _heads(rows, gap, 0)]
    rows = _without_empty(rows) if has_head else rows
    widths = [max(screen_columns(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    beside = room - sum(widths) - len(gap) * len(widths)
    longest = max(screen_columns(row[-1]) for row in rows)
    if min(beside, longest) >= _NARROWEST_PROSE or longest < _NARROWEST_PROSE or len(widths) < 2:
        heads = _heads(rows, gap, max(1, room - min(longest, _NARROWEST_PROSE)))
        return [_beside(head, row[-1], room, margin) for head, row in heads]
    found = [_below(head, row[-1], room, margin) for head, row in _heads(rows, gap, room)]
    # The head's last word names a column that is not there.
    return [found[0].split("\n")[0], *found[1:]] if has_head else found


def _heads(
    rows: Sequence[tuple[str, ...]], gap: str, room: int
) -> list[tuple[str, tuple[str, ...]]]:
    """All columns but the last, as wide as each other. `room` 0: nothing is cut."""
    widths = [max(screen_columns(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    widths = _narrow(widths, room - len(gap) * len(widths)) if room else widths
    found = []
    for row in rows:
        cells = [fit_name(cell, width) for cell, width in zip(row, widths, strict=False)]
        padded = (c + " " * (w - screen_columns(c)) for c, w in zip(cells, widths, strict=True))
        found.append(("".join(cell + gap for cell in padded), row))
    return found


def _beside(head: str, last: str, room: int, margin: int) -> str:
    left = room - screen_columns(head)
    indent = "\n" + " " * (margin + screen_columns(head))
    return (head + indent.join(_wrap(last, left))).rstrip()


def _below(head: str, last: str, room: int, margin: int) -> str:
    indent = "\n" + " " * (margin + _INDENT)
    lines = _wrap(last, room - _INDENT) if last else []
    return indent.join([head.rstrip(), *lines])


def _without_empty(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    told = [
        i for i in range(1, len(rows[0]) - 1) if any(row[i] not in ("", "-") for row in rows[1:])
    ]
    kept = (0, *told, len(rows[0]) - 1)
    return [tuple(row[i] for i in kept) for row in rows]


def _narrow(widths: list[int], room: int) -> list[int]:
    """Take from the widest but the first, until all fit or none can give more."""
    widths = list(widths)
    while sum(widths) > room:
        widest = max(range(1, len(widths)), key=lambda i: widths[i], default=0)
        if not widest or widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
    return widths


def _wrap(text: str, width: int) -> list[str]:
    if width < _NARROWEST:
        return [fit(text, width)] if width > 0 else [""]
    return [part for line in text.split("\n") for part in wrap(line, width)]


def terminal_columns(err: bool = False) -> int:
    """0: not a terminal, where nothing is cut."""
    stream = sys.stderr if err else sys.stdout
    if not stream.isatty():
        return 0
    with suppress(OSError):
        return os.get_terminal_size(stream.fileno()).columns
    return 80
