"""Match one name against one wildcard pattern of a `.gitignore`. In: text. Out: a matcher.

Time is at most pattern × name, whatever the pattern: a regular expression would take years for
`*a*a*a*a*b`, and who writes a `.gitignore` may not be a friend.
"""

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

# One character: does it match? None is `*`, any run of characters.
_Letter: TypeAlias = Callable[[str], bool]
_Item = TypeVar("_Item")

_TOKEN = re.compile(
    r"\\(?P<plain>.)|(?P<star>\*+)|(?P<any>\?)|\[(?P<not>[!^]?)(?P<set>\]?(?:\[:[a-z]+:\]|\\.|[^\]\\])*)\]|(?P<other>.)",
    re.DOTALL,
)
_MEMBER = re.compile(
    r"\[:(?P<named>[a-z]+):\]|(?:\\(?P<a>.)|(?P<b>.))(?:-(?:\\(?P<c>.)|(?P<d>[^\]])))?", re.DOTALL
)
_NAMED: dict[str, _Letter] = {
    "alpha": str.isalpha,
    "digit": str.isdigit,
    "alnum": str.isalnum,
    "upper": str.isupper,
    "lower": str.islower,
    "space": str.isspace,
    "punct": lambda c: c.isascii() and c.isprintable() and not c.isalnum() and c != " ",
    "xdigit": lambda c: c in "0123456789abcdefABCDEF",
    "blank": lambda c: c in " \t",
    "cntrl": lambda c: ord(c) < 32 or ord(c) == 127,
    "print": str.isprintable,
    "graph": lambda c: c.isprintable() and c != " ",
}


def plain_text(pattern: str) -> str | None:
    """The one name that a pattern without wildcards stands for."""
    if any(wild in pattern for wild in "*?["):
        return None
    return re.sub(r"\\(.)", r"\1", pattern, flags=re.DOTALL)


def compile_name(pattern: str) -> Callable[[str], bool]:
    plain = plain_text(pattern)
    if plain is not None:
        return plain.__eq__
    letters = [_letter(token) for token in _TOKEN.finditer(pattern)]
    return lambda name: matches_run(letters, name, _accepts)


def matches_run(
    pattern: Sequence[_Item | None],
    subject: Sequence[str],
    accepts: Callable[[_Item, str], bool],
) -> bool:
    """Whether the items cover the subject one by one, None standing for any number of them.

    Only the last None is ever tried again: what an earlier one could take more of, it can take.
    """
    at, i = 0, 0
    retry_at, retry_i = -1, 0
    while i < len(subject):
        item = pattern[at] if at < len(pattern) else None
        if at < len(pattern) and item is None:
            retry_at, retry_i = at, i
            at += 1
        elif item is not None and accepts(item, subject[i]):
            at, i = at + 1, i + 1
        elif retry_at >= 0:
            retry_i += 1
            at, i = retry_at + 1, retry_i
        else:
            return False
    return all(item is None for item in pattern[at:])


def _accepts(letter: _Letter, character: str) -> bool:
    return letter(character)


def _letter(token: re.Match[str]) -> _Letter | None:
    if token["star"] is not None:
        return None
    if token["any"] is not None:
        return lambda _: True
    if token["set"] is not None:
        return _set(token["set"], is_negated=bool(token["not"]))
    wanted: str = token["plain"] if token["plain"] is not None else token["other"]
    return wanted.__eq__


def _set(members: str, *, is_negated: bool) -> _Letter:
    tests = [_member(member) for member in _MEMBER.finditer(members)]
    return lambda character: any(test(character) for test in tests) is not is_negated


def _member(member: re.Match[str]) -> _Letter:
    if member["named"] is not None:
        return _NAMED.get(member["named"], lambda _: False)
    low: str = member["a"] if member["a"] is not None else member["b"]
    high: str = next((m for m in (member["c"], member["d"]) if m is not None), low)
    return lambda character: low <= character <= high
