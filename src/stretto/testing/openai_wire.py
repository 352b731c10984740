"""Answers as OpenAI's chat completions write them. In: Said. Out: a JSON body, or SSE events."""

import json
from collections.abc import Iterator

from stretto.testing.openai_script import Asked, Said, Tokens, text_of
from stretto.vocabulary.values import Json

DONE = b"data: [DONE]\n\n"


def completion(said: Said, asked: Asked) -> bytes:
    message: dict[str, Json] = {"role": "assistant", "content": said.text or None}
    if said.reasoning:
        message["reasoning_content"] = said.reasoning
    if said.tool_calls:
        message["tool_calls"] = [
            {"id": _call_id(said, asked, n), "type": "function",
             "function": {"name": call.name, "arguments": call.arguments_text}}
            for n, call in enumerate(said.tool_calls)
        ]  # fmt: skip
    choice: Json = {
        "index": 0,
        "message": message,
        "finish_reason": _reason(said),
        "logprobs": None,
    }
    return _dumped({
        "id": _id(asked), "object": "chat.completion", "created": 0, "model": asked.model,
        "choices": [choice], "usage": _usage(said, asked),
    })  # fmt: skip


def chunks(said: Said, asked: Asked) -> list[bytes]:
    """The events before [DONE]: the role, the pieces, the finish reason, and usage if asked."""
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in _pieces(said.reasoning, said.chunks)]
    deltas += [{"content": piece} for piece in _pieces(said.text, said.chunks)]
    deltas += _call_deltas(said, asked)
    events = [_chunk(asked, [{"index": 0, "delta": d, "finish_reason": None}]) for d in deltas]
    events.append(_chunk(asked, [{"index": 0, "delta": {}, "finish_reason": _reason(said)}]))
    if asked.wants_usage:
        events.append(_chunk(asked, [], _usage(said, asked)))
    return events


def event(text: str) -> bytes:
    return f"data: {text}\n\n".encode()


def error_body(message: str, code: int) -> bytes:
    return _dumped({"error": {"message": message, "type": "scripted", "code": code}})


def models(names: tuple[str, ...]) -> bytes:
    listed: list[Json] = [{"id": name, "object": "model", "owned_by": "stretto"} for name in names]
    return _dumped({"object": "list", "data": listed})


def tags(names: tuple[str, ...]) -> bytes:
    """The same, as Ollama's own /api/tags writes it."""
    return _dumped({"models": [{"name": name, "model": name} for name in names]})


def _call_deltas(said: Said, asked: Asked) -> Iterator[Json]:
    for n, call in enumerate(said.tool_calls):
        opening: Json = {"name": call.name, "arguments": ""}
        yield {"tool_calls": [{"index": n, "id": _call_id(said, asked, n), "type": "function",
                               "function": opening}]}  # fmt: skip
        for piece in _pieces(call.arguments_text, said.chunks):
            yield {"tool_calls": [{"index": n, "function": {"arguments": piece}}]}


def _chunk(asked: Asked, choices: list[Json], usage: Json = None) -> bytes:
    written: dict[str, Json] = {
        "id": _id(asked), "object": "chat.completion.chunk", "created": 0, "model": asked.model,
        "choices": choices,
    }  # fmt: skip
    if asked.wants_usage:
        written["usage"] = usage
    return b"data: " + _dumped(written) + b"\n\n"


def _usage(said: Said, asked: Asked) -> Json:
    usage = said.usage or _guessed(said, asked)
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }


def _guessed(said: Said, asked: Asked) -> Tokens:
    # Four letters a token is near enough for English, and the same on every run.
    prompt = sum(len(text_of(message.get("content"))) for message in asked.messages)
    spoken = len(said.text) + sum(len(call.arguments_text) for call in said.tool_calls)
    return Tokens(prompt // 4 + 1, spoken // 4 + 1)


def _reason(said: Said) -> str:
    return said.finish_reason or ("tool_calls" if said.tool_calls else "stop")


def _id(asked: Asked) -> str:
    return f"chatcmpl-{asked.times}"


def _call_id(said: Said, asked: Asked, n: int) -> str:
    return said.tool_calls[n].id or f"call_{asked.times}_{n}"


def _pieces(text: str, count: int) -> list[str]:
    size = max(1, -(-len(text) // max(1, count)))
    return [text[at : at + size] for at in range(0, len(text), size)]


def _dumped(it: Json) -> bytes:
    return json.dumps(it, separators=(",", ":")).encode()
