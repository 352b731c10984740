"""One thing that `stretto doctor` looked at."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Status: TypeAlias = Literal["ok", "warning", "missing"]


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    status: Status
    says: str
    fix: str = ""
    is_essential: bool = False  # nothing works without it
