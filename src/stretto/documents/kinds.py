"""The kinds of values that a key can have. Each reads a node, or reports a problem and gives None."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Generic, TypeVar, cast

from stretto.documents.node import ListNode, MapNode, Node, Path, RefusedNode, ScalarNode, plain
from stretto.documents.shapes import Fields, JsonSchema, Kind, Reading, Shape
from stretto.text.short import did_you_mean
from stretto.vocabulary.amounts import guess_duration, parse_duration
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import ID_PATTERN, is_id

T = TypeVar("T", covariant=True)


class Text(Kind[str]):
    """Text; a bare number is taken as it is written (`name: 2024`)."""

    def __init__(
        self,
        called: str = "text",
        may_be_blank: bool = True,
        one_line: bool = False,
        fix: str = "",
    ) -> None:
        self.called = called
        self.fix = fix
        self.may_be_blank = may_be_blank
        self.one_line = one_line

    def read(self, node: Node, at: Path, reading: Reading) -> str | None:
        if not isinstance(node, ScalarNode) or node.value is None or isinstance(node.value, bool):
            is_word = isinstance(node, ScalarNode) and node.value is not None
            return self.report_mistyped(node, at, reading, "put it in quotes" if is_word else "")
        if not self.may_be_blank and not node.written.strip():
            reading.problem_at("RCP103", node, at, f"'{at[-1]}' is empty", f"write {self.called}")
            return None
        if self.one_line and "\n" in node.written.strip():
            reading.problem_at(
                "RCP103", node, at, f"'{at[-1]}' must stay on one line", "join the lines"
            )
            return None
        return node.written.strip() if self.one_line else node.written

    def schema(self) -> JsonSchema:
        return {"type": ["string", "number"], **({} if self.may_be_blank else {"minLength": 1})}


class Identifier(Kind[str]):
    called = "an id of letters, digits, '-' and '_'"

    def __init__(self, fix: str = "") -> None:
        self.fix = fix

    def read(self, node: Node, at: Path, reading: Reading) -> str | None:
        if not isinstance(node, ScalarNode) or node.value is None or isinstance(node.value, bool):
            return self.report_mistyped(node, at, reading)
        if (id := _as_id(node.written)) is not None:
            return id
        slug = re.sub(r"[^A-Za-z0-9_-]+", "-", node.written).strip("-_")[:60]
        hint = f"for example '{slug}'" if is_id(slug) else f"it must be {self.called}"
        if node.written in ("$end", "$stop"):
            hint = "remove it: where no target is written, nothing is chosen"
        pieces = [piece.strip() for piece in node.written.split(",")]
        if len(pieces) > 1 and all(map(is_id, pieces)):
            hint = f"write a list: [{', '.join(pieces)}]"
        message = f"'{node.written[:60]}' is not an id"
        reading.problem_at("RCP107", node, at, message, hint)
        return None

    def schema(self) -> JsonSchema:
        return {"type": ["string", "integer"], "pattern": ID_PATTERN}

    def read_all(self, nodes: Sequence[Node], at: Path, reading: Reading) -> list[str | None]:
        # Dense recipes have more names in `depends_on` than anything else.
        ids = [_as_id(node.value) if isinstance(node, ScalarNode) else None for node in nodes]
        return ids if None not in ids else super().read_all(nodes, at, reading)


@lru_cache(maxsize=4096)
def _as_id(written: object) -> str | None:
    # One object a name: an id is named in every depends_on, and looked up again and again.
    return sys.intern(written) if isinstance(written, str) and is_id(written) else None


class Flag(Kind[bool]):
    called = "true or false"

    def read(self, node: Node, at: Path, reading: Reading) -> bool | None:
        if isinstance(node, ScalarNode) and isinstance(node.value, bool):
            return node.value
        return self.report_mistyped(node, at, reading, "write true or false, without quotes")

    def schema(self) -> JsonSchema:
        return {"type": "boolean"}


class Count(Kind[int]):
    """A whole number within bounds."""

    def __init__(self, least: int, most: int) -> None:
        self.least, self.most = least, most
        self.called = f"a whole number from {least:,} to {most:,}"

    def read(self, node: Node, at: Path, reading: Reading) -> int | None:
        if not isinstance(node, ScalarNode) or type(node.value) is not int:
            meant = _guess_count(node.written) if isinstance(node, ScalarNode) else None
            is_meant = meant is not None and self.least <= meant <= self.most
            return self.report_mistyped(node, at, reading, f"write {meant}" if is_meant else "")
        if self.least <= node.value <= self.most:
            return node.value
        message = f"'{at[-1]}' is {node.written[:40]}, which is out of range"
        reading.problem_at("RCP111", node, at, message, f"write {self.called}")
        return None

    def schema(self) -> JsonSchema:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


def _guess_count(written: str) -> int | None:
    """What `500k`, `1,000` and `"3"` mean."""
    found = re.fullmatch(r"(\d{1,12})([km]?)", re.sub(r"[,_\s]", "", written.lower())[:20])
    return int(found[1]) * {"": 1, "k": 1_000, "m": 1_000_000}[found[2]] if found else None


class Amount(Kind[float]):
    called = "a number above 0"

    def read(self, node: Node, at: Path, reading: Reading) -> float | None:
        if not isinstance(node, ScalarNode) or type(node.value) not in (int, float):
            written = node.written.strip(" $€£") if isinstance(node, ScalarNode) else ""
            is_amount = re.fullmatch(r"\d{1,9}(\.\d{1,9})?", written) is not None
            return self.report_mistyped(node, at, reading, f"write {written}" if is_amount else "")
        assert isinstance(node.value, int | float)
        if node.value > 0:
            return float(node.value)
        message = f"'{at[-1]}' is {node.written[:40]}, which is out of range"
        reading.problem_at("RCP111", node, at, message, f"write {self.called}")
        return None

    def schema(self) -> JsonSchema:
        return {"type": "number", "exclusiveMinimum": 0}


class Duration(Kind[float]):
    called = "a duration such as 90s, 3m or 1h30m"
    unit = 1.0

    def read(self, node: Node, at: Path, reading: Reading) -> float | None:
        written = node.value if isinstance(node, ScalarNode) else None
        seconds = None if written is None else parse_duration(written)
        if seconds is not None:
            return seconds
        if not isinstance(node, RefusedNode):
            shown = f"'{node.written[:40]}'" if isinstance(node, ScalarNode) else "this"
            meant = guess_duration(node.written) if isinstance(node, ScalarNode) else None
            hint = f"write {meant or self.called}"
            reading.problem_at("RCP110", node, at, f"{shown} is not a duration", hint)
        return None

    def schema(self) -> JsonSchema:
        pattern = r"^\s*([0-9.]+|([0-9.]+(ms|s|m|h|d))+)\s*$"
        return {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "string", "pattern": pattern},
            ]
        }


class DurationOrTemplate(Duration):
    """Also a text that is rendered first, which is returned as it is."""

    def read(self, node: Node, at: Path, reading: Reading) -> float | None:
        if isinstance(node, ScalarNode) and isinstance(node.value, str) and "{{" in node.value:
            return cast(float, node.value)
        return super().read(node, at, reading)

    def schema(self) -> JsonSchema:
        ways = cast("list[JsonSchema]", super().schema()["anyOf"])
        return {"anyOf": [*ways, {"type": "string", "pattern": r"\{\{.*\}\}"}]}


class Milliseconds(Duration):
    """`timeout_ms`: a bare number of milliseconds, read as seconds."""

    called = "a number of milliseconds above 0"

    def read(self, node: Node, at: Path, reading: Reading) -> float | None:
        if isinstance(node, ScalarNode) and type(node.value) in (int, float):
            assert isinstance(node.value, int | float)
            if (seconds := parse_duration(node.value / 1000)) is not None:
                return seconds
        if not isinstance(node, RefusedNode):
            reading.problem_at(
                "RCP110", node, at, f"'{at[-1]}' must be {self.called}", "for example 1500"
            )
        return None

    def schema(self) -> JsonSchema:
        return {"type": "number", "exclusiveMinimum": 0}


class Choice(Kind[str]):
    def __init__(
        self,
        *choices: str,
        same: Mapping[str, str] | None = None,
        near: Mapping[str, str] | None = None,
    ) -> None:
        """`same`: other words that are accepted. `near`: words of other tools, and which of the
        choices each means."""
        self.choices = choices
        self.same = same or {}
        self.near = near or {}
        self.called = "one of " + ", ".join(choices)

    def read(self, node: Node, at: Path, reading: Reading) -> str | None:
        if isinstance(node, RefusedNode):
            return None
        if not isinstance(node, ScalarNode) or node.value is None:
            return self.report_mistyped(node, at, reading)
        written = self.same.get(node.written, node.written)
        is_known = written in self.choices or node.written in self.same
        if is_known and not isinstance(node.value, bool):
            # The same object as in the code: a stored plan leaves out what *is* the default.
            return sys.intern(written)
        meant = self.near.get(node.written.lower())
        hint = f"write {meant}" if meant else did_you_mean(node.written, self.choices)
        hint = hint or f"it must be {self.called}"
        reading.problem_at(
            "RCP109", node, at, f"'{node.written[:60]}' is not a value of '{at[-1]}'", hint
        )
        return None

    def schema(self) -> JsonSchema:
        return {"enum": [*self.choices, *self.same]}


class Version(Kind[str]):
    """A number or a semver text, kept as it is written."""

    called = "a number or a version such as 1.2.0"
    _PATTERN = r"^v?\d+(\.\d+){0,2}([-+][0-9A-Za-z.+-]*)?$"

    def read(self, node: Node, at: Path, reading: Reading) -> str | None:
        if not isinstance(node, ScalarNode) or isinstance(node.value, bool):
            return self.report_mistyped(node, at, reading)
        if not re.fullmatch(self._PATTERN, node.written) or node.written.endswith("\n"):
            return self.report_mistyped(node, at, reading)
        return node.written

    def schema(self) -> JsonSchema:
        return {"anyOf": [{"type": "number"}, {"type": "string", "pattern": self._PATTERN}]}


class Anything(Kind[Json]):
    """Any JSON value, kept as it is."""

    def read(self, node: Node, at: Path, reading: Reading) -> Json:
        return plain(node)

    def schema(self) -> JsonSchema:
        return {}


class AnyMap(Kind[Mapping[str, Json]]):
    called = "a mapping"

    def read(self, node: Node, at: Path, reading: Reading) -> Mapping[str, Json] | None:
        if isinstance(node, MapNode):
            return {key: plain(value) for key, value in node.entries.items()}
        return self.report_mistyped(node, at, reading)

    def schema(self) -> JsonSchema:
        return {"type": "object"}


class ListOf(Kind[tuple[T, ...]], Generic[T]):
    """A list; elements that cannot be read are left out, their problems said."""

    def __init__(
        self, item: Kind[T], or_one: bool = False, or_commas: bool = False, fix: str = ""
    ) -> None:
        self.item = item
        self.fix = fix
        self.or_one = or_one  # `depends_on: draft` means [draft]
        self.or_commas = or_commas  # `tools: Read, Bash` as front matter writes it
        self.called = "a list"

    def read(self, node: Node, at: Path, reading: Reading) -> tuple[T, ...] | None:
        if self.or_commas and isinstance(node, ScalarNode) and isinstance(node.value, str):
            words = [word.strip() for word in node.value.split(",") if word.strip()]
            pieces: list[Node] = [ScalarNode(node.start, node.end, word, word) for word in words]
        elif isinstance(node, ListNode):
            pieces = node.items
        elif self.or_one and isinstance(node, ScalarNode) and node.value is not None:
            one = self.item.read(node, at, reading)
            return () if one is None else (one,)
        else:
            return self.report_mistyped(node, at, reading)
        values = self.item.read_all(pieces, at, reading)
        return tuple([value for value in values if value is not None])

    def schema(self) -> JsonSchema:
        many: JsonSchema = {"type": "array", "items": self.item.schema()}
        if self.or_commas:
            return {"anyOf": [many, {"type": "string"}]}
        return {"anyOf": [self.item.schema(), many]} if self.or_one else many


class ShapeOf(Kind[T]):
    """A mapping with known keys, turned into a value of our own."""

    def __init__(self, shape: Shape, make: Callable[[Fields, Reading], T | None]) -> None:
        self.shape, self.make = shape, make
        self.called = shape.called

    def read(self, node: Node, at: Path, reading: Reading) -> T | None:
        fields = self.shape.read(node, at, reading)
        return None if fields is None else self.make(fields, reading)

    def schema(self) -> JsonSchema:
        return self.shape.schema()


class MapOf(Kind[Mapping[str, T]], Generic[T]):
    """A mapping whose keys are the author's own ids."""

    def __init__(self, value: Kind[T], keys_are_ids: bool = True, fix: str = "") -> None:
        self.value = value
        self.fix = fix
        self.keys_are_ids = keys_are_ids
        self.called = "a mapping"

    def read(self, node: Node, at: Path, reading: Reading) -> Mapping[str, T] | None:
        if not isinstance(node, MapNode):
            return self.report_mistyped(node, at, reading)
        values: dict[str, T] = {}
        for name, entry in node.entries.items():
            if self.keys_are_ids and not is_id(name):
                hint = f"it must be {Identifier.called}"
                reading.problem_at(
                    "RCP107", node.keys[name], (*at, name), f"'{name[:60]}' is not an id", hint
                )
            value = self.value.read(entry, (*at, name), reading)
            if value is not None:
                values[name] = value
        return values

    def schema(self) -> JsonSchema:
        return {"type": "object", "additionalProperties": self.value.schema()}


class NameOr(Kind[object]):
    """A name, or a mapping that says more."""

    def __init__(self, name: Kind[str], mapped: Kind[object]) -> None:
        self.name, self.mapped = name, mapped
        self.called = f"{name.called}, or {mapped.called}"

    def read(self, node: Node, at: Path, reading: Reading) -> object | None:
        if isinstance(node, MapNode):
            return self.mapped.read(node, at, reading)
        return self.name.read(node, at, reading)

    def schema(self) -> JsonSchema:
        return {"anyOf": [self.name.schema(), self.mapped.schema()]}


class Either(Kind[T]):
    """A list or a mapping: whichever way this is written."""

    def __init__(self, many: Kind[T], mapped: Kind[T], called: str) -> None:
        self.many, self.mapped = many, mapped
        self.called = called

    def read(self, node: Node, at: Path, reading: Reading) -> T | None:
        match node:
            case ListNode():
                return self.many.read(node, at, reading)
            case MapNode():
                return self.mapped.read(node, at, reading)
            case _:
                return self.report_mistyped(node, at, reading)

    def schema(self) -> JsonSchema:
        return {"anyOf": [self.many.schema(), self.mapped.schema()]}
