"""Files that survive a power cut. In: a path and bytes. Out: the file, all of it or as it was."""

import os
from pathlib import Path


def write_durably(file: Path, content: bytes) -> None:
    """Written beside it, synced, renamed, and the folder synced: the rename is the moment."""
    temporary = file.with_name(f"{file.name}.new")
    with temporary.open("wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    temporary.rename(file)
    sync(file.parent)


def sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
