"""Run a launch to its end: drain its output, watch its limits, kill all of it. Out: Ended."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stretto.workspaces.sandbox import tree
from stretto.workspaces.sandbox.adapter import Launch
from stretto.workspaces.sandbox.confinement import Limits
from stretto.workspaces.sandbox.disk import DiskWatch
from stretto.workspaces.sandbox.outcome import Limit
from stretto.workspaces.sandbox.output import Output
from stretto.workspaces.sandbox.watchdog import Watchdog

_DRAIN_SECONDS = 0.5
_END_SECONDS = 5.0
_CHUNK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Ended:
    exit_code: int
    output: str
    dropped_bytes: int
    duration_seconds: float
    limit_hit: Limit | None


async def run_to_end(
    launch: Launch, limits: Limits, writable: Sequence[Path], *, is_confined: bool
) -> Ended:
    """`writable`: where it may write, of which the growth is bounded."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    drain, disk = _Drain(limits.output_bytes), DiskWatch(writable, limits.disk_bytes)
    try:
        process = await asyncio.create_subprocess_exec(
            *launch.argv,
            stdin=DEVNULL,
            stdout=drain.write_end,
            stderr=drain.write_end,
            env=dict(launch.environment),
            cwd=launch.directory,
            pass_fds=launch.keep_fds,
            start_new_session=True,  # no terminal, and a process group of its own
        )
        drain.start()
        watchdog = Watchdog(process.pid, limits, disk, is_confined=is_confined)
        try:
            limit_hit = await _watch(process, watchdog, limits.wall_seconds)
        finally:
            await asyncio.shield(asyncio.to_thread(watchdog.close))
            await asyncio.shield(_end(process, is_confined=is_confined))
        await drain.wait()
    finally:
        drain.close()
    exit_code = _as_a_shell_says(process)
    text, dropped = drain.output.end()
    return Ended(
        exit_code,
        text,
        dropped,
        loop.time() - began,
        limit_hit or watchdog.hit or _kernels(exit_code),
    )


async def _watch(process: Process, watchdog: Watchdog, wall_seconds: float) -> Limit | None:
    """Returns when the process has ended, or must be."""
    ending = asyncio.ensure_future(process.wait())
    try:
        either: list[asyncio.Future[Any]] = [ending, watchdog.has_hit]
        done, _ = await asyncio.wait(
            either, timeout=wall_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        return None if done else Limit.WALL
    finally:
        ending.cancel()


async def _end(process: Process, *, is_confined: bool) -> None:
    if is_confined and process.returncode is None:
        # The launcher ends by itself, once the last process of the namespace is gone.
        tree.kill_namespace(process.pid)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _END_SECONDS)
    # Also when it has ended: without a namespace, others of its group may still run.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _as_a_shell_says(process: Process) -> int:
    code = process.returncode
    assert code is not None, "it was waited for"
    return 128 - code if code < 0 else code


def _kernels(exit_code: int) -> Limit | None:
    """The limits that the kernel keeps, told by the signal that it sends."""
    return {128 + signal.SIGXCPU: Limit.CPU, 128 + signal.SIGXFSZ: Limit.FILE}.get(exit_code)


class _Drain:
    """Reads all that the command says, for a full pipe would hold it up for ever."""

    def __init__(self, most_bytes: int) -> None:
        self.output = Output(most_bytes)
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()

    def start(self) -> None:
        os.close(self.write_end)
        self.write_end = -1
        self._loop.add_reader(self._read_end, self._read)

    async def wait(self) -> None:
        # Only unconfined can anybody be left to hold the pipe open.
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), _DRAIN_SECONDS)

    def close(self) -> None:
        self._loop.remove_reader(self._read_end)
        os.close(self._read_end)
        if self.write_end >= 0:
            os.close(self.write_end)

    def _read(self) -> None:
        try:
            chunk = os.read(self._read_end, _CHUNK_BYTES)
        except BlockingIOError:
            return
        if chunk:
            self.output.add(chunk)
        else:
            self._loop.remove_reader(self._read_end)
            self._ended.set()
