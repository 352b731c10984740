"""YAML into nodes. In: Source. Out: the root node (None when it cannot be read) and problems.

The nodes are built from the parser's events in one pass: PyYAML's own composer recurses in C
(60 KB of brackets crash it), follows aliases, and lets the last of two equal keys win.
"""

from collections.abc import Iterator
from typing import Any

import yaml

from stretto.documents.letters import FORBIDDEN, named
from stretto.documents.node import ListNode, MapNode, Node, RefusedNode, ScalarNode
from stretto.documents.scalars import plain_scalar
from stretto.documents.source import Source
from stretto.documents.yaml_errors import explain
from stretto.problems import Problem
from stretto.vocabulary.limits import Limits

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
        self.limits = limits
        self.problems: list[Problem] = []
        self.nodes = 0
        # libyaml counts these as line breaks; editors do not, and neither does Source.
        self.has_odd_breaks = any(letter in source.text for letter in "\x85\u2028\u2029")

    def document(self) -> Node | None:
        events = self._events()
        root: Node | None = None
        for event in events:
            name = type(event).__name__
            if name == "DocumentStartEvent" and root is not None:
                self._refuse("RCP013", event, "a second document starts here", "keep one per file")
            if name in ("StreamStartEvent", "DocumentStartEvent", "DocumentEndEvent"):
                continue
            if name == "StreamEndEvent":
                break
            root = self._node(event, events, 1)
        if root is not None and not (isinstance(root, ScalarNode) and root.value is None):
            return root
        if not self.problems:
            place = self.source.place_of_index(0) if self.source.text else None
            hint = "a recipe starts with `name:` and has `steps:`"
            self.problems.append(self.source.problem("RCP016", place, "the file is empty", hint))
        return None

    def _events(self) -> Iterator[Any]:
        parser = _Parser(self.source.text)
        try:
            while True:
                event = parser.get_event()
                if event is None:
                    return
                yield event
        finally:
            parser.dispose()

    def _node(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        self.nodes += 1
        if self.nodes > self.limits.nodes:
            most = f"more than {self.limits.nodes:,} values"
            self._refuse("RCP009", event, f"the file has {most}", "split the recipe")
        name = type(event).__name__
        if name == "AliasEvent":
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
        if name == "ScalarEvent":
            return self._scalar(event)
        if depth > self.limits.depth:
            deepest = f"nested deeper than {self.limits.depth} levels"
            self._refuse("RCP008", event, deepest, "flatten it")
        if name == "SequenceStartEvent":
            return self._list(event, events, depth)
        return self._map(event, events, depth)

    def _tag(self, event: Any) -> str:
        written = self.source.text[event.start_mark.index : event.end_mark.index].split()
        return next((word for word in written if word.startswith("!")), event.tag)

    def _scalar(self, event: Any) -> ScalarNode:
        start, written = event.start_mark, event.value
        # Only a plain scalar can be a number, a boolean or null; quotes make it text.
        value = written if event.style else plain_scalar(written)
        if event.style == '"' and (hidden := FORBIDDEN.search(written)):
            # The file is clean, so it was written as an escape, and would come alive later.
            message = f"{named(hidden[0])} cannot stand in a recipe, not even escaped"
            self._say("RCP004", event, message, "delete it")
        return ScalarNode(start.index, event.end_mark.index, *self._position(start), value, written)

    def _list(self, event: Any, events: Iterator[Any], depth: int) -> ListNode:
        start = event.start_mark
        node = ListNode(start.index, start.index, *self._position(start))
        for item in events:
            if type(item).__name__ == "SequenceEndEvent":
                node.end = item.end_mark.index
                break
            node.items.append(self._node(item, events, depth + 1))
        return node

    def _map(self, event: Any, events: Iterator[Any], depth: int) -> MapNode:
        start = event.start_mark
        node = MapNode(start.index, start.index, *self._position(start))
        for key_event in events:
            if type(key_event).__name__ == "MappingEndEvent":
                node.end = key_event.end_mark.index
                break
            key = self._key(key_event, events, depth)
            value = self._node(next(events), events, depth + 1)
            if key.written == "<<":
                self._say(
                    "RCP011", key_event, "merge keys ('<<') are not read", "write the keys out"
                )
            elif key.written in node.entries:
                first = node.keys[key.written].line
                self._say(
                    "RCP012",
                    key_event,
                    f"key '{key.written}' is written twice",
                    f"it stands on line {first} already",
                )
            else:
                node.entries[key.written] = value
                node.keys[key.written] = key
        return node

    def _key(self, event: Any, events: Iterator[Any], depth: int) -> ScalarNode:
        # The text is the key: `true:` is the word, however YAML would type it.
        key = self._node(event, events, depth + 1)
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
        start = event.start_mark
        return RefusedNode(start.index, event.end_mark.index, *self._position(start))

    def _position(self, mark: Any) -> tuple[int, int]:
        if not self.has_odd_breaks:
            return mark.line + 1, mark.column + 1
        place = self.source.place_of_index(mark.index)
        return place.line, place.column

    def _say(self, code: str, event: Any, message: str, hint: str) -> None:
        start, end = event.start_mark, event.end_mark
        place = self.source.place_of(
            Node(start.index, max(end.index, start.index + 1), *self._position(start))
        )
        self.problems.append(self.source.problem(code, place, message, hint))
        if len(self.problems) >= _MOST_PROBLEMS:
            raise _Refused

    def _refuse(self, code: str, event: Any, message: str, hint: str) -> None:
        self._say(code, event, message, hint)
        raise _Refused
