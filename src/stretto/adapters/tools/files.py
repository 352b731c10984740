"""The files that one attempt may touch.

A path is checked against the sets, then opened beneath the workspace. Nothing is read through a
link: the path that the link leads to is checked like any other, and that path is opened.

Text is told from other files, and turned into bytes and back without loss.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import BinaryIO, Self, TypeVar

from stretto.adapters.tools.outcomes import CallFailed, CallRefused
from stretto.adapters.tools.paths import Bounds, real_name
from stretto.globs.glob import Glob
from stretto.ports.tool import Reach
from stretto.processes.completion import complete, start_thread
from stretto.workspaces.isolated_copy import why_lost
from stretto.workspaces.paths import FoundPath, PathRefused, kind_of, quote_path, wrong_kind
from stretto.workspaces.protected import PARTS, LinkedSecrets, is_repository
from stretto.workspaces.rooted_dir import RootedDir

_T = TypeVar("_T")
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# Refusals by a rule of ours. The others, such as "missing", are failures.
_RULES = frozenset({"outside", "link", "protected"})
_LINKED_SECRET = "is a second name of a file with keys (a hard link): no tool reads it"


class Files:
    """Open for one attempt; when the attempt has ended no tool can use it any more."""

    def __init__(self, reach: Reach, only: Sequence[Glob] = ()) -> None:
        """`only`: if there are any, a path must also be covered by one of these."""
        self._workspace = reach.workspace
        self._origin = reach.origin
        self._carried = reach.carried
        self._bounds = Bounds(reach, only)
        self._rooted = RootedDir(reach.workspace)
        self._linked_secrets = LinkedSecrets(reach.workspace, self._bounds.named_secrets)
        self._is_closed = False

    def close(self) -> None:
        self._is_closed = True
        self._rooted.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    async def in_thread(self, work: Callable[[], _T], stop: Event) -> _T:
        """When the call is cancelled, wait for the thread first: afterwards the folder is closed."""
        return await complete(start_thread(work), stop.set)

    # Reading

    @contextmanager
    def open_to_read(self, path: str) -> Iterator[tuple[str, BinaryIO]]:
        """The file's own path, and the file."""
        with _tool_errors():
            where = self._readable_path(path)
            try:
                file = self._open(where)
            except PathRefused as refused:
                if refused.why != "link":
                    raise
                where = self._readable_path(self._link_target(where))
                file = self._open(where)
            with file:
                yield where, file

    def read(self, path: str, most_bytes: int) -> bytes:
        with self.open_to_read(path) as (where, file):
            content = file.read(most_bytes + 1)
        if len(content) > most_bytes:
            raise CallFailed(f"{quote_path(where)} has more than {most_bytes:,} bytes")
        return content

    def read_found(self, found: FoundPath, most_bytes: int) -> bytes:
        """The beginning of a file that `walk` has found."""
        with _tool_errors(), self._open(found.path) as file:
            return file.read(most_bytes)

    def folder(self, path: str) -> str:
        """Where a walk starts: the own path of a folder or a file, from the workspace on."""
        self._check_open()
        where = self._bounds.relative_path(path)
        with _tool_errors():
            self._check_spelling(where)
            try:
                with self._rooted.place(where, follow=False) as place:
                    is_link = place.link_target() is not None
                    is_there = place.status() is not None
            except PathRefused as refused:
                if refused.why != "link":
                    raise
                is_link = is_there = True
            if not is_there:
                raise CallFailed(f"{quote_path(where)} does not exist")
            return self._bounds.relative_path(self._link_target(where)) if is_link else where

    def walk(self, under: str, stop: Event, globs: Sequence[Glob] = ()) -> Iterator[FoundPath]:
        """Files that may be read and that a glob covers, by name. Raises PathRefused at a limit."""
        found = self._rooted.stat(under) if under else None
        if found is not None and found.kind != "folder":
            walked: Iterator[FoundPath] = iter([found])
        else:
            walked = self._rooted.walk(under, self._bounds.readable)
        for each in walked:
            if stop.is_set():
                return
            is_covered = not globs or any(glob.matches(each.path) for glob in globs)
            if is_covered and self._bounds.may_read(each.path):
                yield each

    # Writing

    def write(self, path: str, content: bytes) -> tuple[str, bool]:
        """Where it was written, and whether the file is new."""
        where = self.writable_path(path)
        with _tool_errors():
            try:
                is_new = False
                self._rooted.stat(where, follow=False)
            except PathRefused as refused:
                if refused.why != "missing":
                    raise
                is_new = True
            folder = where.rpartition("/")[0]
            if folder and is_new:
                self._rooted.mkdir(folder)
            self._rooted.write_bytes(where, content)
        return where, is_new

    def writable_path(self, path: str) -> str:
        self._check_open()
        where = self._bounds.check_write(path)
        with _tool_errors():
            self._check_spelling(where)
            self._check_repository(where)
        if self._origin is not None and (why := self._why_lost(self._origin, where)):
            raise CallRefused(f"{quote_path(where)} {why}")
        return where

    def _why_lost(self, origin: Path, where: str) -> str | None:
        """Why a file of this name would not be part of the step's change."""
        for path in self._carried:
            if f"{where}/".startswith(f"{path}/"):
                return f"is in {quote_path(path)}, which is carried into this copy to be read only"
        return why_lost(self._workspace, origin, where)

    # Paths

    def _readable_path(self, path: str) -> str:
        self._check_open()
        where = self._bounds.check_read(path)
        self._check_spelling(where)
        return where

    def _check_open(self) -> None:
        # Its descriptor number may stand for another file by now.
        if self._is_closed:
            raise CallFailed("the attempt that this tool was made for has ended")

    def _check_spelling(self, where: str) -> None:
        names = where.split("/")
        for depth, name in enumerate(names):
            try:
                with self._rooted.folder("/".join(names[:depth]), follow=False) as folder_fd:
                    real = real_name(folder_fd, name)
            except PathRefused:
                return  # not there, or behind a link: then the path of the target is checked
            if real is not None:
                raise CallRefused(
                    f"{quote_path(name)} in {quote_path(where)} is really called {quote_path(real)}"
                )

    def _check_repository(self, where: str) -> None:
        """The config of a repository names programs, which git runs for whoever uses it there."""
        names = where.split("/")
        for depth, name in enumerate(names):
            folder = "/".join(names[:depth])
            try:
                with self._rooted.folder(folder, follow=False) as fd:
                    there = [part for part in PARTS if _is_in(fd, part)]
            except PathRefused:
                return  # a new folder: a single file does not make it a repository
            if is_repository([*there, name]):
                is_old = is_repository(there)
                what = "is in a git repository" if is_old else "would make a git repository"
                raise CallRefused(
                    f"{quote_path(where)} {what} of {quote_path(folder or '.')}: no tool may do that"
                )

    def _open(self, where: str) -> BinaryIO:
        """Follow no link. Regular files only: opening a pipe would wait for its writer."""
        with self._rooted.place(where, follow=False) as place:
            fd = os.open(place.name, _READ, dir_fd=place.folder_fd)
        try:
            status = os.fstat(fd)
            kind = kind_of(status.st_mode)
            if kind != "file":
                raise wrong_kind(where, kind)
            if self._linked_secrets.cover(where, status):
                raise PathRefused(where, "protected", f"{quote_path(where)} {_LINKED_SECRET}")
            return open(fd, "rb")
        except BaseException:
            os.close(fd)
            raise

    def _link_target(self, where: str) -> str:
        """The path of the workspace that a link leads to."""
        root = self._workspace.resolve()
        target = Path(os.path.realpath(root / where))
        if not target.is_relative_to(root):
            raise CallRefused(f"{quote_path(where)} is a link out of the workspace")
        return str(target.relative_to(root))


def _is_in(folder_fd: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
    except OSError:
        return False
    return True


@contextmanager
def _tool_errors() -> Iterator[None]:
    try:
        yield
    except PathRefused as refused:
        message = f"{refused.message}; {refused.hint}" if refused.hint else refused.message
        raise (CallRefused(message) if refused.why in _RULES else CallFailed(message)) from None


_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive, or an office document"),
    (b"\x1f\x8b", "gzip-compressed"),
    (b"\x7fELF", "a program"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
)
_PROBE_BYTES = 8192


def not_text(beginning: bytes) -> str | None:
    """What a file is that the tools can neither show nor edit; None for text."""
    if beginning[:4] == b"RIFF" and beginning[8:12] == b"WEBP":
        return "a WebP image"
    known = next((what for magic, what in _MAGIC if beginning.startswith(magic)), None)
    return known or ("binary" if b"\0" in beginning[:_PROBE_BYTES] else None)


def decode(content: bytes) -> str:
    # Bytes that are no UTF-8 become lone surrogates, and the same bytes again in `encode`.
    return content.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def has_surrogates(text: str) -> bool:
    return not text.isascii() and re.search(r"[\ud800-\udfff]", text) is not None
