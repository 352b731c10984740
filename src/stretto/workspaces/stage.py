"""The folder in a workspace where a merge keeps new files, and the old ones it takes away.

    .stretto-merge-ID/new/7     the new file of put 7, until it is in place
    .stretto-merge-ID/old/      made when all new files are there and synced: from now on puts are made
    .stretto-merge-ID/old/7     what was there before put 7

It is in the workspace so that a file gets in place by one rename. Which names exist says how far
each put has come: there is no other note that a crash could leave behind or ahead of them.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TypeAlias

from stretto.workspaces.durable import FEW, sync_file_system
from stretto.workspaces.paths import PathAt
from stretto.workspaces.rooted_dir import RootedDir

# Called at every named point of a merge; a test may kill the process there.
Point: TypeAlias = Callable[[str], None]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS)


def nowhere(point: str) -> None:
    """The Point of a merge that nobody watches."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Held open. Without `old_fd`, nothing in the workspace has been touched yet."""

    fd: int
    new_fd: int
    old_fd: int | None = None

    def new(self, number: int) -> PathAt:
        return PathAt(self.new_fd, str(number))

    def old(self, number: int) -> PathAt:
        assert self.old_fd is not None
        return PathAt(self.old_fd, str(number))


@contextmanager
def make_stage(rooted: RootedDir, name: str) -> Iterator[Stage]:
    with rooted.folder() as root_fd:
        os.mkdir(name, 0o700, dir_fd=root_fd)
        with _opened(name, root_fd) as fd:
            os.mkdir("new", 0o700, dir_fd=fd)
            with _opened("new", fd) as new_fd:
                yield Stage(fd, new_fd)


@contextmanager
def ready(stage: Stage) -> Iterator[Stage]:
    """All new files are there: from here on the workspace is touched."""
    _sync_files(stage.new_fd)
    os.mkdir("old", 0o700, dir_fd=stage.fd)
    os.fsync(stage.fd)
    with _opened("old", stage.fd) as old_fd:
        yield Stage(stage.fd, stage.new_fd, old_fd)


@contextmanager
def touched_stage(rooted: RootedDir, name: str) -> Iterator[Stage | None]:
    """After a crash: None when nothing was touched."""
    with ExitStack() as held, rooted.folder() as root_fd:
        stage: Stage | None = None
        with suppress(FileNotFoundError):
            fd = held.enter_context(_opened(name, root_fd))
            old_fd = held.enter_context(_opened("old", fd))
            stage = Stage(fd, held.enter_context(_opened("new", fd)), old_fd)
        yield stage


def remove_stage(rooted: RootedDir, name: str, at: Point = nowhere) -> None:
    """Whatever of it there is."""
    with rooted.folder() as root_fd:
        # `old` first: it is empty when a merge was undone, and without it nothing is touched.
        for part in ("old", "new"):
            with ExitStack() as held, suppress(FileNotFoundError):
                fd = held.enter_context(_opened(name, root_fd))
                part_fd = held.enter_context(_opened(part, fd))
                for file in os.listdir(part_fd):
                    at("cleaning")
                    os.unlink(file, dir_fd=part_fd)
                os.rmdir(part, dir_fd=fd)
        with suppress(FileNotFoundError):
            os.rmdir(name, dir_fd=root_fd)
        at("cleaned")


def rename(source: PathAt, target: PathAt) -> None:
    os.rename(source.name, target.name, src_dir_fd=source.folder_fd, dst_dir_fd=target.folder_fd)


def link(source: PathAt, target: PathAt) -> bool:
    """A second name for a file. False where the file system has none; raises if it exists."""
    try:
        os.link(
            source.name,
            target.name,
            src_dir_fd=source.folder_fd,
            dst_dir_fd=target.folder_fd,
            follow_symlinks=False,
        )
        return True
    except OSError as error:
        if error.errno in _NO_LINKS:
            return False
        raise


def are_one(a: PathAt, b: PathAt) -> bool:
    """Whether two names are of one file."""
    first, second = a.status(), b.status()
    return first is not None and second is not None and os.path.samestat(first, second)


def _sync_files(folder_fd: int) -> None:
    names = os.listdir(folder_fd)
    if len(names) > FEW and sync_file_system(folder_fd):
        return
    for name in names:
        place = PathAt(folder_fd, name)
        if place.link_target() is None:
            with place.open_file() as file:
                os.fsync(file.fileno())
    os.fsync(folder_fd)


@contextmanager
def _opened(name: str, folder_fd: int) -> Iterator[int]:
    fd = os.open(name, _FOLDER, dir_fd=folder_fd)
    try:
        yield fd
    finally:
        os.close(fd)
