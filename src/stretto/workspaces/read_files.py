"""What a command may read: the files of its read-set, by content, to be compared by a later run.

    folder, read-set ─ReadFileFinder.find→ ReadFiles ─note_read→ read.json ─is_read_alike→ yes | no

Left out: folders that tools make (`node_modules`, `.venv`, …) and the recipe itself, unless a set
names them. A file that a set names through a link counts by its own path. Of a repository the
branch and the commit that are checked out count. Past a limit nothing is compared.
"""

import json
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from stretto.config.home import make_private
from stretto.globs.glob import Glob, parse_globs
from stretto.problems.errors import NotFound
from stretto.workspaces.content import (
    FileEntry,
    Unreadable,
    encode_record,
    read_entry,
    read_record,
    write_durably,
)
from stretto.workspaces.file_list import SKIPPED_NAMES, covers_below, names_path
from stretto.workspaces.git import describe_head
from stretto.workspaces.links import aliases
from stretto.workspaces.paths import PathRefused
from stretto.workspaces.protected import is_protected
from stretto.workspaces.rooted_dir import MOST_DEPTH, RootedDir

MOST_FILES = 20_000
MOST_BYTES = 256 * 2**20
TOO_MUCH = (
    f"more than {MOST_FILES:,} files, {MOST_BYTES // 2**20} MiB,"
    f" or {MOST_DEPTH} folders in each other"
)
_HEAD = ".git/HEAD"  # stands for the branch and the commit that are checked out

_TICK_NS = 2_000_000_000  # longer than any file system's; some count whole seconds
# The times of the last change of the file itself (ctime, which nobody can set) and of its content,
# its size and mode, and which file it is: another one may take its place with the same times.
_Stamp: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReadFiles:
    """What a command could read when it began."""

    files: Mapping[str, FileEntry]  # by path
    unsure: tuple[str, ...] = ()  # changed while it ran: it is not known which content it read

    @property
    def digest(self) -> str:
        listed = [[path, *_content(entry)] for path, entry in sorted(self.files.items())]
        return sha256(json.dumps(listed).encode("ascii")).hexdigest()


def _content(entry: FileEntry) -> tuple[str, str, bool]:
    return entry.kind, entry.digest, entry.is_executable


class TooMuchToRead(Exception):
    """More files, bytes or levels than are compared."""


@dataclass(slots=True)
class ReadFileFinder:
    """Finds files by content. What it has read once is not read again while its stamp is the same."""

    most_files: int = MOST_FILES
    most_bytes: int = MOST_BYTES
    _known: dict[str, tuple[_Stamp, FileEntry]] = field(default_factory=dict)

    def find(
        self, folder: Path, read_set: Sequence[str], apart: Collection[str] = ()
    ) -> ReadFiles | None:
        """`apart`: paths that count only where the set names them. None: too much to compare."""
        root = os.path.realpath(folder)
        globs = parse_globs((*read_set, *aliases(Path(root), read_set)))
        try:
            stamps = self._stamps(root, globs, apart)
        except TooMuchToRead:
            return None
        files = dict(self._entries(root, stamps))
        if any(glob.matches(_HEAD) for glob in globs) and (head := describe_head(Path(root))):
            files[_HEAD] = FileEntry(
                "file", 0, len(head), sha256(head.encode("utf-8", "surrogateescape")).hexdigest()
            )
        return ReadFiles(files)

    def _stamps(
        self, root: str, globs: Sequence[Glob], apart: Collection[str]
    ) -> dict[str, _Stamp]:
        stamps: dict[str, _Stamp] = {}
        size = 0
        for path, status in _walk(root, globs, apart):
            stamps[path] = stamp_of(status)
            size += status.st_size
            if len(stamps) > self.most_files or size > self.most_bytes:
                raise TooMuchToRead
        return stamps

    def _entries(self, root: str, stamps: Mapping[str, _Stamp]) -> Iterator[tuple[str, FileEntry]]:
        if len(self._known) > 2 * self.most_files:
            self._known.clear()
        with RootedDir(Path(root)) as rooted:
            for path, stamp in stamps.items():
                place = f"{root}/{path}"
                known = self._known.get(place)
                if known is not None and known[0] == stamp:
                    yield path, known[1]
                elif (entry := _read(rooted, path)) is not None:
                    # A file that changed just now may change again within the same tick of its clock.
                    if time.time_ns() - stamp[0] > _TICK_NS:
                        self._known[place] = stamp, entry
                    yield path, entry


def stamp_of(status: os.stat_result) -> _Stamp:
    return (
        status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_mode,
        status.st_dev, status.st_ino,
    )  # fmt: skip


def _walk(
    root: str, globs: Sequence[Glob], apart: Collection[str]
) -> Iterator[tuple[str, os.stat_result]]:
    """Files and links that the globs cover. What cannot be read counts as not there.

    Raises TooMuchToRead where folders lie deeper in each other than anybody looks.
    """
    waiting = [""]
    while waiting:
        prefix = waiting.pop()
        for entry in _list_entries(os.path.join(root, prefix)):
            path = prefix + entry.name
            if is_protected(path) or _is_left_out(path, globs, apart):
                continue
            if entry.is_dir(follow_symlinks=False):
                if any(covers_below(glob, path) for glob in globs):
                    if path.count("/") >= MOST_DEPTH:
                        raise TooMuchToRead
                    waiting.append(f"{path}/")
            elif any(glob.matches(path) for glob in globs):
                try:
                    yield path, entry.stat(follow_symlinks=False)
                except OSError:
                    continue  # gone since


def _list_entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _is_left_out(path: str, globs: Sequence[Glob], apart: Collection[str]) -> bool:
    is_apart = path in apart or path.rpartition("/")[2] in SKIPPED_NAMES
    return is_apart and not any(names_path(glob, path) for glob in globs)


def _read(rooted: RootedDir, path: str) -> FileEntry | None:
    try:
        with rooted.place(path, follow=False) as place:
            return read_entry(place)
    except (OSError, PathRefused):
        return None  # gone since, not readable, or a pipe


def settle(before: ReadFiles, after: ReadFiles | None, own: Sequence[str]) -> ReadFiles:
    """What a command has read, by what was there before and after it. `own`: what it may write."""
    if after is None:
        return ReadFiles(before.files, tuple(before.files))
    globs = parse_globs(own)
    paths = before.files.keys() | after.files.keys()
    changed = (
        path
        for path in paths
        if not _is_same(before.files.get(path), after.files.get(path))
        and not any(glob.matches(path) for glob in globs)
    )
    return ReadFiles(before.files, tuple(sorted(changed)))


def note_read(note: Path, read: ReadFiles) -> None:
    make_private(note.parent)
    write_durably(note, encode_record(read))


def is_read_alike(
    note: Path, now: ReadFiles, left: Mapping[str, Sequence[FileEntry | None]]
) -> bool:
    """Whether each file is as the command read it, or as the run itself left it afterwards.

    `left`: what writers of that run left at a path after the command began; None: nothing.
    """
    try:
        noted = read_record(note, ReadFiles, "note of what was read")
    except (NotFound, Unreadable):
        return False
    unsure = frozenset(noted.unsure)
    for path in noted.files.keys() | now.files.keys() | unsure:
        entry = now.files.get(path)
        if path not in unsure and _is_same(noted.files.get(path), entry):
            continue
        if not any(_is_same(each, entry) for each in left.get(path, ())):
            return False
    return True


def _is_same(one: FileEntry | None, other: FileEntry | None) -> bool:
    return other is None if one is None else one.is_same(other)
