"""Keep the limits that the kernel does not keep for a whole command. In: its process. Out: a Limit.

Threads of their own look, and kill: while the event loop is busy with others, a command could take
all the memory there is. The nearer a limit, the more often they look.
"""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from stretto.workspaces.sandbox import tree
from stretto.workspaces.sandbox.confinement import Limits
from stretto.workspaces.sandbox.disk import DiskWatch
from stretto.workspaces.sandbox.outcome import Limit

_LOOK_SECONDS = 0.05
_CLOSE_LOOK_SECONDS = 0.004
_CLOSE = 0.2  # of the memory that is allowed


class Watchdog:
    def __init__(self, pid: int, limits: Limits, disk: DiskWatch, *, is_confined: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self.hit: Limit | None = None
        self.has_hit: asyncio.Future[None] = self._loop.create_future()
        self._pid, self._limits, self._disk = pid, limits, disk
        self._is_confined = is_confined
        self._has_ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._watch, args=(look,), daemon=True)
            for look in (self._look_at_processes, self._look_at_disk)
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """No thread looks, or kills, after this: the process may be another's number by then."""
        self._has_ended.set()
        for thread in self._threads:
            thread.join()
        self._loop.call_soon_threadsafe(self.has_hit.cancel)

    def _watch(self, look: Callable[[], tuple[Limit | None, float]]) -> None:
        seconds = _CLOSE_LOOK_SECONDS
        while not self._has_ended.wait(seconds):
            hit, seconds = look()
            if hit is not None:
                self.hit = self.hit or hit
                self._kill()
                self._loop.call_soon_threadsafe(self._tell)
                return

    def _look_at_processes(self) -> tuple[Limit | None, float]:
        limits = self._limits
        usage = tree.measure(self._pid, limits.processes)
        if usage.tasks > limits.processes:
            return Limit.PROCESSES, 0
        if usage.cpu_seconds > limits.cpu_seconds:
            return Limit.CPU, 0
        if usage.memory_bytes > limits.memory_bytes:
            # Forked processes share most of their pages.
            began = time.monotonic()
            if tree.proportional_bytes(self._pid) > limits.memory_bytes:
                return Limit.MEMORY, 0
            return None, max(_CLOSE_LOOK_SECONDS, time.monotonic() - began)
        is_close = usage.memory_bytes > limits.memory_bytes * _CLOSE
        return None, _CLOSE_LOOK_SECONDS if is_close else _LOOK_SECONDS

    def _look_at_disk(self) -> tuple[Limit | None, float]:
        return (Limit.DISK if self._disk.is_exceeded(self._pid) else None), _LOOK_SECONDS

    def _kill(self) -> None:
        if self._is_confined:
            tree.kill_namespace(self._pid)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, signal.SIGKILL)

    def _tell(self) -> None:
        if not self.has_hit.done():
            self.has_hit.set_result(None)
