"""How a write-set becomes something that can be mounted. In: a workspace, globs. Out: a Layout.

A mount is a whole directory or a whole file; a glob may be neither. So:

- A directory that is covered whole (`src/**`, `src/**/*`, `src`, and `**` for the workspace itself) and exists
  is mounted writable, as it is: changes are there at once. Nothing is copied.
- Everything else (`docs/*.md`, `README.md`, a path that does not exist yet) is *staged*: the
  command gets a writable copy of the nearest directory that exists, with what cannot match
  mounted into it read-only, and afterwards each change is taken back if a glob covers it, and
  named in `Ran.kept_out` if none does. So editors may rename over a file, new files may be made,
  and the globs hold to the letter. Copying costs time: name whole directories where you can.

A link is never followed: a write-set that names one covers the link, not what it points to.
Nothing in a `.git` is ever part of a layout.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from stretto.globs.glob import Glob
from stretto.globs.intersection import any_intersect, word_of
from stretto.globs.pattern import ANY, EVERY_NAME, Pattern
from stretto.workspaces.protected import NOTHING_PROTECTED, Protected
from stretto.workspaces.sandbox import nofollow

# `src/**/*` is all that is in src, though not src itself, which nobody can remove anyway.
_EVERYTHING = ((ANY,), (ANY, EVERY_NAME))

Names: TypeAlias = tuple[str, ...]  # of a path below the workspace; () is the workspace


@dataclass(frozen=True, slots=True)
class Layout:
    globs: tuple[Glob, ...]
    whole: tuple[Names, ...]  # directories to be mounted writable
    staged: tuple[Names, ...]  # directories of which the command gets a copy
    protected: Protected = NOTHING_PROTECTED
    repositories: frozenset[Names] = frozenset()  # directories that are one by themselves

    def without(self, repositories: frozenset[Names]) -> "Layout":
        return replace(self, repositories=repositories)

    def covers(self, names: Names) -> bool:
        path = "/".join(names)
        if has_git(names) or self.protected.covers(path):
            return False
        if any(names[:depth] in self.repositories for depth in range(len(names) + 1)):
            return False
        return any(glob.matches(path) for glob in self.globs)

    def may_cover_below(self, names: Names) -> bool:
        below = (word_of((*names, ANY)),)
        return any(any_intersect(below, glob.words) for glob in self.globs)


def lay_out(
    workspace_fd: int, globs: Sequence[Glob], protected: Protected = NOTHING_PROTECTED
) -> Layout:
    whole, staged = set[Names](), set[Names]()
    for pattern in (pattern for glob in globs for pattern in glob.patterns):
        stem = _stem(pattern)
        if has_git(stem):
            continue
        there = nofollow.existing_part(workspace_fd, stem)
        is_whole = pattern[len(stem) :] in _EVERYTHING and there == stem
        (whole if is_whole else staged).add(there)
    outermost = _outermost(whole)
    return Layout(
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


def _stem(pattern: Pattern) -> Names:
    names: list[str] = []
    for segment in pattern:
        if not isinstance(segment, str):
            break
        names.append(segment)
    return tuple(names)


def _outermost(paths: Iterable[Names]) -> tuple[Names, ...]:
    kept: list[Names] = []
    for names in sorted(paths, key=lambda it: (len(it), it)):
        if not any(_is_below(names, it) for it in kept):
            kept.append(names)
    return tuple(kept)


def _is_below(names: Names, other: Names) -> bool:
    return names[: len(other)] == other
