"""Read what a model passes to a tool. In: its JSON. Out: Given, or every fault in it, in words.

What is read and the JSON schema that the model is shown come from one declaration.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from stretto.templates.value import kind_of
from stretto.vocabulary.names import closest, listed
from stretto.vocabulary.values import Json

_MOST_FAULTS = 8
_MOST_TEXT = 10_000_000


class Kind(Protocol):
    @property
    def schema(self) -> dict[str, Json]: ...

    def fault(self, value: Json) -> str | None:
        """What is wrong with it, to follow the argument's name."""
        ...


@dataclass(frozen=True, slots=True)
class Text:
    least: int = 0  # characters
    most: int = _MOST_TEXT

    @property
    def schema(self) -> dict[str, Json]:
        return {"type": "string", "minLength": self.least} if self.least else {"type": "string"}

    def fault(self, value: Json) -> str | None:
        if not isinstance(value, str):
            return f"must be a string, not {kind_of(value)}"
        if len(value) < self.least:
            return "must not be empty"
        if len(value) > self.most:
            return f"has {len(value):,} characters; {self.most:,} is the most"
        return None


@dataclass(frozen=True, slots=True)
class Whole:
    least: int
    most: int

    @property
    def schema(self) -> dict[str, Json]:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}

    def fault(self, value: Json) -> str | None:
        # True is an int to Python, and 3.0 is an integer to JSON Schema.
        if isinstance(value, bool) or not isinstance(value, int | float) or value % 1 != 0:
            return f"must be a whole number, not {kind_of(value)}"
        if not self.least <= value <= self.most:
            return f"must be from {self.least:,} to {self.most:,}"
        return None


@dataclass(frozen=True, slots=True)
class Flag:
    @property
    def schema(self) -> dict[str, Json]:
        return {"type": "boolean"}

    def fault(self, value: Json) -> str | None:
        return None if isinstance(value, bool) else f"must be true or false, not {kind_of(value)}"


@dataclass(frozen=True, slots=True)
class OneOf:
    words: tuple[str, ...]

    @property
    def schema(self) -> dict[str, Json]:
        return {"type": "string", "enum": list(self.words)}

    def fault(self, value: Json) -> str | None:
        return None if value in self.words else f"must be one of {', '.join(self.words)}"


@dataclass(frozen=True, slots=True)
class Rows:
    """A list of objects."""

    of: "Parameters"
    most: int = 100

    @property
    def schema(self) -> dict[str, Json]:
        return {"type": "array", "items": self.of.schema, "minItems": 1, "maxItems": self.most}

    def fault(self, value: Json) -> str | None:
        if not isinstance(value, list):
            return f"must be a list, not {kind_of(value)}"
        if not 1 <= len(value) <= self.most:
            return f"must have from 1 to {self.most} elements, not {len(value)}"
        for number, row in enumerate(value, 1):
            if not isinstance(row, dict):
                return f"has an element {number} that is no object"
            if faults := self.of.faults(row):
                return f"has an element {number} that is wrong: {faults[0]}"
        return None


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    kind: Kind
    says: str  # for the model
    is_required: bool = False


class Given:
    """Arguments that have been checked."""

    def __init__(self, values: Mapping[str, Json]) -> None:
        self._values = values

    def text(self, name: str, default: str = "") -> str:
        value = self._values.get(name)
        return value if isinstance(value, str) else default

    def whole(self, name: str, default: int) -> int:
        value = self._values.get(name)
        return int(value) if isinstance(value, int | float) else default

    def flag(self, name: str) -> bool:
        return self._values.get(name) is True

    def has(self, name: str) -> bool:
        return self._values.get(name) is not None

    def rows(self, name: str) -> "list[Given]":
        value = self._values.get(name)
        rows = value if isinstance(value, list) else []
        return [Given(row) for row in rows if isinstance(row, dict)]


class Parameters:
    def __init__(self, *fields: Parameter) -> None:
        self._fields = {field.name: field for field in fields}

    @property
    def schema(self) -> dict[str, Json]:
        required: list[Json] = [f.name for f in self._fields.values() if f.is_required]
        properties: dict[str, Json] = {
            name: {**field.kind.schema, "description": field.says}
            for name, field in self._fields.items()
        }
        return {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }

    def faults(self, values: Mapping[str, Json]) -> list[str]:
        return [*self._unknown(values), *self._wrong(values)]

    def _unknown(self, values: Mapping[str, Json]) -> list[str]:
        unknown = [name for name in values if name not in self._fields]
        return [f"there is no argument '{name[:80]}'{self._hint(name)}" for name in unknown]

    def _hint(self, name: str) -> str:
        guess = closest(name, self._fields)
        return f"; did you mean '{guess}'?" if guess else f"; there are {listed(self._fields)}"

    def _wrong(self, values: Mapping[str, Json]) -> list[str]:
        faults: list[str] = []
        for name, field in self._fields.items():
            # Models write null for what they leave out.
            if values.get(name) is None:
                if field.is_required:
                    faults.append(f"the argument '{name}' is missing: {field.says}")
            elif said := field.kind.fault(values[name]):
                faults.append(f"the argument '{name}' {said}")
        return faults


def all_faults(faults: list[str]) -> str:
    shown = "\n".join(f"- {fault}" for fault in faults[:_MOST_FAULTS])
    more = len(faults) - _MOST_FAULTS
    return shown + (f"\n- and {more} more" if more > 0 else "")
