"""Why a path was refused, as one exception. In: an OSError and the path. Out: PathRefused."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias

from stretto.problems.errors import StrettoError

Why: TypeAlias = Literal[
    "missing",  # nothing of that name
    "outside",  # leads out of the workspace, or is written as if it did
    "link",  # a link where the thing itself must be named
    "kind",  # a folder for a file, a file for a folder, a device, a pipe, a socket
    "protected",  # git's own, or a merge's
    "limit",  # too large, too many, too deep
    "exists",  # there already
    "denied",  # the system does not let us
    "failed",  # anything else the system said
]


class PathRefused(StrettoError):
    kind = "path_refused"

    def __init__(self, path: str, why: Why, message: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.path = path
        self.why: Why = why


_BY_ERRNO: dict[int, tuple[Why, str]] = {
    errno.ENOENT: ("missing", "does not exist"),
    errno.EXDEV: ("outside", "leads outside the workspace"),
    errno.ELOOP: ("link", "goes through a symbolic link"),
    errno.ENOTDIR: ("kind", "goes through something that is not a folder"),
    errno.EISDIR: ("kind", "is a folder"),
    errno.ENXIO: ("kind", "is a pipe or a device"),
    errno.ENOTEMPTY: ("exists", "is a folder that is not empty"),
    errno.EEXIST: ("exists", "exists already"),
    errno.EACCES: ("denied", "may not be opened: permission denied"),
    errno.EPERM: ("denied", "may not be changed: operation not permitted"),
    errno.EROFS: ("denied", "is on a read-only file system"),
    errno.ENAMETOOLONG: ("limit", "is too long for this file system"),
    errno.ENOSPC: ("failed", "does not fit: the disk is full"),
    errno.EDQUOT: ("failed", "does not fit: the quota is used up"),
}


@contextmanager
def refusing(path: str) -> Iterator[None]:
    """What the system says inside is said about this path."""
    try:
        yield
    except OSError as error:
        code = error.errno or 0
        unknown = f"cannot be used: {os.strerror(code) if code else error}"
        why, says = _BY_ERRNO.get(code, ("failed", unknown))
        raise PathRefused(path, why, f"{shown(path)} {says}") from error


def spelt(path: str) -> str:
    """A name as text that every terminal and every reader of JSON takes: what is no letter, and
    the bytes of names that are no UTF-8, as escapes."""
    return path if path.isprintable() else "".join(map(_letter, path))


def _letter(letter: str) -> str:
    if letter.isprintable():
        return letter
    if "\udc80" <= letter <= "\udcff":
        return f"\\x{ord(letter) - 0xDC00:02x}"
    return letter.encode("unicode_escape").decode()


def shown(path: str) -> str:
    """A path in a message: quoted, and with nothing in it that a terminal would obey."""
    # isprintable() is False for control characters and for the bytes of names that are no UTF-8.
    return f"'{path}'" if path.isprintable() else ascii(path)
