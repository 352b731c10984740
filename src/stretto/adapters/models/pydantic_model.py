"""Any pydantic-ai model as one of ours: for the providers that have no `base_url` in our table.

Importing this module imports pydantic-ai, which takes a second.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from pydantic_ai import exceptions as theirs
from pydantic_ai.messages import (
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model as TheirModel, ModelRequestParameters
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from stretto.adapters.models.openai_faults import (
    LONGEST_FAULT,
    effective_status,
    excerpt,
    is_unreachable_for_good,
    kind_of_status,
    status_message,
    words_and_codes,
)
from stretto.events.model import FailureKind
from stretto.ports.model import (
    FinishReason,
    ModelFailed,
    ModelFault,
    ModelQuestion,
    ModelReply,
    ModelTraits,
    RequestedCall,
    TokenCounts,
    ToolResult,
    UserMessage,
    finish_reason,
)
from stretto.ports.tool import ToolSpec
from stretto.problems.errors import StrettoError

_UNAVAILABLE = (
    theirs.ModelRateLimitError,
    theirs.ModelUnavailableError,
    theirs.ModelServerError,
    theirs.ModelConnectionError,
)
_PERMANENT = (
    theirs.ModelQuotaExceededError,
    theirs.ModelAuthenticationError,
    theirs.ModelNotFoundError,
)
_CATEGORIES: tuple[tuple[type[theirs.ModelAPIError], int], ...] = (
    (theirs.ModelQuotaExceededError, 402),
    (theirs.ModelAuthenticationError, 401),
    (theirs.ModelNotFoundError, 404),
    (theirs.ModelContextWindowExceededError, 413),
)
_NOTHING_CAME = "ended without content"
# Their protocols end every answer with the reason for its end: without one, the rest did not come.
_SAY_WHY = frozenset({
    "anthropic", "bedrock", "google", "google-cloud", "google-gla", "google-vertex", "groq", "mistral",
})  # fmt: skip


class PydanticAIModel:
    def __init__(self, model: TheirModel[Any]) -> None:
        self._model = model
        client: Any = getattr(model, "client", None)
        if isinstance(getattr(client, "max_retries", None), int):
            # We send requests again ourselves: we journal each retry and know the step's timeout.
            client.max_retries = 0
        self._opening = asyncio.Lock()
        self._is_open = False
        profile = model.profile
        self.traits = ModelTraits(
            takes_tools=bool(profile.get("supports_tools", True)),
            takes_schema=bool(profile.get("supports_json_schema_output")),
            can_search=WebSearchTool in profile.get("supported_native_tools", ()),
        )

    async def ask(
        self, question: ModelQuestion, hear: Callable[[str], None] = lambda piece: None
    ) -> ModelReply:
        settings = None
        if question.max_tokens is not None:
            settings = ModelSettings(max_tokens=question.max_tokens)
        messages = _their_messages(question, self._model.system)
        try:
            await self._open()
            asked = self._model.request_stream(messages, settings, _parameters(question))
            async with asked as stream:
                async for event in stream:
                    hear(_text_of(event))
                return _our_reply(stream.get(), self._model.system)
        except Exception as error:
            fault = fault_of(error)
            if fault is None or isinstance(error, StrettoError):
                raise
            raise ModelFailed(fault) from error

    async def close(self) -> None:
        if self._is_open:
            self._is_open = False
            await self._model.__aexit__(None, None, None)

    async def _open(self) -> None:
        async with self._opening:
            if not self._is_open:
                await self._model.__aenter__()
                self._is_open = True


def _parameters(question: ModelQuestion) -> ModelRequestParameters:
    schema, instructions = question.schema, question.instructions
    return ModelRequestParameters(
        function_tools=[_definition(tool) for tool in question.tools],
        native_tools=[WebSearchTool()] if question.searches else [],
        output_mode="native" if schema else "prompted" if question.is_json else "text",
        output_object=OutputObjectDefinition(json_schema=dict(schema), name="answer")
        if schema
        else None,
        instruction_parts=[InstructionPart(instructions)] if instructions else None,
    )


def _definition(tool: ToolSpec) -> ToolDefinition:
    return ToolDefinition(
        name=tool.name,
        description=tool.description,
        parameters_json_schema=dict(tool.parameters),
        strict=False,
    )


def _their_messages(question: ModelQuestion, provider: str) -> list[ModelMessage]:
    written: list[ModelMessage] = []
    instructions = question.instructions or None
    results: list[ToolReturnPart] = []
    for message in question.messages:
        if isinstance(message, ToolResult):
            part = ToolReturnPart(message.tool, message.text, tool_call_id=message.call_id)
            results.append(part)
            continue
        if results:
            written.append(ModelRequest(list(results), instructions=instructions))
            results.clear()
        written.append(_their_message(message, provider, instructions))
    if results:
        written.append(ModelRequest(list(results), instructions=instructions))
    return written


def _their_message(
    message: UserMessage | ModelReply, provider: str, instructions: str | None
) -> ModelMessage:
    if isinstance(message, UserMessage):
        return ModelRequest([UserPromptPart(message.text)], instructions=instructions)
    if message.provider == provider and isinstance(message.own, ModelResponse):
        return message.own
    parts: list[ModelResponsePart] = [TextPart(message.text)] if message.text else []
    parts += [ToolCallPart(call.tool, call.text, call.id) for call in message.calls]
    return ModelResponse(parts)


def _our_reply(response: ModelResponse, provider: str) -> ModelReply:
    usage = response.usage
    counts = TokenCounts(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)
    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    finish: FinishReason | None = response.finish_reason
    odd = ""
    if finish is None and (written := (response.provider_details or {}).get("finish_reason")):
        finish = finish_reason(str(written))
        odd = "" if finish else str(written)
    if finish is None and not odd and provider in _SAY_WHY:
        raise ModelFailed(ModelFault("unavailable", f"{provider} ended its answer in the middle"))
    return ModelReply(
        "".join(part.content for part in response.parts if isinstance(part, TextPart)),
        tuple(
            RequestedCall(each.tool_call_id, each.tool_name, each.args_as_json_str())
            for each in calls
        ),
        counts if usage.input_tokens or usage.output_tokens else None,
        finish,
        odd,
        provider,
        response,
    )


def _text_of(event: object) -> str:
    match event:
        case PartStartEvent(part=TextPart(content=text)):
            return text
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
        case _:
            return ""


def fault_of(error: BaseException) -> ModelFault | None:
    """None: the exception is no model's, but a bug, or a cancellation."""
    if isinstance(error, theirs.FallbackExceptionGroup):
        return _fault_of_group(error.exceptions)
    if isinstance(error, theirs.ModelHTTPError):
        kind, message = _of_status(error)
    elif (other := _kind(error)) is not None:
        kind, message = other, _message(error)
    else:
        return None
    if len(message) > LONGEST_FAULT:
        message = message[:LONGEST_FAULT] + "…"
    return ModelFault(kind, message, getattr(error, "retry_after", None))


def _of_status(error: theirs.ModelHTTPError) -> tuple[FailureKind, str]:
    body = error.body if isinstance(error.body, str) else json.dumps(error.body or "", default=str)
    said, codes = words_and_codes(body)
    meant = effective_status(error.status_code, said, codes)
    if kind_of_status(meant) != "permanent":
        # pydantic-ai knows some codes of providers that the table of ours does not.
        meant = next((s for category, s in _CATEGORIES if isinstance(error, category)), meant)
    kind = kind_of_status(meant)
    if kind == "error" and isinstance(error, _UNAVAILABLE):
        kind = "unavailable"
    elif kind == "error" and isinstance(error, theirs.ModelRequestRejectedError):
        kind = "refused"
    near = error.suggested_model_id
    hint = error.hint or (f"did you mean '{near}'?" if near else "")
    return kind, status_message(error.status_code, meant, excerpt(said), hint)


def _kind(error: BaseException) -> FailureKind | None:
    match error:
        case asyncio.CancelledError() | theirs.RunCancelled():
            return None
        case theirs.ModelRequestTimeout() | TimeoutError():
            return "timeout"
        case theirs.ModelTimeoutError():
            # A model that could not be reached was never asked.
            return "unavailable" if error.phase in ("connect", "pool") else "timeout"
        case theirs.ContentFilterError():
            return "refused"
        case _ if isinstance(error, _PERMANENT) or is_unreachable_for_good(error):
            return "permanent"
        case theirs.ModelAPIError() if _redirects(error):
            return "permanent"
        case _ if isinstance(error, _UNAVAILABLE) or _is_garbled(error):
            return "unavailable"
        case theirs.AgentRunError() | theirs.UserError() | StrettoError():
            return "error"
        case OSError():
            return "unavailable"
        case _:
            return None


def _is_garbled(error: BaseException) -> bool:
    """The provider stumbled over this one answer: half a chunk, or no chunk at all."""
    if isinstance(error, theirs.UnexpectedModelBehavior):
        return _NOTHING_CAME in error.message
    cause = error.__cause__
    return isinstance(error, theirs.ModelAPIError) and any(
        isinstance(each, (json.JSONDecodeError, UnicodeDecodeError))
        for each in (cause, cause and (cause.__cause__ or cause.__context__))
    )


def _redirects(error: BaseException) -> bool:
    cause = error.__cause__
    status = getattr(cause, "status_code", None) or getattr(cause, "code", None)
    return isinstance(status, int) and 300 <= status < 400


def _message(error: BaseException) -> str:
    if isinstance(error, StrettoError):
        return error.with_hint
    if isinstance(error, theirs.UnexpectedModelBehavior):
        return f"{error.message}: {error.body}" if error.body else error.message
    said = str(error) or type(error).__name__
    if isinstance(error, theirs.ModelAPIError) and _redirects(error):
        return f"{said} (the base URL redirects, which is not followed: name the final address)"
    if is_unreachable_for_good(error):
        said = f"{said} (check the address: the base URL, or the proxy)"
    return "no answer in time" if isinstance(error, TimeoutError) and not str(error) else said


def _fault_of_group(errors: Sequence[BaseException]) -> ModelFault | None:
    """All models failed: if one of them may come back, so may the whole."""
    faults = [fault for error in errors if (fault := fault_of(error))]
    if not faults:
        return None
    worst = next((fault for fault in faults if fault.kind == "unavailable"), faults[0])
    waits = [f.retry_after_seconds for f in faults if f.retry_after_seconds is not None]
    message = "; ".join(fault.message for fault in faults)
    return ModelFault(worst.kind, message, min(waits, default=None))
