"""What was written in a shared workspace, and by nobody's leave. In: two looks. Out: paths.

A look costs one `lstat` a file, follows no link and reads no file. A file that was changed and
changed back within one tick of the file system's clock, to the same size, is not seen.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeAlias
from unicodedata import normalize

from stretto.globs.glob import Glob, parse_glob
from stretto.workspaces.folding import fold, ignores_case
from stretto.workspaces.links import MOST_LOOKED_AT, is_skipped

Stamp: TypeAlias = tuple[int, int, int]  # mtime_ns, size, inode


@dataclass(frozen=True, slots=True)
class Snapshot:
    stamps: Mapping[str, Stamp]  # files and links, by their path; folders are only ways to them
    is_whole: bool = True  # False: there was more than was looked at
    is_case_ignored: bool = False


def look(
    workspace: Path, *, most: int = MOST_LOOKED_AT, is_case_ignored: bool | None = None
) -> Snapshot:
    """Folders that nobody edits are left out. What cannot be read is as if it were not there."""
    if is_case_ignored is None:
        is_case_ignored = ignores_case(workspace)
    stamps: dict[str, Stamp] = {}
    waiting, seen = [""], 0
    root = os.path.realpath(workspace)
    while waiting:
        prefix = waiting.pop()
        for entry in _entries(os.path.join(root, prefix), most - seen + 1):
            seen += 1
            if seen > most:
                return Snapshot(stamps, False, is_case_ignored)
            if is_skipped(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append(f"{prefix}{entry.name}/")
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # gone since
            stamp = status.st_mtime_ns, status.st_size, status.st_ino
            stamps[f"{prefix}{entry.name}"] = stamp
    return Snapshot(stamps, True, is_case_ignored)


def differences(before: Snapshot, after: Snapshot, declared: Sequence[str]) -> tuple[str, ...]:
    """Paths that changed and that no glob covers, by name.

    `declared`: the write-sets and write-aliases of all who were at work between the two looks.
    Of a workspace that was not seen whole, only what both looks saw can be compared.
    """
    paths: Iterable[str] = before.stamps.keys() & after.stamps.keys()
    if before.is_whole and after.is_whole:
        paths = before.stamps.keys() | after.stamps.keys()
    changed = [path for path in paths if before.stamps.get(path) != after.stamps.get(path)]
    globs = [glob for glob in map(parse_glob, declared) if isinstance(glob, Glob)]
    is_case_ignored = before.is_case_ignored or after.is_case_ignored
    return tuple(sorted(path for path in changed if not _is_covered(path, globs, is_case_ignored)))


def _entries(folder: str, most: int) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(islice(entries, most))
    except OSError:
        return []


def _is_covered(path: str, globs: Sequence[Glob], is_case_ignored: bool) -> bool:
    spellings = {normalize("NFC", path), *((fold(path),) if is_case_ignored else ())}
    return any(glob.matches(spelling) for glob in globs for spelling in spellings)
