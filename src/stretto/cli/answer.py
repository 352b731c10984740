"""The answer of a run: rendered on a terminal; for programs and files exactly as it is."""

import sys
from typing import TYPE_CHECKING

from stretto.cli.terminal import for_terminal, hide_secrets, print_for_program, say
from stretto.templates.render import as_text
from stretto.text.visible import visible
from stretto.vocabulary.json_value import Json

if TYPE_CHECKING:
    from rich.markdown import Markdown


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
        from stretto.report.text import show

        say(show(value))


def print_rendered(text: str) -> None:
    """Markdown as a terminal shows it: headings, lists, tables, code."""
    from rich.console import Console

    console = Console()
    shown = for_terminal(text)
    if console.is_dumb_terminal or not _is_utf8(console.encoding):
        say(shown)
        return
    console.print(_markdown(shown))


def _is_utf8(encoding: str) -> bool:
    return encoding.lower().replace("-", "") == "utf8"


def _markdown(text: str) -> "Markdown":
    from markdown_it import MarkdownIt
    from rich.markdown import Markdown

    rendered = Markdown(visible(text), hyperlinks=False)
    # Rich would drop what looks like HTML, as `list<int>` does, and join the lines of a poem.
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    rendered.parsed = parser.parse(text)
    for token in rendered.parsed:
        for child in token.children or ():
            if child.type == "softbreak":
                child.type = "hardbreak"
    return rendered
