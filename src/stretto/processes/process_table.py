"""Read the kernel's table of processes, /proc. All numbers are those of this process's namespace.

This module needs nothing but `os`: the script `guard.py`, which must start fast, loads it too.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# Indices into `read_stat`: proc(5) counts from 1 and has the pid and the name before these.
STATE, PARENT, CPU_TICKS, THREADS, START_TIME, MEMORY_PAGES = 0, 1, slice(11, 15), 17, 19, 21
# Some small kernels do not list them; then we look at all processes there are.
LISTS_CHILDREN = os.path.exists("/proc/thread-self/children")


def read_stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat, without its first two. Raises OSError when it is gone."""
    with open(f"/proc/{pid}/stat", errors="replace") as file:
        # A process may put blanks and brackets into its own name, which stands in the second field.
        return file.read().rpartition(")")[2].split()


def start_time(pid: int) -> str | None:
    """In ticks since the boot; None when no such process is running."""
    try:
        fields = read_stat(pid)
    except OSError:
        return None
    return None if is_ended(fields) else fields[START_TIME]


def is_ended(fields: list[str]) -> bool:
    """Whether the process is a zombie: it has ended, and only its parent has not noticed yet."""
    return fields[STATE] in "ZX"


def boot_id() -> str:
    """Of the machine as it runs now; empty where the system has none."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def descendants(root: int) -> "Iterator[int]":
    """The process and all below it, parents first. A child may be missed while others end."""
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting += children(pid)


def children(pid: int) -> list[int]:
    if not LISTS_CHILDREN:
        return [child for child, parent in running_parents().items() if parent == pid]
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += _children_of_thread(pid, thread)
    except OSError:
        pass  # the process has ended
    return found


def running_descendants(root: int) -> list[int]:
    """All below the process that still run. This looks at every process of the machine, and misses
    none of those that ran when the look began and whose parents did not end meanwhile."""
    parents = running_parents()
    found, known = list[int](), {root}
    while new := [pid for pid, parent in parents.items() if parent in known and pid not in known]:
        known.update(new)
        found += new
    return found


def running_parents() -> dict[int, int]:
    """Every running process, and its parent. Empty where there is no /proc."""
    parents: dict[int, int] = {}
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return parents
    for pid in pids:
        try:
            fields = read_stat(pid)
            if not is_ended(fields):
                parents[pid] = int(fields[PARENT])
        except (OSError, ValueError, IndexError):
            continue
    return parents


def _children_of_thread(pid: int, thread: str) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{thread}/children") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []
