"""The copy that a command works on where its write-set is not whole directories.

In: a Layout and the workspace. Out: a Stage: directories to mount, and what they held at first.
"""

import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from stretto.workspaces.paths import read_statuses
from stretto.workspaces.sandbox import nofollow
from stretto.workspaces.sandbox.adapter import Access
from stretto.workspaces.sandbox.write_set import Layout, Names, is_git

MOST_FILES = 5_000
MOST_BYTES = 64 * 1024 * 1024
_BIG_BYTES = 1024 * 1024  # what no glob covers is mounted, not copied, from this size on


class TooLarge(Exception):
    """The directory cannot be copied for each command."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What changes when a file does. Nobody can set `changed_ns`."""

    kind: int
    inode: int
    size: int
    changed_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> "Stamp":
        kind = stat.S_IFMT(status.st_mode)
        if kind == stat.S_IFDIR:  # it changes with what is in it, which has stamps of its own
            return cls(kind, status.st_ino, 0, 0)
        return cls(kind, status.st_ino, status.st_size, status.st_ctime_ns)


@dataclass(slots=True)
class Stage:
    """Filled once, by `fill`."""

    layout: Layout
    root: Path  # outside the workspace, and ours alone
    tops: dict[Names, Path] = field(default_factory=dict)
    mounted: dict[Names, Access] = field(default_factory=dict)  # into the copies
    stamps: dict[Names, Stamp] = field(default_factory=dict)
    copied_bytes: int = 0


def fill(layout: Layout, workspace_fd: int, root: Path) -> Stage:
    stage = Stage(layout, root)
    for number, names in enumerate(layout.staged):
        stage.tops[names] = root / str(number)
        _copy_directory(stage, workspace_fd, names, stage.tops[names])
    return stage


def _copy_directory(stage: Stage, workspace_fd: int, names: Names, copy: Path) -> None:
    copy.mkdir(mode=0o755)
    stage.stamps[names] = Stamp.of(copy.lstat())
    with nofollow.directory(workspace_fd, names) as fd, os.scandir(fd) as entries:
        for name, status in read_statuses(entries):
            below = (*names, name)
            with suppress(FileNotFoundError):  # somebody removes it just now
                if stat.S_ISDIR(status.st_mode):
                    _add_directory(stage, workspace_fd, below, copy / name)
                else:
                    _add_file(stage, fd, below, status, copy / name)
            if len(stage.stamps) + len(stage.mounted) > MOST_FILES:
                raise TooLarge(f"it holds more than {MOST_FILES} files")


def _add_directory(stage: Stage, workspace_fd: int, names: Names, copy: Path) -> None:
    layout = stage.layout
    if names in layout.whole:
        stage.mounted[names] = Access.WRITE
    elif is_git(names[-1]) or not layout.may_cover_below(names):
        stage.mounted[names] = Access.READ
    else:
        _copy_directory(stage, workspace_fd, names, copy)
        return
    copy.mkdir()


def _add_file(
    stage: Stage, parent_fd: int, names: Names, status: os.stat_result, copy: Path
) -> None:
    is_covered = stage.layout.covers(names)
    if stat.S_ISLNK(status.st_mode):
        copy.symlink_to(os.readlink(names[-1], dir_fd=parent_fd))
    elif not stat.S_ISREG(status.st_mode):
        return  # sockets and pipes lead outside
    elif is_git(names[-1]) or (status.st_size >= _BIG_BYTES and not is_covered):
        copy.touch()
        stage.mounted[names] = Access.READ
        return
    elif not _copy_file(stage, parent_fd, names[-1], status, copy):
        return
    stage.stamps[names] = Stamp.of(copy.lstat())


def _copy_file(stage: Stage, parent_fd: int, name: str, status: os.stat_result, copy: Path) -> bool:
    stage.copied_bytes += status.st_size
    if stage.copied_bytes > MOST_BYTES:
        raise TooLarge(f"it holds more than {MOST_BYTES >> 20} MiB")
    with suppress(OSError):  # what we cannot read, the command does not see
        source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=parent_fd)
        copy_bytes(source, copy, status.st_mode & 0o777)
        os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))  # build tools compare these
        return True
    return False


def copy_bytes(source_fd: int, target: Path | str, mode: int, dir_fd: int | None = None) -> None:
    """Into a new file. Closes the source."""
    with open(source_fd, "rb", buffering=0) as source:
        if not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
            raise OSError("not a plain file")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(target, flags, 0o600, dir_fd=dir_fd), "wb", buffering=0) as copy:
            while os.sendfile(copy.fileno(), source.fileno(), None, 1 << 24):
                pass
            os.fchmod(copy.fileno(), mode)
