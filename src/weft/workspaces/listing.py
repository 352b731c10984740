"""List what belongs to a workspace. In: a root, ignore rules. Out: its files and folders.

Left out: what `.gitignore` files say, unless it is tracked or a glob asks for it by name; a list of
folders that nobody edits; git's own; and repositories inside, submodules too, which are left whole
to their own git. Links are listed as links, linked folders are not entered.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from weft.plan.globs import Glob
from weft.workspaces.beneath import MOST_DEPTH, Beneath
from weft.workspaces.entries import Left
from weft.workspaces.git import Repository, excludes
from weft.workspaces.ignoring import MOST_BYTES, Rules, read_rules
from weft.workspaces.limits import Measure, WorkspaceLimits
from weft.workspaces.places import Found, found_at, join, statuses_in
from weft.workspaces.protected import is_protected
from weft.workspaces.refusals import PathRefused

# Made by tools, large, and never what a step is about. A tracked one is listed all the same.
SKIPPED_NAMES = frozenset(
    [
        ".hg",
        ".svn",
        ".weft",
        "node_modules",
        ".venv",
        "__pycache__",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".tox",
        ".nox",
        ".gradle",
        ".terraform",
        ".DS_Store",
    ]
)


@dataclass(frozen=True, slots=True)
class Selection:
    """What to list besides what no rule ignores."""

    tracked: frozenset[str] = frozenset()  # paths that no rule leaves out
    asked: tuple[Glob, ...] = ()  # paths that are wanted although ignored
    apart: str | None = None  # a folder inside that is not the user's: our own home

    def asks_for(self, path: str) -> bool:
        return any(_stems(glob) and glob.matches(path) for glob in self.asked)


@dataclass(frozen=True, slots=True)
class Listing:
    files: tuple[Found, ...]  # folder by folder; links too
    folders: tuple[str, ...]  # those above first
    left: tuple[Left, ...]  # repositories inside
    unfit: tuple[Left, ...]  # devices and the like, and what cannot be read


def outer_rules(repository: Repository | None, workspace: Path) -> list[tuple[str, Rules]]:
    """Rules from above the workspace, the weakest first, with the path that leads to it."""
    if repository is None:
        return []
    found = list[tuple[str, Rules]]()
    for prefix, file, name in excludes(repository, workspace):
        try:
            with file.open("rb") as opened:
                found.append((prefix, read_rules(opened.read(MOST_BYTES + 1), name)))
        except OSError:
            continue
    return found


def list_workspace(
    beneath: Beneath,
    selection: Selection,
    limits: WorkspaceLimits,
    outer: Sequence[tuple[str, Rules]] = (),
) -> Listing:
    return _Lister(beneath, selection, Measure(limits), outer).run()


@dataclass(slots=True)
class _Lister:
    beneath: Beneath
    selection: Selection
    measure: Measure
    outer: Sequence[tuple[str, Rules]]
    files: list[Found] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    unfit: list[Left] = field(default_factory=list)
    rules: dict[str, Rules] = field(default_factory=dict)  # by the folder they are in
    # Folders that are entered even if a rule ignores them.
    needed: set[str] = field(default_factory=set)

    def run(self) -> Listing:
        self.needed = _parents(self.selection.tracked)
        for glob in self.selection.asked:
            for stem in _stems(glob):
                self.needed |= _parents(("/".join((*stem, "x")),))
        waiting = [("", False)]
        while waiting:
            folder, is_ignored = waiting.pop()
            waiting.extend(reversed(self._enter(folder, is_ignored)))
        return Listing(tuple(self.files), tuple(self.folders), tuple(self.left), tuple(self.unfit))

    def _enter(self, folder: str, is_ignored: bool) -> list[tuple[str, bool]]:
        """Note the folder's files; say which folders come next, and whether a rule ignores them."""
        if folder.count("/") >= MOST_DEPTH:
            raise PathRefused(folder, "limit", f"a folder lies more than {MOST_DEPTH} deep")
        try:
            with self.beneath.folder(folder, follow=False) as fd, os.scandir(fd) as entries:
                found = [found_at(name, status) for name, status in statuses_in(entries)]
        except PathRefused as refused:
            if not folder:
                raise
            self.unfit.append(Left(folder, refused.message))
            return []
        names = {each.path for each in found}
        if folder and ".git" in names and folder not in self.needed:
            self.left.append(Left(folder, "is a repository of its own"))
            return []
        if folder:
            self.folders.append(folder)
        if ".gitignore" in names and not is_ignored:
            self._read_rules(join(folder, ".gitignore"))
        below = list[tuple[str, bool]]()
        for each in sorted(found, key=lambda each: each.path):
            path = join(folder, each.path)
            if each.kind == "folder":
                below.extend(self._folder(path, is_ignored))
            else:
                self._file(path, each, is_ignored)
        return below

    def _folder(self, path: str, is_ignored: bool) -> Iterable[tuple[str, bool]]:
        if is_protected(path) or path == self.selection.apart:
            return
        now_ignored = is_ignored or self._is_ignored(path, is_folder=True)
        if not now_ignored or path in self.needed or self.selection.asks_for(path):
            yield path, now_ignored

    def _file(self, path: str, found: Found, is_ignored: bool) -> None:
        if is_protected(path):
            return
        if path not in self.selection.tracked:
            now_ignored = is_ignored or self._is_ignored(path, is_folder=False)
            if now_ignored and not self.selection.asks_for(path):
                return
        if found.kind == "other":
            self.unfit.append(Left(path, "is a pipe, a socket or a device"))
            return
        self.measure.add(path, found.size)
        self.files.append(Found(path, found.kind, found.size, found.mode, found.modified_ns))

    def _is_ignored(self, path: str, *, is_folder: bool) -> bool:
        if path.rpartition("/")[2] in SKIPPED_NAMES:
            return True
        folder = path
        while folder:
            folder = folder.rpartition("/")[0]
            rules = self.rules.get(folder)
            if rules is not None:
                inner = path[len(folder) + 1 :] if folder else path
                verdict = rules.verdict(inner, is_folder=is_folder)
                if verdict is not None:
                    return verdict
        for prefix, rules in reversed(self.outer):
            verdict = rules.verdict(join(prefix, path), is_folder=is_folder)
            if verdict is not None:
                return verdict
        return False

    def _read_rules(self, path: str) -> None:
        try:
            text = self.beneath.read_bytes(path, MOST_BYTES)
        except PathRefused as refused:
            if refused.why == "limit":
                raise
            return  # a link, or not for us to read: git does not follow it either
        self.rules[path.rpartition("/")[0]] = read_rules(text, path)


def _stems(glob: Glob) -> list[tuple[str, ...]]:
    """The names it begins with: `dist/**` asks for `dist`, `**/*` asks for nothing by name."""
    return [stem for stem in glob.stems() if stem]


def _parents(paths: Iterable[str]) -> set[str]:
    found = set[str]()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found
