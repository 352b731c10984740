"""What in a workspace is not a command's to change, or to read. In: an open workspace. Out: names.

It looks at every directory, but reads no file and follows no link.
"""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from stretto.workspaces.protected import is_repository
from stretto.workspaces.sandbox.write_set import Names, is_git
from stretto.workspaces.secret_files import INSTALLED, is_secret


@dataclass(frozen=True, slots=True)
class Survey:
    repositories: frozenset[Names]  # each a `.git`, or a directory that is one by itself
    secrets: frozenset[Names]  # files and directories that hold keys
    links: Mapping[Names, str]  # of the repositories those that are links, and where they lead


def survey(workspace_fd: int) -> Survey:
    repositories, secrets = set[Names](), set[Names]()
    for names, entries in _walk(workspace_fd, [()]):
        repositories.update(_repositories(names, entries))
        if not INSTALLED.intersection(names):
            secrets.update(_secrets(names, entries))
    links = {names: to for names in repositories if (to := link_target(workspace_fd, names))}
    return Survey(frozenset(repositories), _outermost(secrets), links)


def find_repositories(workspace_fd: int, below: Sequence[Names]) -> frozenset[Names]:
    return frozenset(
        found
        for names, entries in _walk(workspace_fd, below)
        for found in _repositories(names, entries)
    )


def link_target(workspace_fd: int, names: Names) -> str | None:
    with suppress(OSError):
        return os.readlink("/".join(names) or ".", dir_fd=workspace_fd)
    return None


def _repositories(names: Names, entries: Sequence[os.DirEntry[str]]) -> Iterator[Names]:
    for entry in entries:
        if len(entry.name) == 4 and is_git(entry.name):
            yield (*names, entry.name)
    if is_repository(entry.name for entry in entries):
        yield names


def _secrets(names: Names, entries: Sequence[os.DirEntry[str]]) -> Iterator[Names]:
    for entry in entries:
        path = (*names, entry.name)
        if is_secret(path) and not entry.is_symlink():
            yield path


def _outermost(found: set[Names]) -> frozenset[Names]:
    return frozenset(
        names for names in found if not any(names[:depth] in found for depth in range(len(names)))
    )


def _walk(
    workspace_fd: int, below: Sequence[Names]
) -> Iterator[tuple[Names, list[os.DirEntry[str]]]]:
    """Every directory with what is in it; what is git's own is not entered."""
    root = f"/proc/self/fd/{workspace_fd}/"
    waiting = list(below)
    while waiting:
        names = waiting.pop()
        entries = _list(root + "/".join(names))
        yield names, entries
        for entry in entries:
            if not is_git(entry.name) and entry.is_dir(follow_symlinks=False):
                waiting.append((*names, entry.name))


def _list(path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as listing:
            return list(listing)
    except PermissionError:
        return _list_unreadable(path)
    except OSError:  # it lies too deep, or is gone: git does not open it either
        return []


def _list_unreadable(path: str) -> list[os.DirEntry[str]]:
    """A directory that can be entered but not listed: git, told its name, works inside it. Its owner
    may list it for a moment; of another user's, nothing is known."""
    with suppress(OSError), ExitStack() as held:
        fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC)
        held.callback(os.close, fd)
        opened = f"/proc/self/fd/{fd}"
        mode = stat.S_IMODE(os.stat(opened).st_mode)
        os.chmod(opened, mode | stat.S_IRUSR)
        held.callback(os.chmod, opened, mode)
        with os.scandir(path) as listing:
            return list(listing)
    return []
