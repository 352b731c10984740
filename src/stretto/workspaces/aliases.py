"""Find other names of the files that globs name.

`link/*.py` names the files of `src/*.py` where `link` leads to `src`. Every link that a glob runs
through, or covers, is followed, and what is left of the glob behind the link is written again from
where the link leads to, until nothing new is found. So each file is claimed by its own path, and two
sets that name one file overlap. Where case does not count, the folded spellings are added as well.

Not seen: hard links, links in folders that are skipped unless a glob names the folder, and links
that are made later. To be on the safe side, everything is claimed where there is too much to look at.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from stretto.globs.glob import Glob, parse_glob, parse_globs, text_of
from stretto.globs.intersection import intersects, word_of
from stretto.globs.pattern import ANY, Pattern, Segment, Wild
from stretto.workspaces.links import (
    MOST_LOOKED_AT,
    Links,
    TooManyLinks,
    WorkspaceLink,
    fold_pattern,
    ignores_case,
    is_skipped,
)
from stretto.workspaces.paths import PathNames

EVERYTHING = ("**/*",)
MOST_ALIASES = 500

_Place: TypeAlias = tuple[PathNames, Pattern]  # a folder, and what is left of the pattern there


def aliases_of_sets(
    workspace: Path,
    sets: Iterable[tuple[str, ...]],
    *,
    is_case_ignored: bool | None = None,  # None: as the file system has it
) -> dict[tuple[str, ...], tuple[str, ...]]:
    """The aliases of each set of globs. The workspace is looked at once, and not for no set."""
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
            # From the top, like a pattern of the author: its names may be spelt differently on disk.
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


def plain_names(pattern: Pattern) -> PathNames:
    names = list[str]()
    for part in pattern:
        if not isinstance(part, str):
            break
        names.append(part)
    return tuple(names)


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
