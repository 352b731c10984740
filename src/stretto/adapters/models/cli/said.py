"""What an agent says of its own work, whichever CLI it is: what every line is read into."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from stretto.ports.runner import Failure
from stretto.vocabulary.usage import Usage
from stretto.vocabulary.values import Json


@dataclass(frozen=True, slots=True)
class Spoke:
    """A piece of a reply."""

    text: str


@dataclass(frozen=True, slots=True)
class CallBegan:
    id: str
    tool: str
    arguments: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class CallEnded:
    id: str
    is_ok: bool
    size: int
    message: str = ""  # how it failed


@dataclass(frozen=True, slots=True)
class Spent:
    """One more call of a model."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class SpentInAll:
    """The CLI's own sum, which replaces what was counted until then."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class Answered:
    text: str


@dataclass(frozen=True, slots=True)
class Capped:
    """It stopped because it may not go on. What it has said until then is kept."""

    reason: str
    is_truncated: bool = False  # in the middle of its answer: half an answer is none


@dataclass(frozen=True, slots=True)
class Failed:
    failure: Failure
    is_last: bool = False  # it would go on trying, in vain


@dataclass(frozen=True, slots=True)
class Named:
    """The model that answers, by its own name."""

    model: str


Said: TypeAlias = (
    Spoke | CallBegan | CallEnded | Spent | SpentInAll | Answered | Capped | Failed | Named
)
