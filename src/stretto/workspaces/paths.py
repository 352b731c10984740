"""Paths beneath a folder: how they are written, what is found there, and why one is refused.

Some folders end like files: `release-1.0`, `Notes.app`. `globs_below` says what a set that names one
also covers.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

from stretto.globs.glob import parse_globs, plain_files, text_of
from stretto.globs.pattern import ANY
from stretto.problems.errors import StrettoError

RefusalReason: TypeAlias = Literal[
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
    """A path cannot be used. `why` says it in one word, the message in a sentence."""

    kind = "path_refused"

    def __init__(self, path: str, why: RefusalReason, message: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.path = path
        self.why: RefusalReason = why


_BY_ERRNO: dict[int, tuple[RefusalReason, str]] = {
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
def refuse_errors(path: str) -> Iterator[None]:
    """Raise what the system refuses inside as a PathRefused about this path."""
    try:
        yield
    except OSError as error:
        code = error.errno or 0
        unknown = f"cannot be used: {os.strerror(code) if code else error}"
        why, says = _BY_ERRNO.get(code, ("failed", unknown))
        raise PathRefused(path, why, f"{quote_path(path)} {says}") from error


def escape_path(path: str) -> str:
    """A path as text that every terminal and every reader of JSON takes: control characters, and
    the bytes of names that are not UTF-8, become escapes."""
    return path if path.isprintable() else "".join(map(_letter, path))


def _letter(letter: str) -> str:
    if letter.isprintable():
        return letter
    if "\udc80" <= letter <= "\udcff":
        return f"\\x{ord(letter) - 0xDC00:02x}"
    return letter.encode("unicode_escape").decode()


def quote_path(path: str) -> str:
    """A path in a message: quoted, and with nothing in it that a terminal would obey."""
    # isprintable() is False for control characters and for the bytes of names that are no UTF-8.
    return f"'{path}'" if path.isprintable() else ascii(path)


PathKind: TypeAlias = Literal["file", "folder", "link", "other"]
# A path below a workspace, name by name; () is the workspace.
PathNames: TypeAlias = tuple[str, ...]

# Without waiting for a writer of a pipe, and without following a link.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class FoundPath:
    path: str
    kind: PathKind
    size: int
    mode: int  # permission bits
    modified_ns: int

    @property
    def is_closed(self) -> bool:
        """Whether its owner may not read what is in it."""
        needed = {"file": 0o400, "folder": 0o700}.get(self.kind, 0)
        return self.mode & needed != needed


@dataclass(frozen=True, slots=True)
class PathAt:
    """A name in a folder that is held open, as the *at system calls take it. It is never followed."""

    folder_fd: int
    name: str

    def status(self) -> os.stat_result | None:
        try:
            return os.stat(self.name, dir_fd=self.folder_fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def link_target(self) -> str | None:
        try:
            return os.readlink(self.name, dir_fd=self.folder_fd)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT):
                return None
            raise

    def open_file(self, path: str | None = None) -> BinaryIO:
        """For reading. Only a regular file: a pipe would wait, a device may do anything."""
        fd = os.open(self.name, _READ, dir_fd=self.folder_fd)
        kind = kind_of(os.fstat(fd).st_mode)
        if kind != "file":
            os.close(fd)
            raise wrong_kind(self.name if path is None else path, kind)
        return open(fd, "rb")


def normalize_path(path: str) -> str:
    """The path without '.' and doubled slashes. Refuses absolute paths and what leaves the root."""
    if "\0" in path:
        raise PathRefused(path, "outside", f"{quote_path(path)} holds a NUL character")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise PathRefused(
            path, "outside", f"{quote_path(path)} cannot be the name of a file"
        ) from None
    if path.startswith("/"):
        hint = "write it relative to the workspace"
        raise PathRefused(path, "outside", f"{quote_path(path)} is an absolute path", hint)
    names = [name for name in path.split("/") if name not in ("", ".")]
    if ".." in names:
        hint = "write it relative to the workspace, without '..'"
        raise PathRefused(path, "outside", f"{quote_path(path)} leaves the workspace", hint)
    return "/".join(names)


def join_path(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def split_path(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition("/")
    # The workspace itself, or a folder that a link leads to: `..` must not be taken for its name.
    return (path, ".") if name in ("", ".", "..") else (folder, name)


def kind_of(mode: int) -> PathKind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "other"


def describe_path(path: str, status: os.stat_result) -> FoundPath:
    mode = status.st_mode
    return FoundPath(path, kind_of(mode), status.st_size, stat.S_IMODE(mode), status.st_mtime_ns)


def read_statuses(entries: Iterable[os.DirEntry[str]]) -> Iterator[tuple[str, os.stat_result]]:
    """Each name in a folder with its status. Others may change the folder meanwhile: a name that
    is gone since it was listed is left out."""
    for entry in entries:
        try:
            yield entry.name, entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue


def wrong_kind(path: str, kind: PathKind, wanted: str = "file") -> PathRefused:
    if kind == "link":
        hint = "name the file itself that it leads to"
        return PathRefused(path, "link", f"{quote_path(path)} is a symbolic link", hint)
    what = {"file": "a file", "folder": "a folder", "other": "a pipe, a socket or a device"}[kind]
    return PathRefused(path, "kind", f"{quote_path(path)} is {what}, not a {wanted}")


def copy_mode_and_owner(fd: int, old: os.stat_result | None, mode: int | None) -> None:
    """Give a new file the mode and, where we may, the owner of the one it replaces."""
    if old is not None:
        new = os.fstat(fd)
        if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
            # Where we may not, the new file is ours, as any editor would leave it.
            with suppress(PermissionError):
                os.fchown(fd, old.st_uid, old.st_gid)
        os.fchmod(fd, old.st_mode & 0o777)
    if mode is not None:
        os.fchmod(fd, mode)


def globs_below(workspace: Path, globs: Iterable[str]) -> tuple[str, ...]:
    """A plain path that ends like a file stands for that file alone, unless it is a folder here."""
    folders = (names for names in _files_of(tuple(globs)) if workspace.joinpath(*names).is_dir())
    return tuple(dict.fromkeys(text_of((*names, ANY)) for names in folders))


@lru_cache(maxsize=1024)  # every start of a run asks it of every step
def _files_of(globs: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    return tuple(names for glob in parse_globs(globs) for names in plain_files(glob))
