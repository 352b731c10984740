"""The files of a folder as they are now, in a stable order."""

import os
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

_T = TypeVar("_T")


class _Seen(threading.local):
    # None: everything is looked at whenever it is asked for.
    values: dict[Hashable, Any] | None = None


_seen = _Seen()


@contextmanager
def looking_once() -> Iterator[None]:
    """Inside it, this thread looks at each file and folder once. For several requests that had all
    been made before the first look: then none of them gets an answer older than itself."""
    before = _seen.values
    _seen.values = {}
    try:
        yield
    finally:
        _seen.values = before


def once(what: Hashable, look: Callable[[], _T]) -> _T:
    """What `look` finds; inside `looking_once`, what it found the first time."""
    values = _seen.values
    if values is None:
        return look()
    if what not in values:
        values[what] = look()
    found: _T = values[what]
    return found


class Folder(Struct, frozen=True):
    path: Path
    layer: str  # 'bundled', 'user' or 'project'
    may_shadow: bool = True  # whether what is in it comes before the layers below


def files_in(folder: Folder, suffixes: Sequence[str]) -> list[Path]:
    try:
        with os.scandir(folder.path) as entries:
            names = sorted(entry.name for entry in entries if _is_file(entry))
    except OSError:  # a folder that is not there holds nothing
        return []
    wanted = tuple(suffixes)
    return [
        folder.path / name
        for name in names
        if name.endswith(wanted) and not name.startswith((".", "_")) and ".script." not in name
    ]


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link to itself, or to where we may not look, hides no other file
        return False


# Files are compared by st_ctime: unlike the time of the last write, no copying program sets it
# back. A file that changes twice within one tick of its file system's clock has the same one.
_TICK_NANOSECONDS = 100_000_000
Stamp = tuple[tuple[str, int, int, int], ...]


def stamp(folders: Iterable[Folder], suffixes: Sequence[str]) -> Stamp | None:
    """Equal as long as no file of the folders has changed, come or gone. None: one has changed just
    now, so what is read of it must not be remembered."""
    found: list[tuple[str, int, int, int]] = []
    wanted, newest = tuple(suffixes), time.time_ns() - _TICK_NANOSECONDS
    for folder in folders:
        try:
            with os.scandir(folder.path) as entries:
                named = [entry for entry in entries if entry.name.endswith(wanted)]
        except OSError:
            continue
        for entry in named:
            try:
                status = entry.stat()
            except OSError:  # a link that leads nowhere, or a file that is gone by now
                found.append((entry.path, 0, 0, 0))
                continue
            if status.st_ctime_ns > newest:
                return None
            found.append((entry.path, status.st_ctime_ns, status.st_size, status.st_ino))
    return tuple(sorted(found))


def signature(file: Path) -> tuple[int, int, int] | None:
    """Changes when the file does. None: it is gone, or has changed just now, so that what is read of it
    must not be remembered."""
    return once(("file", file), lambda: _signature(file))


def _signature(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    if status.st_ctime_ns > time.time_ns() - _TICK_NANOSECONDS:
        return None
    return (status.st_ctime_ns, status.st_size, status.st_ino)
