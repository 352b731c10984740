"""Run one of our own programs in a process that can be stopped. In: bytes. Out: bytes.

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
    """It was stopped: its time was up. What it had said by then comes along."""

    def __init__(self, said: bytes) -> None:
        super().__init__("stopped")
        self.said = said


async def run_worker(
    program: Path, feed: AsyncIterator[bytes], timeout_seconds: float, most_bytes: int
) -> tuple[int, bytes]:
    """Its exit code and what it said. It is gone when this returns, however it returns."""
    life, ours = os.pipe()
    try:
        command = python.isolated(program, life=life)
        process = await asyncio.create_subprocess_exec(
            *command.words, cwd=command.folder, env={}, pass_fds=(life,),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        return await _heard(process, feed, timeout_seconds, most_bytes)
    finally:
        os.close(life)
        os.close(ours)


async def _heard(
    process: asyncio.subprocess.Process,
    feed: AsyncIterator[bytes],
    timeout_seconds: float,
    most_bytes: int,
) -> tuple[int, bytes]:
    said = bytearray()
    feeding = asyncio.create_task(_feed(process, feed))
    try:
        async with asyncio.timeout(timeout_seconds):
            await _listen(process, said, most_bytes)
            return await process.wait(), bytes(said)
    except TimeoutError:
        raise WorkerTooSlow(bytes(said)) from None
    finally:
        feeding.cancel()
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        await asyncio.gather(feeding, return_exceptions=True)


async def _feed(process: asyncio.subprocess.Process, feed: AsyncIterator[bytes]) -> None:
    assert process.stdin is not None
    # It may have enough before it has all.
    with suppress(BrokenPipeError, ConnectionResetError):
        async for piece in feed:
            process.stdin.write(piece)
            await process.stdin.drain()
    process.stdin.close()


async def _listen(process: asyncio.subprocess.Process, said: bytearray, most_bytes: int) -> None:
    assert process.stdout is not None
    while len(said) < most_bytes and (piece := await process.stdout.read(_CHUNK)):
        said += piece
    del said[most_bytes:]
    if process.returncode is None and len(said) >= most_bytes:
        with suppress(ProcessLookupError):
            process.kill()
