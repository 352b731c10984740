"""Give an answer over one connection, as OpenAI's chat completions write it.

The first half makes what is sent: a JSON body, or server-sent events. The second half sends it as
the script says: whole, slowly, cut, broken, or never.
"""

import asyncio
import json
from collections.abc import Iterator
from typing import assert_never

from stretto.testing import http_wire
from stretto.testing.openai_script import (
    Asked,
    Cut,
    ErrorInStream,
    Hang,
    Malformed,
    Said,
    ServerAnswer,
    Status,
    TokenUsage,
    WrongType,
    text_of,
)
from stretto.vocabulary.json_value import Json

DONE = b"data: [DONE]\n\n"
JSON = {"Content-Type": "application/json"}
_EVENTS = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
_LOOK_SECONDS = 0.05  # how soon a client that went away is noticed


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
    return _dump({
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
    return _dump({"error": {"message": message, "type": "scripted", "code": code}})


def models(names: tuple[str, ...]) -> bytes:
    listed: list[Json] = [{"id": name, "object": "model", "owned_by": "stretto"} for name in names]
    return _dump({"object": "list", "data": listed})


def tags(names: tuple[str, ...]) -> bytes:
    """The same, as Ollama's own /api/tags writes it."""
    return _dump({"models": [{"name": name, "model": name} for name in names]})


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
    return b"data: " + _dump(written) + b"\n\n"


def _usage(said: Said, asked: Asked) -> Json:
    usage = said.usage or _guess_usage(said, asked)
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }


def _guess_usage(said: Said, asked: Asked) -> TokenUsage:
    # Four letters a token is near enough for English, and the same on every run.
    prompt = sum(len(text_of(message.get("content"))) for message in asked.messages)
    spoken = len(said.text) + sum(len(call.arguments_text) for call in said.tool_calls)
    return TokenUsage(prompt // 4 + 1, spoken // 4 + 1)


def _reason(said: Said) -> str:
    return said.finish_reason or ("tool_calls" if said.tool_calls else "stop")


def _id(asked: Asked) -> str:
    return f"chatcmpl-{asked.times}"


def _call_id(said: Said, asked: Asked, n: int) -> str:
    return said.tool_calls[n].id or f"call_{asked.times}_{n}"


def _pieces(text: str, count: int) -> list[str]:
    size = max(1, -(-len(text) // max(1, count)))
    return [text[at : at + size] for at in range(0, len(text), size)]


def _dump(it: Json) -> bytes:
    return json.dumps(it, separators=(",", ":")).encode()


class Gone(Exception):
    """The client closed the connection while it was being answered."""


class ServedConnection:
    """One connection, while one request is answered."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def write(self, part: bytes) -> bool:
        if self._reader.at_eof() or self._writer.is_closing():
            raise Gone
        self._writer.write(part)
        try:
            await self._writer.drain()
        except ConnectionError:
            raise Gone from None
        return True

    async def wait(self, seconds: float) -> None:
        while seconds > 0:
            await asyncio.sleep(min(seconds, _LOOK_SECONDS))
            if self._reader.at_eof() or self._writer.is_closing():
                raise Gone
            seconds -= _LOOK_SECONDS


async def perform(answer: ServerAnswer, asked: Asked, connection: ServedConnection) -> bool:
    match answer:
        case Said():
            return await _say(answer, asked, connection)
        case Status():
            return await fail(answer, connection)
        case Hang(said, after):
            if said is not None:
                await _begin(said, after, asked, connection)
            await connection.wait(float("inf"))
            return False
        case Cut(said, after, cleanly):
            await _begin(said, after, asked, connection)
            return (
                await connection.write(http_wire.LAST_CHUNK)
                if cleanly and asked.is_stream
                else False
            )
        case Malformed(text):
            return (
                await _raw_events([text], connection)
                if asked.is_stream
                else await _raw(text, connection)
            )
        case ErrorInStream(message, code, said, after):
            return await _fail_in_stream(message, code, said, after, asked, connection)
        case WrongType(content_type, text):
            headers = {"Content-Type": content_type}
            return await connection.write(http_wire.whole(200, text.encode(), headers))
    assert_never(answer)


async def _say(said: Said, asked: Asked, connection: ServedConnection) -> bool:
    if not asked.is_stream:
        await connection.wait(said.delay_seconds)
        return await connection.write(http_wire.whole(200, completion(said, asked), JSON))
    await _begin(said, None, asked, connection)
    return await connection.write(http_wire.chunk(DONE) + http_wire.LAST_CHUNK)


async def _begin(said: Said, most: int | None, asked: Asked, connection: ServedConnection) -> None:
    """The first `most` events of a stream, all for None; otherwise three quarters of the answer."""
    await connection.wait(said.delay_seconds)
    if not asked.is_stream:
        body = http_wire.whole(200, completion(said, asked), JSON)
        await connection.write(body[: -len(body) // 4])
        return
    await connection.write(http_wire.head(200, _EVENTS))
    for n, piece in enumerate(chunks(said, asked)[:most]):
        if n:
            await connection.wait(said.chunk_delay_seconds)
        await connection.write(http_wire.chunk(piece))


async def _fail_in_stream(
    message: str, code: int, said: Said, after: int, asked: Asked, connection: ServedConnection
) -> bool:
    body = error_body(message, code)
    if not asked.is_stream:
        return await connection.write(http_wire.whole(200, body, JSON))
    await _begin(said, after, asked, connection)
    failed = http_wire.chunk(event(body.decode()))
    return await connection.write(failed + http_wire.LAST_CHUNK)


async def fail(status: Status, connection: ServedConnection) -> bool:
    written = status.body
    body = error_body(status.message, status.code) if written is None else written.encode()
    return await connection.write(http_wire.whole(status.code, body, {**JSON, **status.headers}))


async def _raw(text: str, connection: ServedConnection) -> bool:
    return await connection.write(http_wire.whole(200, text.encode(), JSON))


async def _raw_events(texts: list[str], connection: ServedConnection) -> bool:
    await connection.write(http_wire.head(200, _EVENTS))
    for text in texts:
        await connection.write(http_wire.chunk(event(text)))
    return await connection.write(http_wire.chunk(DONE) + http_wire.LAST_CHUNK)
