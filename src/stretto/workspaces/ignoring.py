"""Rules of `.gitignore` files. In: their text. Out: is a path ignored by them?

The last rule that matches decides; a rule of a deeper folder comes after those above it. Names are
compared as they are written, also where the file system ignores case.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from stretto.workspaces.refusals import PathRefused
from stretto.workspaces.wildcards import compile_name, matches_run, plain_text

MOST_BYTES = 256 * 1024
MOST_RULES = 2_000

_Name = Callable[[str], bool]
_SUFFIX = re.compile(r"\*(\.[^.*?\[\\]+)")
_ANY_DEPTH = re.compile(r"\*{2,}")
_TRAILING_BLANKS = re.compile(r"(?<!\\) +$")


@dataclass(frozen=True, slots=True)
class Rule:
    number: int
    is_negated: bool
    is_for_folders: bool
    names: tuple[_Name | None, ...]  # None is `**`; a single one is matched against the last name

    def covers(self, names: Sequence[str]) -> bool:
        return matches_run(self.names, names, lambda test, name: test(name))


@dataclass(frozen=True, slots=True)
class Rules:
    """Of one file, for paths relative to its folder. Most rules are found without trying each."""

    by_name: dict[str, list[Rule]] = field(default_factory=dict)
    by_suffix: dict[str, list[Rule]] = field(default_factory=dict)
    others: list[Rule] = field(default_factory=list)

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """True: ignored. False: taken back by a `!` rule. None: no rule says anything."""
        names = path.split("/")
        name = names[-1]
        found = [
            *self.by_name.get(name, ()),
            *self.by_suffix.get(name[name.rfind(".") :], ()),
            *(rule for rule in self.others if rule.covers(names)),
        ]
        said = [rule for rule in found if is_folder or not rule.is_for_folders]
        return not max(said, key=lambda rule: rule.number).is_negated if said else None


def read_rules(text: bytes, where: str) -> Rules:
    if len(text) > MOST_BYTES:
        raise PathRefused(where, "limit", f"{where} has more than {MOST_BYTES:,} bytes")
    rules = Rules()
    lines = text.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, line in enumerate(lines):
        if number > MOST_RULES:
            raise PathRefused(where, "limit", f"{where} has more than {MOST_RULES:,} lines")
        _read_line(rules, number, line.removesuffix(b"\r").decode("utf-8", "surrogateescape"))
    return rules


def _read_line(rules: Rules, number: int, line: str) -> None:
    pattern = _TRAILING_BLANKS.sub("", line)
    if not pattern or pattern.startswith("#"):
        return
    is_negated = pattern.startswith("!")
    pattern = pattern.removeprefix("!")
    is_for_folders = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    if not pattern or (pattern.endswith("\\") and not pattern.endswith("\\\\")):
        return
    if "/" in pattern:
        names = _anchored(pattern.removeprefix("/"))
        rules.others.append(Rule(number, is_negated, is_for_folders, names))
        return
    rule = Rule(number, is_negated, is_for_folders, (None, compile_name(pattern)))
    plain, suffix = plain_text(pattern), _SUFFIX.fullmatch(pattern)
    if plain is not None:
        rules.by_name.setdefault(plain, []).append(rule)
    elif suffix is not None:
        rules.by_suffix.setdefault(suffix[1], []).append(rule)
    else:
        rules.others.append(rule)


def _anchored(pattern: str) -> tuple[_Name | None, ...]:
    parts = pattern.split("/")
    # More than two stars are two, to git.
    names = [None if _ANY_DEPTH.fullmatch(part) else compile_name(part) for part in parts]
    if names[-1] is None:
        names.append(lambda _: True)  # `a/**` is everything in `a`, not `a` itself
    return tuple(names)
