"""The symbolic links of a workspace, and names where case does not count.

Links are found as they are asked for. Only a link that leads inside the workspace is kept: nothing
outside can be written through one. Nothing is looked at twice, and past a limit TooManyLinks is
raised, because a workspace may come from a stranger.

Two spellings of one file fold alike, and what a pattern matches, folded, its folded form matches.
So two patterns may name one file only if their folded forms overlap.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unicodedata import normalize

from stretto.globs.pattern import ANY, CharSet, Letters, Pattern, Segment, Wild
from stretto.workspaces.file_list import SKIPPED_NAMES
from stretto.workspaces.paths import PathNames
from stretto.workspaces.protected import is_protected
from stretto.workspaces.rooted_dir import MOST_DEPTH

_MOST_PROBED = 64


def ignores_case(folder: Path) -> bool:
    """Whether a name there may be spelt in another case. An empty folder is judged by its own."""
    probed = _probe_names(folder)
    return _probe_itself(folder) if probed is None else probed


def fold(name: str) -> str:
    return normalize("NFC", normalize("NFC", name).casefold())


def fold_pattern(pattern: Pattern) -> Pattern:
    return tuple(part if isinstance(part, Wild) else _fold_segment(part) for part in pattern)


def _fold_segment(segment: Segment) -> Segment:
    if isinstance(segment, str):
        return fold(segment)
    letters = list[CharSet | Wild]()
    for letter in segment:
        for folded in _fold_letter(letter):
            if folded is not ANY or letters[-1:] != [ANY]:
                letters.append(folded)
    return tuple(letters)


def _fold_letter(letter: CharSet | Wild) -> Letters:
    if letter is not ANY and len(letter) == 1 and letter[0][0] == letter[0][1]:
        return tuple(((ord(char), ord(char)),) for char in fold(chr(letter[0][0])))
    # Any other set becomes a star: one of its characters may fold to several, as 'ß' does.
    return (ANY,)


def _probe_names(folder: Path) -> bool | None:
    """None: no name there has a case."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for _, entry in zip(range(_MOST_PROBED), entries, strict=False)]
    except OSError:
        return None
    answers = list(_answers(folder, names))
    return any(answers) if answers else None


def _probe_itself(folder: Path) -> bool:
    resolved = Path(os.path.realpath(folder))
    return any(_answers(resolved.parent, [resolved.name]))


def _answers(folder: Path, names: list[str]) -> Iterator[bool]:
    for name in names:
        other = name.swapcase()
        if other == name or other in names:
            continue
        try:
            here = os.lstat(folder / name)
            there = os.lstat(folder / other)
        except FileNotFoundError:
            yield False
        except OSError:
            continue
        else:
            # Two hard links are one file too, but a listing shows both of them.
            yield os.path.samestat(here, there) and not _is_listed(folder, other)


def _is_listed(folder: Path, name: str) -> bool:
    try:
        return name in os.listdir(folder)
    except OSError:
        return False


MOST_LOOKED_AT = 50_000
MOST_TRIED = 500_000


class TooManyLinks(Exception):
    """The search was given up because it took too long. What it would have found is not known."""


@dataclass(frozen=True, slots=True)
class WorkspaceLink:
    at: PathNames  # with no link on the way
    to: PathNames  # with no link on the way either
    is_folder: bool  # what it leads to


@dataclass(frozen=True, slots=True)
class FolderLinks:
    """What can lead further in a folder, by the name as sets spell it."""

    folders: dict[str, str] = field(default_factory=dict)  # → its name on disk
    links: dict[str, WorkspaceLink] = field(default_factory=dict)


class Links:
    def __init__(
        self, workspace: Path, *, is_case_ignored: bool, most_looked_at: int = MOST_LOOKED_AT
    ) -> None:
        self._root = os.path.realpath(workspace)
        self._is_case_ignored = is_case_ignored
        self.spell: Callable[[str], str] = fold if is_case_ignored else _compose
        self._left_to_look_at = most_looked_at
        self._left_to_try = MOST_TRIED
        self._on_disk: dict[PathNames, str] = {(): self._root}
        self._inside: dict[PathNames, FolderLinks] = {}
        self._below: dict[PathNames, tuple[WorkspaceLink, ...]] = {}
        self._named: dict[PathNames, WorkspaceLink | bool] = {}

    def find_name(self, folder: PathNames, name: str) -> WorkspaceLink | bool:
        """What a plain name stands for: a link, a folder (True), or nothing that leads further."""
        where = (*folder, name)
        if where not in self._named:
            self._named[where] = self._find(folder, name)
        return self._named[where]

    def inside(self, folder: PathNames) -> FolderLinks:
        if folder not in self._inside:
            self._inside[folder] = self._scan(folder)
        return self._inside[folder]

    def below(self, folder: PathNames) -> tuple[WorkspaceLink, ...]:
        """All links in a folder and the folders in it, except in folders that tools make."""
        if folder not in self._below:
            if len(folder) > MOST_DEPTH:
                raise TooManyLinks
            inside = self.inside(folder)
            found = list(inside.links.values())
            for spelt, name in inside.folders.items():
                if not is_skipped(name):
                    found.extend(self.below((*folder, spelt)))
            self._below[folder] = tuple(found)
        return self._below[folder]

    def resolve(self, names: PathNames) -> PathNames | None:
        """Where a path leads, every link on the way followed, also one that leads out and back."""
        return self._resolve_inside(os.path.join(self._root, *names))

    def try_one(self) -> None:
        """Count one comparison with what was found. Raises TooManyLinks."""
        self._left_to_try -= 1
        if self._left_to_try < 0:
            raise TooManyLinks

    def _find(self, folder: PathNames, name: str) -> WorkspaceLink | bool:
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
            to = self._resolve_inside(path)
            return to is not None and WorkspaceLink((*folder, name), to, os.path.isdir(path))
        return stat.S_ISDIR(mode)

    def _scan(self, folder: PathNames) -> FolderLinks:
        inside = FolderLinks()
        path = self._disk(folder)
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    self._look()
                    spelt = self.spell(entry.name)
                    if entry.is_symlink():
                        to = self._resolve_inside(entry.path)
                        if to is not None:
                            inside.links[spelt] = WorkspaceLink(
                                (*folder, spelt), to, entry.is_dir()
                            )
                    elif entry.is_dir(follow_symlinks=False):
                        inside.folders[spelt] = entry.name
                        self._on_disk[(*folder, spelt)] = entry.path
        except OSError:
            pass  # not there, no folder, or not readable: no step gets further either
        return inside

    def _look(self) -> None:
        self._left_to_look_at -= 1
        if self._left_to_look_at < 0:
            raise TooManyLinks

    def _resolve_inside(self, path: str) -> PathNames | None:
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

    def _parts(self, path: str) -> PathNames:
        return tuple(self.spell(name) for name in path.split(os.sep) if name)

    def _disk(self, folder: PathNames) -> str:
        known = self._on_disk.get(folder)
        return known if known is not None else os.path.join(self._root, *folder)


def is_skipped(name: str) -> bool:
    """Whether tools made it, or git owns it: such folders are not looked into."""
    return name in SKIPPED_NAMES or is_protected(name)


def _compose(name: str) -> str:
    return name if name.isascii() else normalize("NFC", name)
