"""What a process and all its descendants use. In: a process id, /proc. Out: Usage, or kills.

Where the kernel gives no cgroup to those who are not root, this is how the limits of a whole
command are kept: a look at its processes every few hundredths of a second.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

_PAGE_BYTES = os.sysconf("SC_PAGESIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    tasks: int  # threads of all processes
    memory_bytes: int  # pages that several processes share count for each of them
    cpu_seconds: float  # with that of the processes that have ended and were waited for


def measure(root: int, most_tasks: int) -> Usage:
    """Stops counting once there are more tasks than allowed: a fork bomb must not keep us busy."""
    tasks, pages, ticks = 0, 0, 0
    for pid in descendants(root):
        with suppress(OSError, ValueError, IndexError):
            fields = _stat(pid)
            ticks += sum(map(int, fields[11:15]))
            tasks += int(fields[17])
            pages += int(fields[21])
        if tasks > most_tasks:
            break
    return Usage(tasks, pages * _PAGE_BYTES, ticks / _TICKS)


def proportional_bytes(root: int) -> int:
    """Memory with shared pages counted once: slower, so only asked when it matters."""
    return sum(map(_proportional, descendants(root)))


def descendants(root: int) -> Iterator[int]:
    """The process and all below it, parents first."""
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting += children(pid)


def children(pid: int) -> list[int]:
    if not _lists_children():
        return [other for other in _processes() if _parent(other) == pid]
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children") as listed:
                found += map(int, listed.read().split())
    return found


def kill_namespace(launcher: int) -> None:
    """End what the launcher started. Its child is the first process of a namespace, and the
    kernel ends all others with it, wherever they have hidden."""
    for pid in children(launcher) or [launcher]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@cache
def _lists_children() -> bool:
    """Some small kernels do not; then we look at all processes there are."""
    return os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _parent(pid: int) -> int:
    with suppress(OSError, ValueError, IndexError):
        return int(_stat(pid)[1])
    return 0


def _stat(pid: int) -> list[str]:
    with open(f"/proc/{pid}/stat") as file:
        # A process may put blanks and brackets into its own name, which stands in the second field.
        return file.read().rpartition(")")[2].split()


def _proportional(pid: int) -> int:
    with suppress(OSError), open(f"/proc/{pid}/smaps_rollup") as file:
        for line in file:
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
