"""The plug point for models. In: a name such as `openai:gpt-4o`. Out: a pydantic-ai model.

pydantic-ai's `Model` is the port itself: forty providers fulfil it already, and ours do too.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from stretto.events.model import FailureKind

if TYPE_CHECKING:  # pydantic-ai takes a second to import; only a real call needs it
    from pydantic_ai.models import Model
    from pydantic_ai.usage import RequestUsage


@dataclass(frozen=True, slots=True)
class ModelFault:
    """Why a model gave no answer, in words for a person; no secret is in it."""

    kind: FailureKind
    message: str
    retry_after_seconds: float | None = None


class Models(Protocol):
    async def model(self, name: str) -> "Model":
        """The same one for the same name, with a shared client. Raises StrettoError."""
        ...

    def usd(self, name: str, usage: "RequestUsage") -> float:
        """What it cost; 0 for what is free or has no known price."""
        ...

    def fault(self, error: Exception) -> ModelFault | None:
        """What an exception of a model means; None: it is none of theirs."""
        ...
