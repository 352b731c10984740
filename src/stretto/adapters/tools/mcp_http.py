"""Talk to an MCP server over HTTP. In: address and headers. Out: a transport for mcp's Client."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client

from stretto.adapters.tools.mcp_stdio import MOST_PARTS, parts_of

MOST_BYTES = 8_000_000
_BETWEEN_EVENTS = re.compile(rb"\r?\n\r?\n")
_READ_SECONDS = 300.0


@asynccontextmanager
async def http_transport(url: str, headers: Mapping[str, str]) -> AsyncIterator[TransportStreams]:
    timeout = httpx2.Timeout(30.0, read=_READ_SECONDS)
    async with (
        httpx2.AsyncClient(
            headers=dict(headers), timeout=timeout, event_hooks={"response": [_bound]}
        ) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MOST_BYTES) as streams,
    ):
        yield streams


async def _bound(response: httpx2.Response) -> None:
    # mcp bounds the bytes of an event in a stream; an answer that is one document it would read to
    # the end. Neither says how much is made of those bytes.
    is_stream = "text/event-stream" in response.headers.get("content-type", "")
    response.stream = _Bounded(response.stream, is_stream)


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: object, is_event_stream: bool) -> None:
        assert isinstance(stream, httpx2.AsyncByteStream)
        self._stream = stream
        self._is_event_stream = is_event_stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, parts = 0, 0
        async for piece in self._stream:
            if self._is_event_stream and _BETWEEN_EVENTS.search(piece):
                size, parts = 0, 0
            size += len(piece)
            parts += parts_of(piece)
            if size > MOST_BYTES and not self._is_event_stream:
                raise httpx2.ReadError(f"it answered with more than {MOST_BYTES:,} bytes")
            if parts > MOST_PARTS:
                raise httpx2.ReadError(f"it answered with more than {MOST_PARTS:,} parts")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
