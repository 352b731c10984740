"""Run programs of ours in processes of their own, which end when this process does.

`run_worker` is for work whose time a hostile input decides: a thread cannot be stopped, a process
can. A `LineWorker` stays, and is talked to line by line.
"""

import asyncio
import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path

from stretto.processes import python

_CHUNK = 1 << 16


class WorkerTooSlow(Exception):
    """The worker was stopped because its time was up. What it had printed by then comes along."""

    def __init__(self, output: bytes) -> None:
        super().__init__("stopped")
        self.output = output


async def run_worker(
    program: Path, feed: AsyncIterator[bytes], timeout_seconds: float, most_bytes: int
) -> tuple[int, bytes]:
    """The worker's exit code and what it printed. The process is gone when this returns, however it returns."""
    life, ours = os.pipe()
    try:
        command = python.isolated(program, life=life)
        process = await asyncio.create_subprocess_exec(
            *command.words, cwd=command.folder, env={}, pass_fds=(life,),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        return await _communicate(process, feed, timeout_seconds, most_bytes)
    finally:
        os.close(life)
        os.close(ours)


async def _communicate(
    process: asyncio.subprocess.Process,
    feed: AsyncIterator[bytes],
    timeout_seconds: float,
    most_bytes: int,
) -> tuple[int, bytes]:
    output = bytearray()
    feeding = asyncio.create_task(_write_all(process, feed))
    try:
        async with asyncio.timeout(timeout_seconds):
            await _read_all(process, output, most_bytes)
            return await process.wait(), bytes(output)
    except TimeoutError:
        raise WorkerTooSlow(bytes(output)) from None
    finally:
        feeding.cancel()
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        await asyncio.gather(feeding, return_exceptions=True)


async def _write_all(process: asyncio.subprocess.Process, feed: AsyncIterator[bytes]) -> None:
    assert process.stdin is not None
    # The worker may have enough before it has all.
    with suppress(BrokenPipeError, ConnectionResetError):
        async for piece in feed:
            process.stdin.write(piece)
            await process.stdin.drain()
    process.stdin.close()


async def _read_all(
    process: asyncio.subprocess.Process, output: bytearray, most_bytes: int
) -> None:
    assert process.stdout is not None
    while len(output) < most_bytes and (piece := await process.stdout.read(_CHUNK)):
        output += piece
    del output[most_bytes:]
    if process.returncode is None and len(output) >= most_bytes:
        with suppress(ProcessLookupError):
            process.kill()


class LineWorker:
    """Threads write to it and read from it. Only one of them may read, and end it."""

    def __init__(self, program: Path, environment: Mapping[str, str]) -> None:
        life, self._life = os.pipe()
        command = python.with_packages(program, life=life)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self._process = subprocess.Popen(
            command.words,
            cwd=command.folder,
            pass_fds=(life,),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
            env=dict(environment),
            start_new_session=True,  # Ctrl-C must not end it: we tell it when to stop
        )
        os.close(life)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def write_line(self, line: str) -> None:
        # That the process has died is noticed where its lines are read.
        with suppress(OSError, ValueError):
            self._stdin.write(f"{line}\n")
            self._stdin.flush()

    def read_line(self) -> str:
        """Empty once the process has ended."""
        try:
            return self._stdout.readline()
        except (OSError, ValueError):
            return ""

    def ask_to_end(self) -> None:
        with suppress(OSError, ValueError):
            self._stdin.close()

    def end(self, grace_seconds: float = 2.0) -> tuple[int, str]:
        """The worker's exit code, and all that it printed on stderr."""
        self.ask_to_end()
        try:
            code = self._process.wait(grace_seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._stdout.close()
        os.close(self._life)
        with self._errors:
            self._errors.seek(0)
            return code, self._errors.read().decode(errors="replace")

    def kill(self) -> None:
        self._process.kill()
