"""Write a request as chat completions want it. In: pydantic-ai's messages. Out: a JSON body."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from stretto.adapters.models.openai_tools import response_format_of, tools_of
from stretto.vocabulary.values import Json

# Ours → theirs. `max_tokens` has two names, and the rest of the settings are pydantic-ai's own.
_SETTINGS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "stop_sequences": "stop",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "logit_bias": "logit_bias",
    "service_tier": "service_tier",
}
# A reasoning model of OpenAI refuses a request that has one of these.
_SAMPLING = ("temperature", "top_p", "presence_penalty", "frequency_penalty", "logit_bias")

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64


def request_body(
    model: str,
    messages: Sequence[ModelMessage],
    settings: ModelSettings,
    parameters: ModelRequestParameters,
    *,
    is_stream: bool,
    provider: str,
    max_tokens_key: str,
    is_reasoning: bool = False,
) -> bytes:
    body: dict[str, Any] = {"model": model, "messages": _messages(messages, parameters, provider)}
    if is_stream:
        body["stream"] = True
        body["stream_options"] = {"include_usage": True}
    body.update(tools_of(settings, parameters))
    body.update(response_format_of(parameters))
    for ours, theirs in _SETTINGS.items():
        if ours in settings and not (is_reasoning and ours in _SAMPLING):
            body[theirs] = settings[ours]  # type: ignore[literal-required]
    if "max_tokens" in settings:
        body[max_tokens_key] = settings["max_tokens"]
    if isinstance(parameters.thinking, str):
        body["reasoning_effort"] = parameters.thinking
    extra = settings.get("extra_body")
    if isinstance(extra, dict):
        body.update(extra)
    # A lone surrogate, which models do write now and then, has no UTF-8.
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def _messages(
    messages: Sequence[ModelMessage], parameters: ModelRequestParameters, provider: str
) -> list[Json]:
    written: list[Json] = []
    for message in messages:
        if isinstance(message, ModelRequest):
            written.extend(_request_messages(message.parts))
        elif (said := _assistant_message(message, provider)) is not None:
            written.append(said)
    instructions: list[Json] = [
        {"role": "system", "content": text} for text in _instructions(messages, parameters)
    ]
    if instructions:
        # After the system prompts, before all else, as pydantic-ai has it.
        at = next((n for n, m in enumerate(written) if not _is_system(m)), len(written))
        written[at:at] = instructions
    return written


def _is_system(message: Json) -> bool:
    return isinstance(message, dict) and message["role"] == "system"


def _instructions(
    messages: Sequence[ModelMessage], parameters: ModelRequestParameters
) -> list[str]:
    if parameters.instruction_parts is not None:
        return [part.content for part in parameters.instruction_parts]
    # Only who calls a model without an agent comes here.
    requests = [message for message in messages if isinstance(message, ModelRequest)]
    last = next((r.instructions for r in reversed(requests) if r.instructions), None)
    return [last] if last else []


def _request_messages(parts: Sequence[ModelRequestPart]) -> Iterator[Json]:
    files: list[UserContent] = []
    for part in parts:
        if isinstance(part, SystemPromptPart):
            yield {"role": "system", "content": part.content}
        elif isinstance(part, UserPromptPart):
            yield {"role": "user", "content": _user_content(part.content)}
        elif isinstance(part, ToolReturnPart):
            text, some = part.model_response_str_and_user_content()
            files.extend(some)
            yield {"role": "tool", "tool_call_id": part.tool_call_id, "content": text}
        else:
            # Model.prepare_messages, which every agent calls, has rewritten all other kinds.
            raise UserError(f"a {type(part).__name__} must be prepared before it is sent")
    if files:
        yield {"role": "user", "content": _user_content(files)}


def _user_content(content: str | Sequence[UserContent]) -> Json:
    if isinstance(content, str):
        return content
    return [_content_part(item) for item in content if not isinstance(item, CachePoint)]


def _content_part(item: UserContent) -> Json:
    match item:
        case str():
            return {"type": "text", "text": item}
        case TextContent():
            return {"type": "text", "text": item.content}
        case ImageUrl():
            return {"type": "image_url", "image_url": {"url": item.url}}
        case BinaryContent() if item.is_image:
            return {"type": "image_url", "image_url": {"url": item.data_uri}}
    raise UserError(f"a {type(item).__name__} cannot be sent as a chat completion; send text")


def _tool_name(part: ToolCallPart) -> str:
    """Models make names up, and a provider refuses a history that has them as they were."""
    return _NOT_IN_NAMES.sub("_", part.tool_name)[:_LONGEST_NAME] or "unnamed"


def _assistant_message(message: ModelResponse, provider: str) -> Json:
    """None when nothing of it can be sent."""
    texts: list[str] = []
    calls: list[Json] = []
    thoughts: dict[str, str] = {}
    for part in message.parts:
        if isinstance(part, TextPart):
            texts.append(part.content)
        elif isinstance(part, ToolCallPart):
            function: Json = {"name": _tool_name(part), "arguments": part.args_as_json_str()}
            calls.append({"id": part.tool_call_id, "type": "function", "function": function})
        elif isinstance(part, ThinkingPart) and part.id and part.provider_name == provider:
            thoughts[part.id] = thoughts.get(part.id, "") + part.content
    if not texts and not calls:
        return None
    written: dict[str, Json] = {"role": "assistant", "content": "\n\n".join(texts) or None}
    if calls:
        written["tool_calls"] = calls
        # Who thinks aloud between tool calls wants to see its own thoughts again.
        written.update(thoughts)
    return written
