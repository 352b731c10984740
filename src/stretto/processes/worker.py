"""Run a program of ours on bytes, in a process that can be stopped.

For work whose time a hostile input decides: a thread cannot be stopped, a process can.
"""

import asyncio
import os
from collections.abc import AsyncIterator
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
    """Its exit code and what it printed. It is gone when this returns, however it returns."""
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
