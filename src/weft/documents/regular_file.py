"""Read a file that may be a stranger's. In: a path and a limit. Out: its bytes, or an OSError.

Neither a pipe nor a device is read, for reading one might never end, and nothing larger than the
limit: its size is asked before the first byte.
"""

import os
import stat
from pathlib import Path


class NotRegular(OSError):
    """A pipe, a device, a folder."""


class TooLarge(OSError):
    def __init__(self, size: int, most: int) -> None:
        super().__init__(f"has {size:,} bytes; at most {most:,} are read")
        self.size = size


def read_regular(path: Path, most_bytes: int) -> bytes:
    # Without O_NONBLOCK a pipe without a writer would hold us at the door; its kind is asked of
    # what was opened, since the name may mean something else by then.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotRegular("is not a regular file")
        if status.st_size > most_bytes:
            raise TooLarge(status.st_size, most_bytes)
        with open(descriptor, "rb", closefd=False) as stream:
            raw = stream.read(most_bytes + 1)
    finally:
        os.close(descriptor)
    if len(raw) > most_bytes:  # it grew, or is one of those that say they are empty
        raise TooLarge(len(raw), most_bytes)
    return raw
