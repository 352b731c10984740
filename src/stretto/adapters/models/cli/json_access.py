"""Read values out of JSON that another program wrote.

What is missing or of another type is read as empty: a new version of a CLI may say more or less.
"""

import json
import math
import re

from stretto.vocabulary.json_value import Json

_MOST = 10**12  # tokens or bytes; a larger number is an error
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def json_line(line: bytes) -> dict[str, Json] | None:
    """None for what is no JSON object: CLIs print words between their events."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        read = json.loads(line.decode(errors="replace"), parse_constant=_infinity)
    except (ValueError, RecursionError):
        return None
    if not isinstance(read, dict):
        return None
    # Neither a file nor a database can hold a lone surrogate.
    clean = _without_surrogates(read) if b"\\ud" in line.lower() else read
    assert isinstance(clean, dict)
    return clean


def at(value: Json, *path: str) -> Json:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def text_at(value: Json, *path: str) -> str:
    found = at(value, *path)
    return found if isinstance(found, str) else ""


def object_at(value: Json, *path: str) -> dict[str, Json]:
    found = at(value, *path)
    return found if isinstance(found, dict) else {}


def list_at(value: Json, *path: str) -> list[Json]:
    found = at(value, *path)
    return found if isinstance(found, list) else []


def number_at(value: Json, *path: str) -> float:
    """Never negative."""
    found = at(value, *path)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= _MOST:
        return 0.0
    return float(found)


def count_at(value: Json, *path: str) -> int:
    return int(number_at(value, *path))


def size_of(value: Json) -> int:
    """In bytes, as text."""
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value)
    return len(text.encode(errors="replace"))


def words_of(value: Json) -> str:
    """The text in a message's content, however it is wrapped."""
    if isinstance(value, list):
        return "\n".join(filter(None, map(words_of, value)))
    return value if isinstance(value, str) else text_at(value, "text")


def _infinity(_: str) -> float:
    return math.inf  # larger than anything we count, so it is read as 0


def _without_surrogates(value: Json) -> Json:
    match value:
        case str():
            return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
        case list():
            return [_without_surrogates(each) for each in value]
        case dict():
            return {
                str(_without_surrogates(key)): _without_surrogates(each)
                for key, each in value.items()
            }
        case _:
            return value
