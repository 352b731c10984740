"""JSON values: what inputs, outputs and the journal hold; and large ones, by reference.

The outputs of thousands of steps do not fit into memory together, and few of them are looked at
again. So the state of a run holds only where a large one is kept, and it is read when a prompt or
a report shows it.

Dataclasses, not structs: shell completion loads this module, and no msgspec.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
else:
    Json = Any  # msgspec knows no recursive types


DEEPEST = 100  # levels of a value from outside: code that walks through it recurses once a level
LARGE_BYTES = 64 * 1024  # of JSON; what is smaller is kept as it is


def read_json(text: str | bytes) -> Json:
    """Raises ValueError, also for the words NaN and Infinity, which Python reads and JSON does not
    have. A number that no float can hold, such as 1e999, still becomes infinity."""
    found: Json = json.loads(text, parse_constant=_refuse)
    return found


def _refuse(constant: str) -> Json:
    raise ValueError(f"{constant} is not a number in JSON")


def is_deeper(value: object, most: int = DEEPEST) -> bool:
    """Whether the lists and objects of a value are nested more than `most` levels deep."""
    level: list[Any] = [value]
    for _ in range(most + 1):
        level = [each for each in level if isinstance(each, dict | list | tuple)]
        if not level:
            return False
        level = [
            inner for each in level for inner in (each.values() if isinstance(each, dict) else each)
        ]
    return True


@dataclass(frozen=True, slots=True)
class Large:
    digest: str  # of its JSON: a store keeps equal values once
    size: int  # bytes of its JSON
    read: Callable[[str], Json]

    def value(self) -> Json:
        """Read anew each time: a caller that needs the value for long must keep it."""
        return self.read(self.digest)


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """What the branches of a step or the elements of a map have given; some of it may be large."""

    parts: "list[Json | Large] | dict[str, Json | Large]"

    def value(self) -> Json:
        if isinstance(self.parts, list):
            return [loaded(part) for part in self.parts]
        return {key: loaded(part) for key, part in self.parts.items()}


Kept: TypeAlias = Json | Large | Gathered


def loaded(value: Kept) -> Json:
    return value.value() if isinstance(value, Large | Gathered) else value
