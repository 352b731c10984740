"""Take the changes of a stage back into the workspace. In: Stage. Out: the paths that were not.

It runs after the last process of the sandbox has ended, so nothing in the stage moves. What it
finds there was made by a stranger: links are copied as links, never followed, and only plain
files, links and directories are taken.
"""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from stretto.workspaces.sandbox import nofollow
from stretto.workspaces.sandbox.stage import Stage, Stamp, copy_bytes
from stretto.workspaces.sandbox.write_set import Names

_LONGEST_PATH = 3072  # deeper than the kernel opens, a command can dig but we need not follow
_TAKEN_KINDS = (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR)


def take_back(stage: Stage, workspace_fd: int) -> tuple[str, ...]:
    found = {names: (path, Stamp.of(path.lstat())) for names, path in _walk(stage)}
    gone = [
        names for names, stamp in stage.stamps.items() if not _is_same_kind(found, names, stamp)
    ]
    changed = [names for names, (_, stamp) in found.items() if stage.stamps.get(names) != stamp]
    kept_out = set[Names]()
    # The deepest first, so that a directory is empty by the time it goes.
    for names in sorted(gone, key=len, reverse=True):
        if not stage.layout.covers(names) or not _remove(workspace_fd, names, stage.stamps[names]):
            kept_out.add(names)
    for names in sorted(changed, key=len):
        path, stamp = found[names]
        if not stage.layout.covers(names) or not _take(workspace_fd, names, path, stamp):
            kept_out.add(names)
    # Directories come and go with the files in them; by themselves they are no news.
    kinds = {names: stamp.kind for names, stamp in stage.stamps.items()}
    kinds |= {names: stamp.kind for names, (_, stamp) in found.items()}
    return tuple(sorted(map(_shown, (it for it in kept_out if kinds[it] != stat.S_IFDIR))))


def _walk(stage: Stage) -> Iterator[tuple[Names, Path]]:
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


def _is_same_kind(found: dict[Names, tuple[Path, Stamp]], names: Names, stamp: Stamp) -> bool:
    return names in found and found[names][1].kind == stamp.kind


def _shown(names: Names) -> str:
    return "/".join(names).encode(errors="surrogateescape").decode(errors="replace")


def _remove(workspace_fd: int, names: Names, stamp: Stamp) -> bool:
    with suppress(OSError), nofollow.directory(workspace_fd, names[:-1]) as parent:
        if stamp.kind == stat.S_IFDIR:
            os.rmdir(names[-1], dir_fd=parent)
        else:
            os.unlink(names[-1], dir_fd=parent)
        return True
    return False


def _take(workspace_fd: int, names: Names, path: Path, stamp: Stamp) -> bool:
    if stamp.kind not in _TAKEN_KINDS:
        return False
    with suppress(OSError):
        if stamp.kind == stat.S_IFDIR:
            with nofollow.directory(workspace_fd, names, create=True):
                return True
        with nofollow.directory(workspace_fd, names[:-1], create=True) as parent:
            _replace(parent, names[-1], path, stamp)
            return True
    return False


def _replace(parent_fd: int, name: str, path: Path, stamp: Stamp) -> None:
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
