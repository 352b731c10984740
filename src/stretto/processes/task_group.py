"""Hold the number of a program's tasks by a control group.

The kernel's limit of processes (`ulimit -u`) does not count those of root. A control group does,
where one can be made: on a machine with cgroup v1, or below the root of cgroup v2.
"""

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path

from stretto.processes.watchdog import ResourceLimits

_MOUNTS = {"pids": "/sys/fs/cgroup/pids", "": "/sys/fs/cgroup"}
_JOIN = ("/bin/sh", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"')
# The watchdog names the limit that was hit: it must see more tasks than are allowed.
_SPARE_TASKS = 64
_REMOVALS, _REMOVAL_SECONDS = 200, 0.005
_counter = itertools.count()


@asynccontextmanager
async def joined_group(
    words: Sequence[str], limits: ResourceLimits
) -> AsyncIterator[Sequence[str]]:
    """The words that start the program in a group of its own, or as they are without one."""
    group = _make_group(limits.processes + _SPARE_TASKS) if os.geteuid() == 0 else None
    try:
        yield words if group is None else (*_JOIN, str(group), *words)
    finally:
        if group is not None:
            await _remove(group)


def _make_group(most_tasks: int) -> Path | None:
    parent = _parent()
    if parent is None:
        return None
    group = parent / f"stretto-{os.getpid()}-{next(_counter)}"
    try:
        group.mkdir()
        (group / "pids.max").write_text(str(most_tasks))
    except OSError:
        with suppress(OSError):
            group.rmdir()
        return None
    return group


@cache
def _parent() -> Path | None:
    """Our own group, cleared of those that killed processes have left there."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controller, path = line.split(":", 2)
            own = Path(_MOUNTS.get(controller, "/nowhere") + path)
            if (own / "cgroup.procs").exists():
                for left in own.glob("stretto-*"):
                    if not Path("/proc", left.name.split("-")[1]).exists():
                        with suppress(OSError):
                            left.rmdir()
                return own
    return None


async def _remove(group: Path) -> None:
    """A process leaves its group a moment after it has ended."""
    for _ in range(_REMOVALS):
        with suppress(OSError):
            group.rmdir()
            return
        await asyncio.sleep(_REMOVAL_SECONDS)
