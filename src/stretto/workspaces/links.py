"""The symbolic links of a workspace, found as they are asked for. In: folders. Out: Links.

Only where a link leads inside the workspace is kept: nothing outside can be written through one.
Nothing is looked at twice, and past a limit TooMuch is raised: a workspace may be anybody's.
"""

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias
from unicodedata import normalize

from stretto.workspaces.folding import fold
from stretto.workspaces.listing import SKIPPED_NAMES
from stretto.workspaces.protected import is_protected
from stretto.workspaces.rooted_dir import MOST_DEPTH

MOST_LOOKED_AT = 50_000
MOST_TRIED = 500_000

Names: TypeAlias = tuple[str, ...]  # of a path in the workspace, as sets spell it; () is itself


class TooMuch(Exception):
    """More than anybody wants to wait for. What it would have found is not known."""


@dataclass(frozen=True, slots=True)
class Link:
    at: Names  # no link on the way
    to: Names  # neither there
    is_folder: bool  # what it leads to


@dataclass(frozen=True, slots=True)
class Inside:
    """What can lead further in a folder, by the name as sets spell it."""

    folders: dict[str, str] = field(default_factory=dict)  # → its name on disk
    links: dict[str, Link] = field(default_factory=dict)


class Links:
    def __init__(
        self, workspace: Path, *, is_case_ignored: bool, most_looked_at: int = MOST_LOOKED_AT
    ) -> None:
        self._root = os.path.realpath(workspace)
        self._is_case_ignored = is_case_ignored
        self.spell: Callable[[str], str] = fold if is_case_ignored else _composed
        self._left_to_look_at = most_looked_at
        self._left_to_try = MOST_TRIED
        self._on_disk: dict[Names, str] = {(): self._root}
        self._inside: dict[Names, Inside] = {}
        self._below: dict[Names, tuple[Link, ...]] = {}
        self._named: dict[Names, Link | bool] = {}

    def named(self, folder: Names, name: str) -> Link | bool:
        """What a plain name stands for: a link, a folder (True), or nothing that leads further."""
        where = (*folder, name)
        if where not in self._named:
            self._named[where] = self._find(folder, name)
        return self._named[where]

    def inside(self, folder: Names) -> Inside:
        if folder not in self._inside:
            self._inside[folder] = self._scan(folder)
        return self._inside[folder]

    def below(self, folder: Names) -> tuple[Link, ...]:
        """All links in a folder and the folders in it, but for those that nobody edits."""
        if folder not in self._below:
            if len(folder) > MOST_DEPTH:
                raise TooMuch
            inside = self.inside(folder)
            found = list(inside.links.values())
            for spelt, name in inside.folders.items():
                if not is_skipped(name):
                    found.extend(self.below((*folder, spelt)))
            self._below[folder] = tuple(found)
        return self._below[folder]

    def resolve(self, names: Names) -> Names | None:
        """Where a path leads, every link on the way followed, also one that leads out and back."""
        return self._led_to(os.path.join(self._root, *names))

    def try_one(self) -> None:
        """Counts what is tried with what was found."""
        self._left_to_try -= 1
        if self._left_to_try < 0:
            raise TooMuch

    def _find(self, folder: Names, name: str) -> Link | bool:
        # Only where each name has one spelling can it be asked for without looking at all.
        if self._is_case_ignored or not name.isascii():
            inside = self.inside(folder)
            return inside.links.get(name, name in inside.folders)
        path = os.path.join(self._disk(folder), name)
        try:
            mode = os.lstat(path).st_mode
        except (OSError, ValueError):
            return False
        if stat.S_ISLNK(mode):
            to = self._led_to(path)
            return to is not None and Link((*folder, name), to, os.path.isdir(path))
        return stat.S_ISDIR(mode)

    def _scan(self, folder: Names) -> Inside:
        inside = Inside()
        path = self._disk(folder)
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    self._look()
                    spelt = self.spell(entry.name)
                    if entry.is_symlink():
                        to = self._led_to(entry.path)
                        if to is not None:
                            inside.links[spelt] = Link((*folder, spelt), to, entry.is_dir())
                    elif entry.is_dir(follow_symlinks=False):
                        inside.folders[spelt] = entry.name
                        self._on_disk[(*folder, spelt)] = entry.path
        except OSError:
            pass  # not there, no folder, or not for us: no step gets further either
        return inside

    def _look(self) -> None:
        self._left_to_look_at -= 1
        if self._left_to_look_at < 0:
            raise TooMuch

    def _led_to(self, path: str) -> Names | None:
        try:
            os.stat(path)
        except OSError as error:
            # A link that leads nowhere may be written through, one that leads in circles not.
            if error.errno == errno.ELOOP:
                return None
        except ValueError:
            return None
        outer, names = self._parts(self._root), self._parts(os.path.realpath(path))
        if names[: len(outer)] != outer:
            return None
        return names[len(outer) :]

    def _parts(self, path: str) -> Names:
        return tuple(self.spell(name) for name in path.split(os.sep) if name)

    def _disk(self, folder: Names) -> str:
        known = self._on_disk.get(folder)
        return known if known is not None else os.path.join(self._root, *folder)


def is_skipped(name: str) -> bool:
    """Made by tools, or git's own: not worth looking into."""
    return name in SKIPPED_NAMES or is_protected(name)


def _composed(name: str) -> str:
    return name if name.isascii() else normalize("NFC", name)
