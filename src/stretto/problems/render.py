"""Show problems as text with a caret, or as JSON."""

from collections.abc import Iterable

from stretto.problems.errors import StrettoError
from stretto.problems.problem import Place, Problem
from stretto.text.visible import visible_line

_LONGEST_LINE = 120


def as_text(problem: Problem) -> str:
    """
    RCP104 step 'review' depends on 'drafts', which this recipe does not define
      ┌ news.yaml:14:19
    14│     depends_on: [drafts]
      │                  ^^^^^^ did you mean 'draft'?
    """
    lines = [f"{problem.code} {visible_line(problem.message)}"]
    if problem.place is None:
        if problem.file:
            lines.append(f"  ┌ {visible_line(problem.file)}")
        if problem.hint:
            lines.append(f"  = {visible_line(problem.hint)}")
        return "\n".join(lines)
    number = str(problem.place.line)
    margin = " " * len(number)
    where = f"{problem.file or '<text>'}:{problem.place.line}:{problem.place.column}"
    lines.append(f"{margin}┌ {visible_line(where)}")
    shown, caret = _window(problem.source_line, problem.place)
    lines.append(f"{number}│ {shown}")
    lines.append(f"{margin}│ {caret} {visible_line(problem.hint)}".rstrip())
    return "\n".join(lines)


def _window(line: str, place: Place) -> tuple[str, str]:
    """The part of the line around the place, and the caret under it."""
    start = 0
    if len(line) > _LONGEST_LINE:
        start = max(0, min(place.column - 1 - _LONGEST_LINE // 2, len(line) - _LONGEST_LINE))
    shown = visible_line(line[start : start + _LONGEST_LINE])
    before = shown[: place.column - 1 - start]
    # Tabs stay tabs and wide letters take two columns, so the caret stands under its word.
    indent = "".join("\t" if letter == "\t" else " " * _columns(letter) for letter in before)
    width = max(1, min(place.width, len(shown) - len(before)))
    under = shown[len(before) : len(before) + width]
    return shown, indent + "^" * max(1, sum(map(_columns, under)))


def _columns(letter: str) -> int:
    if letter < "\u0300":
        return 1
    from unicodedata import combining, east_asian_width

    if combining(letter):
        return 0
    return 2 if east_asian_width(letter) in "WF" else 1


def as_json(problem: Problem) -> dict[str, object]:
    return {
        "code": problem.code,
        "file": problem.file,
        "line": problem.place.line if problem.place else None,
        "column": problem.place.column if problem.place else None,
        "path": problem.path,
        "message": problem.message,
        "hint": problem.hint,
    }


def error_as_json(error: StrettoError) -> dict[str, object]:
    """The one shape of an error on every surface: CLI, HTTP, tools."""
    details: dict[str, object] = {}
    if error.problems:
        details["problems"] = [as_json(problem) for problem in error.problems]
    if error.hint:
        details["hint"] = error.hint
    return {
        "ok": False,
        "error": {"kind": error.kind, "message": error.message, "details": details},
    }


def error_as_text(error: StrettoError) -> str:
    blocks = [as_text(problem) for problem in error.problems]
    if not blocks:
        blocks = [error.message if not error.hint else f"{error.message}\n  = {error.hint}"]
    elif error.hint:
        blocks.append(f"  = {error.hint}")
    return "\n\n".join(blocks)


def count(problems: Iterable[Problem]) -> str:
    number = len(list(problems))
    return "1 problem" if number == 1 else f"{number} problems"
