"""Detect changes in a shared workspace: those that no step declared, and those that a step left.

A snapshot costs one `lstat` a file, follows no link and reads no file. So a change that keeps a
file's size, mode and inode is not seen if it came within one tick of the file system's clock. The
time of modification may be set back; that of the last change of any kind (ctime) nobody can set.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeAlias
from unicodedata import normalize

from stretto.config.home import make_private
from stretto.globs.glob import Glob, parse_globs
from stretto.problems.errors import NotFound
from stretto.workspaces.content import (
    FileEntry,
    Unreadable,
    encode_record,
    holds_entry,
    read_entry,
    read_record,
    write_durably,
)
from stretto.workspaces.links import MOST_LOOKED_AT, fold, ignores_case, is_skipped
from stretto.workspaces.paths import PathRefused
from stretto.workspaces.rooted_dir import RootedDir

FileStamp: TypeAlias = tuple[int, int, int, int, int]  # ctime_ns, mtime_ns, size, inode, mode


@dataclass(frozen=True, slots=True)
class StatSnapshot:
    stamps: Mapping[str, FileStamp]  # files and links, by their path; folders are only ways to them
    is_whole: bool = True  # False: there was more than was looked at
    is_case_ignored: bool = False


def snapshot_stats(
    workspace: Path, *, most: int = MOST_LOOKED_AT, is_case_ignored: bool | None = None
) -> StatSnapshot:
    """Folders that tools make are left out. What cannot be read counts as not there."""
    if is_case_ignored is None:
        is_case_ignored = ignores_case(workspace)
    stamps: dict[str, FileStamp] = {}
    waiting, seen = [""], 0
    root = os.path.realpath(workspace)
    while waiting:
        prefix = waiting.pop()
        for entry in _list_entries(os.path.join(root, prefix), most - seen + 1):
            seen += 1
            if seen > most:
                return StatSnapshot(stamps, False, is_case_ignored)
            if is_skipped(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append(f"{prefix}{entry.name}/")
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # gone since
            stamps[f"{prefix}{entry.name}"] = _stamp_of(status)
    return StatSnapshot(stamps, True, is_case_ignored)


def _stamp_of(status: os.stat_result) -> FileStamp:
    return (
        status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode
    )  # fmt: skip


def find_undeclared_paths(
    before: StatSnapshot, after: StatSnapshot, declared: Sequence[str]
) -> tuple[str, ...]:
    """Paths that changed and that no glob covers, by name.

    `declared`: the write-sets and write-aliases of all steps that were at work between the two snapshots.
    Of a workspace that was not seen whole, only what both looks saw can be compared.
    """
    paths: Iterable[str] = before.stamps.keys() & after.stamps.keys()
    if before.is_whole and after.is_whole:
        paths = before.stamps.keys() | after.stamps.keys()
    changed = [path for path in paths if before.stamps.get(path) != after.stamps.get(path)]
    globs = parse_globs(declared)
    is_case_ignored = before.is_case_ignored or after.is_case_ignored
    return tuple(sorted(path for path in changed if not _is_covered(path, globs, is_case_ignored)))


def _list_entries(folder: str, most: int) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(islice(entries, most))
    except OSError:
        return []


def _is_covered(path: str, globs: Sequence[Glob], is_case_ignored: bool) -> bool:
    spellings = {normalize("NFC", path), *((fold(path),) if is_case_ignored else ())}
    return any(glob.matches(spelling) for glob in globs for spelling in spellings)


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """What a shared writer left in the workspace: its answer speaks of these files, and no copy of
    them is kept. So the answer can be given again only while they are as the writer left them.
    Whatever changed while it worked counts as its own: that only makes reuse rarer."""

    files: dict[str, FileEntry | None]  # by path; None: it was removed


def note_written(note: Path, workspace: Path, paths: Iterable[str]) -> None:
    with RootedDir(workspace) as rooted:
        written = WrittenFiles({path: _read_entry(rooted, path) for path in sorted(paths)})
    make_private(note.parent)
    write_durably(note, encode_record(written))


def read_written(note: Path) -> dict[str, FileEntry | None]:
    """By path; None: it was removed. Raises NotFound, Unreadable."""
    return read_record(note, WrittenFiles, "note of what was written").files


def is_still_written(note: Path, workspace: Path) -> bool:
    """Whether all noted files are as they were. False where there is no note, too."""
    try:
        written = read_written(note)
    except (NotFound, Unreadable):
        return False
    with RootedDir(workspace) as rooted:
        return all(_is_as_noted(rooted, path, entry) for path, entry in written.items())


def _read_entry(rooted: RootedDir, path: str) -> FileEntry | None:
    try:
        with rooted.place(path, follow=False) as place:
            return read_entry(place)
    except (FileNotFoundError, PathRefused):
        return None


def _is_as_noted(rooted: RootedDir, path: str, entry: FileEntry | None) -> bool:
    try:
        with rooted.place(path, follow=False) as place:
            return holds_entry(place, entry)
    except PathRefused:
        return entry is None
