"""A model behind OpenAI's chat completions.

It speaks HTTP itself, because the SDK takes 0.8 s to import and five times the CPU of this for a
call. One instance serves any number of calls at once, in any event loop.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from contextlib import aclosing, asynccontextmanager

import httpcore2

from stretto.adapters.models import openai_faults as faults
from stretto.adapters.models.endpoint import Endpoint
from stretto.adapters.models.http_client import client_of
from stretto.adapters.models.openai_wire import (
    EventLines,
    PartialReply,
    read_object,
    request_body,
)
from stretto.ports.model import ModelQuestion, ModelReply, ModelTraits

_PATH = "chat/completions"
_MOST_BYTES = 64 * 1024 * 1024  # of one answer
_MOST_EVENT_BYTES = 8 * 1024 * 1024
# After [DONE] the body should end at once. If it does not, the connection is given up.
_DRAIN_SECONDS = 0.2
_DONE = b"[DONE]"


class OpenAIModel:
    def __init__(self, name: str, endpoint: Endpoint) -> None:
        self._name = name
        self._endpoint = endpoint
        self.traits = ModelTraits()

    @property
    def base_url(self) -> str:
        return self._endpoint.base_url

    async def ask(
        self, question: ModelQuestion, hear: Callable[[str], None] = lambda piece: None
    ) -> ModelReply:
        reply = PartialReply(self._endpoint)
        async with self._send(request_body(self._name, question, self._endpoint)) as response:
            if _content_type(response) == "application/json":
                hear(reply.add_whole(await self._read_all(response)))
            else:
                await self._read_events(response, reply, hear)
        return reply.reply()

    async def close(self) -> None:
        """Connections are shared by all models of an event loop, and end with it."""

    @asynccontextmanager
    async def _send(self, body: bytes) -> AsyncGenerator[httpcore2.Response]:
        """An answer with status 200 and of a kind that we read."""
        endpoint = self._endpoint
        with faults.transport_failures(endpoint):
            client = await client_of(endpoint.base_url)
            async with client.send(
                "POST",
                endpoint.target(_PATH),
                [*endpoint.headers, (b"Content-Length", b"%d" % len(body))],
                body,
                idle_seconds=endpoint.idle_seconds,
                connect_seconds=min(endpoint.idle_seconds, endpoint.connect_seconds),
            ) as response:
                if response.status != 200:
                    text = await self._read_all(response)
                    raise faults.status_failure(
                        response.status, _header_texts(response), text, endpoint
                    )
                if _content_type(response) not in ("application/json", "text/event-stream"):
                    what = f"answered with {_content_type(response) or 'no content type'}"
                    raise faults.unexpected(what, await self._read_all(response), endpoint)
                encoding = _header_texts(response).get("content-encoding", "identity")
                if encoding.strip().lower() not in ("", "identity"):
                    what = f"compressed its answer ({encoding}), which it was not asked to"
                    raise faults.unexpected(what, b"", endpoint)
                yield response

    async def _read_events(
        self, response: httpcore2.Response, reply: PartialReply, hear: Callable[[str], None]
    ) -> None:
        lines = EventLines()
        async with aclosing(self._parts(response)) as parts:
            async for part in parts:
                for text in lines.feed(part):
                    if text == _DONE:
                        reply.check_heard()
                        hear(reply.end())
                        await _drain(parts)
                        return
                    hear(reply.add(text))
                if lines.held_bytes > _MOST_EVENT_BYTES:
                    raise faults.unexpected("sent a chunk without end", b"", self._endpoint)
        for text in lines.end():
            if text != _DONE:
                if read_object(text) is None:
                    raise faults.cut_off(self._endpoint)
                hear(reply.add(text))
        if lines.other:
            hear(reply.add_whole(lines.other))
            return
        hear(reply.end())
        if not reply.has_ended:
            raise faults.cut_off(self._endpoint)

    async def _parts(self, response: httpcore2.Response) -> AsyncGenerator[bytes]:
        """The body as it comes, up to a limit."""
        length = 0
        stream = response.stream
        assert isinstance(stream, AsyncIterable)
        async for part in stream:
            length += len(part)
            if length > _MOST_BYTES:
                raise faults.unexpected(f"sent more than {_MOST_BYTES} bytes", b"", self._endpoint)
            yield part

    async def _read_all(self, response: httpcore2.Response) -> bytes:
        return b"".join([part async for part in self._parts(response)])


async def _drain(parts: AsyncGenerator[bytes]) -> None:
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in parts:
                pass
    except TimeoutError:
        pass
    except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException):
        pass  # the whole answer is here


def _content_type(response: httpcore2.Response) -> str:
    return _header_texts(response).get("content-type", "").partition(";")[0].strip().lower()


def _header_texts(response: httpcore2.Response) -> dict[str, str]:
    return {
        name.decode("latin-1").lower(): text.decode("latin-1") for name, text in response.headers
    }
