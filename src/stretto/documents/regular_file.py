"""Read a file that somebody else may have put there.

Pipes and devices are refused, because reading one might never end. A file larger than the limit is
refused before its first byte is read.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


class NotRegular(OSError):
    """A pipe, a device, a folder."""


class TooLarge(OSError):
    def __init__(self, size: int, most: int) -> None:
        super().__init__(f"has {size:,} bytes; at most {most:,} are read")
        self.size = size


def read_regular(path: Path, most_bytes: int) -> bytes:
    with _open(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > most_bytes:
            raise TooLarge(size, most_bytes)
        raw = stream.read(most_bytes + 1)
    if len(raw) > most_bytes:  # it grew, or its size is given as 0, as in /proc
        raise TooLarge(len(raw), most_bytes)
    return raw


def read_start(path: Path, most_bytes: int) -> bytes:
    """No more than the limit, however large it is."""
    with _open(path) as stream:
        return stream.read(most_bytes)


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    # Without O_NONBLOCK, opening a pipe that has no writer would never return. The kind of file is
    # asked of the descriptor, because the path may name another file by now.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotRegular("is not a regular file")
        with open(descriptor, "rb", closefd=False) as stream:
            yield stream
    finally:
        os.close(descriptor)
