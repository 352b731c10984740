"""Write a pattern as the text of a glob. In: a Pattern. Out: text that matches at least as much.

Exact but for characters that a glob cannot hold (a backslash, control characters, bytes that are no
text) and for character sets with odd ends: those are written as `?`.
"""

import re

from stretto.plan.glob_overlap import ANY, CharSet, Pattern, Segment, Wild

_WILD = frozenset("*?[{")
_UNWRITABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\\\ud800-\udfff]")
_LOOKS_OUTSIDE = re.compile(r"~|[A-Za-z]:")


def text_of(pattern: Pattern) -> str:
    """Of a plain path without the `/**` that it means anyway."""
    is_plain = all(isinstance(part, str) and part == _segment(part) for part in pattern[:-1])
    parts = pattern[:-1] if is_plain and pattern[-1:] == (ANY,) else pattern
    text = "/".join("**" if isinstance(part, Wild) else _segment(part) for part in parts)
    # `~` and `c:` at the beginning would say that it leaves the workspace.
    if _LOOKS_OUTSIDE.match(text):
        text = f"[{text[0]}]{text[1:]}" + ("/**" if len(parts) < len(pattern) else "")
    return text or "**"


def _segment(segment: Segment) -> str:
    if isinstance(segment, str):
        return "".join(map(_char, segment))
    return "".join("*" if letter is ANY else _set(letter) for letter in segment)


def _set(chars: CharSet) -> str:
    if len(chars) == 1 and chars[0][0] == chars[0][1]:
        return _char(chr(chars[0][0]))
    ends = [(chr(low), chr(high)) for low, high in chars]
    if not all(low.isalnum() and high.isalnum() for low, high in ends):
        return "?"
    return f"[{''.join(low if low == high else f'{low}-{high}' for low, high in ends)}]"


def _char(char: str) -> str:
    if _UNWRITABLE.match(char):
        return "?"
    return f"[{char}]" if char in _WILD else char
