"""Hold the limits that the kernel does not hold for a whole process tree.

Threads of their own look, and kill: while the event loop is busy with others, a program could take
all the memory there is. The nearer a limit, the more often they look. They read /proc themselves:
psutil takes more than three times as long for a look (docs/decisions/0022-processes.md).
"""

import asyncio
import os
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from stretto.processes import process_table
from stretto.processes.process_table import CPU_TICKS, MEMORY_PAGES, THREADS, descendants

_MIB = 1024 * 1024
_PAGE_BYTES = os.sysconf("SC_PAGESIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_LOOK_SECONDS = 0.05
_CLOSE_LOOK_SECONDS = 0.004
_CLOSE = 0.2  # of the memory, or the tasks, that are allowed
_BLOCK_BYTES = 512
_LEAST_BYTES = 4096  # an empty file takes its place too
_DISK_PACE_SECONDS = 0.5
# As many times as long as a look worked, until the next. What it waited, on a busy machine or for a folder in
# which the program makes files, would let the program fill the disk meanwhile.
_DISK_REST = 20.0


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """Of a program and all that it starts, together; only `file_bytes` is for each file."""

    wall_seconds: float = 120.0
    cpu_seconds: float = 120.0
    memory_bytes: int = 2048 * _MIB
    processes: int = 512  # threads count too
    file_bytes: int = 1024 * _MIB
    disk_bytes: int = 4096 * _MIB  # of all that it writes in the workspace
    scratch_bytes: int = 512 * _MIB  # of /tmp, and again of /dev/shm: both are memory
    output_bytes: int = 64 * 1024

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be more than 0")


class LimitName(StrEnum):
    """The limit that ended a program. The names are those of `ResourceLimits`."""

    WALL = "wall_seconds"
    CPU = "cpu_seconds"
    MEMORY = "memory_bytes"
    PROCESSES = "processes"
    FILE = "file_bytes"
    DISK = "disk_bytes"


class Watchdog:
    def __init__(
        self, pid: int, limits: ResourceLimits, disk: "DiskWatch", *, is_namespace: bool
    ) -> None:
        """`is_namespace`: the program's only child is the first process of a pid namespace."""
        self._loop = asyncio.get_running_loop()
        self.hit: LimitName | None = None
        self.has_hit: asyncio.Future[None] = self._loop.create_future()
        self._pid, self._limits, self._disk = pid, limits, disk
        self._is_namespace = is_namespace
        self._has_ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._watch, args=(look,), daemon=True)
            for look in (self._look_at_processes, self._look_at_disk)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """No thread looks, or kills, after this: the pid may belong to another process by then."""
        self._has_ended.set()
        for thread in self._threads:
            if thread.is_alive():  # a machine without room for a thread starts none
                thread.join()
        self._loop.call_soon_threadsafe(self.has_hit.cancel)

    def _watch(self, look: Callable[[], tuple[LimitName | None, float]]) -> None:
        seconds = _CLOSE_LOOK_SECONDS
        while not self._has_ended.wait(seconds):
            hit, seconds = look()
            if hit is not None:
                self.hit = self.hit or hit
                self._kill()
                self._loop.call_soon_threadsafe(self._report_hit)
                return

    def _look_at_processes(self) -> tuple[LimitName | None, float]:
        limits = self._limits
        usage = measure_tree(self._pid, limits.processes)
        if usage.tasks > limits.processes:
            return LimitName.PROCESSES, 0
        if usage.cpu_seconds > limits.cpu_seconds:
            return LimitName.CPU, 0
        if usage.memory_bytes > limits.memory_bytes:
            # Forked processes share most of their pages.
            began = time.monotonic()
            if proportional_bytes(self._pid) > limits.memory_bytes:
                return LimitName.MEMORY, 0
            return None, max(_CLOSE_LOOK_SECONDS, time.monotonic() - began)
        is_close = (
            usage.memory_bytes > limits.memory_bytes * _CLOSE
            or usage.tasks > limits.processes * _CLOSE
        )
        return None, _CLOSE_LOOK_SECONDS if is_close else _LOOK_SECONDS

    def _look_at_disk(self) -> tuple[LimitName | None, float]:
        return (LimitName.DISK if self._disk.is_exceeded(self._pid) else None), _LOOK_SECONDS

    def _kill(self) -> None:
        if self._is_namespace:
            kill_namespace(self._pid)
        kill_group(self._pid)

    def _report_hit(self) -> None:
        if not self.has_hit.done():
            self.has_hit.set_result(None)


@dataclass(frozen=True, slots=True)
class TreeUsage:
    tasks: int  # threads of all processes
    memory_bytes: int  # pages that several processes share count for each of them
    cpu_seconds: float  # with that of the processes that have ended and were waited for


def measure_tree(root: int, most_tasks: int) -> TreeUsage:
    """Stops counting once there are more tasks than allowed: a fork bomb must not keep us busy."""
    tasks, pages, ticks = 0, 0, 0
    for pid in descendants(root):
        with suppress(OSError, ValueError, IndexError):
            fields = process_table.read_stat(pid)
            ticks += sum(map(int, fields[CPU_TICKS]))
            tasks += int(fields[THREADS])
            pages += int(fields[MEMORY_PAGES])
        if tasks > most_tasks:
            break
    return TreeUsage(tasks, pages * _PAGE_BYTES, ticks / _TICKS)


def proportional_bytes(root: int) -> int:
    """Memory with shared pages counted once: slower, so only asked when it matters."""
    return sum(map(_read_proportional, descendants(root)))


def _read_proportional(pid: int) -> int:
    with suppress(OSError), open(f"/proc/{pid}/smaps_rollup") as file:
        for line in file:
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def kill_namespace(launcher: int) -> None:
    """End what the launcher started. Its child is the first process of a namespace, and the
    kernel ends all others with it, wherever they have hidden."""
    for pid in process_table.children(launcher) or [launcher]:
        with suppress(ProcessLookupError):
            with suppress(PermissionError):  # its turn to end must come before thousands of others
                os.setpriority(os.PRIO_PROCESS, pid, -20)
            os.kill(pid, signal.SIGKILL)


def kill_group(leader: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


class DiskWatch:
    """How much a program has written to some places since it began.

    The kernel limits a file, not a tree. The free space of the disk is cheap to ask for, but
    others use the disk too, so it only says when to look at the files themselves.
    """

    def __init__(self, places: Sequence[Path], most_bytes: int) -> None:
        self._places = places
        self._most_bytes = most_bytes
        # The clock of a file system goes in steps.
        self._began_ns = time.time_ns() - 20_000_000
        self._free = self._free_bytes()
        self._next_look = time.monotonic() + _DISK_PACE_SECONDS

    def is_exceeded(self, pid: int) -> bool:
        if not self._places:
            return False
        taken = self._free - self._free_bytes()
        if taken <= self._most_bytes and time.monotonic() < self._next_look:
            return False
        began = time.thread_time()
        written = sum(self._written_sizes())
        if taken > self._most_bytes:
            written += sum(_unlinked_sizes(pid))
            self._free -= taken  # if another program took it, the next look is as much later
        rest = _DISK_REST * (time.thread_time() - began)
        self._next_look = time.monotonic() + _DISK_PACE_SECONDS + rest
        return written > self._most_bytes

    def _free_bytes(self) -> int:
        """Of all disks that are written to, together."""
        free: dict[int, int] = {}
        for place in self._places:
            with suppress(OSError):
                found = os.statvfs(place)
                free[os.stat(place).st_dev] = found.f_bfree * found.f_frsize
        return sum(free.values())

    def _written_sizes(self) -> Iterator[int]:
        total, waiting = 0, [str(place) for place in self._places]
        while waiting and total <= self._most_bytes:
            with suppress(OSError), os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    with suppress(OSError):
                        status = entry.stat(follow_symlinks=False)
                        if stat.S_ISDIR(status.st_mode):
                            waiting.append(entry.path)
                        if status.st_ctime_ns >= self._began_ns:
                            size = max(_LEAST_BYTES, status.st_blocks * _BLOCK_BYTES)
                            total += size
                            yield size


def _unlinked_sizes(pid: int) -> Iterator[int]:
    """Of files without a name, which only the process that has them open still reaches."""
    seen = set[tuple[int, int]]()
    for each in descendants(pid):
        with suppress(OSError):
            for fd in os.listdir(f"/proc/{each}/fd"):
                with suppress(OSError):
                    status = os.stat(f"/proc/{each}/fd/{fd}")
                    key = status.st_dev, status.st_ino
                    if status.st_nlink == 0 and stat.S_ISREG(status.st_mode) and key not in seen:
                        seen.add(key)
                        yield status.st_blocks * _BLOCK_BYTES
