"""The room's own files: records that survive a power cut, all of a record or the one before it.

They lie in folders that only the engine writes. A record that cannot be read is a damaged disk, or
the work of another version of Stretto: that is an error, never a guess.
"""

import ctypes
import json
import os
import sys
from functools import cache
from pathlib import Path
from typing import TypeVar

import msgspec

from stretto.problems.errors import NotFound, StrettoError

# Past this many files it is cheaper to sync the file system once: 1,000 files took 2.6 s one by
# one and 0.04 s together. For a few, it would wait for what others have written.
FEW = 8


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


def sync_file_system(fd: int) -> bool:
    """All of the one that the fd is on. False where that cannot be asked for, or failed."""
    return sys.platform == "linux" and bool(_libc().syncfs(ctypes.c_int(fd)) == 0)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


_VERSION = 2
_Record = TypeVar("_Record")


class Unreadable(StrettoError):
    kind = "unreadable"


def read_record(file: Path, kind: type[_Record], what: str) -> _Record:
    """Raises NotFound when there is none, and Unreadable."""
    try:
        stored = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise NotFound(f"there is no {what} at {file.parent}") from None
    except (OSError, ValueError) as error:
        raise Unreadable(f"{file} cannot be read: {error}") from error
    if not isinstance(stored, dict) or stored.get("version") != _VERSION:
        raise Unreadable(f"{file} was not written by this version of Stretto")
    try:
        return msgspec.convert(stored.get("record"), kind, dec_hook=_from_text)
    except msgspec.ValidationError as error:
        raise Unreadable(f"{file} cannot be read: {error}") from error


def encode_record(record: object) -> bytes:
    # ASCII: names of files need not be UTF-8, and JSON's escapes keep what they are.
    stored = {"version": _VERSION, "record": msgspec.to_builtins(record, enc_hook=str)}
    return json.dumps(stored, separators=(",", ":")).encode("ascii")


def _from_text(kind: type, text: str) -> object:
    """Paths are the only values in a record that are more than JSON."""
    return kind(text)
