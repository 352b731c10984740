"""Make text and lists of names fit the place where they are shown.

Whatever a model, a file or a server wrote may have any length. These functions keep a part of it and
say how much was left out, so that a reader never takes the part for the whole.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from unicodedata import category, east_asian_width

from stretto.text.visible import one_line
from stretto.vocabulary.json_value import Json

_LONGEST_TEXT = 2_000
_LONGEST_KEY = 200
_MOST_ELEMENTS = 100
_DEEPEST = 8
_LONGEST_CALL = 120
_LONGEST_WORD = 200  # that a cut leaves out whole
# Which argument says best what a tool call does, in this order; else the first that is short.
_TELLING = ("file_path", "path", "pattern", "command", "url", "query")


def shorten(text: str, most: int) -> str:
    """Keep the beginning and say how many characters follow."""
    left_out = len(text) - most
    return text if left_out <= 0 else f"{text[:most]} … ({left_out} characters more)"


def cut_middle(text: str, most: int, head: int | None = None) -> str:
    """Keep the beginning, which says what the text is, and the end, which says how it ended, with a
    note of what is missing between them. `head`: how much of the beginning; two thirds by default.

    Words at the cut are left out whole: half of a secret would not be found in what is left.
    """
    if len(text) <= most:
        return text
    head = most - most // 3 if head is None else head
    start, end = _before_word(text, head), _after_word(text, len(text) - (most - head))
    return f"{text[:start]}\n[… {end - start:,} characters left out …]\n{text[end:]}"


def _before_word(text: str, at: int) -> int:
    """Where the word begins that a cut would split, if that is near."""
    near = at - min(_LONGEST_WORD, at // 2)
    while near < at and not (text[at].isspace() or text[at - 1].isspace()):
        at -= 1
    return at


def _after_word(text: str, at: int) -> int:
    """Where the word ends that a cut would split, if that is near."""
    near = at + min(_LONGEST_WORD, (len(text) - at) // 2)
    while at < near and not (text[at].isspace() or text[at - 1].isspace()):
        at += 1
    return at


def counted(number: int, noun: str) -> str:
    """`1 retry`, `2,000 retries`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"


def kind_of(value: object) -> str:
    """`an int`, `a list`: for what was given where something else is wanted."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def shorten_arguments(arguments: Mapping[str, Json]) -> dict[str, Json]:
    """The arguments of a tool call as the journal keeps them, whatever a model wrote."""
    return _shorten_object(arguments, 1)


def _shorten_json(value: Json, depth: int) -> Json:
    if isinstance(value, str):
        return shorten(value, _LONGEST_TEXT)
    if isinstance(value, list | dict) and depth >= _DEEPEST:
        return "…"
    if isinstance(value, list):
        return [_shorten_json(each, depth + 1) for each in value[:_MOST_ELEMENTS]]
    if isinstance(value, dict):
        return _shorten_object(value, depth + 1)
    return value


def _shorten_object(value: Mapping[str, Json], depth: int) -> dict[str, Json]:
    some = list(value.items())[:_MOST_ELEMENTS]
    return {shorten(key, _LONGEST_KEY): _shorten_json(each, depth) for key, each in some}


def show_json(value: Json, most: int = 80) -> str:
    """A value as JSON on one line of at most `most` characters, for a message."""
    try:
        written = json.dumps(_prune(value, most, 4), ensure_ascii=False)
    except (ValueError, RecursionError):  # an integer with too many digits
        written = "a value that cannot be shown"
    written = written.encode("utf-8", "replace").decode("utf-8")
    return written if len(written) <= most else f"{written[: most - 1]}…"


def _prune(value: Json, longest: int, depth: int) -> Json:
    """Drop what the line has no room for: writing out megabytes for one line takes seconds."""
    if isinstance(value, str):
        return value[:longest]
    if depth == 0 and isinstance(value, dict | list):
        return "…"
    if isinstance(value, list):
        return [_prune(inner, longest, depth - 1) for inner in value[:longest]]
    if isinstance(value, dict):
        some = list(value.items())[:longest]
        return {key[:longest]: _prune(inner, longest, depth - 1) for key, inner in some}
    return value


def describe_call(tool: str, arguments: Mapping[str, Json]) -> str:
    """`Read src/billing.py`: a call with the argument that says best what it does."""
    texts = {name: each for name, each in arguments.items() if isinstance(each, str) and each}
    short = (name for name, text in texts.items() if len(text) <= _LONGEST_CALL)
    name = next((name for name in _TELLING if name in texts), None) or next(short, None)
    if name is None:
        return tool
    line = " ".join(texts[name][: 2 * _LONGEST_CALL].split())
    return f"{tool} {line}" if len(line) <= _LONGEST_CALL else f"{tool} {line[:_LONGEST_CALL]}…"


def list_names(names: Sequence[str], most: int = 8) -> str:
    """`'a', 'b' and 3 more`."""
    some = ", ".join(f"'{name[:60]}'" for name in names[:most])
    return f"{some} and {len(names) - most} more" if len(names) > most else some


def relative_path(file: Path, folder: Path) -> str:
    """The path from a folder on, if the file lies in it."""
    return str(file.relative_to(folder)) if file.is_relative_to(folder) else str(file)


def name_line(text: str) -> str:
    """An id or a name as one line that is not empty; both may hold anything."""
    return one_line(text) or "?"


def columns(text: str) -> int:
    """The width of a text on a terminal: some scripts take two columns a character."""
    if text.isascii():
        return len(text)
    return sum(_character_columns(character) for character in text)


def fit(text: str, most: int) -> str:
    """Drop the end beyond `most` columns: an error says first what it is."""
    if columns(text) <= most:
        return text
    kept, room = 0, most - 1
    for character in text:
        room -= columns(character)
        if room < 0:
            break
        kept += 1
    return f"{text[:kept]}…" if most > 0 else ""


def fit_end(text: str, most: int) -> str:
    """Drop the beginning beyond `most` columns: the last words are the newest."""
    if columns(text) <= most:
        return text
    kept, room = len(text), most - 1
    while kept and room >= columns(text[kept - 1]):
        kept -= 1
        room -= columns(text[kept])
    return f"…{text[kept:]}" if most > 0 else ""


def fit_name(text: str, most: int) -> str:
    """Drop the middle beyond `most` columns: names differ at their beginning and at their end."""
    if columns(text) <= most:
        return text
    head, tail = "", ""
    room = most - 1
    for first, last in zip(text, reversed(text), strict=True):
        if columns(head + first + tail) > room:
            break
        head += first
        if columns(head + last + tail) > room:
            break
        tail = last + tail
    return f"{head}…{tail}" if most > 0 else ""


def wrap(line: str, width: int, breaks_words: bool = False) -> list[str]:
    """At blanks where there are any. A word that is longer than the width, such as a path, stays
    whole, so that it can be copied, unless `breaks_words`; scripts without blanks are broken
    anywhere."""
    found, width = [], max(1, width)
    while columns(line) > width:
        end, room = 0, width
        while room >= columns(line[end]):
            room -= columns(line[end])
            end += 1
        end = max(1, end)
        blank = line.rfind(" ", 1, end + 1)
        if blank <= 0 and not breaks_words and line[: end + 1].isascii():
            blank = line.find(" ", end)
            if blank < 0:
                break
        found.append(line[:blank] if blank > 0 else line[:end])
        line = line[blank + 1 :] if blank > 0 else line[end:]
    return [*found, line]


_HANGING = re.compile(r"\s*(?:[|│] ?\s*)?(?:(?:[-*•=]|\d{1,3}[.)]) +)?")
_LONGEST_PROSE = 20_000  # columns of a line; nobody reads more of one, and breaking it takes long


def wrap_prose(text: str, width: int) -> str:
    """Break lines that are longer than `width` between words. What stands before the first word of
    a line, a margin or the mark of a list, makes the margin of what follows. 0: leave it all."""
    return "\n".join(_wrap_hanging(line, width) for line in text.split("\n"))


def _wrap_hanging(line: str, width: int) -> str:
    # A tab is as wide as the terminal says.
    if not 0 < width < len(line.encode()) or len(line) > _LONGEST_PROSE or "\t" in line:
        return line
    found = _HANGING.match(line)
    before = found[0] if found else ""
    margin = "".join(each if each in "|│" else " " for each in before)
    if columns(margin) > width // 2:
        before = margin = ""
    return before + f"\n{margin}".join(wrap(line[len(before) :], width - columns(margin)))


def _character_columns(character: str) -> int:
    if category(character) in ("Mn", "Me"):
        return 0  # an accent on the character before it
    return 2 if east_asian_width(character) in "WF" else 1


def closest(name: str, known: Iterable[str]) -> str | None:
    # difflib is imported only once something is wrong: a good file should not pay for it.
    from difflib import get_close_matches

    by_lower = {candidate.lower(): candidate for candidate in known if candidate != name}
    lowered = name.lower()
    squeezed = {key.replace("-", "").replace("_", ""): key for key in by_lower}
    same_letters = squeezed.get(lowered.replace("-", "").replace("_", ""))
    if same_letters is not None:
        return by_lower[same_letters]
    # A very long name is no typing error, and comparing it takes quadratic time.
    if len(name) > 64:
        return None
    found = get_close_matches(lowered, [key for key in by_lower if len(key) <= 64], 1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """The hint for a misspelt name, or None when nothing is near."""
    guess = closest(name, known)
    return f"did you mean '{guess}'?" if guess else None


def listed(names: Iterable[str], most: int = 8) -> str:
    """`a, b, c and 4 more`, for hints that say what there is."""
    all_names = list(names)
    shown = ", ".join(all_names[:most])
    return f"{shown} and {len(all_names) - most} more" if len(all_names) > most else shown
