"""Plain values as YAML that a person would write. In: JSON values. Out: text that reads back as the same.

Texts of several lines stand as blocks (`|`), other texts plain where no reader could take them for
something else, and as JSON writes them everywhere else.
"""

import json
import re
from collections.abc import Iterator, Mapping

from stretto.documents.node import FORBIDDEN
from stretto.vocabulary.json_value import Json

_INDENT = "  "
_PLAIN = re.compile(r"[A-Za-z][\w./ ()'-]*(?:[,:;] ?[\w./()'-]+)*[.?!]?", re.ASCII)
# Words that some reader of YAML takes for a truth value or for nothing.
_SPECIAL = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"])
# What would end a line for some readers, or cannot stand in a file at all.
_UNSAFE = re.compile(f"{FORBIDDEN.pattern}|[\r\x85\u2028\u2029\ufeff\t]")


def yaml_form(value: Json) -> str:
    return "\n".join(_lines(value, "")) + "\n"


def _lines(value: Json, indent: str) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _entry(f"{indent}{_scalar(str(key))}:", inner, indent)
    elif isinstance(value, list) and value:
        for item in value:
            if isinstance(item, dict | list) and item:
                first, *rest = _lines(item, indent + _INDENT)
                yield f"{indent}- {first.lstrip(' ')}"
                yield from rest
            else:
                yield from _entry(f"{indent}-", item, indent)
    else:
        yield indent + _scalar(value)


def _entry(head: str, value: Json, indent: str) -> Iterator[str]:
    inner = indent + _INDENT
    if isinstance(value, str) and _is_block(value):
        # Every line break at the end counts: `-` keeps none of them, `+` all.
        chomp = "+" if value.endswith("\n\n") else "" if value.endswith("\n") else "-"
        yield f"{head} |{chomp}"
        lines = value.removesuffix("\n").split("\n")
        yield from (inner + line if line else "" for line in lines)
    elif isinstance(value, dict) and value:
        yield head
        yield from _lines(value, inner)
    elif isinstance(value, list) and _is_short(value):
        yield f"{head} [{', '.join(map(_scalar, value))}]"
    elif isinstance(value, list) and value:
        yield head
        yield from _lines(value, inner)
    else:
        yield f"{head} {_scalar(value)}"


def _is_block(text: str) -> bool:
    # A first line that is empty or begins with a blank would need its indentation told.
    return "\n" in text and text[0] not in " \n" and text.strip() != "" and not _UNSAFE.search(text)


def _is_short(items: list[Json]) -> bool:
    words = [item for item in items if isinstance(item, str) and _is_plain(item, in_list=True)]
    return bool(items) and len(words) == len(items) and sum(map(len, words)) < 80


def _scalar(value: Json | Mapping[str, Json]) -> str:
    if isinstance(value, str) and _is_plain(value):
        return value
    said = json.dumps(value, ensure_ascii=False)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", said)


def _is_plain(text: str, in_list: bool = False) -> bool:
    if len(text) > 200 or text.lower() in _SPECIAL or text != text.strip():
        return False
    if in_list and not re.fullmatch(r"[A-Za-z][\w./-]*", text, re.ASCII):
        return False
    return _PLAIN.fullmatch(text) is not None and ": " not in text and not text.endswith(":")
