"""Give an answer over one connection. In: an Answer. Out: bytes, as the script wants them."""

import asyncio
from typing import assert_never

from stretto.testing import http_wire, openai_wire
from stretto.testing.openai_script import (
    Answer,
    Asked,
    Cut,
    ErrorInStream,
    Hang,
    Malformed,
    Said,
    Status,
    WrongType,
)

JSON = {"Content-Type": "application/json"}
_EVENTS = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
_LOOK_SECONDS = 0.05  # how soon a client that went away is noticed


class Gone(Exception):
    """The client closed the connection while it was being answered."""


class Line:
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


async def perform(answer: Answer, asked: Asked, line: Line) -> bool:
    match answer:
        case Said():
            return await _say(answer, asked, line)
        case Status():
            return await fail(answer, line)
        case Hang(said, after):
            if said is not None:
                await _begin(said, after, asked, line)
            await line.wait(float("inf"))
            return False
        case Cut(said, after, cleanly):
            await _begin(said, after, asked, line)
            return await line.write(http_wire.LAST_CHUNK) if cleanly and asked.is_stream else False
        case Malformed(text):
            return await _raw_events([text], line) if asked.is_stream else await _raw(text, line)
        case ErrorInStream(message, code, said, after):
            return await _fail_in_stream(message, code, said, after, asked, line)
        case WrongType(content_type, text):
            headers = {"Content-Type": content_type}
            return await line.write(http_wire.whole(200, text.encode(), headers))
    assert_never(answer)


async def _say(said: Said, asked: Asked, line: Line) -> bool:
    if not asked.is_stream:
        await line.wait(said.delay_seconds)
        return await line.write(http_wire.whole(200, openai_wire.completion(said, asked), JSON))
    await _begin(said, None, asked, line)
    return await line.write(http_wire.chunk(openai_wire.DONE) + http_wire.LAST_CHUNK)


async def _begin(said: Said, chunks: int | None, asked: Asked, line: Line) -> None:
    """The first chunks of a stream, all of them for None; or half of a body."""
    await line.wait(said.delay_seconds)
    if not asked.is_stream:
        body = http_wire.whole(200, openai_wire.completion(said, asked), JSON)
        await line.write(body[: -len(body) // 4])
        return
    await line.write(http_wire.head(200, _EVENTS))
    for n, event in enumerate(openai_wire.chunks(said, asked)[:chunks]):
        if n:
            await line.wait(said.chunk_delay_seconds)
        await line.write(http_wire.chunk(event))


async def _fail_in_stream(
    message: str, code: int, said: Said, after: int, asked: Asked, line: Line
) -> bool:
    body = openai_wire.error_body(message, code)
    if not asked.is_stream:
        return await line.write(http_wire.whole(200, body, JSON))
    await _begin(said, after, asked, line)
    event = openai_wire.event(body.decode())
    return await line.write(http_wire.chunk(event) + http_wire.LAST_CHUNK)


async def fail(status: Status, line: Line) -> bool:
    written = status.body
    body = (
        openai_wire.error_body(status.message, status.code) if written is None else written.encode()
    )
    return await line.write(http_wire.whole(status.code, body, {**JSON, **status.headers}))


async def _raw(text: str, line: Line) -> bool:
    return await line.write(http_wire.whole(200, text.encode(), JSON))


async def _raw_events(texts: list[str], line: Line) -> bool:
    await line.write(http_wire.head(200, _EVENTS))
    for text in texts:
        await line.write(http_wire.chunk(openai_wire.event(text)))
    return await line.write(http_wire.chunk(openai_wire.DONE) + http_wire.LAST_CHUNK)
