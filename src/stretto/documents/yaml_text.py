"""YAML into nodes, or into problems that say what an author did to get them.

The nodes are built from the parser's events in one pass: PyYAML's own composer recurses in C
(60 KB of brackets crash it), follows aliases, and lets the last of two equal keys win.
"""

import math
import re
from collections.abc import Callable
from typing import Any, cast

import yaml
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from stretto.documents.node import (
    FORBIDDEN,
    ListNode,
    MapNode,
    Node,
    RefusedNode,
    ScalarNode,
    Source,
    name_letter,
)
from stretto.problems import Place, Problem
from stretto.vocabulary.amounts import Limits

_Parser: Any
try:
    _Parser = yaml.cyaml.CParser  # type: ignore[attr-defined]
except AttributeError:  # a PyYAML without libyaml: slower, the same events
    _Parser = yaml.SafeLoader

_MOST_PROBLEMS = 50


class _Refused(Exception):
    """Reading on would cost more than the file is worth."""


def compose(source: Source, limits: Limits) -> tuple[Node | None, list[Problem]]:
    composer = _Composer(source, limits)
    try:
        root = composer.document()
    except _Refused:
        root = None
    except yaml.YAMLError as error:
        composer.problems.append(explain(error, source))
        root = None
    return root, composer.problems


class _Composer:
    def __init__(self, source: Source, limits: Limits) -> None:
        self.source = source
        self.most_nodes, self.deepest = limits.nodes, limits.depth
        self.problems: list[Problem] = []
        self.nodes = 0
        self._next_event: Callable[[], Any]

    def document(self) -> Node | None:
        parser = _Parser(self.source.text)
        self._next_event = parser.get_event
        try:
            root = self._root()
        finally:
            parser.dispose()
        if root is not None and not (isinstance(root, ScalarNode) and root.value is None):
            return root
        if not self.problems:
            place = self.source.place_of_index(0) if self.source.text else None
            self.problems.append(self.source.problem("RCP016", place, "the file is empty"))
        return None

    def _root(self) -> Node | None:
        root: Node | None = None
        while (event := self._next_event()) is not None:
            kind = type(event)
            if kind is DocumentStartEvent and root is not None:
                self._refuse("RCP013", event, "a second document starts here", "keep one per file")
            if kind is StreamEndEvent:
                break
            if kind not in (StreamStartEvent, DocumentStartEvent, DocumentEndEvent):
                root = self._node(event, 1)
        return root

    def _node(self, event: Any, depth: int) -> Node:
        self.nodes += 1
        if self.nodes > self.most_nodes:
            most = f"more than {self.most_nodes:,} values"
            self._refuse("RCP009", event, f"the file has {most}", "split the file")
        kind = type(event)
        if kind is ScalarEvent and event.anchor is None and event.tag is None:
            return self._scalar(event)
        if kind is AliasEvent:
            return self._alias(event)
        if event.anchor is not None:
            self._say(
                "RCP010",
                event,
                f"anchor '&{event.anchor}': anchors and aliases are not read",
                "write the value out where it is used",
            )
        if event.tag is not None:
            self._say(
                "RCP014",
                event,
                f"tag '{self._tag(event)}': tags are not read",
                "remove it; quote the value to keep it text",
            )
        if kind is ScalarEvent:
            return self._scalar(event)
        if depth > self.deepest:
            deepest = f"nested deeper than {self.deepest} levels"
            self._refuse("RCP008", event, deepest, "flatten it")
        if kind is SequenceStartEvent:
            return self._list(event, depth)
        return self._map(event, depth)

    def _tag(self, event: Any) -> str:
        written = self.source.text[event.start_mark.index : event.end_mark.index].split()
        return next((word for word in written if word.startswith("!")), event.tag)

    def _scalar(self, event: Any) -> ScalarNode:
        written, style = event.value, event.style
        # Only a plain scalar can be a number, a boolean or null; quotes make it text.
        value = written if style or written[:1] in _BEGINS_TEXT else plain_scalar(written)
        if style == '"' and (hidden := FORBIDDEN.search(written)):
            # The file itself holds no control character, so this one was written as an escape.
            message = f"{name_letter(hidden[0])} cannot stand in a file, not even escaped"
            self._say("RCP004", event, message, "delete it")
        return ScalarNode(event.start_mark.index, event.end_mark.index, value, written)

    def _list(self, event: Any, depth: int) -> ListNode:
        items: list[Node] = []
        while (item := self._next_event()).__class__ is not SequenceEndEvent:
            items.append(self._node(item, depth + 1))
        return ListNode(event.start_mark.index, cast(Any, item).end_mark.index, items)

    def _map(self, event: Any, depth: int) -> MapNode:
        start = event.start_mark.index
        node = MapNode(start, start)
        while (key_event := self._next_event()).__class__ is not MappingEndEvent:
            key = self._key(key_event, depth)
            value = self._node(self._next_event(), depth + 1)
            if key.written == "<<":
                self._say(
                    "RCP011", key_event, "merge keys ('<<') are not read", "write the keys out"
                )
            elif key.written in node.entries:
                first = self.source.place_of(node.keys[key.written]).line
                self._say(
                    "RCP012",
                    key_event,
                    f"key '{key.written}' is written twice",
                    f"it stands on line {first} already",
                )
            else:
                node.entries[key.written] = value
                node.keys[key.written] = key
        node.end = cast(Any, key_event).end_mark.index
        return node

    def _key(self, event: Any, depth: int) -> ScalarNode:
        # The text is the key: `true:` is the word, however YAML would type it.
        key = self._node(event, depth + 1)
        if isinstance(key, ScalarNode):
            return key
        hint = "a key is one word of text"
        if self.source.text.startswith("{{", event.start_mark.index - 1):
            hint = 'put quotes around it: "{{ … }}"'
        self._refuse("RCP015", event, "a mapping or list cannot be a key", hint)
        raise AssertionError

    def _alias(self, event: Any) -> RefusedNode:
        self._say(
            "RCP010",
            event,
            f"alias '*{event.anchor}': anchors and aliases are not read",
            "write the value out here, or quote it if a '*' was meant",
        )
        return RefusedNode(event.start_mark.index, event.end_mark.index)

    def _say(self, code: str, event: Any, message: str, hint: str) -> None:
        start, end = event.start_mark.index, event.end_mark.index
        place = self.source.place_of(Node(start, max(end, start + 1)))
        self.problems.append(self.source.problem(code, place, message, hint))
        if len(self.problems) >= _MOST_PROBLEMS:
            raise _Refused

    def _refuse(self, code: str, event: Any, message: str, hint: str) -> None:
        self._say(code, event, message, hint)
        raise _Refused


_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INT = re.compile(r"[-+]?[0-9]{1,300}\Z")
_BASED = re.compile(r"0o[0-7]{1,100}\Z|0x[0-9a-fA-F]{1,100}\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_STARTS_A_NUMBER = frozenset("+-.0123456789")
# No number and none of the words above begins so: most scalars are looked at no further.
_BEGINS_TEXT = frozenset(map(chr, range(ord("A"), ord("z") + 1))) - {word[:1] for word in _WORDS}


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


# (part of libyaml's message, what we say, hint, look at where the construct began?)
_KNOWN: tuple[tuple[str, str, str, bool], ...] = (
    ("mapping values are not allowed", "a ':' cannot stand here",
     "quote the text if it contains ': ', or check this line's indentation", False),
    ("could not find expected ':'", "this line is not `key: value`",
     "add the ':' after the key, or indent the line into the text above it", True),
    ("did not find expected key", "this does not fit the mapping it stands in",
     "check the indentation, and quote text that starts with a quote or bracket", False),
    ("did not find expected '-' indicator", "this does not fit the list it stands in",
     "every item of a list starts with '- ' in the same column", False),
    ("did not find expected node content", "a value is missing here, or a bracket is not closed",
     "write the value, or close the bracket before it", False),
    ("did not find expected ',' or ']'", "the '[' is not closed, or a ',' is missing",
     "close it with ']'", True),
    ("did not find expected ',' or '}'", "the '{' is not closed, or a ',' is missing",
     "close it with '}', or put quotes around {{ … }}", True),
    ("found unexpected end of stream", "the quote is not closed", "close it on its last line", True),
    ("found unexpected document indicator", "the quote is not closed", "close it", True),
    ("found unknown escape character", "unknown escape in double quotes",
     "write '\\\\' for a backslash, or use single quotes", False),
    ("block sequence entries are not allowed", "a list item cannot start here",
     "put the '- ' on a line of its own, below its key", False),
    ("block collections are not allowed", "a list or mapping cannot start here",
     "put it on a line of its own", False),
    ("cannot start any token", "this character cannot start a value", "put the value in quotes",
     False),
    ("did not find expected alphabetic or numeric", "'*' or '&' starts an alias here",
     "put the value in quotes", True),
    ("wrong indentation", "the indentation is wrong", "align it with its neighbours", False),
    ("found invalid Unicode character escape", "this is not a Unicode character",
     "write the character itself", False),
)  # fmt: skip
_UNQUOTED_BRACES = re.compile(r"(?:^|:\s|-\s)\s*(\{\{)")


def explain(error: Any, source: Source) -> Problem:
    mark = getattr(error, "problem_mark", None)
    said = getattr(error, "problem", None) or str(error).split("\n", 1)[0]
    if mark is None:
        return source.problem("RCP005", None, f"not YAML: {said}")
    place = Place(mark.line + 1, mark.column + 1)
    line = source.line(place.line)
    if "\t" in line[: place.column] and line[: place.column].strip(" \t-") == "":
        tab = Place(place.line, line.index("\t") + 1)
        return source.problem("RCP006", tab, "a tab cannot indent YAML", "use spaces")
    braces = _braces(error, source, place)
    if braces is not None:
        message = "text that starts with '{{' needs quotes"
        return source.problem("RCP005", braces, message, 'write "{{ … }}"')
    if place.line > len(source.lines) or not source.line(place.line)[place.column - 1 :].strip():
        place = _last_open_bracket(source) or place
    for part, says, hint, at_start in _KNOWN:
        if part in said:
            began = getattr(error, "context_mark", None) if at_start else None
            if began is not None:
                place = Place(began.line + 1, began.column + 1)
            return source.problem("RCP005", place, f"not YAML: {says}", hint)
    return source.problem("RCP005", place, f"not YAML: {said}", "check the line and the one before")


def _last_open_bracket(source: Source) -> Place | None:
    """The file ended inside a bracket: point at that one, not at the end."""
    open_at: list[int] = []
    for at, letter in enumerate(source.text):
        if letter in "[{":
            open_at.append(at)
        elif letter in "]}" and open_at:
            open_at.pop()
    return source.place_of_index(open_at[-1]) if open_at else None


def _braces(error: Any, source: Source, place: Place) -> Place | None:
    """`input: {{inputs.topic}} today` without quotes: the commonest slip of all."""
    began = getattr(error, "context_mark", None)
    for number in {place.line, began.line + 1 if began else place.line}:
        found = _UNQUOTED_BRACES.search(source.line(number))
        if found:
            return Place(number, found.start(1) + 1, 2)
    return None
