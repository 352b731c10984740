"""Decide which paths an attempt may name.

Only the text of a path is judged here; files.py opens it so that no link leads elsewhere.
"""

import os
from collections.abc import Iterable, Sequence
from unicodedata import normalize

from stretto.adapters.tools.outcomes import CallRefused
from stretto.globs.glob import Glob, parse_globs
from stretto.ports.tool import Reach
from stretto.text.short import listed
from stretto.workspaces.paths import quote_path
from stretto.workspaces.protected import Protected, is_protected, is_secret, select_secret_globs


class Bounds:
    """Which paths an attempt may read and write."""

    def __init__(self, reach: Reach, only: Sequence[Glob] = ()) -> None:
        """`only`: if there are any, a path must also be covered by one of these."""
        self.readable = parse_globs(reach.read_set)
        self._writable = parse_globs(reach.write_set if reach.may_write else ())
        self._reach = reach
        self._protected = Protected(reach.protected)
        self._hidden = Protected(reach.hidden)
        self.named_secrets = select_secret_globs(self.readable)
        self._only = only

    def may_read(self, where: str) -> bool:
        is_kept = self._hidden.holds(where) or self._is_kept_secret(where)
        return self._allow(self.readable, where) and not is_kept

    def check_read(self, path: str) -> str:
        """The path from the workspace on. Raises CallRefused."""
        where = self.relative_path(path)
        if self._is_kept_secret(where) and self._allow(self.readable, where):
            raise CallRefused(
                f"{quote_path(where)} has a name that files with keys have: no tool reads it "
                "unless the step's read_set names it"
            )
        if not self.may_read(where):
            may = self._describe(self.readable)
            raise CallRefused(f"{quote_path(where)} is outside what you may read: {may}")
        return where

    def check_write(self, path: str) -> str:
        """The path from the workspace on. Raises CallRefused."""
        where = self.relative_path(path)
        if not self._reach.may_write:
            raise CallRefused("this step may not write: it is read-only")
        if not self._allow(self._writable, where):
            may = self._describe(self._writable)
            raise CallRefused(f"{quote_path(where)} is outside what you may write: {may}")
        if self._protected.covers(where):
            what = "is among what the user has trusted, or Stretto's own: no step changes it"
            raise CallRefused(f"{quote_path(where)} {what}")
        return where

    def relative_path(self, path: str) -> str:
        """The path from the workspace on, whether the sets allow it or not. Raises CallRefused."""
        if "\0" in path or any("\ud800" <= letter <= "\udfff" for letter in path):
            raise CallRefused("the path holds a character that no file name can have")
        names = [name for name in self._from_workspace(path).split("/") if name not in ("", ".")]
        if ".." in names:
            raise CallRefused(
                f"{quote_path(path)} has '..' in it; write it relative to the workspace"
            )
        where = "/".join(names)
        if is_protected(where):
            raise CallRefused(f"{quote_path(path)} is git's own, which no tool touches")
        if self._hidden.holds(where):
            raise CallRefused(
                f"{quote_path(path)} is in Stretto's own folder, which no tool touches"
            )
        return where

    def _from_workspace(self, path: str) -> str:
        if not path.startswith("/"):
            return path
        for root in (self._reach.workspace, self._reach.workspace.resolve()):
            if path == str(root) or path.startswith(f"{root}/"):
                return path[len(str(root)) :]
        raise CallRefused(
            f"{quote_path(path)} is outside the workspace; write paths relative to the workspace"
        )

    def _is_kept_secret(self, where: str) -> bool:
        return is_secret(where.split("/")) and not _cover(self.named_secrets, where)

    def _allow(self, globs: Sequence[Glob], where: str) -> bool:
        return _cover(globs, where) and (not self._only or _cover(self._only, where))

    def _describe(self, globs: Sequence[Glob]) -> str:
        may = listed((glob.text for glob in globs), 20) or "nothing"
        only = listed((glob.text for glob in self._only), 20)
        return f"{may} (and of that only {only})" if only else may


def _cover(globs: Sequence[Glob], path: str) -> bool:
    return any(glob.matches(path) for glob in globs)


def real_name(folder_fd: int, name: str) -> str | None:
    """What the folder calls the file that this name opens; None if it is the same, or nothing.

    Where a file system ignores case, `SRC/a.py` opens `src/a.py`, which a set may not cover.
    """
    other = name.swapcase()
    if other == name:
        return None
    try:
        here = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
        there = os.stat(other, dir_fd=folder_fd, follow_symlinks=False)
    except (OSError, ValueError):
        return None  # the other spelling is not there: in this folder case counts
    return entry_for(name, os.listdir(folder_fd)) if os.path.samestat(here, there) else None


def entry_for(name: str, entries: Iterable[str]) -> str | None:
    """The entry that equals the name if case is ignored; None when the name is an entry itself."""
    wanted = normalize("NFC", name)
    names = [normalize("NFC", entry) for entry in entries]
    if wanted in names:
        return None
    folded = wanted.casefold()
    return next((entry for entry in names if entry.casefold() == folded), "another name")
