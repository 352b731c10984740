"""Read JSON into nodes that know their places; the root is None if the text cannot be read.

The standard decoder keeps no positions, and YAML's reader refuses some valid JSON (surrogate
pairs, keys past 1,024 characters), so JSON has this small reader of its own.
"""

import math
import re
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import NoReturn

from stretto.documents.node import (
    FORBIDDEN,
    ListNode,
    MapNode,
    Node,
    ScalarNode,
    Source,
    name_letter,
)
from stretto.problems import Problem
from stretto.vocabulary.amounts import Limits

_LOOK = "look for a missing comma, quote or bracket just before it"
_BLANK = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")
_WORDS: dict[str, bool | None] = {"null": None, "true": True, "false": False}


class _Refused(Exception):
    pass


def compose(source: Source, limits: Limits) -> tuple[Node | None, list[Problem]]:
    composer = _Composer(source, limits)
    try:
        root = composer.document()
    except _Refused:
        root = None
    return root, composer.problems


class _Composer:
    def __init__(self, source: Source, limits: Limits) -> None:
        self.source = source
        self.text = source.text
        self.limits = limits
        self.problems: list[Problem] = []
        self.nodes = 0
        self.at = 0

    def document(self) -> Node:
        self._skip()
        if self.at == len(self.text):
            self._refuse("RCP016", "the file is empty")
        root = self._value(1)
        self._skip()
        if self.at < len(self.text):
            self._refuse("RCP007", "not JSON: something follows the end", "keep one value per file")
        return root

    def _value(self, depth: int) -> Node:
        self._count()
        first = self.text[self.at : self.at + 1]
        if first in ("{", "["):
            if depth > self.limits.depth:
                self._refuse(
                    "RCP008", f"nested deeper than {self.limits.depth} levels", "flatten it"
                )
            return self._map(depth) if first == "{" else self._list(depth)
        return self._string() if first == '"' else self._word()

    def _count(self) -> None:
        self.nodes += 1
        if self.nodes > self.limits.nodes:
            most = f"the file has more than {self.limits.nodes:,} values"
            self._refuse("RCP009", most, "split the file")

    def _map(self, depth: int) -> MapNode:
        node = MapNode(self.at, self.at)
        self._take("{")
        while not self._is_past("}", bool(node.keys)):
            if self.text[self.at : self.at + 1] != '"':
                message = "not JSON: a key in double quotes is expected here"
                self._refuse("RCP007", message, self._after_comma())
            self._count()  # a key counts, as it does in YAML
            key = self._string()
            self._skip()
            self._take(":")
            self._skip()
            value = self._value(depth + 1)
            if key.written in node.entries:
                first = self.source.place_of(node.keys[key.written]).line
                hint = f"it stands on line {first} already"
                self._say("RCP012", key.start, f"key '{key.written}' is written twice", hint)
            else:
                node.entries[key.written] = value
                node.keys[key.written] = key
        node.end = self.at
        return node

    def _list(self, depth: int) -> ListNode:
        node = ListNode(self.at, self.at)
        self._take("[")
        while not self._is_past("]", bool(node.items)):
            node.items.append(self._value(depth + 1))
        node.end = self.at
        return node

    def _is_past(self, closing: str, needs_comma: bool) -> bool:
        """Step over what stands between two elements; True past the closing bracket."""
        self._skip()
        if self.text.startswith(closing, self.at):
            self.at += 1
            return True
        if needs_comma:
            self._take(",", f"',' or '{closing}'")
            self._skip()
        return False

    def _string(self) -> ScalarNode:
        start = self.at
        try:
            value, self.at = scanstring(self.text, start + 1, True)
        except JSONDecodeError as error:
            self.at = error.pos
            said = error.msg[:1].lower() + error.msg[1:].removesuffix(" at")
            self._refuse("RCP007", f"not JSON: {said}", _LOOK)
        if hidden := FORBIDDEN.search(value):
            message = f"{name_letter(hidden[0])} cannot stand in a file, not even escaped"
            self._say("RCP004", start, message, "delete it")
            value = FORBIDDEN.sub("", value)
        return ScalarNode(start, self.at, value, value)

    def _word(self) -> ScalarNode:
        start = self.at
        number = _NUMBER.match(self.text, start)
        value: bool | int | float | None
        if number:
            self.at = number.end()
            is_whole = number[1] is None and number[2] is None and len(number[0]) <= 300
            value = int(number[0]) if is_whole else float(number[0])
            if not math.isfinite(value):
                self.at = start
                self._refuse("RCP007", "not JSON: the number is too large", "write a smaller one")
        else:
            word = next((w for w in _WORDS if self.text.startswith(w, start)), None)
            if word is None:
                self._refuse("RCP007", "not JSON: a value is expected here", self._after_comma())
            self.at += len(word)
            value = _WORDS[word]
        written = self.text[start : self.at]
        return ScalarNode(start, self.at, value, written)

    def _after_comma(self) -> str:
        is_closing = self.text[self.at : self.at + 1] in ("]", "}")
        return "remove the comma before it" if is_closing else _LOOK

    def _skip(self) -> None:
        blank = _BLANK.match(self.text, self.at)
        assert blank is not None
        self.at = blank.end()

    def _take(self, character: str, expected: str = "") -> None:
        if not self.text.startswith(character, self.at):
            wanted = expected or f"'{character}'"
            self._refuse("RCP007", f"not JSON: {wanted} is expected here", _LOOK)
        self.at += 1

    def _say(self, code: str, index: int, message: str, hint: str = "") -> None:
        place = self.source.place_of_index(index)
        self.problems.append(self.source.problem(code, place, message, hint))
        if len(self.problems) >= 50:
            raise _Refused

    def _refuse(self, code: str, message: str, hint: str = "") -> NoReturn:
        self._say(code, self.at, message, hint)
        raise _Refused
