"""Whether two values mean the same: one decision for expressions, switches, loops and rules.

Models answer "85", "True" and "yes\\n". Outer blanks count for nothing, and text that spells a number
or a truth value means that value. Text that differs only in capitals or in outer punctuation is a near
miss: it is undecided, with a reason, and never silently the same or silently different.
"""

import re
from math import isfinite
from typing import TypeGuard

from msgspec import Struct

from stretto.templates.json_text import kind_of
from stretto.text.short import show_json
from stretto.vocabulary.json_value import Json

# Pairs looked at before two values count as too large to compare.
MOST_PAIRS = 100_000
# More digits than any number that can be reckoned with.
_LONGEST_NUMBER = 400
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)((?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)")
_TRUTHS = {"true": True, "false": False}
# Characters that are not blanks to Python, but show nothing.
_INVISIBLE = "\ufeff\u200b\u200c\u200d\u2060\u00ad\x00"
_BLANKS = " \t\n\r\f\v\u00a0\u2002\u2003\u2009\u202f\u3000\x85\u2028\u2029" + _INVISIBLE
# What models put around a word. No signs: +1 is not -1, and C# is not C.
_AROUND = _BLANKS + ".,;:!?…。、！？\"'“”„‘’«»‹›()[]{}<>*_~`"
_MARK_BEFORE = re.compile(r"(?:[#>•·–—-]+\s+)+")  # of a heading, a quotation or a list


class Undecided(Struct, frozen=True):
    reason: str


def trimmed(text: str) -> str:
    return text.strip(_BLANKS)


def spelled_truth(value: Json) -> bool | None:
    """The truth value that a text spells, in any capitals; None for what is no text."""
    return _TRUTHS.get(trimmed(value).lower()) if isinstance(value, str) else None


def spelled_number(value: Json) -> int | float | None:
    if not isinstance(value, str) or len(value) > _LONGEST_NUMBER:
        return None
    written = _JSON_NUMBER.fullmatch(trimmed(value))
    if written is None:
        return None
    number = float(written[0]) if written[1] else int(written[0])
    return number if isinstance(number, int) or isfinite(number) else None


def is_number(value: Json) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def as_one_kind(left: Json, right: Json) -> tuple[Json, Json]:
    """Text beside a number or a truth value gives way to the one it spells, if it spells one."""
    if isinstance(left, str) and not isinstance(right, str):
        return _as_kind_of(left, right), right
    if isinstance(right, str) and not isinstance(left, str):
        return left, _as_kind_of(right, left)
    return left, right


def _as_kind_of(text: str, beside: Json) -> Json:
    spelled: Json = None
    if isinstance(beside, bool):
        spelled = spelled_truth(text)
    elif is_number(beside):
        spelled = spelled_number(text)
    return text if spelled is None else spelled


def truth(value: Json) -> bool | Undecided:
    """Where a condition is needed: a truth value, or text that spells one."""
    said = value if isinstance(value, bool) else spelled_truth(value)
    return Undecided(f"{_show(value)} is not true or false") if said is None else said


def same(left: Json, right: Json) -> bool | Undecided:
    left, right = as_one_kind(left, right)
    if kind_of(left) != kind_of(right):
        return Undecided(f"{kind_of(left)} and {kind_of(right)} do not compare")
    return _equal(left, right)


def same_text(left: str, right: str) -> bool | Undecided:
    one, other = trimmed(left), trimmed(right)
    if one == other:
        return True
    said = spelled_truth(one)
    if said is not None and said is spelled_truth(other):
        return True
    if _bare(one) != _bare(other) or not _bare(one):
        return False
    return Undecided(f"{_show(one)} and {_show(other)} differ only in capitals or punctuation")


def holds_text(text: str, piece: str) -> bool | Undecided:
    """Whether a text contains a piece; a whole word of it in other capitals is a near miss."""
    if piece in text or trimmed(piece) in text:
        return True
    wanted = re.escape(trimmed(piece).casefold())
    if not re.search(rf"(?<!\w){wanted}(?!\w)", text.casefold()):
        return False
    return Undecided(f"{_show(trimmed(piece))} is there only in other capitals")


def _bare(text: str) -> str:
    """The words without what models put around them."""
    unmarked = _MARK_BEFORE.sub("", text, count=1) if _MARK_BEFORE.match(text) else text
    return unmarked.strip(_AROUND).casefold()


def _equal(left: Json, right: Json) -> bool | Undecided:
    """Deep equality, without recursion and without Python's True == 1."""
    pairs: list[tuple[Json, Json]] = [(left, right)]
    # A near miss is told only where nothing else differs, whatever the order of the pairs.
    near_miss: Undecided | None = None
    for _ in range(MOST_PAIRS):
        if not pairs:
            return True if near_miss is None else near_miss
        one, other = pairs.pop()
        if kind_of(one) != kind_of(other):
            return False
        if isinstance(one, str) and isinstance(other, str):
            likeness = same_text(one, other)
            if likeness is False:
                return False
            if isinstance(likeness, Undecided):
                near_miss = likeness
        elif isinstance(one, dict) and isinstance(other, dict):
            if one.keys() != other.keys():
                return False
            pairs += [(one[key], other[key]) for key in one]
        elif isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                return False
            pairs += zip(one, other, strict=True)
        elif one != other:
            return False
    return Undecided("the values are too large to compare")


def _show(value: Json) -> str:
    """A short text as it is, because the author must see how it differs; else what it is."""
    is_short = isinstance(value, str) and len(value) <= 60
    return show_json(value) if is_short else kind_of(value)
