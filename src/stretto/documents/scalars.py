"""Plain scalars by YAML 1.2's core schema. In: the text. Out: null, boolean, number or text."""

import math
import re

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INT = re.compile(r"[-+]?[0-9]{1,300}\Z")
_BASED = re.compile(r"0o[0-7]{1,100}\Z|0x[0-9a-fA-F]{1,100}\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_STARTS_A_NUMBER = frozenset("+-.0123456789")


def plain_scalar(text: str) -> bool | int | float | str | None:
    # `yes`, `on` and 12:30 are text here: YAML 1.1 turned country codes into booleans.
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _STARTS_A_NUMBER:
        return text
    if _INT.match(text):
        return int(text)
    if _BASED.match(text):
        return int(text[2:], 8 if text[1] == "o" else 16)
    if _FLOAT.match(text) and math.isfinite(number := float(text)):
        return number
    # Infinities and numbers past every double stay text: JSON could not keep them.
    return text
