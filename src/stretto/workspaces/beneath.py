"""Files beneath a root. In: paths relative to it, '/' between names. Out: bytes, or PathRefused.

Nothing is checked and then opened. A folder is opened so that the way to it cannot leave the root
(`openat2`, else component by component), and the last name is used in that open folder without
following a link. A link that stays inside may be read through. What is written or removed is named
itself: no component may be a link, so a path in a write-set is the file that changes.

A file is written as a new file beside it that is renamed over it: a reader sees the old bytes or
the new ones, and a hard link from elsewhere keeps the old ones. On a file system that ignores case
two spellings are one file; only git's own names are guarded against that.
"""

import os
import secrets
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self
from unicodedata import normalize

from stretto.globs.glob import Glob
from stretto.workspaces import openat2, walking
from stretto.workspaces.places import (
    Found,
    Place,
    checked,
    dress,
    found_at,
    join,
    kind_of,
    split,
    statuses_in,
    wrong_kind,
)
from stretto.workspaces.protected import is_protected
from stretto.workspaces.refusals import PathRefused, refusing, shown

MOST_WALKED = 100_000
MOST_DEPTH = 128

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY


class Beneath:
    """One root, held open until `close`."""

    def __init__(self, root: Path, *, use_openat2: bool | None = None) -> None:
        with refusing(str(root)):
            self._root_fd = os.open(root, _FOLDER | os.O_CLOEXEC)
        is_here = openat2.is_available() if use_openat2 is None else use_openat2
        self._open_folder: Callable[[str, bool], int] = (
            self._by_kernel if is_here else self._by_hand
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
                raise PathRefused(path, "kind", f"{shown(path)} is a folder")
            return place.open_file(path)

    def read_bytes(self, path: str, limit: int) -> bytes:
        """The whole file, or a refusal when it has more bytes than `limit`."""
        with self.open_file(path) as file, refusing(path):
            content = file.read(limit + 1)
            size = max(len(content), os.fstat(file.fileno()).st_size)
        if len(content) > limit:
            raise PathRefused(
                path, "limit", f"{shown(path)} has {size:,} bytes; {limit:,} is the most"
            )
        return content

    def stat(self, path: str, *, follow: bool = True) -> Found:
        with self.place(path, follow=follow) as place:
            status = os.stat(place.name, dir_fd=place.folder_fd, follow_symlinks=False)
        return found_at(path, status)

    def list_folder(self, path: str = "") -> list[Found]:
        """What is in a folder, by name. Links are not followed."""
        at = checked(path)
        with self.folder(at) as fd, os.scandir(fd) as entries:
            found = [found_at(join(at, name), status) for name, status in statuses_in(entries)]
        return sorted(found, key=lambda each: each.path)

    def walk(
        self, under: str = "", globs: Sequence[Glob] = (), most: int = MOST_WALKED
    ) -> Iterator[Found]:
        """Files and links below a folder that a glob covers (all, without one), by name.

        Linked folders are not entered, git's own are left out. Refuses past `most` things seen.
        """
        stems = [stem for glob in globs for stem in glob.stems()]
        waiting, seen = [checked(under)], 0
        while waiting:
            folder = waiting.pop()
            below = list[str]()
            for found in self._list_if_there(folder, is_start=seen == 0):
                seen += 1
                if seen > most or found.path.count("/") >= MOST_DEPTH:
                    what = f"more than {most:,} things, or more than {MOST_DEPTH} folders deep"
                    raise PathRefused(under, "limit", f"{shown(under or '.')} holds {what}")
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
                    dress(fd, old, mode)
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

    def replace(self, source: str, target: str) -> None:
        """Rename a file or a link; what is at the target is replaced, unless it is a folder."""
        with self._writable(source) as old, self._writable(target) as new:
            status = old.status()
            if status is not None and stat.S_ISDIR(status.st_mode):
                raise wrong_kind(source, "folder")
            os.rename(old.name, new.name, src_dir_fd=old.folder_fd, dst_dir_fd=new.folder_fd)

    def unlink(self, path: str) -> None:
        """Remove a file, or a link itself."""
        with self._writable(path) as place:
            os.unlink(place.name, dir_fd=place.folder_fd)

    def mkdir(self, path: str) -> None:
        """Make a folder and those above it; being there already is fine."""
        names = checked(path).split("/")
        for depth in range(1, len(names) + 1):
            part = "/".join(names[:depth])
            with self._writable(part) as place:
                try:
                    os.mkdir(place.name, dir_fd=place.folder_fd)
                except FileExistsError:
                    status = place.status()
                    if status is not None and not stat.S_ISDIR(status.st_mode):
                        raise wrong_kind(part, kind_of(status.st_mode), "folder") from None

    def rmdir(self, path: str) -> None:
        with self._writable(path) as place:
            os.rmdir(place.name, dir_fd=place.folder_fd)

    # Opening

    @contextmanager
    def folder(self, path: str = "", *, follow: bool = True) -> Iterator[int]:
        with refusing(path or "."):
            fd = self._open_folder(checked(path), follow)
            try:
                yield fd
            finally:
                os.close(fd)

    @contextmanager
    def place(self, path: str, *, follow: bool = True) -> Iterator[Place]:
        """Where a path is: its folder, held open, and a last name that is no link when followed."""
        where = checked(path)
        for _ in range(walking.MOST_LINKS):
            folder, name = split(where)
            with refusing(path):
                fd = self._open_folder(folder, follow)
                try:
                    place = Place(fd, name)
                    target = place.link_target() if follow else None
                    if target is None:
                        yield place
                        return
                finally:
                    os.close(fd)
            if target.startswith("/"):
                raise PathRefused(path, "outside", f"{shown(path)} is a link out of the workspace")
            where = join(folder, target)
        raise PathRefused(path, "link", f"{shown(path)} is a link that never ends")

    @contextmanager
    def _writable(self, path: str) -> Iterator[Place]:
        if is_protected(path):
            raise PathRefused(
                path, "protected", f"{shown(path)} is not for writers: it is git's own"
            )
        with self.place(path, follow=False) as place:
            if place.name == ".":
                raise PathRefused(path, "kind", f"{shown(path)} is the workspace itself")
            yield place

    def _by_kernel(self, path: str, follow: bool) -> int:
        return openat2.open_beneath(self._root_fd, path or ".", _FOLDER, follow=follow)

    def _by_hand(self, path: str, follow: bool) -> int:
        return walking.open_folder(self._root_fd, path, follow=follow)

    def _list_if_there(self, folder: str, *, is_start: bool) -> Sequence[Found]:
        try:
            return self.list_folder(folder)
        except PathRefused:
            if is_start:
                raise
            return ()  # gone since it was listed, or not for us to read


def _may_hold(folder: str, stems: Sequence[tuple[str, ...]]) -> bool:
    names = tuple(normalize("NFC", folder).split("/"))  # as the globs are
    return any(names[: len(stem)] == stem[: len(names)] for stem in stems)
