"""Words for what is beneath a root: paths, what was found there, and a name in an open folder."""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO, Literal, TypeAlias

from stretto.workspaces.refusals import PathRefused, shown

Kind: TypeAlias = Literal["file", "folder", "link", "other"]

# Without waiting for anyone, and without following: the name itself is meant.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Found:
    path: str
    kind: Kind
    size: int
    mode: int  # permission bits
    modified_ns: int


@dataclass(frozen=True, slots=True)
class Place:
    """A name in a folder that is held open. The name is never followed."""

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


def checked(path: str) -> str:
    """The path without '.' and doubled slashes. Refuses what is no path beneath anything."""
    if "\0" in path:
        raise PathRefused(path, "outside", f"{shown(path)} holds a NUL character")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise PathRefused(path, "outside", f"{shown(path)} cannot be the name of a file") from None
    if path.startswith("/"):
        hint = "write it relative to the workspace"
        raise PathRefused(path, "outside", f"{shown(path)} is an absolute path", hint)
    names = [name for name in path.split("/") if name not in ("", ".")]
    if ".." in names:
        hint = "write it relative to the workspace, without '..'"
        raise PathRefused(path, "outside", f"{shown(path)} leaves the workspace", hint)
    return "/".join(names)


def join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def split(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition("/")
    # Only a link's target ends so. It is a folder, and `..` must not be used as a name in one.
    return (path, ".") if name in ("", ".", "..") else (folder, name)


def kind_of(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "other"


def found_at(path: str, status: os.stat_result) -> Found:
    mode = status.st_mode
    return Found(path, kind_of(mode), status.st_size, stat.S_IMODE(mode), status.st_mtime_ns)


def statuses_in(entries: Iterable[os.DirEntry[str]]) -> Iterator[tuple[str, os.stat_result]]:
    """The names in a folder that others may change: what is gone since it was listed is left out,
    and the rest of the folder is still told."""
    for entry in entries:
        try:
            yield entry.name, entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue


def wrong_kind(path: str, kind: Kind, wanted: str = "file") -> PathRefused:
    if kind == "link":
        hint = "name the file itself that it leads to"
        return PathRefused(path, "link", f"{shown(path)} is a symbolic link", hint)
    what = {"file": "a file", "folder": "a folder", "other": "a pipe, a socket or a device"}[kind]
    return PathRefused(path, "kind", f"{shown(path)} is {what}, not a {wanted}")


def dress(fd: int, old: os.stat_result | None, mode: int | None) -> None:
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
