"""The plug point for models: a question in, a reply out, its text heard piece by piece.

The types here are small and our own, because importing those of pydantic-ai takes a second of CPU.
`adapters.models.pydantic_model` makes a Model of any pydantic-ai model.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from stretto.events.model import FailureKind
from stretto.ports.tool import ToolSpec
from stretto.vocabulary.json_value import Json

FinishReason: TypeAlias = Literal["stop", "length", "tool_call", "content_filter", "error"]

_BY_NAME: dict[str, FinishReason] = {
    **dict.fromkeys(("stop", "end_turn", "eos", "eos_token", "stop_sequence", "stop_str"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length", "max_length",
                     "model_context_window_exceeded", "token_limit"), "length"),
    **dict.fromkeys(("tool_calls", "tool_call", "tool_use", "function_call"), "tool_call"),
    **dict.fromkeys(("content_filter", "content_filtered", "safety", "image_safety", "refusal", "recitation",
                     "blocklist", "prohibited_content", "spii", "guardrail_intervened", "sensitive"), "content_filter"),
    **dict.fromkeys(("error", "network_error", "insufficient_system_resource", "abort", "aborted", "cancelled",
                     "timeout", "malformed_function_call", "unexpected_tool_call"), "error"),
}  # fmt: skip


def finish_reason(written: str) -> FinishReason | None:
    """What a provider calls the end of its answer; None: a word that is not known."""
    return _BY_NAME.get(written.strip().lower().replace("-", "_"))


@dataclass(frozen=True, slots=True)
class TokenCounts:
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0  # these are part of the input tokens


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A tool call as the model wrote it."""

    id: str
    tool: str
    text: str  # the arguments, which should be a JSON object

    @property
    def arguments(self) -> Mapping[str, Json] | None:
        """None: they are not a JSON object."""
        try:
            read = json.loads(self.text) if self.text.strip() else {}
        except (ValueError, RecursionError):
            return None
        return read if isinstance(read, dict) else None


@dataclass(frozen=True, slots=True)
class UserMessage:
    text: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    call_id: str
    tool: str
    text: str


@dataclass(frozen=True, slots=True)
class ModelReply:
    text: str = ""
    calls: tuple[RequestedCall, ...] = ()
    tokens: TokenCounts | None = None  # None: the provider did not say
    finish: FinishReason | None = None
    # The provider's own word for why it stopped, where that is none of those above.
    odd_finish: str = ""
    provider: str = ""  # who can make use of `own`
    own: object = None  # thoughts and the like, which the same provider wants to see again


ChatMessage: TypeAlias = UserMessage | ToolResult | ModelReply


@dataclass(frozen=True, slots=True)
class ModelQuestion:
    messages: Sequence[ChatMessage]
    instructions: str = ""
    tools: Sequence[ToolSpec] = ()
    schema: Mapping[str, Json] | None = None  # the provider holds the answer to it
    is_json: bool = False  # without a schema: any JSON object
    max_tokens: int | None = None
    searches: bool = False  # the provider's own web search is switched on


@dataclass(frozen=True, slots=True)
class ModelTraits:
    is_local: bool = False  # a small one on this machine, which needs to be led
    takes_tools: bool = True
    takes_schema: bool = True
    can_search: bool = False  # its provider searches the web by itself


@dataclass(frozen=True, slots=True)
class ModelFault:
    """Why a model gave no answer, in words for a person; no secret is in it."""

    kind: FailureKind
    message: str
    retry_after_seconds: float | None = None


class ModelFailed(Exception):
    def __init__(self, fault: ModelFault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class Model(Protocol):
    @property
    def traits(self) -> ModelTraits: ...

    async def ask(
        self, question: ModelQuestion, hear: Callable[[str], None] = lambda piece: None
    ) -> ModelReply:
        """`hear` gets the text as it comes; an empty piece says that the model is still working.

        Raises ModelFailed, or StrettoError for what the user must set right. Cancelling stops it.
        """
        ...

    async def close(self) -> None: ...


class Models(Protocol):
    async def model(self, name: str) -> Model:
        """The same one for the same name, with a shared client. Raises StrettoError."""
        ...

    def usd(self, name: str, tokens: TokenCounts) -> float:
        """What it cost; 0 for what is free or has no known price."""
        ...
