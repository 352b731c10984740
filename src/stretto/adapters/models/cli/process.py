"""Run a program that cannot be trusted to end. In: Start. Out: what it prints, its exit code.

It runs beneath `leash.py`: leaving the context, cancelling it or dying ends the program and all
that it has started. Its output is bounded; nothing it does makes us wait for more than some seconds.
"""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from stretto.processes.leashed import leashed

MOST_BYTES = 64 * 1024 * 1024  # of all that it prints
MOST_LINE_BYTES = 8 * 1024 * 1024
_MOST_TAIL_BYTES = 8 * 1024
_CHUNK_BYTES = 64 * 1024
# The leash needs two seconds for the polite part and three at most for the rest.
_END_SECONDS = 7.0


@dataclass(frozen=True, slots=True)
class Start:
    words: tuple[str, ...]  # the first is the program's path
    folder: Path
    environment: Mapping[str, str]
    said: str | None  # what it reads on stdin; None: it is spoken to while it runs


class Flood(Exception):
    """It printed more than anybody will read."""


class Child:
    def __init__(
        self,
        process: asyncio.subprocess.Process,
        output: asyncio.StreamReader,
        errors: asyncio.StreamReader,
    ) -> None:
        self._process = process
        self._output = output
        self._tail = asyncio.create_task(_tail(errors))
        self.skipped_lines = 0  # those that are too long

    async def lines(self) -> AsyncIterator[bytes]:
        held, searched, is_skipping = bytearray(), 0, False
        async for chunk in self._chunks(MOST_BYTES):
            held += chunk
            while (end := held.find(b"\n", searched)) >= 0:
                if not is_skipping:
                    yield bytes(held[:end])
                del held[: end + 1]
                searched, is_skipping = 0, False
            searched = len(held)
            if searched > MOST_LINE_BYTES:
                self.skipped_lines += not is_skipping
                held, searched, is_skipping = bytearray(), 0, True
        if held and not is_skipping:
            yield bytes(held)

    async def all(self, most: int) -> bytes:
        return b"".join([chunk async for chunk in self._chunks(most)])

    async def say(self, line: bytes) -> None:
        assert self._process.stdin is not None
        # Who has stopped reading ends soon, and then its output says why.
        with suppress(BrokenPipeError, ConnectionResetError):
            self._process.stdin.write(line + b"\n")
            await self._process.stdin.drain()

    async def exit_code(self) -> int:
        return await self._process.wait()

    async def last_errors(self) -> str:
        """The end of what it printed on stderr. For when it has ended."""
        return await self._tail

    async def _chunks(self, most: int) -> AsyncIterator[bytes]:
        size = 0
        while chunk := await self._output.read(_CHUNK_BYTES):
            size += len(chunk)
            if size > most:
                raise Flood(f"it printed more than {most // 1024 // 1024} MB")
            yield chunk

    async def settle(self) -> None:
        """It has been told to end. Whatever it still prints is of no use."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _END_SECONDS)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        self._tail.cancel()
        await asyncio.gather(self._tail, return_exceptions=True)


@asynccontextmanager
async def running(start: Start) -> AsyncIterator[Child]:
    """Raises OSError when not even the leash can be started."""
    held, holding = os.pipe()
    output, errors = await _stream(), await _stream()
    child: Child | None = None
    try:
        try:
            with _spoken(start.said) as stdin:
                command = leashed(start.words, start.folder, held)
                process = await asyncio.create_subprocess_exec(
                    *command.words,
                    stdin=stdin,
                    stdout=output.given,
                    stderr=errors.given,
                    cwd=command.folder,
                    env=dict(start.environment),
                    pass_fds=(held,),
                    start_new_session=True,
                )
        finally:
            for end in (held, output.given, errors.given):
                os.close(end)
        child = Child(process, output.reader, errors.reader)
        yield child
    finally:
        os.close(holding)  # the leash takes it from here, even if we are killed now
        if child is not None:
            await _surely(child.settle())
        output.transport.close()
        errors.transport.close()


@dataclass(frozen=True, slots=True)
class _Stream:
    reader: asyncio.StreamReader
    transport: asyncio.ReadTransport
    given: int  # the end that the program writes to


async def _stream() -> _Stream:
    # A pipe of our own and not asyncio's: it can be closed while somebody holds the other end.
    reading, given = os.pipe()
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb", 0)
    )
    return _Stream(reader, transport, given)


@contextmanager
def _spoken(said: str | None) -> Iterator[int]:
    """A file and not a pipe: a program that never reads it holds up nobody."""
    if said is None:
        yield asyncio.subprocess.PIPE
        return
    with tempfile.TemporaryFile() as file:
        file.write(said.encode(errors="replace"))
        file.seek(0)
        yield file.fileno()


async def _tail(errors: asyncio.StreamReader) -> str:
    kept = b""
    while chunk := await errors.read(_CHUNK_BYTES):
        kept = (kept + chunk)[-_MOST_TAIL_BYTES:]
    return kept.decode(errors="replace").strip()


async def _surely(ending: Coroutine[None, None, None]) -> None:
    """Being cancelled once more changes nothing: it takes some seconds at most."""
    task = asyncio.ensure_future(ending)
    is_cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            is_cancelled = True
    task.result()
    if is_cancelled:
        raise asyncio.CancelledError
