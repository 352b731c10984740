"""Mappings with known keys: read into typed fields, with a problem for each mistake.

One Shape serves three purposes: it reads a file, it prints a JSON Schema, and the reference in the
docs is made from it.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

from msgspec import Struct, field

from stretto.documents.node import (
    MapNode,
    Node,
    Path,
    RefusedNode,
    ScalarNode,
    Source,
    describe,
)
from stretto.problems import Place, Problem
from stretto.text.short import closest, did_you_mean, listed

T = TypeVar("T", covariant=True)
V = TypeVar("V")
JsonSchema = dict[str, object]


class Reading(Struct):
    """One pass over one document: where problems are collected."""

    source: Source
    problems: list[Problem] = field(default_factory=list)
    guessed: set[Path] = field(default_factory=set)  # keys that were read as what was meant

    def problem_at(
        self, code: str, node: Node | Place, path: Path, message: str, hint: str | None = ""
    ) -> None:
        place = node if isinstance(node, Place) else self.source.place_of(node)
        self.problems.append(self.source.problem(code, place, message, hint, path))


class Kind(ABC, Generic[T]):
    """What a value may be. `read` returns it, or reports a problem and returns None."""

    called: str = "a value"  # 'must be …' in messages
    fix: str = ""  # the hint, where "write …" says too little

    @abstractmethod
    def read(self, node: Node, at: Path, reading: Reading) -> T | None: ...

    def read_all(self, nodes: Sequence[Node], at: Path, reading: Reading) -> list[T | None]:
        """The items of a list at `at`, one by one."""
        return [self.read(node, (*at, index), reading) for index, node in enumerate(nodes)]

    @abstractmethod
    def schema(self) -> JsonSchema: ...

    def report_mistyped(self, node: Node, at: Path, reading: Reading, hint: str = "") -> T | None:
        if isinstance(node, RefusedNode):
            return None
        name = f"'{at[-1]}'" if at and isinstance(at[-1], str) else "this"
        message = f"{name} must be {self.called}, not {describe(node)}"
        reading.problem_at("RCP103", node, at, message, hint or self.fix or f"write {self.called}")
        return None


class Key(Struct, Generic[T], frozen=True):
    name: str
    kind: Kind[T]
    about: str
    is_required: bool = False
    # Written `key:` with nothing behind it: not given, or a problem. None: as its shape says.
    may_be_empty: bool | None = None


class Fields(Struct, frozen=True):
    node: MapNode
    at: Path
    values: Mapping[str, object]
    # An unknown key may be a misspelt required one, so no key is reported as missing then.
    has_unknown: bool = False

    def get(self, name: str, kind: type[V]) -> V | None:
        """The value of a key, None when it is not written or was not readable."""
        value = self.values.get(name)
        return value if isinstance(value, kind) else None

    def many(self, name: str) -> tuple[Any, ...] | None:
        return self.get(name, tuple)

    def written(self, *names: str) -> tuple[str, ...]:
        """Which of these keys stand in the file with something behind them, readable or not."""
        entries = self.node.entries
        return tuple([name for name in names if name in entries and not _is_empty(entries[name])])

    def path(self, name: str) -> Path:
        return (*self.at, name)

    def key(self, name: str) -> Node:
        return self.node.keys[name]


class Shape(Struct, frozen=True, dict=True):
    called: str  # 'a step'
    about: str
    keys: tuple[Key[object], ...]
    # Words of other tools, with what to write here instead.
    foreign: Mapping[str, str] = field(default_factory=dict)
    # Words that mean one of these keys, as in `{if, then, else}`, with that key.
    words: Mapping[str, str] = field(default_factory=dict)
    # Keys that belong under one of these keys, such as `until` under `loop`, with that key.
    inner: Mapping[str, str] = field(default_factory=dict)
    # The keys that a bare value may be meant for, as in `retry: 3`; the first that accepts it.
    bare: tuple[str, ...] = ()
    # `timeout:` with nothing behind it means that no timeout is given, and so for every optional key.
    may_be_empty: bool = False

    @cached_property
    def _known(self) -> dict[str, Key[object]]:
        return {key.name: key for key in self.keys}

    @cached_property
    def _required(self) -> list[Key[object]]:
        return [key for key in self.keys if key.is_required]

    def read(self, node: Node, at: Path, reading: Reading) -> Fields | None:
        if not isinstance(node, MapNode):
            if not isinstance(node, RefusedNode):
                name = f"'{at[-1]}'" if at and isinstance(at[-1], str) else self.called
                message = f"{name} must be a mapping, not {describe(node)}"
                hint = self._guess_form(node, at, reading) or f"its keys: {self._names()}"
                reading.problem_at("RCP103", node, at, message, hint)
            return None
        node, guessed, has_unknown = self._correct_keys(node, at, reading)
        reading.guessed.update((*at, name) for name in guessed)
        values: dict[str, object] = {}
        for name, value in node.entries.items():
            key = self._known[name]
            if not (_is_empty(value) and self._may_be_empty(key)):
                # What stands behind a guessed key may be meant for another one.
                quiet = Reading(reading.source) if name in guessed else reading
                values[name] = key.kind.read(value, (*at, name), quiet)
        for key in self._required if not has_unknown else ():
            if key.name not in node.entries:
                reading.problem_at(
                    "RCP102",
                    _first_word(node, reading.source),
                    at,
                    f"{self.called} needs '{key.name}'",
                    f"{key.name}: {key.about}",
                )
        return Fields(node, at, values, has_unknown)

    def _guess_form(self, node: Node, at: Path, reading: Reading) -> str:
        """`retry: 3` → write retry: {max_attempts: 3}."""
        if not isinstance(node, ScalarNode) or node.value is None:
            return ""
        for name in self.bare:
            quiet = Reading(reading.source)
            self._known[name].kind.read(node, (*at, name), quiet)
            if not quiet.problems:
                before = f"{at[-1]}: " if at and isinstance(at[-1], str) else ""
                return f"write {before}{{{name}: {node.written[:60]}}}"
        return ""

    def _may_be_empty(self, key: Key[object]) -> bool:
        if key.may_be_empty is None:
            return self.may_be_empty and not key.is_required
        return key.may_be_empty

    def _correct_keys(
        self, node: MapNode, at: Path, reading: Reading
    ) -> tuple[MapNode, set[str], bool]:
        """Unknown keys are told and left out; one whose meaning is clear is read as what was meant,
        so that one slip is one problem and does not hide or cause others. Also returns the keys
        that were guessed, and whether some are unknown."""
        known = self._known.keys()
        if node.entries.keys() <= known:
            return node, set(), False
        corrected = MapNode(node.start, node.end)
        guessed: set[str] = set()
        unknown: list[str] = []
        for name, value in node.entries.items():
            free = set(known).difference(node.entries, corrected.entries)
            meant = name if name in known else self._meaning(name, sorted(free))
            if name not in known:
                unknown.append(name)
            if meant is not None:
                corrected.entries[meant] = value
                corrected.keys[meant] = node.keys[name]
                guessed |= {meant} - {name}
        has_unknown = len(guessed) < len(unknown)
        # `condition: "…"` with `true:` beside it is one slip, told of the keys that stand beside it.
        outer = {self.inner.get(_plain_word(name), "") for name in unknown}
        guessed |= {key for key in outer if isinstance(node.entries.get(key), ScalarNode)}
        for names, hint in self._slips(unknown, node):
            message = unknown_keys(self.called, names)
            key, path = node.keys[names[0]], (*at, names[0])
            reading.problem_at("RCP101", key, path, message, hint)
        return corrected, guessed, has_unknown

    def recognises(self, name: str) -> bool:
        """Whether it is one of these keys, stands for one, or is known from other tools."""
        is_known = name in self._known or _plain_word(name) in (*self.foreign, *self.inner)
        return is_known or self._meaning(name, sorted(self._known)) is not None

    def _meaning(self, name: str, free: list[str]) -> str | None:
        word = _plain_word(name)
        if word in self.words:
            return self.words[word] if self.words[word] in free else None
        if word in self.foreign or word in self.inner:
            return None
        return closest(name, free)

    def _slips(self, unknown: list[str], node: MapNode) -> list[tuple[list[str], str]]:
        """The unknown keys, those of one slip together, and what to write instead."""
        slips: dict[str, list[str]] = {}
        hints: dict[str, str] = {}
        free = sorted(self._known.keys() - node.entries.keys())
        for name in unknown:
            word = _plain_word(name)
            group, hint = f"key {name}", self.foreign.get(word, "")
            key, outer = self.words.get(word, ""), self.inner.get(word, "")
            if hint:
                pass
            elif key in free:
                group = "words"
                hint = f"{hints['words']} and {key}" if "words" in hints else f"write {key}"
            elif key:
                hint = f"it means {key}, which is written already: keep one of them"
            elif outer:
                group, hint = f"under {outer}", f"put it under {outer}:"
                if isinstance(node.entries.get(outer), ScalarNode):
                    first = next(key for key, under in self.inner.items() if under == outer)
                    hint = f"write {outer}: {{{first}: …}}, and put this under it as well"
            slips.setdefault(group, []).append(name)
            inside = node.entries[name]
            if "id" in free and isinstance(inside, MapNode) and len(node.entries) == 1:
                hint = hint or f"write id: {name[:60]}, and its keys beside it"
            hints[group] = hint or self._suggestion(name, free)
        return [(names, hints[group]) for group, names in slips.items()]

    def _suggestion(self, name: str, free: list[str]) -> str:
        known = f"known keys: {self._names()}"
        names = (key.name for key in self.keys)
        return did_you_mean(name, free) or did_you_mean(name, names) or known

    def _names(self) -> str:
        return listed((key.name for key in self.keys), 40)

    def schema(self) -> JsonSchema:
        properties: JsonSchema = {}
        for key in self.keys:
            properties[key.name] = {**key.kind.schema(), "description": key.about}
            if self._may_be_empty(key):
                properties[key.name] = _or_null(properties[key.name])
        schema: JsonSchema = {
            "type": "object",
            "description": self.about,
            "properties": properties,
            "additionalProperties": False,
        }
        required = [key.name for key in self._required]
        return {**schema, "required": required} if required else schema


_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def _plain_word(name: str) -> str:
    """continueOn, continue-on and continue_on are one word."""
    return _CAMEL.sub("_", name).replace("-", "_").lower()


def _is_empty(node: Node) -> bool:
    return getattr(node, "value", node) is None


def _or_null(schema: object) -> JsonSchema:
    assert isinstance(schema, dict)
    about = {"description": schema.pop("description")} if "description" in schema else {}
    return {"anyOf": [schema, {"type": "null"}], **about}


def _first_word(node: MapNode, source: Source) -> Place:
    """Where to point when something is missing: the mapping's first key, not all of it."""
    for key in node.keys.values():
        return source.place_of(key)
    return source.place_of(node)


def unknown_keys(called: str, names: Sequence[str]) -> str:
    """`a step has no keys 'a', 'b' and 'c'`."""
    quoted = [f"'{name[:60]}'" for name in names]
    said = " and ".join(filter(None, [", ".join(quoted[:-1]), quoted[-1]]))
    return f"{called} has no key{'s' if len(names) > 1 else ''} {said}"
