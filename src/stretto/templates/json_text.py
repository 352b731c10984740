"""The JSON that an agent's text holds. In: any text. Out: the value found, or MISSING."""

import json
import re
from itertools import islice
from typing import NoReturn

from stretto.templates.value import MISSING, Json, Missing

DEEPEST_JSON = 100

# The closing fence stands on its own line: inside JSON a line break is escaped, so backticks in
# a text never end the fence around it.
_FENCE = r"(?ms)^[ \t]*```[ \t]*(\w*)[^\n`]*\n(.*?)^[ \t]*```"
_BEGINNING = r'\{[ \t\n\r]*+["}]|\[[ \t\n\r]*+[\[\]{"0-9tfn-]'

# What is spent on hostile text before giving up; answers of real agents are far below.
_MOST_FENCES = 100
_MOST_TRIES = 300
_MOST_READINGS = 3  # how many times the whole text may be read


def find_json(text: str) -> Json | Missing:
    """All of the text; else a fence, one marked `json` first; else the first {…} or […] in it."""
    whole = _parse(text)
    if whole is not MISSING:
        return whole
    fenced = _in_fence(text)
    return _in_prose(text) if fenced is MISSING else fenced


def _in_fence(text: str) -> Json | Missing:
    found = islice(re.finditer(_FENCE, text), _MOST_FENCES)
    fences = [(fence[1].lower() == "json", fence[2]) for fence in found]
    for is_marked, body in sorted(fences, key=lambda fence: not fence[0]):
        value = _parse(body)
        # A lone word or number in an unmarked fence is code or a quotation, not an answer.
        if value is not MISSING and (is_marked or isinstance(value, dict | list)):
            return value
    return MISSING


def _in_prose(text: str) -> Json | Missing:
    """The first one that is more than a footnote: `[1]` and `[2, 3]` cite, they do not answer."""
    left = _MOST_READINGS * len(text)
    footnote: Json | Missing = MISSING
    end = 0
    for beginning in islice(re.finditer(_BEGINNING, text), _MOST_TRIES):
        start = beginning.start()
        if start < end:
            continue
        value: Json
        try:
            value, end = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            left -= error.pos - start
        except RecursionError:
            return MISSING
        except ValueError:  # a number that is none, somewhere
            left -= len(text) - start
        else:
            if _is_too_deep(value):
                return MISSING
            if not _is_footnote(value):
                return value
            footnote = value if footnote is MISSING else footnote
        if left < 0:
            break
    return footnote


def _is_footnote(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(item, int) for item in value)


def _parse(text: str) -> Json | Missing:
    try:
        value: Json = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return MISSING
    return MISSING if _is_too_deep(value) else value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _finite(number: str) -> float:
    value = float(number)
    return _refuse(number) if value in (float("inf"), float("-inf")) else value


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)


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
    if isinstance(value, dict):
        return [child for child in value.values() if isinstance(child, dict | list)]
    if isinstance(value, list):
        return [child for child in value if isinstance(child, dict | list)]
    return []
