"""Replace a text by another, once, and keep the line endings. In: texts. Out: the new one, or why not."""

import re
from dataclasses import dataclass

from stretto.adapters.tools.checked import Failed

_LINE_END = re.compile(r"\r?\n")
_WORD = re.compile(r"\w+|[^\w\s]")
_MOST_SHOWN = 1_500
_MOST_LINES_SHOWN = 20
# What is looked through for lines that are near.
_MOST_COMPARED = 1_000_000
_MOST_LINES_COMPARED = 20_000


@dataclass(frozen=True, slots=True)
class Replacement:
    old: str
    new: str
    is_for_all: bool = False


def replaced(text: str, change: Replacement, most: int) -> tuple[str, int]:
    """The text with the change made, and how often. Raises Failed with what would help; a text of
    more than `most` characters is not even made."""
    if not change.old:
        raise Failed("old_string is empty; to make a file, or to replace it, use Write")
    if change.old == change.new:
        raise Failed("old_string and new_string are the same")
    old, new = _in_endings_of(text, change)
    count = text.count(old)
    if count == 0:
        raise Failed(f"old_string does not occur in the file.{_nearest(text, change.old)}")
    if count > 1 and not change.is_for_all:
        raise Failed(
            f"old_string occurs {count} times, at lines {_lines_of(text, old)}; add what stands"
            " around the one you mean, or set replace_all"
        )
    if len(text) + count * (len(new) - len(old)) > most:
        raise Failed(f"the file would have more than {most:,} characters")
    return text.replace(old, new), count


def _in_endings_of(text: str, change: Replacement) -> tuple[str, str]:
    """Models write \\n. Where every line of the file ends in \\r\\n, that is what they mean."""
    ends = text.count("\n")
    if ends and text.count("\r\n") == ends:
        return _LINE_END.sub("\r\n", change.old), _LINE_END.sub("\r\n", change.new)
    is_mixed = "\r\n" in text and change.old not in text
    if is_mixed and "\r" not in change.old:
        # The endings differ within the file: those of the place are kept.
        old = change.old.replace("\n", "\r\n")
        return old, change.new.replace("\n", "\r\n")
    return change.old, change.new


def _lines_of(text: str, old: str) -> str:
    lines, at, line = list[str](), 0, 1
    while len(lines) < 10 and (found := text.find(old, at)) >= 0:
        line += text.count("\n", at, found)
        lines.append(str(line))
        line += old.count("\n")
        at = found + len(old)
    return ", ".join(lines) + (", …" if text.find(old, at) >= 0 else "")


def _nearest(text: str, old: str) -> str:
    """The lines of the file that have the most words in common with what was looked for."""
    wanted_lines = [line for line in old.splitlines() if line.strip()]
    lines = text[:_MOST_COMPARED].splitlines()[:_MOST_LINES_COMPARED]
    if not wanted_lines or not lines:
        return ""
    wanted = frozenset(_WORD.findall(wanted_lines[0][:500]))
    scores = [_likeness(wanted, line) for line in lines]
    best = max(scores)
    if best < 0.3:
        return " Nothing in it is near; read the file again."
    at = scores.index(best)
    height = min(old.count("\n") + 1, _MOST_LINES_SHOWN)
    near = "\n".join(lines[at : at + height])[:_MOST_SHOWN]
    return f" The nearest is at line {at + 1}, letter by letter:\n{near}"


def _likeness(wanted: frozenset[str], line: str) -> float:
    words = frozenset(_WORD.findall(line[:500]))
    return len(wanted & words) / max(1, len(wanted | words))
