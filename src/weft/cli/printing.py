"""What commands print. In: values. Out: text on stdout, one JSON object with --json."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from weft.problems import Problem
from weft.problems.render import as_text

if TYPE_CHECKING:
    from weft.report.model import Report


def print_json(value: object) -> None:
    print(_printable(json.dumps(value, ensure_ascii=_wants_ascii())))


def print_report_json(report: "Report") -> None:
    """On one line, and never all of it in memory."""
    from weft.report.json_form import report_as_json_text

    for piece in report_as_json_text(report, ensure_ascii=_wants_ascii()):
        sys.stdout.write(_printable(piece))
    print(flush=True)


def _printable(text: str) -> str:
    """Half a character, as in a name that is no UTF-8, would make all of it unreadable."""
    return text.encode("utf-8", "replace").decode()


def _wants_ascii() -> bool:
    """When the terminal cannot show more: JSON says the same either way."""
    return (sys.stdout.encoding or "ascii").lower().replace("-", "") != "utf8"


@contextmanager
def outliving_its_reader() -> Iterator[None]:
    """A reader who has seen enough (`| head`) ends the output, and nothing else."""
    try:
        yield
    except BrokenPipeError:
        # All that is printed from now on goes nowhere, and Python's own last flush with it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_problems(problems: Iterable[Problem], to_stderr: bool = False) -> None:
    for problem in problems:
        text = as_text(problem)
        code, _, rest = text.partition(" ")
        # click drops the colours when the output is not a terminal.
        click.echo(f"{click.style(code, fg='red', bold=True)} {rest}\n", err=to_stderr)


def print_warnings(warnings: Iterable[Problem]) -> None:
    for warning in warnings:
        code, _, rest = as_text(warning).partition(" ")
        click.echo(f"{click.style(code, fg='yellow', bold=True)} warning: {rest}\n", err=True)


def columns(rows: Sequence[tuple[str, ...]], gap: str = "  ") -> list[str]:
    """Rows as aligned text; the last column runs free."""
    if not rows:
        return []
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    return [
        gap.join(
            [*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]
        ).rstrip()
        for row in rows
    ]
