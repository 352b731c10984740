"""Read the JSON of an answer. In: a model's text. Out: the value, or what is wrong with it.

Like `output.field` in a template, it takes JSON in a fence or in prose. Unlike it, it never takes a
piece of something larger that is broken: `{"items": [{"a": 1}, {"b":` is no answer of {"a": 1}.
"""

import json
import math
import re
from dataclasses import dataclass
from typing import NoReturn

from stretto.templates.json_text import find_json
from stretto.templates.value import MISSING
from stretto.text.short import show_json
from stretto.vocabulary.values import Json

_MARKED_FENCE = re.compile(r"(?msi)^[ \t]*```[ \t]*json\b[^\n`]*\n(.*?)^[ \t]*```")
_BEGINNING = re.compile(r'\{[ \t\n\r]*+["}]|\[[ \t\n\r]*+[\[{"]')
_BRACKET = re.compile(r"[\[\]{}]")
# A list of numbers in prose cites, and `- [ ]` is a box to tick, unless it has a line to itself or
# ends one after a colon.
_NUMBERS_ALONE = re.compile(r"(?m)(?:^|:)[ \t]*\[[\d\s,-]*+\][ \t.]*$")
_MOST_PIECES = 20  # how many broken pieces are passed over before the answer is given up on
_MOST_DIGITS = 4300  # Python reads no longer number


@dataclass(frozen=True, slots=True)
class NoJson:
    reason: str


def read_json(text: str) -> Json | NoJson:
    if _fault(text) is None:
        value = find_json(text)
        return NoJson("its JSON is nested too deeply") if value is MISSING else value
    marked = [fence[1] for fence in _MARKED_FENCE.finditer(text)]
    if not marked:
        return _in_prose(text)
    faults = [_fault(body) for body in marked]
    return NoJson(faults[0] or "") if all(faults) else _found(text)


def _in_prose(text: str) -> Json | NoJson:
    rest = text
    first: NoJson | None = None
    for _ in range(_MOST_PIECES):
        beginning = _BEGINNING.search(rest)
        if beginning is None:
            break
        fault = _fault_at(rest, beginning.start())
        if fault is None:
            return _found(rest)
        first = first or NoJson(fault)
        # A set {"a", "b"} that someone mentions is passed over; what never closes is the answer.
        end = _closing(rest, beginning.start())
        if end is None:
            break
        rest = rest[end:]
    return first or _found(text)


def _found(text: str) -> Json | NoJson:
    value = find_json(text)
    if value is MISSING:
        return NoJson("it holds no JSON: answer with JSON alone, without any words around it")
    is_citation = isinstance(value, list) and all(isinstance(item, int) for item in value)
    if is_citation and "```" not in text and not _NUMBERS_ALONE.search(text):
        said = show_json(value)
        return NoJson(f"it is prose in which only {said} could be JSON: answer with JSON alone")
    return value


class _NotJson(Exception):
    """What Python's reader takes although it is no JSON."""


def _refuse(constant: str) -> NoReturn:
    raise _NotJson(f"its JSON holds {constant[:20]}, which JSON does not have")


def _float(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refuse(digits)


def _int(digits: str) -> float:
    # The number itself does not matter here, only whether find_json will take it.
    return 0 if len(digits) <= _MOST_DIGITS else _refuse(digits)


_DECODER = json.JSONDecoder(parse_int=_int, parse_float=_float, parse_constant=_refuse)


def _fault(text: str) -> str | None:
    """What is wrong with a text that should be JSON and nothing else."""
    try:
        _DECODER.decode(text)
    except json.JSONDecodeError as fault:
        return _broken(text, fault)
    except _NotJson as fault:
        return str(fault)
    except RecursionError:
        return "its JSON is nested too deeply"
    return None


def _fault_at(text: str, start: int) -> str | None:
    """What is wrong with the JSON that begins here, whatever comes after it."""
    # Cut, so that lines and columns count from the bracket.
    begun = text[start:]
    try:
        _DECODER.raw_decode(begun)
    except json.JSONDecodeError as fault:
        return _broken(begun, fault)
    except _NotJson as fault:
        return str(fault)
    except RecursionError:
        return "its JSON is nested too deeply"
    return None


def _closing(text: str, start: int) -> int | None:
    """Where the bracket that opens here closes, as far as brackets alone tell."""
    depth = 0
    for bracket in _BRACKET.finditer(text, start):
        depth += 1 if bracket[0] in "[{" else -1
        if depth == 0:
            return bracket.end()
    return None


def _broken(text: str, fault: json.JSONDecodeError) -> str:
    if fault.pos >= len(text.rstrip()) or fault.msg.startswith("Unterminated string"):
        return "its JSON ends before it is complete: close every bracket and quote"
    around = text[max(0, fault.pos - 20) : fault.pos + 20]
    place = f"line {fault.lineno}, column {fault.colno}"
    return f"its JSON is broken at {place} ({fault.msg}), near {show_json(around)}"
