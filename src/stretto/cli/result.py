"""What a run leaves on the terminal.

stdout   the answer and nothing else (or the whole report, or JSON)
stderr   a summary of three lines, what went wrong, the next commands
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from stretto.cli.files import check_target, write_target
from stretto.cli.options import json_option
from stretto.cli.terminal import (
    columns,
    for_terminal,
    hide_secrets,
    print_for_program,
    print_report_json,
    say,
)
from stretto.problems.errors import InvalidUsage
from stretto.report.conclusion import next_commands
from stretto.report.model import CallsReport, IssueKind, Report
from stretto.report.text import calls_of, cost_of, issue_lines, run_time, show, tokens, uses_of
from stretto.templates.render import as_text
from stretto.text.short import counted
from stretto.text.visible import one_line, visible
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.statuses import UNFINISHED, StepStatus

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.markdown import CodeBlock, Markdown, TableElement
    from rich.table import Table

_MOST_ISSUES = 5
_LONGEST_ISSUE = 300
_COLOURS = {"complete": "green", "failed": "red", "cancelled": "red"}


@dataclass(frozen=True, slots=True)
class ResultOptions:
    """What of a run is printed, and where its answer goes."""

    as_json: bool = False
    is_quiet: bool = False
    is_long: bool = False  # the whole report in place of the answer
    file: Path | None = None
    is_opened: bool = False
    is_streamed: bool = True  # with as_json: every event as a line, and the report last

    def check(self) -> None:
        """Raises InvalidUsage for what could not be done when the run has ended either."""
        if self.is_long and self.as_json:
            hint = "with --json the report is the last line"
            raise InvalidUsage("--report and --json exclude each other", hint=hint)
        if self.file is not None:
            check_target(self.file)


_OPTIONS = (
    click.option("-q", "--quiet", "is_quiet", is_flag=True, help="The answer and nothing else."),
    click.option(
        "-o", "--output", "file", metavar="FILE", type=click.Path(path_type=Path),
        help="Write the answer to a file, not to stdout.",
    ),
    click.option("--report", "is_long", is_flag=True, help="The whole report, not the answer."),
    click.option("--open", "is_opened", is_flag=True, help="Show the report in a browser."),
    json_option,
)  # fmt: skip


def result_options(function: Callable[..., int]) -> Callable[..., int]:
    """For commands that drive a run; they get a `result`."""

    @wraps(function)
    def with_result(
        *words: Any,
        as_json: bool,
        is_quiet: bool,
        is_long: bool,
        file: Path | None,
        is_opened: bool,
        **more: Any,
    ) -> int:
        result = ResultOptions(as_json, is_quiet, is_long, file, is_opened)
        result.check()
        return function(*words, result=result, **more)

    for option in reversed(_OPTIONS):
        with_result = option(with_result)
    return with_result


def print_result(report: Report, result: ResultOptions) -> None:
    """The answer: on stdout, or in the file that the user has named."""
    if result.as_json:
        print_report_json(report)
    if result.is_long:
        _print_long(report, result.file)
    elif report.output is None:
        if result.file is not None:
            say(f"there is no answer, so {result.file} is not written", err=True)
    elif result.file is not None:
        write_target(result.file, as_answer(report.output))
        if not result.is_quiet and not result.as_json:
            say(f"wrote {result.file}", err=True)
    elif not result.as_json:
        is_alone = result.is_quiet or report.output == ""
        _separate(is_alone)
        print_answer(report.output)
        _separate(is_alone)
    sys.stdout.flush()


def _separate(is_alone: bool) -> None:
    """An empty line between the answer and what stands around it, where both are on one screen."""
    if not is_alone and sys.stdout.isatty() and sys.stderr.isatty():
        sys.stdout.flush()
        say(err=True)


def _print_long(report: Report, file: Path | None) -> None:
    from stretto.report.markdown import as_markdown

    if file is None:
        print_rendered(as_markdown(report))
    else:
        write_target(file, hide_secrets(as_markdown(report)) + "\n")


def print_summary(report: Report, was_stopped: bool) -> None:
    _print_standing(report)
    issues = list(_issues(report))
    for text in issues[:_MOST_ISSUES]:
        say(f"  {one_line(text, _LONGEST_ISSUE)}", err=True)
    if len(issues) > _MOST_ISSUES:
        say(f"  … and {len(issues) - _MOST_ISSUES} more: stretto report {report.run_id}", err=True)
    if was_stopped:
        say("stopped; what has ended is kept", err=True)
    for line in columns(list(_next(report)), margin=2, err=True):
        say(f"  {line}", err=True)


def print_failure(report: Report) -> None:
    """All that -q lets through: why there is no answer, or only a part of it."""
    if report.is_ok:
        return
    why = next((f": {one_line(text, _LONGEST_ISSUE)}" for text in _issues(report)), "")
    say(f"run {report.run_id} is {report.status}{why}", err=True)


def _print_standing(report: Report) -> None:
    colour = _COLOURS.get(report.status, "yellow")
    preposition = "in" if report.ended_at is not None else "after"
    took = f"{preposition} {run_time(report)}: {_count_steps(report)}"
    say(took, err=True, mark=report.status, colour=colour)
    used = [counted(report.usage.model_calls, "model call"), f"{tokens(report.usage)} tokens"]
    reused = sum(bool(each.reused_from) for step in report.steps for each in step.attempts)
    used += [f"{counted(reused, 'answer')} reused"] if reused else []
    used += [_count_calls(report.calls)] if report.calls.made else []
    used += [cost_of(report.usage, uses_of(report.steps))] if report.usage.usd > 0 else []
    cut = sum(each in ("running", "interrupted") for each in _attempt_statuses(report))
    more = f"; what was cut short ({counted(cut, 'attempt')}) is not counted" if cut else ""
    say(", ".join(used) + more, err=True)
    say(f"run {report.run_id} of {one_line(report.workflow)}", err=True)


def _count_calls(calls: CallsReport) -> str:
    _, _, not_done = calls_of(calls).partition(" ")
    return f"{counted(calls.made, 'tool call')} {not_done}".rstrip()


def _attempt_statuses(report: Report) -> Iterator[str]:
    return (attempt.status for step in report.steps for attempt in step.attempts)


def _count_steps(report: Report) -> str:
    words = (StepStatus.FAILED, StepStatus.SKIPPED, StepStatus.HELD, StepStatus.CANCELLED)
    counts = [(report.count(word), word.value) for word in words]
    counts.append((report.count(*UNFINISHED), "not ended"))
    said = f"{report.count(StepStatus.SUCCEEDED)} of {counted(len(report.steps), 'step')} succeeded"
    return ", ".join([said, *(f"{count} {word}" for count, word in counts if count)])


def _issues(report: Report) -> Iterator[str]:
    """What went wrong, worst first. What was said before the run began is not repeated."""
    kinds: tuple[IssueKind, ...] = ("failed", "warning", "changed")
    if report.ended_at is not None and not report.is_ok:
        kinds += ("stopped", "not run")
    return iter(issue_lines(issue for issue in report.issues if issue.kind in kinds))


def _next(report: Report) -> Iterator[tuple[str, str]]:
    """Commands that make sense now, and what each does."""
    yield from ((each.command, each.does) for each in next_commands(report))
    if report.ended_at is not None:
        yield f"stretto report {report.run_id}", "shows what each step did"


def as_answer(value: Json) -> str:
    """Text as it is, everything else as JSON; the last line ends, as a file's last line does."""
    text = hide_secrets(as_text(value))
    return text if text.endswith("\n") else f"{text}\n"


def print_answer(value: Json) -> None:
    if not sys.stdout.isatty():
        print_for_program(as_answer(value))
    elif isinstance(value, str):
        print_rendered(value)
    else:
        say(show(value), is_exact=True)


def print_rendered(text: str) -> None:
    """Markdown as a terminal shows it: headings, lists, tables, code. Elsewhere, as it is."""
    from rich.console import Console
    from rich.theme import Theme

    # Rich's own theme would put code into a black box.
    console = Console(theme=Theme({"markdown.code": "bold cyan", "markdown.code_block": "cyan"}))
    shown = for_terminal(text)
    if not console.is_terminal or console.is_dumb_terminal or not _is_utf8(console.encoding):
        say(shown)
        return
    console.print(_markdown(shown))


def _is_utf8(encoding: str) -> bool:
    return encoding.lower().replace("-", "") == "utf8"


def _markdown(text: str) -> "Markdown":
    from markdown_it import MarkdownIt
    from rich.markdown import Markdown

    class Rendered(Markdown):
        elements: ClassVar = {
            **Markdown.elements,
            "table_open": _table_element(),
            **dict.fromkeys(("fence", "code_block"), _code_element()),
        }

    rendered = Rendered(visible(text), hyperlinks=False)
    # Rich would drop what looks like HTML, as `list<int>` does, and join the lines of a poem.
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    rendered.parsed = parser.parse(text)
    for token in rendered.parsed:
        for child in token.children or ():
            if child.type == "softbreak":
                child.type = "hardbreak"
    return rendered


@cache
def _code_element() -> "type[CodeBlock]":
    """Code on the terminal's own background and in its own colours, be they dark or light."""
    from rich.markdown import CodeBlock
    from rich.style import Style
    from rich.syntax import ANSISyntaxTheme, Syntax

    styles = {
        ("Keyword",): Style(bold=True),
        ("Literal", "String"): Style(color="green"),
        ("Comment",): Style(dim=True),
    }

    class OnOwnGround(CodeBlock):
        def __rich_console__(
            self, console: "Console", options: "ConsoleOptions"
        ) -> Iterator["RenderableType"]:
            code, theme = str(self.text).rstrip(), ANSISyntaxTheme(styles)
            yield Syntax(code, self.lexer_name, theme=theme, word_wrap=True, padding=1)

    return OnOwnGround


_LONGEST_WORD = 12  # characters; in a table, states and numbers have no more


@cache
def _table_element() -> "type[TableElement]":
    """A table as rich draws it, except that words are not cut where there is no room."""
    from rich.markdown import TableElement

    class WholeWords(TableElement):
        def __rich_console__(
            self, console: "Console", options: "ConsoleOptions"
        ) -> Iterator["RenderableType"]:
            for table in super().__rich_console__(console, options):
                assert isinstance(table, Table)
                if console.measure(table, options=options).maximum >= options.max_width:
                    _keep_words(table)
                yield table

    from rich.table import Table

    return WholeWords


def _keep_words(table: "Table") -> None:
    for column in table.columns:
        head, *cells = (str(cell) for cell in (column.header, *column.cells))
        words = [len(word) for cell in (head, *cells) for word in cell.split()]
        longest = max(words, default=1)
        if longest <= _LONGEST_WORD and max(map(len, cells), default=0) <= 2 * _LONGEST_WORD:
            column.width = longest
        else:
            column.overflow = "fold"
