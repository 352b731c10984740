"""One promise, and whether the journal bears it out."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from stretto.vocabulary.values import Json


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    is_proven: bool
    says: str  # what was proven, or why it was not
    evidence: Mapping[str, Json] = field(default_factory=dict)
