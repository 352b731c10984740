"""The copy that a command works on where its write-set is not whole directories.

It is filled before the command starts. After the last process of the sandbox has ended, so that
nothing in the copy moves, the changes that the write-set covers are collected into the workspace.
What is found in the copy was made by a stranger: links are copied as links, never followed, and only
plain files, links and directories are taken.

How a write-set becomes something that can be mounted is decided here as well. A mount is a whole
directory or a whole file; a glob may be neither. So:

- A directory that is covered whole (`src/**`, `src/**/*`, `src`, and `**` for the workspace itself)
  and exists is mounted writable, as it is: changes are there at once. Nothing is copied.
- Everything else (`docs/*.md`, `README.md`, a path that does not exist yet) is *staged*: the
  command gets a writable copy of the nearest directory that exists, with what cannot match
  mounted into it read-only, and afterwards each change is collected if a glob covers it, and
  named in `Ran.kept_out` if none does. So editors may rename over a file, new files may be made,
  and the globs hold to the letter. Copying costs time: name whole directories where you can.

A link is never followed: a write-set that names one covers the link, not what it points to.
Nothing in a `.git` is ever part of a layout.
"""

import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from stretto.globs.glob import Glob
from stretto.globs.intersection import any_intersect, word_of
from stretto.globs.pattern import ANY, EVERY_NAME, Pattern
from stretto.workspaces.paths import PathNames, read_statuses
from stretto.workspaces.protected import NOTHING_PROTECTED, Protected
from stretto.workspaces.rooted_dir import MOST_DEPTH
from stretto.workspaces.sandbox.confinement import Access

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def open_directory(root_fd: int, names: Sequence[str], *, create: bool = False) -> Iterator[int]:
    """Raises OSError where a name is missing, a link, or no directory."""
    current = os.dup(root_fd)
    try:
        for name in names:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=current)
            below = os.open(name, _DIRECTORY, dir_fd=current)
            os.close(current)
            current = below
        yield current
    finally:
        os.close(current)


def open_place(root_fd: int, names: Sequence[str]) -> int:
    """A descriptor that names the place and can do nothing else (O_PATH)."""
    if not names:
        return os.open(".", os.O_PATH | os.O_CLOEXEC, dir_fd=root_fd)
    with open_directory(root_fd, names[:-1]) as parent:
        return os.open(names[-1], os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)


def find_existing_part(root_fd: int, names: Sequence[str]) -> tuple[str, ...]:
    """The longest beginning of the path that is a directory, links not counted."""
    for length in range(len(names), 0, -1):
        with suppress(OSError), open_directory(root_fd, names[:length]):
            return tuple(names[:length])
    return ()


def is_there(root_fd: int, names: Sequence[str]) -> bool:
    """Whether the path is a file or a directory, links not counted."""
    try:
        with open_directory(root_fd, names[:-1]) as parent:
            status = os.stat(names[-1], dir_fd=parent, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)


# `src/**/*` is all that is in src, though not src itself, which nobody can remove anyway.
_EVERYTHING = ((ANY,), (ANY, EVERY_NAME))


@dataclass(frozen=True, slots=True)
class WriteLayout:
    globs: tuple[Glob, ...]
    whole: tuple[PathNames, ...]  # directories to be mounted writable
    staged: tuple[PathNames, ...]  # directories of which the command gets a copy
    protected: Protected = NOTHING_PROTECTED
    repositories: frozenset[PathNames] = frozenset()  # directories that are one by themselves

    def without(self, repositories: frozenset[PathNames]) -> "WriteLayout":
        return replace(self, repositories=repositories)

    def covers(self, names: PathNames) -> bool:
        path = "/".join(names)
        if has_git(names) or self.protected.covers(path):
            return False
        if any(names[:depth] in self.repositories for depth in range(len(names) + 1)):
            return False
        return any(glob.matches(path) for glob in self.globs)

    def may_cover_below(self, names: PathNames) -> bool:
        below = (word_of((*names, ANY)),)
        return any(any_intersect(below, glob.words) for glob in self.globs)


def lay_out(
    workspace_fd: int, globs: Sequence[Glob], protected: Protected = NOTHING_PROTECTED
) -> WriteLayout:
    whole, staged = set[PathNames](), set[PathNames]()
    for pattern in (pattern for glob in globs for pattern in glob.patterns):
        stem = _stem(pattern)
        if has_git(stem):
            continue
        there = find_existing_part(workspace_fd, stem)
        is_whole = pattern[len(stem) :] in _EVERYTHING and there == stem
        (whole if is_whole else staged).add(there)
    outermost = _outermost(whole)
    return WriteLayout(
        tuple(globs),
        outermost,
        _outermost(names for names in staged if not any(_is_below(names, it) for it in outermost)),
        protected,
    )


def has_git(names: Iterable[str]) -> bool:
    return any(is_git(name) for name in names)


def is_git(name: str) -> bool:
    # Some file systems take .GIT for the same.
    return name.casefold() == ".git"


def _stem(pattern: Pattern) -> PathNames:
    names: list[str] = []
    for segment in pattern:
        if not isinstance(segment, str):
            break
        names.append(segment)
    return tuple(names)


def _outermost(paths: Iterable[PathNames]) -> tuple[PathNames, ...]:
    kept: list[PathNames] = []
    for names in sorted(paths, key=lambda it: (len(it), it)):
        if not any(_is_below(names, it) for it in kept):
            kept.append(names)
    return tuple(kept)


def _is_below(names: PathNames, other: PathNames) -> bool:
    return names[: len(other)] == other


MOST_FILES = 5_000
MOST_BYTES = 64 * 1024 * 1024
_BIG_BYTES = 1024 * 1024  # what no glob covers is mounted, not copied, from this size on
_LONGEST_PATH = 3072  # bytes; a command can dig deeper than the kernel opens, and is not followed


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
    """Filled once, by `fill_copy`."""

    layout: WriteLayout
    root: Path  # outside the workspace, and ours alone
    tops: dict[PathNames, Path] = field(default_factory=dict)
    mounted: dict[PathNames, Access] = field(default_factory=dict)  # into the copies
    stamps: dict[PathNames, InodeStamp] = field(default_factory=dict)
    copied_bytes: int = 0


def fill_copy(layout: WriteLayout, workspace_fd: int, root: Path) -> StagedCopy:
    """Raises CopyTooLarge, and OSError where the copy cannot be written."""
    stage = StagedCopy(layout, root)
    for number, names in enumerate(layout.staged):
        top = stage.tops[names] = root / str(number)
        _make_directory(stage, names, top)
        waiting = _copy_entries(stage, workspace_fd, names, top)
        while waiting:
            below, copy = waiting.pop()
            with suppress(FileNotFoundError):  # it is being removed just now
                waiting.extend(_copy_entries(stage, workspace_fd, below, copy))
    return stage


def _make_directory(stage: StagedCopy, names: PathNames, copy: Path) -> None:
    copy.mkdir(mode=0o755)
    stage.stamps[names] = InodeStamp.of(copy.lstat())


def _copy_entries(
    stage: StagedCopy, workspace_fd: int, names: PathNames, copy: Path
) -> list[tuple[PathNames, Path]]:
    """Copy what is in a directory. Returns the directories of which the entries are to be copied
    as well: they are only made here."""
    deeper: list[tuple[PathNames, Path]] = []
    with open_directory(workspace_fd, names) as fd, os.scandir(fd) as entries:
        for name, status in read_statuses(entries):
            below, path = (*names, name), copy / name
            # What is too long to be found afterwards would count as removed by the command.
            if len(below) > MOST_DEPTH or _is_too_long(path):
                what = f"more than {MOST_DEPTH} names or {_LONGEST_PATH:,} bytes"
                raise CopyTooLarge(f"it holds a path of {what}")
            with suppress(FileNotFoundError):  # it is being removed just now
                if not stat.S_ISDIR(status.st_mode):
                    _add_file(stage, fd, below, status, path)
                elif _add_directory(stage, below, path):
                    deeper.append((below, path))
            if len(stage.stamps) + len(stage.mounted) > MOST_FILES:
                raise CopyTooLarge(f"it holds more than {MOST_FILES} files")
    return deeper


def _is_too_long(path: Path) -> bool:
    return len(os.fsencode(path)) > _LONGEST_PATH


def _add_directory(stage: StagedCopy, names: PathNames, copy: Path) -> bool:
    """Whether it is copied, rather than mounted into the copy."""
    layout = stage.layout
    if names in layout.whole:
        stage.mounted[names] = Access.WRITE
    elif is_git(names[-1]) or not layout.may_cover_below(names):
        stage.mounted[names] = Access.READ
    else:
        _make_directory(stage, names, copy)
        return True
    copy.mkdir()
    return False


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
    # What we cannot read, the command does not see. But what cannot be written must not be passed
    # over: half a copy would be taken for a change by the command, and replace the user's file.
    try:
        source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=parent_fd)
    except OSError:
        return False
    try:
        copy_bytes(source, copy, status.st_mode & 0o777)
    except SourceUnreadable:
        copy.unlink(missing_ok=True)
        return False
    os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))  # build tools compare these
    return True


_CHUNK_BYTES = 1024 * 1024


class SourceUnreadable(OSError):
    """What was to be copied is no plain file, or cannot be read to its end."""


def copy_bytes(source_fd: int, target: Path | str, mode: int, dir_fd: int | None = None) -> None:
    """Into a new file. Closes the source. Raises SourceUnreadable; any other OSError is about the
    new file."""
    with open(source_fd, "rb", buffering=0) as source:
        if not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
            raise SourceUnreadable("not a plain file")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(target, flags, 0o600, dir_fd=dir_fd), "wb") as copy:
            # Not by sendfile: its error does not say whether reading or writing failed.
            while chunk := _read_chunk(source.fileno()):
                copy.write(chunk)
            os.fchmod(copy.fileno(), mode)


def _read_chunk(source_fd: int) -> bytes:
    try:
        return os.read(source_fd, _CHUNK_BYTES)
    except OSError as error:
        raise SourceUnreadable(error.errno, error.strerror) from error


_COLLECTED_KINDS = (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR)


def collect_changes(stage: StagedCopy, workspace_fd: int) -> tuple[str, ...]:
    found, unread = _look_through(stage)
    gone = [
        names
        for names, stamp in stage.stamps.items()
        if not (_is_same_kind(found, names, stamp) or _is_in(names, unread))
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
    told = {names for names in kept_out if kinds[names] != stat.S_IFDIR} | unread
    return tuple(sorted(_to_text(names) or "." for names in told))


def _look_through(
    stage: StagedCopy,
) -> tuple[dict[PathNames, tuple[Path, InodeStamp]], set[PathNames]]:
    """All that is in the copies now, and what of it could not be read: nobody knows of a change
    there, so it is not taken for one."""
    found: dict[PathNames, tuple[Path, InodeStamp]] = {}
    unread = set[PathNames]()
    waiting = list(stage.tops.items())
    while waiting:
        names, path = waiting.pop()
        if names in stage.mounted or _is_too_long(path):
            continue
        try:
            stamp = InodeStamp.of(path.lstat())
            if stamp.kind == stat.S_IFDIR:
                path.chmod(0o700)  # what the command has closed to itself is not gone
                with os.scandir(path) as entries:
                    waiting += [((*names, entry.name), path / entry.name) for entry in entries]
        except OSError:
            unread.add(names)
        else:
            found[names] = path, stamp
    return found, unread


def _is_in(names: PathNames, places: set[PathNames]) -> bool:
    return any(names[:depth] in places for depth in range(len(names) + 1))


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
