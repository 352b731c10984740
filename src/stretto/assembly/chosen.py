"""The models of a run, decided before it starts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Chosen:
    default: str
    override: str | None = None
    said: tuple[str, ...] = ()  # lines for the user: which model and why, what is missing


# Asks the user whether weights may be fetched.
Ask: TypeAlias = Callable[[str], bool]
