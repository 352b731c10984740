"""How much a command has written. In: the places that it may write to. Out: whether it is too much.

The kernel limits a file, not a tree. What counts is what is new since the command began: the free
space of the disk is cheap to ask for, but others use the disk too, so it only says when to look.
"""

import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from stretto.workspaces.sandbox import tree

_BLOCK_BYTES = 512
_LEAST_BYTES = 4096  # an empty file takes its place too
_PACE_SECONDS = 0.5
_REST = 20.0  # times as long as a look took, until the next


class DiskWatch:
    def __init__(self, places: Sequence[Path], most_bytes: int) -> None:
        self._places = places
        self._most_bytes = most_bytes
        # The clock of a file system goes in steps.
        self._began_ns = time.time_ns() - 20_000_000
        self._free = self._free_bytes()
        self._next_look = time.monotonic() + _PACE_SECONDS

    def is_exceeded(self, pid: int) -> bool:
        if not self._places:
            return False
        taken = self._free - self._free_bytes()
        began = time.monotonic()
        if taken <= self._most_bytes and began < self._next_look:
            return False
        written = sum(self._written())
        if taken > self._most_bytes:
            written += sum(_unlinked(pid))
            self._free -= taken  # if it was not this command, the next time is as much later
        self._next_look = time.monotonic() + _PACE_SECONDS + _REST * (time.monotonic() - began)
        return written > self._most_bytes

    def _free_bytes(self) -> int:
        """Of all disks that are written to, together."""
        free: dict[int, int] = {}
        for place in self._places:
            with suppress(OSError):
                found = os.statvfs(place)
                free[os.stat(place).st_dev] = found.f_bfree * found.f_frsize
        return sum(free.values())

    def _written(self) -> Iterator[int]:
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


def _unlinked(pid: int) -> Iterator[int]:
    """Files without a name, which only who has them open knows."""
    seen = set[tuple[int, int]]()
    for each in tree.descendants(pid):
        with suppress(OSError):
            for fd in os.listdir(f"/proc/{each}/fd"):
                with suppress(OSError):
                    status = os.stat(f"/proc/{each}/fd/{fd}")
                    key = status.st_dev, status.st_ino
                    if status.st_nlink == 0 and stat.S_ISREG(status.st_mode) and key not in seen:
                        seen.add(key)
                        yield status.st_blocks * _BLOCK_BYTES
