"""Match a regular expression without ever hanging. In: a pattern and a text. Out: does it occur?

Python's own matcher tries the same thing again and again: `(a+)+$` takes years on forty letters.
Here each place in the pattern meets each place in the text at most once, so the work is at most
their product, and that is bounded too. The price: no back references, no atomic groups.
"""

import re
import re._parser as parser  # type: ignore[import-not-found]  # no other reads Python's dialect
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

MOST_WORK = 500_000  # pairs of places looked at before it is given up: about a second
MOST_STATES = 5_000
LONGEST_PATTERN = 2_000

# What the standard library makes of a pattern: operators with their arguments.
_Tree: TypeAlias = Iterable[tuple[Any, Any]]
_Test: TypeAlias = Callable[[str], bool]
_Condition: TypeAlias = Callable[["_Search", int], bool]


class Unmatchable(Exception):
    """This pattern cannot be checked here."""


class TooMuch(Exception):
    """More work than an answer is worth."""


@dataclass(slots=True)
class Work:
    """What may still be spent, on one text or on all texts of an answer."""

    left: int = MOST_WORK


def occurs(pattern: str, text: str, work: Work | None = None) -> bool:
    """As `re.search(pattern, text) is not None`. Raises Unmatchable or TooMuch."""
    return _Search(_machine(pattern), text, work or Work()).is_found()


def check_pattern(pattern: str) -> None:
    """Raises Unmatchable."""
    _machine(pattern)


@lru_cache(maxsize=512)
def _machine(pattern: str) -> "_Machine":
    if len(pattern) > LONGEST_PATTERN:
        raise Unmatchable(f"it is longer than {LONGEST_PATTERN} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Python may mean by it one day
            tree = parser.parse(pattern)
        return _Machine(tree, tree.state.flags)
    except (re.error, RecursionError, OverflowError) as error:
        raise Unmatchable(f"it is no regular expression: {error}") from None


class _Machine:
    """States that test one character, ask for a condition, or fork. 0 is where it has matched."""

    def __init__(self, tree: _Tree, flags: int) -> None:
        self.tests: list[_Test | None] = [None]
        self.conditions: list[_Condition | None] = [None]
        self.nexts: list[tuple[int, ...]] = [()]
        self.start = self._sequence(tree, 0, flags)

    def _add(
        self, *nexts: int, test: _Test | None = None, condition: _Condition | None = None
    ) -> int:
        if len(self.nexts) >= MOST_STATES:
            raise Unmatchable("it stands for too many states")
        self.tests.append(test)
        self.conditions.append(condition)
        self.nexts.append(nexts)
        return len(self.nexts) - 1

    def _sequence(self, tree: _Tree, then: int, flags: int) -> int:
        # From the end: each part is built knowing what comes after it.
        for operator, argument in reversed(list(tree)):
            then = self._part(str(operator), argument, then, flags)
        return then

    def _part(self, operator: str, argument: Any, then: int, flags: int) -> int:
        match operator:
            case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN":
                return self._add(then, test=_test(operator, argument, flags))
            case "BRANCH":
                return self._add(*(self._sequence(each, then, flags) for each in argument[1]))
            case "SUBPATTERN":
                _, added, removed, inner = argument
                return self._sequence(inner, then, (flags | added) & ~removed)
            case "MAX_REPEAT" | "MIN_REPEAT":
                return self._repeat(argument, then, flags)
            case "AT":
                return self._add(then, condition=_place(str(argument), flags))
            case "ASSERT" | "ASSERT_NOT":
                return self._look(operator == "ASSERT", argument, then, flags)
            case "FAILURE":
                return self._add()
            case _:
                raise Unmatchable(f"{operator.lower().replace('_', ' ')} is not supported")

    def _repeat(self, argument: Any, then: int, flags: int) -> int:
        least, most, inner = argument
        if most == parser.MAXREPEAT:
            loop = self._add()
            self.nexts[loop] = (self._sequence(inner, loop, flags), then)
            then = loop
        else:
            end = then
            for _ in range(most - least):
                then = self._add(self._sequence(inner, then, flags), end)
        for _ in range(least):
            then = self._sequence(inner, then, flags)
        return then

    def _look(self, is_wanted: bool, argument: Any, then: int, flags: int) -> int:
        direction, inner = argument
        back = inner.getwidth()[0] if direction < 0 else 0
        start = self._sequence(inner, 0, flags)

        def condition(search: "_Search", at: int) -> bool:
            return (at >= back and search.matches(start, at - back)) == is_wanted

        return self._add(then, condition=condition)


class _Search:
    def __init__(self, machine: _Machine, text: str, work: Work) -> None:
        self.machine = machine
        self.text = text
        self._work = work
        self._looks: dict[tuple[int, int], bool] = {}

    def is_found(self) -> bool:
        seen = set[tuple[int, int]]()
        starts = range(len(self.text) + 1)
        return any(self._reaches_end(self.machine.start, at, seen) for at in starts)

    def matches(self, start: int, at: int) -> bool:
        """For what is looked at ahead or behind; each only once."""
        if (start, at) not in self._looks:
            self._looks[start, at] = self._reaches_end(start, at, set())
        return self._looks[start, at]

    def _reaches_end(self, start: int, at: int, seen: set[tuple[int, int]]) -> bool:
        # What was seen without success never needs a second look, wherever we come from.
        machine, text = self.machine, self.text
        waiting = [(start, at)]
        while waiting:
            here = waiting.pop()
            if here in seen:
                continue
            seen.add(here)
            self._work.left -= 1
            if self._work.left < 0:
                raise TooMuch
            state, at = here
            if state == 0:
                return True
            test, condition = machine.tests[state], machine.conditions[state]
            if test is not None:
                if at < len(text) and test(text[at]):
                    waiting.append((machine.nexts[state][0], at + 1))
            elif condition is None or condition(self, at):
                waiting += ((following, at) for following in machine.nexts[state])
        return False


def _test(operator: str, argument: Any, flags: int) -> _Test:
    if operator == "ANY":
        return (lambda char: True) if flags & re.DOTALL else (lambda char: char != "\n")
    items = argument if operator == "IN" else [("LITERAL", argument)]
    items = [(str(name), value) for name, value in items]
    is_negated = operator == "NOT_LITERAL" or items[0][0] == "NEGATE"
    members = [_member(name, value, flags) for name, value in items if name != "NEGATE"]

    def test(char: str) -> bool:
        forms = {char, char.lower(), char.upper()} if flags & re.IGNORECASE else (char,)
        return any(member(form) for member in members for form in forms) != is_negated

    return test


def _member(name: str, value: Any, flags: int) -> _Test:
    if name == "LITERAL":
        return lambda char: char == chr(value)
    if name == "RANGE":
        return lambda char: len(char) == 1 and value[0] <= ord(char) <= value[1]
    category = str(value).removeprefix("CATEGORY_")
    is_negated = category.startswith("NOT_")
    belongs = _CATEGORIES[category.removeprefix("NOT_")]
    is_ascii = bool(flags & re.ASCII)
    return lambda char: (belongs(char) and (char.isascii() or not is_ascii)) != is_negated


_CATEGORIES: dict[str, _Test] = {
    "DIGIT": str.isdecimal,
    "SPACE": str.isspace,
    "WORD": lambda char: char.isalnum() or char == "_",
}


def _place(name: str, flags: int) -> _Condition:
    is_multiline = bool(flags & re.MULTILINE)
    match name:
        case "AT_BEGINNING" if is_multiline:
            return lambda search, at: at == 0 or search.text[at - 1] == "\n"
        case "AT_BEGINNING" | "AT_BEGINNING_STRING":
            return lambda search, at: at == 0
        case "AT_END" if is_multiline:
            return lambda search, at: at == len(search.text) or search.text[at] == "\n"
        case "AT_END":
            return lambda search, at: len(search.text) - at < 2 and search.text[at:] in ("", "\n")
        case "AT_END_STRING":
            return lambda search, at: at == len(search.text)
        case "AT_BOUNDARY" | "AT_NON_BOUNDARY":
            is_wanted = name == "AT_BOUNDARY"
            is_ascii = bool(flags & re.ASCII)
            return lambda search, at: _is_boundary(search.text, at, is_ascii) == is_wanted
        case _:
            raise Unmatchable(f"{name.lower()} is not supported")


def _is_boundary(text: str, at: int, is_ascii: bool) -> bool:
    word = _member("CATEGORY", "CATEGORY_WORD", re.ASCII if is_ascii else 0)
    before = at > 0 and word(text[at - 1])
    return before != (at < len(text) and word(text[at]))
