"""Connect the client of `mcp` to a server: at a URL, or in a program that is started here.

A URL is served by mcp's own transport over a bounded HTTP client. A program is served by a transport
of ours, which mcp's client takes like its own: mcp's would keep a line of any length in memory, make
values of any number of them on the event loop, mix the program's errors into ours, and leave what the
program has started behind when this process is killed. Here all of that is bounded, and the program
runs beneath our guard.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeAlias

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import (
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from stretto.processes.guarded import GuardedProgram, TooMuchOutput, run_guarded
from stretto.processes.programs import ProgramStart

MOST_BYTES = 8_000_000  # of one message
# Lists and objects in one message. Ten bytes of JSON can become a kilobyte of values and keep the
# event loop busy for seconds, so they are counted before any is made.
MOST_PARTS = 50_000
# Log lines and notifications between two answers; a server that sends more is broken.
MOST_UNASKED = 5_000
_GRACE_SECONDS = 2.0
_READ_SECONDS = 300.0
_BETWEEN_EVENTS = re.compile(rb"\r?\n\r?\n")

Incoming: TypeAlias = MemoryObjectSendStream[SessionMessage | Exception]
Outgoing: TypeAlias = MemoryObjectReceiveStream[SessionMessage]
Streams: TypeAlias = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]


class ServerState:
    """What is known of a server's program: whether it has gone, and why."""

    def __init__(self, is_gone: asyncio.Event) -> None:
        self.is_gone = is_gone
        self.is_stuck = False  # it would not end when its input is closed
        self.program: GuardedProgram | None = None
        self._fault = ""

    def blame(self, fault: str) -> None:
        self._fault = self._fault or fault
        self.is_stuck = True

    def __str__(self) -> str:
        errors = self.program.error_tail if self.program else ""
        reasons = [self._fault, f"its last lines on stderr:\n{errors}" if errors else ""]
        return "; ".join(filter(None, reasons))


@asynccontextmanager
async def http_transport(url: str, headers: Mapping[str, str]) -> AsyncIterator[tuple[Any, Any]]:
    """The streams are of types that mcp keeps to itself."""
    timeout = httpx2.Timeout(30.0, read=_READ_SECONDS)
    async with (
        httpx2.AsyncClient(
            headers=dict(headers), timeout=timeout, event_hooks={"response": [_bound]}
        ) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MOST_BYTES) as streams,
    ):
        yield streams


async def _bound(response: httpx2.Response) -> None:
    # mcp bounds the bytes of an event in a stream, but reads an answer that is one document to its
    # end, and in neither case bounds how many values are made of the bytes.
    is_stream = "text/event-stream" in response.headers.get("content-type", "")
    response.stream = _BoundedBody(response.stream, is_stream)


class _BoundedBody(httpx2.AsyncByteStream):
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
            parts += count_parts(piece)
            if size > MOST_BYTES and not self._is_event_stream:
                raise httpx2.ReadError(f"it answered with more than {MOST_BYTES:,} bytes")
            if parts > MOST_PARTS:
                raise httpx2.ReadError(f"it answered with more than {MOST_PARTS:,} parts")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


@asynccontextmanager
async def stdio_transport(start: ProgramStart, state: ServerState) -> AsyncIterator[Streams]:
    """The program has ended when this is left. Raises OSError if the guard cannot be started."""
    incoming, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write_stream, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    async with AsyncExitStack() as streams, AsyncExitStack() as running:
        for stream in (incoming, read_stream, write_stream, outgoing):
            streams.callback(stream.close)
        program = await running.enter_async_context(run_guarded(start))
        state.program = program
        async with anyio.create_task_group() as group:
            group.start_soon(_receive, program, incoming, state)
            group.start_soon(_send, program, outgoing)
            try:
                yield read_stream, write_stream
            finally:
                state.is_gone.set()
                with anyio.CancelScope(shield=True):
                    if not state.is_stuck:
                        await program.end_input(_GRACE_SECONDS)
                    await running.aclose()
                group.cancel_scope.cancel()


async def _receive(program: GuardedProgram, to: Incoming, state: ServerState) -> None:
    unasked = 0
    # The session sees the end of the stream, whatever the reason.
    async with to:
        try:
            async for line in program.lines(most_bytes=None, most_line_bytes=MOST_BYTES):
                if count_parts(line) > MOST_PARTS:
                    state.blame(f"it sent a message of more than {MOST_PARTS:,} parts")
                    break
                message = _read_message(line)
                is_answer = isinstance(message, JSONRPCResponse | JSONRPCError)
                unasked = 0 if is_answer else unasked + 1
                if unasked > MOST_UNASKED:
                    state.blame(f"it sent {unasked:,} messages that were not requested")
                    break
                if message is not None:
                    await to.send(SessionMessage(message))
        except TooMuchOutput as error:
            state.blame(str(error))
        except RecursionError:
            state.blame("it sent a message that is nested too deep")
        except ValueError:
            state.blame("it sent a message that is not JSON")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
            pass  # the session has ended
    state.is_gone.set()


_OBJECT = re.compile(rb'\{\s*["}]')
_OF_AN_ANSWER = frozenset({"jsonrpc", "result", "error"})


def count_parts(message: bytes) -> int:
    """At most so many lists and objects are in it: brackets within texts are counted too."""
    return message.count(b"{") + message.count(b"[")


def _read_message(line: bytes) -> JSONRPCMessage | None:
    """None for a line that is no message: some servers print their log there."""
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return _read_broken_answer(line)


def _read_broken_answer(line: bytes) -> JSONRPCError | None:
    """An answer that is no message of the protocol becomes an error, for a call waits for it."""
    if not _OBJECT.match(line):
        return None
    written = json.loads(line)
    number = written.get("id") if isinstance(written, dict) else None
    if not isinstance(number, int | str) or "method" in written:
        return None
    if not _OF_AN_ANSWER & written.keys():
        return None  # a line of a log in JSON, whose records may have ids as well
    error = ErrorData(code=PARSE_ERROR, message="its answer is no message of the protocol")
    return JSONRPCError(jsonrpc="2.0", id=number, error=error)


async def _send(program: GuardedProgram, messages: Outgoing) -> None:
    async with messages:
        async for each in messages:
            text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
            await program.write_line(text.encode("utf-8", "replace"))
