"""How a write-set becomes something that can be mounted, without following any link.

A mount is a whole directory or a whole file; a glob may be neither. So:

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
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from stretto.globs.glob import Glob
from stretto.globs.intersection import any_intersect, word_of
from stretto.globs.pattern import ANY, EVERY_NAME, Pattern
from stretto.workspaces.paths import PathNames
from stretto.workspaces.protected import NOTHING_PROTECTED, Protected

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
