"""Talk to an MCP server that is a program. In: how to start it. Out: a transport for mcp's Client.

Not mcp's own stdio transport, which keeps a line of any length in memory and lets the program's
errors run into ours. Here a line, the errors that are kept and the time to end are bounded.
"""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import (
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from stretto.processes import python

MOST_LINE_BYTES = 8_000_000
# Lists and objects in one message. Ten bytes of JSON can become a kilobyte of values and keep the
# event loop busy for seconds, so they are counted before any is made.
MOST_PARTS = 50_000
# Log lines, notifications: so many between two answers that nobody can mean them.
MOST_UNASKED = 5_000
_MOST_ERRORS = 4_000
_GRACE_SECONDS = 2.0
_GUARD_SECONDS = 7.0  # it needs five at most
_LAST_WORDS_SECONDS = 0.2

Incoming = MemoryObjectSendStream[SessionMessage | Exception]
Outgoing = MemoryObjectReceiveStream[SessionMessage]


class Ending:
    """How the program came to an end: its last words, and what we have against it."""

    def __init__(self, is_gone: asyncio.Event) -> None:
        self.is_gone = is_gone
        self.is_hopeless = False  # it will not end by being asked to
        self.is_heard = asyncio.Event()  # all its errors have been read
        self._fault = ""
        self._errors = bytearray()
        self._is_cut = False

    def blame(self, fault: str) -> None:
        self._fault = self._fault or fault
        self.is_hopeless = True

    def hear(self, errors: bytes) -> None:
        self._errors += errors
        self._is_cut = self._is_cut or len(self._errors) > _MOST_ERRORS
        del self._errors[:-_MOST_ERRORS]

    def __str__(self) -> str:
        said = self._errors.decode("utf-8", "replace").strip()
        if self._is_cut:
            # Its first word may be the end of a secret, which nobody would know as one.
            said = "… " + said.partition(" ")[2]
        words = [self._fault, f"its last words:\n{said}" if said else ""]
        return "; ".join(word for word in words if word)


@asynccontextmanager
async def stdio_transport(
    argv: Sequence[str], environment: Mapping[str, str], folder: Path, ending: Ending
) -> AsyncIterator[TransportStreams]:
    """Raises OSError when the program cannot be started. It is gone when this is left."""
    life, held = os.pipe()
    ours = open(held, "wb", buffering=0)  # noqa: SIM115 - closed here, or where the server is ended
    try:
        process = await _started(argv, environment, folder, life)
    except BaseException:
        ours.close()
        raise
    finally:
        os.close(life)
    incoming, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write_stream, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_hear_errors, process, ending)
            group.start_soon(_receive, process, incoming, ending)
            group.start_soon(_send, process, outgoing)
            try:
                yield read_stream, write_stream
            finally:
                ending.is_gone.set()
                with anyio.CancelScope(shield=True):
                    await _end(process, ours, 0.0 if ending.is_hopeless else _GRACE_SECONDS)
                    # Whom it has started may still hold them open.
                    with anyio.move_on_after(_LAST_WORDS_SECONDS):
                        await ending.is_heard.wait()
                group.cancel_scope.cancel()
    finally:
        _let_go(process)
        ours.close()
        for stream in (incoming, read_stream, write_stream, outgoing):
            stream.close()


async def _started(
    argv: Sequence[str], environment: Mapping[str, str], folder: Path, life: int
) -> asyncio.subprocess.Process:
    """Beneath the guard: what it starts ends with it, and all of it when we are killed."""
    command = python.guarded(argv, folder, life)
    return await asyncio.create_subprocess_exec(
        *command.words, cwd=command.folder, env=dict(environment), pass_fds=(life,),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE, limit=MOST_LINE_BYTES, start_new_session=True,
    )  # fmt: skip


async def _receive(process: asyncio.subprocess.Process, to: Incoming, ending: Ending) -> None:
    assert process.stdout is not None
    unasked = 0
    # The session sees the end of the stream, whatever the reason.
    async with to:
        try:
            while line := await process.stdout.readline():
                if parts_of(line) > MOST_PARTS:
                    ending.blame(f"it sent a message of more than {MOST_PARTS:,} parts")
                    break
                message = _read_message(line)
                is_answer = isinstance(message, JSONRPCResponse | JSONRPCError)
                unasked = 0 if is_answer else unasked + 1
                if unasked > MOST_UNASKED:
                    ending.blame(f"it sent {unasked:,} messages that nobody asked for")
                    break
                if message is not None:
                    await to.send(SessionMessage(message))
        except (json.JSONDecodeError, UnicodeDecodeError):
            ending.blame("it sent a message that is no JSON")
        except RecursionError:
            ending.blame("it sent a message that is nested too deep")
        except ValueError:
            ending.blame(f"it sent a line of more than {MOST_LINE_BYTES:,} bytes")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
            pass  # nobody listens any more
    ending.is_gone.set()


def parts_of(message: bytes) -> int:
    """At most so many lists and objects are in it: brackets within texts are counted too."""
    return message.count(b"{") + message.count(b"[")


def _read_message(line: bytes) -> JSONRPCMessage | None:
    """None: not for us. Some print their log there; it counts as unasked. Raises ValueError."""
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return _broken_answer(line)


def _broken_answer(line: bytes) -> JSONRPCError | None:
    """An answer that is none becomes an error, for somebody waits for it."""
    if not line.startswith(b"{"):
        return None
    written = json.loads(line)
    number = written.get("id") if isinstance(written, dict) else None
    if not isinstance(number, int | str) or "method" in written:
        return None
    error = ErrorData(code=PARSE_ERROR, message="its answer is no message of the protocol")
    return JSONRPCError(jsonrpc="2.0", id=number, error=error)


async def _send(process: asyncio.subprocess.Process, messages: Outgoing) -> None:
    assert process.stdin is not None
    async with messages:
        with suppress(OSError):
            async for each in messages:
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(text.encode("utf-8", "replace") + b"\n")
                await process.stdin.drain()


async def _hear_errors(process: asyncio.subprocess.Process, ending: Ending) -> None:
    assert process.stderr is not None
    while piece := await process.stderr.read(1 << 14):
        ending.hear(piece)
    ending.is_heard.set()


async def _end(process: asyncio.subprocess.Process, life: IO[bytes], grace_seconds: float) -> None:
    """As the protocol has it: close its input, wait; then the guard asks it to end, and kills it
    with all that it has started."""
    assert process.stdin is not None
    process.stdin.close()
    await _wait(process, grace_seconds)
    life.close()
    await _wait(process, _GUARD_SECONDS)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await _wait(process, _GRACE_SECONDS)


async def _wait(process: asyncio.subprocess.Process, seconds: float) -> None:
    with anyio.move_on_after(seconds):
        # Not process.wait(), which also waits for whoever else holds its pipes open.
        while process.returncode is None:
            await anyio.sleep(0.01)


def _let_go(process: asyncio.subprocess.Process) -> None:
    # What a survivor holds open would otherwise keep the transport, and warn at its end.
    transport = getattr(process, "_transport", None)
    if transport is not None:
        with suppress(ProcessLookupError, PermissionError):
            transport.close()
