"""Show problems as text with a caret, or as JSON."""

from collections.abc import Iterable

from stretto.problems.errors import StrettoError
from stretto.problems.problem import Place, Problem
from stretto.text.short import columns, wrap_prose
from stretto.text.visible import visible_line

_LONGEST_LINE = 120
_SHORTEST_LINE = 20


def as_text(problem: Problem, room: int = 0) -> str:
    """`room`: how many columns the terminal has, which no line exceeds. 0: there is no terminal.

    RCP104 step 'review' depends on 'drafts', which this recipe does not define
      ┌ news.yaml:14:19
    14│     depends_on: [drafts]
      │                  ^^^^^^ did you mean 'draft'?
    """
    lines = [_prose(f"{problem.code} {visible_line(problem.message)}", room)]
    if problem.place is None:
        if problem.file:
            lines.append(f"  ┌ {visible_line(problem.file)}")
        if problem.hint:
            lines.append(_prose(f"  = {visible_line(problem.hint)}", room))
        return "\n".join(lines)
    number = str(problem.place.line)
    margin = " " * len(number)
    where = f"{problem.file or '<text>'}:{problem.place.line}:{problem.place.column}"
    lines.append(f"{margin}┌ {visible_line(where)}")
    longest = _LONGEST_LINE if not room else max(_SHORTEST_LINE, room - len(margin) - 2)
    shown, caret = _window(problem.source_line, problem.place, min(longest, _LONGEST_LINE))
    lines.append(f"{number}│ {shown}")
    pointing = f"{margin}│ {caret} {visible_line(problem.hint)}".rstrip()
    if not room or columns(pointing) <= room or not problem.hint:
        lines.append(pointing)
    else:
        lines += [f"{margin}│ {caret}", _prose(f"{margin}= {visible_line(problem.hint)}", room)]
    return "\n".join(lines)


def _prose(line: str, room: int) -> str:
    return wrap_prose(line, room) if room else line


def _window(line: str, place: Place, longest: int) -> tuple[str, str]:
    """The part of the line around the place, and the caret under it."""
    start = 0
    if columns(line) > longest:
        longest = longest * len(line) // columns(line)  # of wide characters fewer fit
        start = max(0, min(place.column - 1 - longest // 2, len(line) - longest))
    shown = visible_line(line[start : start + longest])
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


def error_as_text(error: StrettoError, room: int = 0) -> str:
    """`room`: as in as_text."""
    blocks = [as_text(problem, room) for problem in error.problems]
    if not blocks:
        said = error.message if not error.hint else f"{error.message}\n  = {error.hint}"
        blocks = [_prose(said, room)]
    elif error.hint:
        blocks.append(_prose(f"  = {error.hint}", room))
    return "\n\n".join(blocks)


def count(problems: Iterable[Problem]) -> str:
    number = len(list(problems))
    return "1 problem" if number == 1 else f"{number} problems"
