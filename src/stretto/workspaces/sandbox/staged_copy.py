"""The copy that a command works on where its write-set is not whole directories.

It is filled before the command starts. After the last process of the sandbox has ended, so that
nothing in the copy moves, the changes that the write-set covers are collected into the workspace.
What is found in the copy was made by a stranger: links are copied as links, never followed, and only
plain files, links and directories are taken.
"""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from stretto.workspaces.paths import PathNames, read_statuses
from stretto.workspaces.sandbox.confinement import Access
from stretto.workspaces.sandbox.write_layout import WriteLayout, is_git, open_directory

MOST_FILES = 5_000
MOST_BYTES = 64 * 1024 * 1024
_BIG_BYTES = 1024 * 1024  # what no glob covers is mounted, not copied, from this size on


class CopyTooLarge(Exception):
    """The directory cannot be copied for each command."""


@dataclass(frozen=True, slots=True)
class InodeStamp:
    """What changes when a file does. Nobody can set `changed_ns`."""

    kind: int
    inode: int
    size: int
    changed_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> "InodeStamp":
        kind = stat.S_IFMT(status.st_mode)
        if kind == stat.S_IFDIR:  # it changes with what is in it, which has stamps of its own
            return cls(kind, status.st_ino, 0, 0)
        return cls(kind, status.st_ino, status.st_size, status.st_ctime_ns)


@dataclass(slots=True)
class StagedCopy:
    """Filled once, by `fill`."""

    layout: WriteLayout
    root: Path  # outside the workspace, and ours alone
    tops: dict[PathNames, Path] = field(default_factory=dict)
    mounted: dict[PathNames, Access] = field(default_factory=dict)  # into the copies
    stamps: dict[PathNames, InodeStamp] = field(default_factory=dict)
    copied_bytes: int = 0


def fill_copy(layout: WriteLayout, workspace_fd: int, root: Path) -> StagedCopy:
    stage = StagedCopy(layout, root)
    for number, names in enumerate(layout.staged):
        stage.tops[names] = root / str(number)
        _copy_directory(stage, workspace_fd, names, stage.tops[names])
    return stage


def _copy_directory(stage: StagedCopy, workspace_fd: int, names: PathNames, copy: Path) -> None:
    copy.mkdir(mode=0o755)
    stage.stamps[names] = InodeStamp.of(copy.lstat())
    with open_directory(workspace_fd, names) as fd, os.scandir(fd) as entries:
        for name, status in read_statuses(entries):
            below = (*names, name)
            with suppress(FileNotFoundError):  # it is being removed just now
                if stat.S_ISDIR(status.st_mode):
                    _add_directory(stage, workspace_fd, below, copy / name)
                else:
                    _add_file(stage, fd, below, status, copy / name)
            if len(stage.stamps) + len(stage.mounted) > MOST_FILES:
                raise CopyTooLarge(f"it holds more than {MOST_FILES} files")


def _add_directory(stage: StagedCopy, workspace_fd: int, names: PathNames, copy: Path) -> None:
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
    stage: StagedCopy, parent_fd: int, names: PathNames, status: os.stat_result, copy: Path
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
    stage.stamps[names] = InodeStamp.of(copy.lstat())


def _copy_file(
    stage: StagedCopy, parent_fd: int, name: str, status: os.stat_result, copy: Path
) -> bool:
    stage.copied_bytes += status.st_size
    if stage.copied_bytes > MOST_BYTES:
        raise CopyTooLarge(f"it holds more than {MOST_BYTES >> 20} MiB")
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


_LONGEST_PATH = 3072  # deeper than the kernel opens, a command can dig but we need not follow
_COLLECTED_KINDS = (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR)


def collect_changes(stage: StagedCopy, workspace_fd: int) -> tuple[str, ...]:
    found = {names: (path, InodeStamp.of(path.lstat())) for names, path in _walk(stage)}
    gone = [
        names for names, stamp in stage.stamps.items() if not _is_same_kind(found, names, stamp)
    ]
    changed = [names for names, (_, stamp) in found.items() if stage.stamps.get(names) != stamp]
    kept_out = set[PathNames]()
    # The deepest first, so that a directory is empty by the time it goes.
    for names in sorted(gone, key=len, reverse=True):
        if not stage.layout.covers(names) or not _remove(workspace_fd, names, stage.stamps[names]):
            kept_out.add(names)
    for names in sorted(changed, key=len):
        path, stamp = found[names]
        if not stage.layout.covers(names) or not _collect(workspace_fd, names, path, stamp):
            kept_out.add(names)
    # Directories come and go with the files in them; by themselves they are no news.
    kinds = {names: stamp.kind for names, stamp in stage.stamps.items()}
    kinds |= {names: stamp.kind for names, (_, stamp) in found.items()}
    return tuple(sorted(map(_to_text, (it for it in kept_out if kinds[it] != stat.S_IFDIR))))


def _walk(stage: StagedCopy) -> Iterator[tuple[PathNames, Path]]:
    waiting = list(stage.tops.items())
    while waiting:
        names, path = waiting.pop()
        if names in stage.mounted or len(str(path)) > _LONGEST_PATH:
            continue
        yield names, path
        if stat.S_ISDIR(path.lstat().st_mode):
            path.chmod(0o700)  # what the command has closed to itself is not gone
            with os.scandir(path) as entries:
                waiting += [((*names, entry.name), path / entry.name) for entry in entries]


def _is_same_kind(
    found: dict[PathNames, tuple[Path, InodeStamp]], names: PathNames, stamp: InodeStamp
) -> bool:
    return names in found and found[names][1].kind == stamp.kind


def _to_text(names: PathNames) -> str:
    return "/".join(names).encode(errors="surrogateescape").decode(errors="replace")


def _remove(workspace_fd: int, names: PathNames, stamp: InodeStamp) -> bool:
    with suppress(OSError), open_directory(workspace_fd, names[:-1]) as parent:
        if stamp.kind == stat.S_IFDIR:
            os.rmdir(names[-1], dir_fd=parent)
        else:
            os.unlink(names[-1], dir_fd=parent)
        return True
    return False


def _collect(workspace_fd: int, names: PathNames, path: Path, stamp: InodeStamp) -> bool:
    if stamp.kind not in _COLLECTED_KINDS:
        return False
    with suppress(OSError):
        if stamp.kind == stat.S_IFDIR:
            with open_directory(workspace_fd, names, create=True):
                return True
        with open_directory(workspace_fd, names[:-1], create=True) as parent:
            _replace(parent, names[-1], path, stamp)
            return True
    return False


def _replace(parent_fd: int, name: str, path: Path, stamp: InodeStamp) -> None:
    draft = f".stretto-{secrets.token_hex(8)}"
    try:
        if stamp.kind == stat.S_IFLNK:
            os.symlink(os.readlink(path), draft, dir_fd=parent_fd)
        else:
            source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            copy_bytes(source, draft, path.lstat().st_mode & 0o777, dir_fd=parent_fd)
        os.rename(draft, name, src_dir_fd=parent_fd, dst_dir_fd=parent_fd)
    except OSError:
        with suppress(OSError):
            os.unlink(draft, dir_fd=parent_fd)
        raise
