"""The JSON in an agent's text: all of it, a fence, or an object or list among words.

Templates, loops, maps and validation all read it here, so one text means one value everywhere. It
is never a piece of something larger that is broken: `{"items": [{"a": 1}, {"b":` does not say
{"a": 1}.
"""

import json
import re
from enum import Enum
from itertools import islice
from typing import Final, NoReturn

from msgspec import Struct

from stretto.text.short import show_json
from stretto.vocabulary.json_value import Json


class Missing(Enum):
    """Nothing there. Not null: a field that holds null is there. An enum, so `is` narrows."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing.MISSING


def kind_of(value: Json) -> str:
    """The kind of a value, as an author would say it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case dict():
            return "an object"


DEEPEST_JSON = 100

# The closing fence stands on its own line: inside JSON a line break is escaped, so backticks in
# a text never end the fence around it.
FENCE = re.compile(r"(?ms)^[ \t]*```[ \t]*(\w*)[^\n`]*\n(.*?)^[ \t]*```")
_BEGINNING = re.compile(r'\{[ \t\n\r]*+["}]|\[[ \t\n\r]*+[\[\]{"0-9tfn-]')
_BRACKET = re.compile(r"[\[\]{}]")
# A list of numbers in prose cites, and `- [ ]` is a box to tick, unless it has a line to itself or
# ends one after a colon.
_NUMBERS_ALONE = re.compile(r"(?m)(?:^|:)[ \t]*\[[\d\s,-]*+\][ \t.]*$")

# What is spent on hostile text before giving up; answers of real agents are far below.
_MOST_FENCES = 100
_MOST_TRIES = 300
_MOST_READINGS = 3  # how many times the whole text may be read
_TOO_DEEP = "its JSON is nested too deeply"


class NoJson(Struct, frozen=True):
    reason: str  # tells a model what to change


def find_json(text: str) -> Json | Missing:
    found = read_json(text)
    return MISSING if isinstance(found, NoJson) else found


def read_json(text: str) -> Json | NoJson:
    """All of the text; else a fence, one marked `json` first; else the first {…} or […] in it."""
    whole = _parse(text)
    if not isinstance(whole, NoJson):
        return whole
    fenced = _in_fence(text)
    return _in_prose(text) if fenced is MISSING else fenced


def _in_fence(text: str) -> Json | NoJson | Missing:
    fences = [(fence[1].lower(), fence[2]) for fence in islice(FENCE.finditer(text), _MOST_FENCES)]
    marked = [_parse(body) for mark, body in fences if mark == "json"]
    plain = [_parse(body) for mark, body in fences if mark != "json"]
    # A lone word or number in an unmarked fence is code or a quotation, not an answer.
    good = [each for each in marked if not isinstance(each, NoJson)]
    good += [each for each in plain if isinstance(each, dict | list)]
    return next(iter([*good, *marked]), MISSING)


def _in_prose(text: str) -> Json | NoJson:
    numbers: Json | None = None
    broken: list[NoJson] = []
    end, left = 0, _MOST_READINGS * len(text)
    for beginning in islice(_BEGINNING.finditer(text), _MOST_TRIES):
        start = beginning.start()
        if start < end or left < 0:
            continue
        value, end = _parse_at(text, start)
        left -= end - start
        if not isinstance(value, NoJson):
            # `[1]` and `[2, 3]` cite, they do not answer.
            if not isinstance(value, list) or not all(isinstance(item, int) for item in value):
                return value
            numbers = value if numbers is None else numbers
        elif text[start] == "{" or beginning[0][-1] in '[{"':
            # A set {"a", "b"} that someone mentions is passed over; what never closes is the answer.
            broken.append(value)
            end = _find_closing(text, start)
            if end < 0:
                break
        else:
            end = 0  # a bracket with a number behind it, as in `[5" pipe]`
    return broken[0] if broken else _numbers_in(text, numbers)


def _numbers_in(text: str, numbers: Json | None) -> Json | NoJson:
    if numbers is None:
        return NoJson("it holds no JSON: answer with JSON alone, without any words around it")
    if _NUMBERS_ALONE.search(text):
        return numbers
    shown = show_json(numbers)
    return NoJson(f"it is prose in which only {shown} could be JSON: answer with JSON alone")


def _find_closing(text: str, start: int) -> int:
    """Behind the bracket that closes the one here, as far as brackets alone tell; -1: none does."""
    depth = 0
    for bracket in _BRACKET.finditer(text, start):
        depth += 1 if bracket[0] in "[{" else -1
        if depth == 0:
            return bracket.end()
    return -1


class _NotJson(Exception):
    """Something that Python's reader takes although it is no JSON."""


def _refuse(constant: str) -> NoReturn:
    raise _NotJson(f"its JSON holds {constant[:20]}, which JSON does not have")


def _finite(number: str) -> float:
    value = float(number)
    return _refuse(number) if value in (float("inf"), float("-inf")) else value


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)


def _parse(text: str) -> Json | NoJson:
    """A text that should be JSON and nothing else."""
    start = len(text) - len(text.lstrip(" \t\n\r"))
    value, end = _parse_at(text, start)
    if isinstance(value, NoJson) or not text[end:].strip(" \t\n\r"):
        return value
    return NoJson(_describe(json.JSONDecodeError("Extra data", text, end), text, start))


def _parse_at(text: str, start: int) -> tuple[Json | NoJson, int]:
    """The JSON that begins here, and where it ends or was given up on."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as fault:
        return NoJson(_describe(fault, text, start)), fault.pos
    except _NotJson as fault:
        return NoJson(str(fault)), len(text)
    except RecursionError:
        return NoJson(_TOO_DEEP), len(text)
    except ValueError:  # a number with more digits than Python converts
        return NoJson("its JSON holds a number with thousands of digits"), len(text)
    return (NoJson(_TOO_DEEP) if _is_too_deep(value) else value), end


def _describe(fault: json.JSONDecodeError, text: str, start: int) -> str:
    if fault.pos >= len(text.rstrip()) or fault.msg.startswith("Unterminated string"):
        return "its JSON ends before it is complete: close every bracket and quote"
    line = text.count("\n", start, fault.pos) + 1
    column = fault.pos - max(text.rfind("\n", start, fault.pos) + 1, start) + 1
    around = text[max(start, fault.pos - 20) : fault.pos + 20]
    place = f"line {line}, column {column}"
    return f"its JSON is broken at {place} ({fault.msg}), near {show_json(around)}"


def _is_too_deep(value: Json) -> bool:
    # By our own measure: Python's depends on how deep the caller's stack is, and one text must
    # mean one value wherever it is read.
    level = [value]
    for _ in range(DEEPEST_JSON):
        level = [child for parent in level for child in _containers_in(parent)]
        if not level:
            return False
    return True


def _containers_in(value: Json) -> list[Json]:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [child for child in inside if isinstance(child, dict | list)]
