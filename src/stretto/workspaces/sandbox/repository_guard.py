"""Keep commands away from git repositories and keys, and a workspace from becoming a repository.

`survey` finds what in a workspace a command must not change, or not read. It looks at every
directory, but reads no file and follows no link.

`TopGuard` holds an empty `.git` at the top, which is mounted read-only: only what exists can be
mounted over. It stays for as long as any command works there, in this process or another: each holds
a lock on it, and the last to leave removes it. A guard that a killed process has left is taken over,
and goes with the next, or by `remove_left_guard`. Ours has the sticky bit: an empty `.git` of
somebody else's is guarded as well, and stays.

`disarm` is for repositories that are made deeper, where nothing could be mounted beforehand. Nothing
is removed: `.git` becomes `.git.kept-out` and `HEAD` of a repository `HEAD.kept-out`, and git sees
neither.
"""

import fcntl
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from stretto.workspaces.paths import PathNames
from stretto.workspaces.protected import HEAD, INSTALLED, is_repository, is_secret
from stretto.workspaces.sandbox.staged_copy import is_git, open_directory


@dataclass(frozen=True, slots=True)
class Survey:
    repositories: frozenset[PathNames]  # each a `.git`, or a directory that is one by itself
    secrets: frozenset[PathNames]  # files and directories that hold keys
    links: Mapping[PathNames, str]  # of the repositories those that are links, and where they lead


def survey(workspace_fd: int) -> Survey:
    repositories, secrets = set[PathNames](), set[PathNames]()
    for names, entries in _walk(workspace_fd, [()]):
        repositories.update(_repositories(names, entries))
        if not INSTALLED.intersection(names):
            secrets.update(_secrets(names, entries))
    secrets.update(_find_linked(workspace_fd, secrets))
    links = {names: to for names in repositories if (to := link_target(workspace_fd, names))}
    return Survey(frozenset(repositories), _drop_nested(secrets), links)


def _find_linked(workspace_fd: int, secrets: Iterable[PathNames]) -> Iterator[PathNames]:
    """Second names of files that hold keys. Without any file of several names nothing is walked."""
    inodes = set[int]()
    for names in secrets:
        with suppress(OSError):
            status = os.stat("/".join(names), dir_fd=workspace_fd, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                inodes.add(status.st_ino)
    for names, entries in _walk(workspace_fd, [()] if inodes else []):
        # The number is in the listing itself. A file of another file system may share it, and is
        # then hidden too.
        yield from ((*names, it.name) for it in entries if it.inode() in inodes)


def find_repositories(workspace_fd: int, below: Sequence[PathNames]) -> frozenset[PathNames]:
    return frozenset(
        found
        for names, entries in _walk(workspace_fd, below)
        for found in _repositories(names, entries)
    )


def link_target(workspace_fd: int, names: PathNames) -> str | None:
    with suppress(OSError):
        return os.readlink("/".join(names) or ".", dir_fd=workspace_fd)
    return None


def _repositories(names: PathNames, entries: Sequence[os.DirEntry[str]]) -> Iterator[PathNames]:
    for entry in entries:
        if len(entry.name) == 4 and is_git(entry.name):
            yield (*names, entry.name)
    if is_repository(entry.name for entry in entries):
        yield names


def _secrets(names: PathNames, entries: Sequence[os.DirEntry[str]]) -> Iterator[PathNames]:
    for entry in entries:
        path = (*names, entry.name)
        if is_secret(path) and not entry.is_symlink():
            yield path


def _drop_nested(found: set[PathNames]) -> frozenset[PathNames]:
    return frozenset(
        names for names in found if not any(names[:depth] in found for depth in range(len(names)))
    )


def _walk(
    workspace_fd: int, below: Sequence[PathNames]
) -> Iterator[tuple[PathNames, list[os.DirEntry[str]]]]:
    """Every directory with what is in it; what is git's own is not entered."""
    root = f"/proc/self/fd/{workspace_fd}/"
    waiting = list(below)
    while waiting:
        names = waiting.pop()
        entries = _list_directory(root + "/".join(names))
        yield names, entries
        for entry in entries:
            if not is_git(entry.name) and entry.is_dir(follow_symlinks=False):
                waiting.append((*names, entry.name))


def _list_directory(path: str) -> list[os.DirEntry[str]]:
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


_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SUFFIX = ".kept-out"
_OURS = 0o1755
_MOST_ROUNDS = 16  # a repository in what was a repository comes to light only by its renaming


class TopGuard:
    def __init__(self, workspace_fd: int) -> None:
        self._workspace_fd = workspace_fd
        self._fd = -1
        while self._fd < 0:
            with suppress(FileExistsError):
                os.mkdir(".git", _OURS, dir_fd=workspace_fd)
            try:
                fd = os.open(".git", _DIRECTORY, dir_fd=workspace_fd)
            except FileNotFoundError:
                continue  # the last to leave has just removed it
            except OSError:
                return  # a file or a link: it names a repository
            if os.listdir(fd):
                os.close(fd)
                return  # a repository
            fcntl.flock(fd, fcntl.LOCK_SH)
            self._fd = fd if self._is_still(fd) else self._close(fd)

    def close(self) -> None:
        if self._fd < 0:
            return
        _remove_ours(self._workspace_fd, self._fd)
        self._fd = self._close(self._fd)

    def _is_still(self, fd: int) -> bool:
        """Whether it is the `.git` that is there now: it may have been removed before the lock."""
        with suppress(OSError):
            there = os.stat(".git", dir_fd=self._workspace_fd, follow_symlinks=False)
            return os.path.samestat(there, os.fstat(fd))
        return False

    def _close(self, fd: int) -> int:
        os.close(fd)
        return -1


def remove_left_guard(workspace: Path) -> None:
    """Remove the empty `.git` that a killed process has left, unless a command works there now."""
    with suppress(OSError):
        workspace_fd = os.open(workspace, _DIRECTORY)
        try:
            fd = os.open(".git", _DIRECTORY, dir_fd=workspace_fd)
            try:
                _remove_ours(workspace_fd, fd)
            finally:
                os.close(fd)
        finally:
            os.close(workspace_fd)


def _remove_ours(workspace_fd: int, fd: int) -> None:
    """Not where another process holds it, and not where it has become a repository."""
    if os.fstat(fd).st_mode & stat.S_ISVTX:
        with suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rmdir(".git", dir_fd=workspace_fd)


def disarm(
    workspace_fd: int,
    below: Sequence[PathNames],
    known: frozenset[PathNames],
    links: Mapping[PathNames, str],
    apart: Sequence[PathNames] = (),
) -> tuple[PathNames, ...]:
    """Rename what makes a repository of every folder below that was not known as one. Returns where
    they were.

    `links`: of those known, the links. Nothing can be mounted on a link, so a command may have put
    another thing there: then the link is put back. `apart`: our own folders, with git of our own.
    """
    swapped = [it for it, to in links.items() if link_target(workspace_fd, it) != to]
    for names in swapped:
        _rename(workspace_fd, names)
        with suppress(OSError), open_directory(workspace_fd, names[:-1]) as parent:
            os.symlink(links[names], names[-1], dir_fd=parent)
    found: list[PathNames] = [*swapped]
    for _ in range(_MOST_ROUNDS):
        found_now = find_repositories(workspace_fd, below) - known
        new = sorted(it for it in found_now if not any(it[: len(own)] == own for own in apart))
        if not new:
            break
        for names in new:
            _rename(workspace_fd, names if names and is_git(names[-1]) else (*names, HEAD))
        found += new
    # Not those inside another one: they are found, and renamed, only because we renamed that one.
    return tuple(it for it in dict.fromkeys(found) if not any(_SUFFIX in name for name in it))


def _rename(workspace_fd: int, names: PathNames) -> None:
    with suppress(OSError), open_directory(workspace_fd, names[:-1]) as parent:
        there = os.listdir(parent)
        name = next((it for it in there if it.casefold() == names[-1].casefold()), names[-1])
        free = (f"{name}{_SUFFIX}{number or ''}" for number in range(len(there) + 1))
        os.rename(
            name, next(it for it in free if it not in there), src_dir_fd=parent, dst_dir_fd=parent
        )


def look_for_repositories(workspace: Path) -> Survey:
    with _open_workspace(workspace) as fd:
        return survey(fd)


def disarm_new(workspace: Path, before: Survey, home: Path) -> tuple[str, ...]:
    """`disarm` the whole workspace, after a writer that no sandbox confined."""
    root, own = workspace.resolve(), home.resolve()
    apart = [own.relative_to(root).parts] if own.is_relative_to(root) else []
    with _open_workspace(workspace) as fd:
        # A command beside it may be at work, with its guard in place.
        known = before.repositories | ({(".git",)} if _is_guarded(fd) else set())
        new = disarm(fd, [()], known, before.links, apart)
    return tuple("/".join(names) or "." for names in new)


def _is_guarded(workspace_fd: int) -> bool:
    with suppress(OSError):
        mode = os.stat(".git", dir_fd=workspace_fd, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode) and mode & stat.S_ISVTX:
            with open_directory(workspace_fd, [".git"]) as fd:
                return not os.listdir(fd)
    return False


@contextmanager
def _open_workspace(workspace: Path) -> Iterator[int]:
    fd = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)
