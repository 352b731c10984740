"""Read a file that may be a stranger's. In: a path and a limit. Out: its bytes, or an OSError.

Neither a pipe nor a device is read, for reading one might never end, and nothing larger than the
limit: its size is asked before the first byte.
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
    with _opened(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > most_bytes:
            raise TooLarge(size, most_bytes)
        raw = stream.read(most_bytes + 1)
    if len(raw) > most_bytes:  # it grew, or is one of those that say they are empty
        raise TooLarge(len(raw), most_bytes)
    return raw


def read_start(path: Path, most_bytes: int) -> bytes:
    """No more than the limit, however large it is."""
    with _opened(path) as stream:
        return stream.read(most_bytes)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    # Without O_NONBLOCK a pipe without a writer would hold us at the door; its kind is asked of
    # what was opened, since the name may mean something else by then.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotRegular("is not a regular file")
        with open(descriptor, "rb", closefd=False) as stream:
            yield stream
    finally:
        os.close(descriptor)
