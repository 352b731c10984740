"""Find a secret as encoders write it, each in its own way. In: the secret. Out: where it stands in a text.

An encoder for URLs, JSON, HTML or a shell leaves letters and digits alone, and what it does to the others depends on
the program: `%2F` or `%2f`, `\\u0026`, `\\/` or `/`. So each other character may stand in any of these forms.
"""

import re
from functools import cached_property

_MARKS = ("%", "\\", "&")  # with one of these every escape begins
_RUNS = re.compile(r"[A-Za-z0-9]+")
_SHORTEST_RUN = 3
_LONGEST_FORM = 12  # characters of one escaped byte or letter
_OWN = {
    "&": ["&amp;"],
    "<": ["&lt;"],
    ">": ["&gt;"],
    '"': ["&quot;"],
    "'": ["&apos;", r"'\\''"],
    " ": [r"\+"],
}


def may_hold_escapes(text: str) -> bool:
    return any(mark in text for mark in _MARKS)


class EscapedSecret:
    def __init__(self, value: str, name: str) -> None:
        self.name = name
        self._value = value
        # What stands in every form: it is found faster than the pattern.
        self._run = max(_RUNS.findall(value), key=len, default="")

    @property
    def can_be_found(self) -> bool:
        """Of letters and digits alone there is only one form."""
        return len(self._run) >= _SHORTEST_RUN and self._run != self._value

    @property
    def longest(self) -> int:
        return sum(1 if _is_plain(each) else _LONGEST_FORM for each in self._value)

    def is_likely_in(self, text: str) -> bool:
        return self._run in text

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile("".join(map(_any_form, self._value)))


def _is_plain(letter: str) -> bool:
    return letter.isascii() and letter.isalnum()


def _any_form(letter: str) -> str:
    if _is_plain(letter):
        return letter
    raw = letter.encode("utf-8", "surrogatepass")
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    forms = [
        rf"\\{{0,4}}{re.escape(letter)}",
        "".join(f"%{byte:02x}" for byte in raw),
        "".join(rf"\\{{1,4}}x{byte:02x}" for byte in raw),
        "".join(rf"\\{{1,4}}u{units[at : at + 4]}" for at in range(0, len(units), 4)),
        f"&#0{{0,3}}{ord(letter)};",
        f"&#x0{{0,3}}{ord(letter):x};",
        *_OWN.get(letter, ()),
    ]
    return f"(?i:{'|'.join(forms)})"
