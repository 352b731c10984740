"""`stretto explain`: a recipe in prose, or what the code of a problem means."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click

from stretto.cli.options import json_option
from stretto.cli.terminal import print_json, say
from stretto.problems.errors import InvalidUsage
from stretto.text.short import listed

_CODE = re.compile(r"([A-Za-z]{3})([0-9]{1,6})", re.ASCII)
_PAGE = re.compile(r"[A-Z]{3}[0-9]{3}", re.ASCII)
_ITEMS = ("- ", "* ", "|", "#", "1. ")  # what begins a line of its own
_LINK = re.compile(r"\[([^\]]+)\]\(\.\./([^)\s#]+)[^)\s]*\)")  # to another page of the docs
_COMMENT = re.compile(r"<!--.*?-->\n*", re.DOTALL)


@click.command("explain")
@click.argument("what", metavar="NAME|FILE|CODE")
@json_option
def command(what: str, as_json: bool) -> None:
    """Say in prose what a recipe does: each step, who does it, and what happens if it fails.

    With the code of a problem, such as RCP104: what that problem is, an example, and how to fix it.
    """
    if is_code(what):
        _explain_code(what.upper(), as_json)
    else:
        _explain_recipe(what, as_json)


def _explain_code(code: str, as_json: bool) -> None:
    page = page_of(code)
    if page is None:
        raise InvalidUsage(f"there is no problem with the code {code}", hint=_hint(code))
    if as_json:
        print_json({"ok": True, "code": code, "title": title_of(page), "text": page})
        return
    heading, _, rest = page.partition("\n")
    say("", mark=heading.removeprefix("# "), colour="blue")
    say("\n".join(_for_terminal(rest.rstrip("\n"))))


def _for_terminal(text: str) -> Iterator[str]:
    """Blocks of code are set in, and a paragraph is one line, which the terminal's width breaks."""
    is_code_block = False
    paragraph: list[str] = []
    for line in (*text.split("\n"), ""):
        is_fence = line.startswith("```")
        if paragraph and (is_fence or not line or line.startswith(_ITEMS)):
            yield _LINK.sub(r"\1 (docs/\2)", " ".join(paragraph))
            paragraph = []
        if is_fence:
            is_code_block = not is_code_block
        elif is_code_block or not line:
            yield f"    {line}".rstrip() if is_code_block else line
        else:
            paragraph.append(line.strip() if paragraph else line)


def _hint(code: str) -> str:
    """The nearest codes of the same kind."""
    number = int(code[3:])
    alike = [known for known in all_codes() if known[:3] == code[:3]]
    alike.sort(key=lambda known: abs(int(known[3:]) - number))
    if not alike:
        return f"codes begin with {listed(sorted(_kinds()))}, such as {all_codes()[0]}"
    return f"did you mean {alike[0]}? The next to it: {', '.join(alike[1:5])}"


def _explain_recipe(recipe: str, as_json: bool) -> None:
    # A code needs neither a project nor a plan.
    from stretto.cli.graph import terminal_width
    from stretto.cli.project import open_plan, open_project
    from stretto.report.diagrams import draw
    from stretto.report.prose import explain

    plan = open_plan(open_project(), recipe)
    width = terminal_width()
    if as_json:
        prose = explain(plan, 80)
        print_json({"ok": True, "workflow": plan.name, "text": prose, "graph": draw(plan, "ascii")})
        return
    say(explain(plan, min(width, 100), draw(plan, "ascii", width).rstrip("\n")))


def is_code(word: str) -> bool:
    """Whether a word has the form of a code, known or not."""
    found = _CODE.fullmatch(word)
    # A digit too many or too few is a slip in a code, not the name of a recipe.
    return found is not None and (len(found[2]) == 3 or found[1].upper() in _kinds())


def page_of(code: str) -> str | None:
    """The page as Markdown; None: there is no such code."""
    if code.upper() not in all_codes():
        return None
    text = (_folder() / f"{code.upper()}.md").read_text(encoding="utf-8")
    return _COMMENT.sub("", text).rstrip("\n")


def title_of(page: str) -> str:
    """`unknown dependency`, of a page whose heading is `# RCP104 · unknown dependency`."""
    return page.partition("\n")[0].partition(" · ")[2]


@cache
def all_codes() -> tuple[str, ...]:
    return tuple(sorted(file.stem for file in _folder().glob("*.md") if _PAGE.fullmatch(file.stem)))


def _kinds() -> set[str]:
    return {known[:3] for known in all_codes()}


@cache
def _folder() -> Path:
    """The pages of docs/problems: a wheel holds them, and a checkout has them in its docs."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "problems" / "pages"
    return installed if installed.is_dir() else package.parents[1] / "docs" / "problems"
