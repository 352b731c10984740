"""The symbolic links of a workspace, and names where case does not count.

Links are found as they are asked for. Only a link that leads inside the workspace is kept: nothing
outside can be written through one. Nothing is looked at twice, and past a limit TooManyLinks is
raised, because a workspace may come from a stranger.

Two spellings of one file fold alike, and what a pattern matches, folded, its folded form matches.
So two patterns may name one file only if their folded forms overlap.

Links give files other names, and `aliases_of_sets` finds those of the files that globs name:
`link/*.py` names the files of `src/*.py` where `link` leads to `src`. Every link that a glob runs
through, or covers, is followed, and what is left of the glob behind the link is written again from
where the link leads to, until nothing new is found. So each file is claimed by its own path, and two
sets that name one file overlap. Where case does not count, the folded spellings are added as well.

Not seen: hard links, links in folders that are skipped unless a glob names the folder, and links
that are made later. To be on the safe side, everything is claimed where there is too much to look at.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias
from unicodedata import normalize

from stretto.globs.glob import Glob, parse_glob, parse_globs, text_of
from stretto.globs.intersection import intersects, word_of
from stretto.globs.pattern import ANY, CharSet, Letters, Pattern, Segment, Wild, plain_names
from stretto.workspaces.file_list import SKIPPED_NAMES
from stretto.workspaces.paths import PathNames
from stretto.workspaces.protected import is_protected
from stretto.workspaces.rooted_dir import MOST_DEPTH

_MOST_PROBED = 64


def ignores_case(folder: Path) -> bool:
    """Whether a name there may be spelt in another case. An empty folder is tried by its own name."""
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
        # Only a name with one spelling can be looked up without listing the folder.
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


EVERYTHING = ("**/*",)
MOST_ALIASES = 500

_Place: TypeAlias = tuple[PathNames, Pattern]  # a folder, and what is left of the pattern there


def aliases_of_sets(
    workspace: Path,
    sets: Iterable[tuple[str, ...]],
    *,
    is_case_ignored: bool | None = None,  # None: as the file system has it
) -> dict[tuple[str, ...], tuple[str, ...]]:
    """The aliases of each set of globs. The workspace is looked at once for all of them."""
    wanted = list(sets)
    if not wanted:
        return {}
    if is_case_ignored is None:
        is_case_ignored = ignores_case(workspace)
    links = Links(workspace, is_case_ignored=is_case_ignored)
    return {each: aliases_by(links, each, is_case_ignored=is_case_ignored) for each in wanted}


def aliases(
    workspace: Path,
    globs: Sequence[str],
    *,
    is_case_ignored: bool | None = None,  # None: as the file system has it
    most_looked_at: int = MOST_LOOKED_AT,
) -> tuple[str, ...]:
    """Further globs that name the same files. What is no glob has none."""
    if is_case_ignored is None:
        is_case_ignored = ignores_case(workspace)
    known = Links(workspace, is_case_ignored=is_case_ignored, most_looked_at=most_looked_at)
    return aliases_by(known, globs, is_case_ignored=is_case_ignored)


def aliases_by(links: Links, globs: Sequence[str], *, is_case_ignored: bool) -> tuple[str, ...]:
    """The same with links that were found before, because a plan asks for many sets."""
    parsed = parse_globs(globs)
    written = [pattern for glob in parsed for pattern in glob.patterns]
    patterns = [fold_pattern(pattern) for pattern in written] if is_case_ignored else written
    if (ANY,) in patterns:
        return ()
    try:
        search = _Search(links, patterns)
        search.run()
    except TooManyLinks:
        return EVERYTHING
    folded = [pattern for pattern in patterns if pattern not in written]
    texts = tuple(dict.fromkeys(map(text_of, (*folded, *search.found))))
    # A path may be too long to be said in a glob.
    return texts if all(isinstance(parse_glob(text), Glob) for text in texts) else EVERYTHING


class _Search:
    """Follows each pattern through the folders, from link to link."""

    def __init__(self, links: Links, patterns: Sequence[Pattern]) -> None:
        self.found: dict[Pattern, None] = {}
        self._links = links
        self._patterns = patterns
        self._seen: set[_Place] = set()
        self._waiting: list[_Place] = []

    def run(self) -> None:
        for pattern in self._patterns:
            self._visit((), pattern)
            self._resolve_stem(pattern)
        while self._waiting:
            folder, rest = self._waiting.pop()
            first = rest[0]
            if isinstance(first, Wild):
                self._visit(folder, rest[1:])
                self._anywhere(folder, rest)
            elif isinstance(first, str):
                self._by_name(folder, first, rest[1:])
            else:
                self._by_match(folder, first, rest[1:])

    def _resolve_stem(self, pattern: Pattern) -> None:
        """The plain names it begins with lead somewhere, perhaps out of the workspace and back."""
        stem = plain_names(pattern)
        led_to = self._links.resolve(stem)
        if led_to is not None and led_to != stem:
            self._follow(led_to, pattern[len(stem) :])

    def _by_name(self, folder: PathNames, name: str, rest: Pattern) -> None:
        there = self._links.find_name(folder, name)
        if isinstance(there, WorkspaceLink):
            self._through(there, rest)
        elif there:
            self._visit((*folder, name), rest)

    def _by_match(self, folder: PathNames, segment: Segment, rest: Pattern) -> None:
        inside = self._links.inside(folder)
        for name in inside.folders:
            self._links.try_one()
            if _covers(segment, name):
                self._visit((*folder, name), rest)
        for name, link in inside.links.items():
            self._links.try_one()
            if _covers(segment, name):
                self._through(link, rest)

    def _anywhere(self, folder: PathNames, rest: Pattern) -> None:
        for link in self._links.below(folder):
            for left in self._left_behind(rest, link.at[len(folder) :]):
                self._through(link, left)

    def _left_behind(self, pattern: Pattern, names: PathNames) -> Iterator[Pattern]:
        """What a path that begins with these names must still match."""
        left = {pattern: None}
        for name in names:
            self._links.try_one()
            left = {after: None for before in left for after in _after(before, name)}
        return iter(left)

    def _through(self, link: WorkspaceLink, rest: Pattern) -> None:
        # `*` covers a link to a folder, and no file in that folder.
        if rest or not link.is_folder:
            self._follow(link.to, rest)

    def _follow(self, to: PathNames, rest: Pattern) -> None:
        whole: Pattern = (*to, *rest) or (ANY,)
        others = (*self._patterns, *self.found)
        is_known = any(includes(other, whole) for other in others)
        if not is_known:
            self.found[whole] = None
            if len(self.found) > MOST_ALIASES:
                raise TooManyLinks
        # A known pattern is walked on its own account, unless that walk skips this folder.
        if not is_known or any(map(is_skipped, to)):
            # From the top, like a pattern of the author: its names may be spelt otherwise on disk.
            self._visit((), whole)

    def _visit(self, folder: PathNames, rest: Pattern) -> None:
        self._links.try_one()
        if rest and (folder, rest) not in self._seen:
            self._seen.add((folder, rest))
            self._waiting.append((folder, rest))


def includes(one: Pattern, other: Pattern) -> bool:
    """Whether all that the other matches is surely matched by this one too."""
    if ANY not in one:
        return one == other
    at = one.index(ANY)
    head, tail = one[:at], one[at + 1 :]
    if len(other) < len(head) + len(tail):
        return False
    return other[:at] == head and other[len(other) - len(tail) :] == tail


def _after(pattern: Pattern, name: str) -> Iterator[Pattern]:
    """What is left of a pattern once a name is matched."""
    for at, part in enumerate(pattern):
        if not isinstance(part, Wild):
            if _covers(part, name):
                yield pattern[at + 1 :]
            return
        yield pattern[at:]


@lru_cache(maxsize=65_536)
def _covers(segment: Segment, name: str) -> bool:
    return intersects(word_of((segment,)), word_of((name,)))
