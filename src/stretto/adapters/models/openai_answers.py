"""Read what chat completions answer. In: JSON. Out: usage, finish reason, parts.

It comes from outside and may be anything, so each field is looked at before it is believed.
"""

import json
from collections.abc import Mapping
from typing import Any

from pydantic_ai.messages import (
    FinishReason,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from pydantic_ai.usage import RequestUsage

Object = Mapping[str, Any]
_FINISH: Mapping[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_call",
    "function_call": "tool_call",
    "content_filter": "content_filter",
    "error": "error",
}
# Whoever thinks aloud does so under one of these names.
THINKING_FIELDS = ("reasoning_content", "reasoning")
_NOTHING: Object = {}


def parsed_object(text: bytes) -> Object | None:
    """None when it is not a JSON object."""
    try:
        it = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return it if isinstance(it, dict) else None


def object_in(it: Object, name: str) -> Object:
    found = it.get(name)
    return found if isinstance(found, dict) else _NOTHING


def objects_in(it: Object, name: str) -> list[Object]:
    found = it.get(name)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def text_in(it: Object, name: str) -> str:
    """Some servers write a text as a list of parts."""
    found = it.get(name)
    if isinstance(found, str):
        return found
    return "".join(text_in(part, "text") for part in objects_in(it, name))


def usage_of(answer: Object) -> RequestUsage | None:
    """None when it says nothing. Cached tokens are part of the input, reasoning of the output."""
    usage = object_in(answer, "usage")
    if not usage:
        return None
    prompt, completion = (
        object_in(usage, f"{of}_tokens_details") for of in ("prompt", "completion")
    )
    return RequestUsage(
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
        cache_read_tokens=_count(prompt, "cached_tokens")
        or _count(usage, "prompt_cache_hit_tokens"),
        output_reasoning_tokens=_count(completion, "reasoning_tokens"),
    )


def _count(it: Object, name: str) -> int:
    found = it.get(name)
    return found if type(found) is int and found >= 0 else 0


def finish_reason_of(reason: object) -> FinishReason | None:
    return _FINISH.get(reason) if isinstance(reason, str) else None


def parts_of(message: Object, provider: str, tags: tuple[str, str]) -> list[ModelResponsePart]:
    """Of an answer that came whole."""
    parts: list[ModelResponsePart] = []
    for field in THINKING_FIELDS:
        if thought := text_in(message, field):
            parts.append(ThinkingPart(thought, id=field, provider_name=provider))
    text = text_in(message, "content")
    opening, closing = tags
    if text.lstrip().startswith(opening) and closing in text:
        thought, _, text = text.lstrip().removeprefix(opening).partition(closing)
        parts.append(ThinkingPart(thought.strip()))
        text = text.lstrip()
    if text:
        parts.append(TextPart(text))
    for call in objects_in(message, "tool_calls"):
        function = object_in(call, "function")
        if name := text_in(function, "name"):
            arguments = text_in(function, "arguments")
            call_id = text_in(call, "id")
            parts.append(ToolCallPart(name, arguments, call_id) if call_id else ToolCallPart(name, arguments))  # fmt: skip
    return parts
