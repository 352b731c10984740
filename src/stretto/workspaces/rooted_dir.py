"""A folder that is held open, and the files beneath it by relative paths ('/' between names).

Nothing is checked and then opened. A folder is opened so that the way to it cannot leave the root
(by the system call `openat2`, or else name by name), and the last name is used in that open folder
without following a link. A link that stays inside may be read through. What is written or removed is
named itself: no name on the way may be a link, so a path in a write-set is the file that changes.

A file is written as a new file beside it that is renamed over it: a reader sees the old bytes or
the new ones, and a hard link from elsewhere keeps the old ones. On a file system that ignores case
two spellings are one file; only git's own names are guarded against that.
"""

import ctypes
import errno
import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self
from unicodedata import normalize

from stretto.globs.glob import Glob
from stretto.workspaces.paths import (
    FoundPath,
    PathAt,
    PathRefused,
    copy_mode_and_owner,
    describe_path,
    join_path,
    kind_of,
    normalize_path,
    quote_path,
    read_statuses,
    refuse_errors,
    split_path,
    wrong_kind,
)
from stretto.workspaces.protected import is_protected

_RESOLVE_NO_MAGICLINKS, _RESOLVE_NO_SYMLINKS, _RESOLVE_BENEATH = 0x02, 0x04, 0x08

# Python has no binding for openat2, so it is called by number, which is the same on every machine.
_OPENAT2 = 437
_TRIES = 16  # a rename elsewhere while `..` is resolved makes the kernel say "again"


class _How(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


def _open_by_kernel(root_fd: int, path: str, flags: int, *, follow: bool) -> int:
    """The path's fd. Raises OSError: EXDEV when it leads outside, ELOOP for a forbidden link."""
    resolve = _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS
    how = _How(flags | os.O_CLOEXEC, 0, resolve if follow else resolve | _RESOLVE_NO_SYMLINKS)
    name = os.fsencode(path)
    for _ in range(_TRIES):
        fd: int = _syscall()(
            ctypes.c_long(_OPENAT2),
            ctypes.c_int(root_fd),
            ctypes.c_char_p(name),
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )
        if fd >= 0:
            return fd
        code = ctypes.get_errno()
        if code not in (errno.EAGAIN, errno.EINTR):
            raise OSError(code, os.strerror(code), path)
    raise OSError(errno.EAGAIN, "the folders on the way keep changing", path)


@cache
def has_openat2() -> bool:
    """False where the kernel is older than 5.6, where a seccomp filter forbids the call, and on
    other systems: there `_open_by_names` does the same."""
    if sys.platform != "linux":
        return False
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.close(_open_by_kernel(here, ".", os.O_RDONLY | os.O_DIRECTORY, follow=False))
    except (OSError, AttributeError):  # no such call, not allowed, or no such libc
        return False
    finally:
        os.close(here)
    return True


@cache
def _syscall() -> "ctypes._NamedFuncPointer":
    function = ctypes.CDLL(None, use_errno=True).syscall
    function.restype = ctypes.c_long
    return function


_MOST_LINKS = 40  # as the kernel

_FOLDER_NOT_LINK = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def _open_by_names(root_fd: int, path: str, *, follow: bool) -> int:
    """The folder's fd. Every step opens a name in a folder that is already held open and never
    follows a link by itself, so nothing that is renamed meanwhile can lead it outside. Links are
    read and walked by hand.

    Raises OSError: EXDEV when it leads outside, ELOOP for a forbidden link or too many.
    """
    held = [os.dup(root_fd)]  # the way down; `..` goes back up along it, never above the root
    try:
        names = [name for name in reversed(path.split("/")) if name not in ("", ".")]
        links = 0
        while names:
            name = names.pop()
            if name == "..":
                if len(held) == 1:
                    raise OSError(errno.EXDEV, "leads outside", path)
                os.close(held.pop())
                continue
            target = _enter(held, name)
            if target is None:
                continue
            links += 1
            if not follow or links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            if target.startswith("/"):
                raise OSError(errno.EXDEV, "leads outside", path)
            names.extend(_reversed_names(target))
        return os.dup(held[-1])
    finally:
        for fd in held:
            os.close(fd)


def _enter(held: list[int], name: str) -> str | None:
    """Open the folder and hold it; or say where the link of that name leads."""
    try:
        held.append(os.open(name, _FOLDER_NOT_LINK, dir_fd=held[-1]))
        return None
    except OSError as error:
        # Linux says "not a directory" of a link, BSD says "too many links".
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        try:
            return os.readlink(name, dir_fd=held[-1])
        except OSError:
            raise error from None


def _reversed_names(target: str) -> Iterator[str]:
    return (name for name in reversed(target.split("/")) if name not in ("", "."))


MOST_WALKED = 100_000
MOST_DEPTH = 128

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY


class RootedDir:
    """One root, held open until `close`."""

    def __init__(self, root: Path, *, use_openat2: bool | None = None) -> None:
        with refuse_errors(str(root)):
            self._root_fd = os.open(root, _FOLDER | os.O_CLOEXEC)
        is_here = has_openat2() if use_openat2 is None else use_openat2
        self._open_folder: Callable[[str, bool], int] = (
            self._by_kernel if is_here else self._by_names
        )

    def close(self) -> None:
        os.close(self._root_fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    # Reading

    def open_file(self, path: str) -> BinaryIO:
        """For reading. Only a regular file."""
        with self.place(path) as place:
            if place.name == ".":
                raise PathRefused(path, "kind", f"{quote_path(path)} is a folder")
            return place.open_file(path)

    def read_bytes(self, path: str, limit: int) -> bytes:
        """The whole file, or a refusal when it has more bytes than `limit`."""
        with self.open_file(path) as file, refuse_errors(path):
            content = file.read(limit + 1)
            size = max(len(content), os.fstat(file.fileno()).st_size)
        if len(content) > limit:
            raise PathRefused(
                path, "limit", f"{quote_path(path)} has {size:,} bytes; {limit:,} is the most"
            )
        return content

    def stat(self, path: str, *, follow: bool = True) -> FoundPath:
        with self.place(path, follow=follow) as place:
            status = os.stat(place.name, dir_fd=place.folder_fd, follow_symlinks=False)
        return describe_path(path, status)

    def list_folder(self, path: str = "") -> list[FoundPath]:
        """What is in a folder, by name. Links are not followed."""
        at = normalize_path(path)
        with self.folder(at) as fd, os.scandir(fd) as entries:
            found = [
                describe_path(join_path(at, name), status)
                for name, status in read_statuses(entries)
            ]
        return sorted(found, key=lambda each: each.path)

    def walk(
        self, under: str = "", globs: Sequence[Glob] = (), most: int = MOST_WALKED
    ) -> Iterator[FoundPath]:
        """Files and links below a folder that a glob covers (all, without one), by name.

        Linked folders are not entered, git's own are left out. Refuses past `most` things seen.
        """
        stems = [stem for glob in globs for stem in glob.stems()]
        waiting, seen = [normalize_path(under)], 0
        while waiting:
            folder = waiting.pop()
            below = list[str]()
            for found in self._list_if_there(folder, is_start=seen == 0):
                seen += 1
                if seen > most or found.path.count("/") >= MOST_DEPTH:
                    what = f"more than {most:,} things, or more than {MOST_DEPTH} folders deep"
                    raise PathRefused(under, "limit", f"{quote_path(under or '.')} holds {what}")
                if is_protected(found.path):
                    continue
                if found.kind == "folder":
                    if not globs or _may_hold(found.path, stems):
                        below.append(found.path)
                elif not globs or any(glob.matches(found.path) for glob in globs):
                    yield found
            waiting.extend(reversed(below))

    # Writing

    def write_bytes(
        self, path: str, content: bytes, *, mode: int | None = None, durable: bool = False
    ) -> None:
        """All of it or nothing. The folder must be there; an old file's mode is kept."""
        with self._writable(path) as place:
            old = place.status()
            if old is not None and not stat.S_ISREG(old.st_mode):
                raise wrong_kind(path, kind_of(old.st_mode))
            temporary = f".{secrets.token_hex(8)}.stretto"
            fd = os.open(temporary, _CREATE, 0o666, dir_fd=place.folder_fd)
            try:
                with open(fd, "wb") as file:
                    file.write(content)
                    copy_mode_and_owner(fd, old, mode)
                    if durable:
                        file.flush()
                        os.fsync(fd)
                os.rename(
                    temporary, place.name, src_dir_fd=place.folder_fd, dst_dir_fd=place.folder_fd
                )
            except BaseException:
                os.unlink(temporary, dir_fd=place.folder_fd)
                raise
            if durable:
                os.fsync(place.folder_fd)

    def mkdir(self, path: str) -> None:
        """Make a folder and those above it; being there already is fine."""
        names = normalize_path(path).split("/")
        for depth in range(1, len(names) + 1):
            part = "/".join(names[:depth])
            with self._writable(part) as place:
                try:
                    os.mkdir(place.name, dir_fd=place.folder_fd)
                except FileExistsError:
                    status = place.status()
                    if status is not None and not stat.S_ISDIR(status.st_mode):
                        raise wrong_kind(part, kind_of(status.st_mode), "folder") from None

    def open_to_owner(self, path: str) -> None:
        """Let its owner read a file or a folder, and enter and change the folder."""
        with self.place(path, follow=False) as place:
            mode = os.stat(place.name, dir_fd=place.folder_fd, follow_symlinks=False).st_mode
            if kind_of(mode) in ("file", "folder"):
                needed = 0o700 if stat.S_ISDIR(mode) else 0o400
                os.chmod(place.name, stat.S_IMODE(mode) | needed, dir_fd=place.folder_fd)

    # Opening

    @contextmanager
    def folder(self, path: str = "", *, follow: bool = True) -> Iterator[int]:
        with refuse_errors(path or "."):
            fd = self._open_folder(normalize_path(path), follow)
            try:
                yield fd
            finally:
                os.close(fd)

    @contextmanager
    def place(self, path: str, *, follow: bool = True) -> Iterator[PathAt]:
        """Where a path is: its folder, held open, and a last name, which is no link with `follow`."""
        where = normalize_path(path)
        for _ in range(_MOST_LINKS):
            folder, name = split_path(where)
            with refuse_errors(path):
                fd = self._open_folder(folder, follow)
                try:
                    place = PathAt(fd, name)
                    target = place.link_target() if follow else None
                    if target is None:
                        yield place
                        return
                finally:
                    os.close(fd)
            if target.startswith("/"):
                raise PathRefused(
                    path, "outside", f"{quote_path(path)} is a link out of the workspace"
                )
            where = join_path(folder, target)
        raise PathRefused(path, "link", f"{quote_path(path)} is a link that never ends")

    @contextmanager
    def _writable(self, path: str) -> Iterator[PathAt]:
        if is_protected(path):
            raise PathRefused(
                path, "protected", f"{quote_path(path)} is not for writers: it is git's own"
            )
        with self.place(path, follow=False) as place:
            if place.name == ".":
                raise PathRefused(path, "kind", f"{quote_path(path)} is the workspace itself")
            yield place

    def _by_kernel(self, path: str, follow: bool) -> int:
        return _open_by_kernel(self._root_fd, path or ".", _FOLDER, follow=follow)

    def _by_names(self, path: str, follow: bool) -> int:
        return _open_by_names(self._root_fd, path, follow=follow)

    def _list_if_there(self, folder: str, *, is_start: bool) -> Sequence[FoundPath]:
        try:
            return self.list_folder(folder)
        except PathRefused:
            if is_start:
                raise
            return ()  # gone since it was listed, or we may not read it


def _may_hold(folder: str, stems: Sequence[tuple[str, ...]]) -> bool:
    names = tuple(normalize("NFC", folder).split("/"))  # as the globs are
    return any(names[: len(stem)] == stem[: len(names)] for stem in stems)
