"""Mappings with known keys: read into typed fields, with a problem for each mistake.

One Shape serves three purposes: it reads a file, it prints a JSON Schema, and the reference in the
docs is made from it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

from stretto.documents.node import MapNode, Node, Path, RefusedNode, Source, describe
from stretto.problems import Place, Problem
from stretto.text.short import closest, did_you_mean, listed

T = TypeVar("T", covariant=True)
V = TypeVar("V")
JsonSchema = dict[str, object]


@dataclass(slots=True)
class Reading:
    """One pass over one document: where problems are collected."""

    source: Source
    problems: list[Problem] = field(default_factory=list)

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

    @abstractmethod
    def schema(self) -> JsonSchema: ...

    def report_mistyped(self, node: Node, at: Path, reading: Reading, hint: str = "") -> T | None:
        if isinstance(node, RefusedNode):
            return None
        name = f"'{at[-1]}'" if at and isinstance(at[-1], str) else "this"
        message = f"{name} must be {self.called}, not {describe(node)}"
        reading.problem_at("RCP103", node, at, message, hint or self.fix or f"write {self.called}")
        return None


@dataclass(frozen=True)
class Key(Generic[T]):
    name: str
    kind: Kind[T]
    about: str
    is_required: bool = False
    # Written `key:` with nothing behind it: not given, or a problem. None: as its shape says.
    may_be_empty: bool | None = None


@dataclass(frozen=True)
class Fields:
    node: MapNode
    at: Path
    values: Mapping[str, object]

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


@dataclass(frozen=True)
class Shape:
    called: str  # 'a step'
    about: str
    keys: tuple[Key[object], ...]
    # Words of other tools, with what to write here instead.
    foreign: Mapping[str, str] = field(default_factory=dict)
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
                reading.problem_at("RCP103", node, at, message, f"its keys: {self._names()}")
            return None
        node, known = self._correct_keys(node, at, reading), self._known
        values: dict[str, object] = {}
        for name, value in node.entries.items():
            key = known[name]
            if not (_is_empty(value) and self._may_be_empty(key)):
                values[name] = key.kind.read(value, (*at, name), reading)
        for key in self._required:
            if key.name not in node.entries:
                reading.problem_at(
                    "RCP102",
                    _first_word(node, reading.source),
                    at,
                    f"{self.called} needs '{key.name}'",
                    f"{key.name}: {key.about}",
                )
        return Fields(node, at, values)

    def _may_be_empty(self, key: Key[object]) -> bool:
        if key.may_be_empty is None:
            return self.may_be_empty and not key.is_required
        return key.may_be_empty

    def _correct_keys(self, node: MapNode, at: Path, reading: Reading) -> MapNode:
        """Unknown keys are told and left out; a misspelt one is read as what was meant, so that
        one slip is one problem and does not hide or cause others."""
        known = self._known.keys()
        if node.entries.keys() <= known:
            return node
        corrected = MapNode(node.start, node.end, node.line, node.column)
        for name, value in node.entries.items():
            meant: str | None = name
            if name not in known:
                free = set(known).difference(node.entries, corrected.entries)
                meant = self._unknown(name, sorted(free), node.keys[name], (*at, name), reading)
            if meant is not None:
                corrected.entries[meant] = value
                corrected.keys[meant] = node.keys[name]
        return corrected

    def _unknown(
        self, name: str, free: list[str], key: Node, at: Path, reading: Reading
    ) -> str | None:
        message = f"{self.called} has no key '{name[:60]}'"
        meant = None if name in self.foreign else closest(name, free)
        hint = self.foreign.get(name) or (f"did you mean '{meant}'?" if meant else None)
        hint = hint or did_you_mean(name, (key.name for key in self.keys))
        reading.problem_at("RCP101", key, at, message, hint or f"known keys: {self._names()}")
        return meant

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
