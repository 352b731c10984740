"""Run a program that cannot be trusted to end, beneath the script `guard.py`.

Leaving the context, cancelling it or dying ends the program and all that it has started. Its output
is bounded, and nothing that it does makes us wait for more than some seconds.
"""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass

from stretto.processes import python
from stretto.processes.completion import complete
from stretto.processes.programs import ProgramStart

MOST_BYTES = 64 * 1024 * 1024  # of all that it prints
MOST_LINE_BYTES = 8 * 1024 * 1024
_MOST_TAIL_BYTES = 4 * 1024
_CHUNK_BYTES = 64 * 1024
# The guard gives two seconds to end in peace and takes three at most for the rest.
_END_SECONDS = 7.0
_LAST_ERRORS_SECONDS = 0.2


class TooMuchOutput(Exception):
    """The program printed more than anybody will read."""


class GuardedProgram:
    """Made by `run_guarded`."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        output: asyncio.StreamReader,
        errors: asyncio.StreamReader,
    ) -> None:
        self._process = process
        self._output = output
        self._tail = _Tail()
        self._error_reader = asyncio.create_task(self._tail.read(errors))

    async def lines(
        self, most_bytes: int | None = MOST_BYTES, most_line_bytes: int | None = None
    ) -> AsyncIterator[bytes]:
        """`most_bytes`: of all lines, None for a program that runs on. `most_line_bytes`: a longer
        line raises TooMuchOutput; by default long lines are skipped."""
        held, searched, is_skipping = bytearray(), 0, False
        async for chunk in self._chunks(most_bytes):
            held += chunk
            while (end := held.find(b"\n", searched)) >= 0:
                if not is_skipping:
                    yield bytes(held[:end])
                del held[: end + 1]
                searched, is_skipping = 0, False
            searched = len(held)
            if most_line_bytes is not None and searched > most_line_bytes:
                raise TooMuchOutput(f"it sent a line of more than {most_line_bytes:,} bytes")
            if searched > MOST_LINE_BYTES:
                held, searched, is_skipping = bytearray(), 0, True
        if held and not is_skipping:
            yield bytes(held)

    async def read_all(self, most_bytes: int) -> bytes:
        return b"".join([chunk async for chunk in self._chunks(most_bytes)])

    async def write_line(self, line: bytes) -> None:
        assert self._process.stdin is not None
        # A program that has stopped reading ends soon, and then its output says why.
        with suppress(BrokenPipeError, ConnectionResetError):
            self._process.stdin.write(line + b"\n")
            await self._process.stdin.drain()

    async def exit_code(self) -> int:
        return await self._process.wait()

    async def last_errors(self) -> str:
        """The end of what it printed on stderr. To be asked when the program has ended."""
        await self._error_reader
        return self.error_tail

    @property
    def error_tail(self) -> str:
        """The end of what it has printed on stderr so far."""
        return self._tail.text

    async def end_input(self, seconds: float) -> None:
        """Close its input, and give it so long to end by itself."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._process.wait()

    async def _chunks(self, most_bytes: int | None) -> AsyncIterator[bytes]:
        size = 0
        while chunk := await self._output.read(_CHUNK_BYTES):
            size += len(chunk)
            if most_bytes is not None and size > most_bytes:
                raise TooMuchOutput(f"it printed more than {most_bytes // 1024 // 1024} MB")
            yield chunk

    async def wait_for_end(self) -> None:
        """For when the guard was told to end it. Whatever it still prints is of no use."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        # What a survivor holds open has no end, so its last errors are waited for only briefly.
        await asyncio.wait([self._error_reader], timeout=_LAST_ERRORS_SECONDS)
        self._error_reader.cancel()
        await asyncio.gather(self._error_reader, return_exceptions=True)


@asynccontextmanager
async def run_guarded(start: ProgramStart) -> AsyncIterator[GuardedProgram]:
    """Raises OSError when not even the guard can be started."""
    life, ours = os.pipe()
    streams: list[_Stream] = []
    program: GuardedProgram | None = None
    try:
        try:
            for _ in range(2):
                streams.append(await _open_stream())
            output, errors = streams
            with _open_stdin(start.stdin_text) as stdin:
                command = python.guarded(start.words, start.folder, life)
                process = await asyncio.create_subprocess_exec(
                    *command.words,
                    stdin=stdin,
                    stdout=output.write_end,
                    stderr=errors.write_end,
                    cwd=command.folder,
                    env=dict(start.environment),
                    pass_fds=(life, *start.keep_fds),
                    start_new_session=True,
                )
        finally:
            for end in (life, *(stream.write_end for stream in streams)):
                os.close(end)
        program = GuardedProgram(process, output.reader, errors.reader)
        yield program
    finally:
        os.close(ours)  # from here on the guard ends the program, even if we are killed now
        if program is not None:
            await complete(program.wait_for_end())
        for stream in streams:
            stream.transport.close()


@dataclass(frozen=True, slots=True)
class _Stream:
    reader: asyncio.StreamReader
    transport: asyncio.ReadTransport
    write_end: int  # the program's


async def _open_stream() -> _Stream:
    # A pipe of our own and not asyncio's: it can be closed while a survivor holds the other end.
    read_end, write_end = os.pipe()
    reader = asyncio.StreamReader()
    file = os.fdopen(read_end, "rb", 0)
    try:
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), file
        )
    except BaseException:
        file.close()
        os.close(write_end)
        raise
    return _Stream(reader, transport, write_end)


@contextmanager
def _open_stdin(text: str | None) -> Iterator[int]:
    """A file and not a pipe: a program that never reads it does not make us wait."""
    if text is None:
        yield asyncio.subprocess.PIPE
        return
    with tempfile.TemporaryFile() as file:
        file.write(text.encode(errors="replace"))
        file.seek(0)
        yield file.fileno()


class _Tail:
    """The end of what a program prints on stderr."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._is_cut = False

    @property
    def text(self) -> str:
        text = self._kept.decode(errors="replace").strip()
        # The first word may be the end of a secret, which no redactor would recognise.
        return " ".join(["…", *text.split(None, 1)[1:]]) if self._is_cut else text

    async def read(self, errors: asyncio.StreamReader) -> None:
        while chunk := await errors.read(_CHUNK_BYTES):
            self._kept += chunk
            self._is_cut = self._is_cut or len(self._kept) > _MOST_TAIL_BYTES
            del self._kept[:-_MOST_TAIL_BYTES]
