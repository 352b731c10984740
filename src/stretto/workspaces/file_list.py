"""List the files that belong to a workspace, and those that copies of it leave out.

Left out: what `.gitignore` files say, unless it is tracked or a glob of the step's sets names it; a
list of folders that tools make; git's own; and repositories inside that are no submodules and
that no glob names. Links are listed as links, linked folders are not entered.

In a copy that a writer has worked in, an ignored file is something that the writer made. It is
listed too, if the write-set covers it, and otherwise it is named among what is left out. What the
writer has closed to itself (`chmod 000`) is opened to us: the copy is ours, and would go with it.
"""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, TypeAlias

from stretto.documents.regular_file import read_start
from stretto.globs.glob import Glob
from stretto.globs.intersection import any_intersect, word_of
from stretto.globs.pattern import ANY, EVERY_NAME
from stretto.problems.errors import StrettoError
from stretto.workspaces.content import SkippedPath
from stretto.workspaces.git import (
    MOST_BYTES,
    IgnoreRules,
    Repository,
    find_repository,
    list_exclude_files,
    list_tracked,
    make_git_dir,
    read_rules,
)
from stretto.workspaces.paths import (
    FoundPath,
    PathRefused,
    describe_path,
    join_path,
    quote_path,
    read_statuses,
)
from stretto.workspaces.protected import is_protected
from stretto.workspaces.rooted_dir import MOST_DEPTH, RootedDir

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class WorkspaceLimits:
    files: int = 50_000
    bytes: int = 2048 * MIB
    file_bytes: int = 256 * MIB

    @property
    def with_room(self) -> "WorkspaceLimits":
        """For a copy that a step has worked in: it may have grown beyond the limits, and by then
        the model has been paid."""
        return WorkspaceLimits(2 * self.files, 2 * self.bytes, 2 * self.file_bytes)


DEFAULT_LIMITS = WorkspaceLimits()


class WorkspaceTooLarge(StrettoError):
    kind = "workspace_too_large"


@dataclass(slots=True)
class SizeMeter:
    """Counts while a workspace is listed, and stops it when it is too much."""

    limits: WorkspaceLimits
    files: int = 0
    bytes: int = 0
    by_folder: Counter[str] = field(default_factory=Counter)

    def add(self, path: str, size: int) -> None:
        self.files += 1
        self.bytes += size
        self.by_folder[path.partition("/")[0]] += size
        if size > self.limits.file_bytes:
            most = _format_bytes(self.limits.file_bytes)
            raise WorkspaceTooLarge(
                f"{quote_path(path)} has {_format_bytes(size)}; a file in an isolated workspace has at most {most}",
                hint=_WHAT_TO_DO,
            )
        if self.files > self.limits.files:
            raise self._too_much(f"more than {self.limits.files:,} files")
        if self.bytes > self.limits.bytes:
            raise self._too_much(f"more than {_format_bytes(self.limits.bytes)}")

    def _too_much(self, what: str) -> WorkspaceTooLarge:
        largest = ", ".join(
            f"{quote_path(name)} {_format_bytes(size)}"
            for name, size in self.by_folder.most_common(3)
        )
        return WorkspaceTooLarge(
            f"the workspace holds {what}, too much for a copy of its own (so far: {largest})",
            hint=_WHAT_TO_DO,
        )


_WHAT_TO_DO = (
    "list what the step does not need in .gitignore, raise workspace.max_files or "
    "workspace.max_mib of stretto.yaml, or give the step 'workspace_mode: shared' and a narrow write_set"
)


def _format_bytes(size: int) -> str:
    if size < 1024:
        return f"{size} bytes"
    return f"{size / MIB:,.1f} MiB" if size >= MIB else f"{size / 1024:.1f} KiB"


# Made by tools, large, and hardly ever what a step is about. A tracked one is listed all the same.
SKIPPED_NAMES = frozenset(
    [
        ".hg",
        ".svn",
        ".stretto",
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
MOST_COUNTED = 1_000


_IN_SKIPPED = "copies leave such folders out unless a set names them"
_NOT_COVERED = "a .gitignore leaves it out, and the write-set does not cover it"


@dataclass(frozen=True, slots=True)
class Selection:
    """What to list besides what no rule ignores."""

    tracked: frozenset[str] = frozenset()  # paths that no rule leaves out
    asked: tuple[Glob, ...] = ()  # paths that are wanted although ignored
    apart: frozenset[str] = frozenset()  # folders never entered: our own home, carried ones
    made: tuple[Glob, ...] | None = None  # of a writer's copy: its write-set

    def names(self, root: str) -> bool:
        """Whether a set means this ignored path: `dist/**` and `**/dist/*` name `dist`."""
        return any(names_path(glob, root) for glob in self.asked)

    def asks_for(self, path: str) -> bool:
        return any(glob.matches(path) for glob in self.asked)

    def asks_below(self, folder: str) -> bool:
        return any(covers_below(glob, folder) for glob in self.asked)

    def keeps(self, path: str) -> bool:
        return any(glob.matches(path) for glob in self.made or ())


@dataclass(frozen=True, slots=True)
class Listing:
    files: tuple[FoundPath, ...]  # folder by folder; links too
    folders: tuple[str, ...]  # those above first
    left: tuple[SkippedPath, ...]  # repositories inside, and what a writer made and is not listed
    unfit: tuple[SkippedPath, ...]  # devices and the like, and what cannot be read
    ignored: frozenset[str] = frozenset()  # files that are listed although a rule ignores them
    left_out: tuple[str, ...] = ()  # ignored files, and ignored folders, that are not listed


# How a folder is walked: `ignored` is entered for tracked files only, `asked` for what the sets
# name, `made` for what a writer made there.
_Mode: TypeAlias = Literal["kept", "ignored", "asked", "made"]


def read_outer_rules(
    repository: Repository | None, workspace: Path
) -> list[tuple[str, IgnoreRules]]:
    """Rules from above the workspace, the weakest first, with the path that leads to it."""
    if repository is None:
        return []
    found = list[tuple[str, IgnoreRules]]()
    for prefix, file, name in list_exclude_files(repository, workspace):
        try:
            found.append((prefix, read_rules(read_start(file, MOST_BYTES + 1), name)))
        except OSError:
            continue
    return found


def list_workspace(
    rooted: RootedDir,
    selection: Selection,
    limits: WorkspaceLimits,
    outer: Sequence[tuple[str, IgnoreRules]] = (),
) -> Listing:
    return _Lister(rooted, selection, SizeMeter(limits), SizeMeter(limits), outer).run()


@dataclass(slots=True)
class _Lister:
    rooted: RootedDir
    selection: Selection
    measure: SizeMeter
    made: SizeMeter  # of the ignored files that a writer made
    outer: Sequence[tuple[str, IgnoreRules]]
    files: list[FoundPath] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    left: list[SkippedPath] = field(default_factory=list)
    unfit: list[SkippedPath] = field(default_factory=list)
    rules: dict[str, IgnoreRules] = field(default_factory=dict)  # by the folder they are in
    # Folders that are entered even if a rule ignores them.
    needed: set[str] = field(default_factory=set)
    ignored: set[str] = field(default_factory=set)
    left_out: list[str] = field(default_factory=list)
    uncovered: Counter[str] = field(default_factory=Counter)  # files a writer made, by their folder

    def run(self) -> Listing:
        self.needed = _parents(self.selection.tracked)
        waiting: list[tuple[str, _Mode]] = [("", "kept")]
        while waiting:
            folder, mode = waiting.pop()
            waiting.extend(reversed(self._enter(folder, mode)))
        for path, count in self.uncovered.items():
            self.left.append(SkippedPath(path, _add_count(_NOT_COVERED, count)))
        return Listing(
            tuple(self.files),
            tuple(self.folders),
            tuple(self.left),
            tuple(self.unfit),
            frozenset(self.ignored),
            tuple(self.left_out),
        )

    def _enter(self, folder: str, mode: _Mode) -> list[tuple[str, _Mode]]:
        """Note the folder's files; say which folders come next, and how each is walked."""
        if folder.count("/") >= MOST_DEPTH:
            raise PathRefused(folder, "limit", f"a folder lies more than {MOST_DEPTH} deep")
        try:
            with self.rooted.folder(folder, follow=False) as fd, os.scandir(fd) as entries:
                found = [describe_path(name, status) for name, status in read_statuses(entries)]
        except PathRefused as refused:
            if not folder:
                raise
            self.unfit.append(SkippedPath(folder, refused.message))
            return []
        names = {each.path for each in found}
        if folder and ".git" in names and not self._is_wanted_repository(folder):
            return []
        if folder:
            self.folders.append(folder)
        if ".gitignore" in names and mode == "kept":
            self._read_rules(join_path(folder, ".gitignore"))
        below = list[tuple[str, _Mode]]()
        for each in sorted(found, key=lambda each: each.path):
            path = join_path(folder, each.path)
            if self.selection.made is not None and each.is_closed:
                with suppress(PathRefused):
                    self.rooted.open_to_owner(path)
            if each.kind == "folder":
                below.extend(self._folder(path, mode))
            else:
                self._file(path, each, mode)
        return below

    def _is_wanted_repository(self, folder: str) -> bool:
        """A submodule is a path of the index itself. Of a repository that a writer made in its
        copy the files are taken along, and its `.git` is not."""
        if self.selection.made is not None:
            self.left.append(SkippedPath(join_path(folder, ".git"), "a repository is never merged"))
            return True
        if folder in self.selection.tracked or folder in self.needed:
            return True
        if self.selection.names(folder):
            return True
        self.left.append(SkippedPath(folder, "is a repository of its own"))
        return False

    def _folder(self, path: str, mode: _Mode) -> Iterable[tuple[str, _Mode]]:
        if is_protected(path) or path in self.selection.apart:
            return
        now = self._mode(path, mode, is_folder=True)
        if now == "asked" and not self.selection.asks_below(path):
            now = "made" if self.selection.made is not None else "ignored"
        if now == "kept" or now == "asked" or path in self.needed:
            yield path, now
        elif now == "made":
            if path.rpartition("/")[2] in SKIPPED_NAMES:
                self._leave_skipped(path)
            else:
                yield path, now
        elif mode == "kept":
            self.left_out.append(path)

    def _file(self, path: str, found: FoundPath, mode: _Mode) -> None:
        if is_protected(path):
            return
        now = "kept" if path in self.selection.tracked else self._mode(path, mode, is_folder=False)
        is_asked = now == "asked" and self.selection.asks_for(path)
        if now != "kept" and not is_asked:
            if self.selection.made is None:
                if mode == "kept":
                    self.left_out.append(path)
                return
            if not self._takes_made(path, found.size):
                return
        if found.kind == "other":
            self.unfit.append(SkippedPath(path, "is a pipe, a socket or a device"))
            return
        if path not in self.ignored:
            self.measure.add(path, found.size)
        self.files.append(FoundPath(path, found.kind, found.size, found.mode, found.modified_ns))

    def _takes_made(self, path: str, size: int) -> bool:
        """Whether an ignored file that a writer made is part of its change."""
        folder, _, name = path.rpartition("/")
        if name in SKIPPED_NAMES:
            self.left.append(SkippedPath(path, _IN_SKIPPED))
        elif not self.selection.keeps(path):
            self.uncovered[folder or path] += 1
        else:
            try:
                # Build results may be huge, and must not make the step's own change fail.
                self.made.add(path, size)
                self.ignored.add(path)
                return True
            except WorkspaceTooLarge as error:
                self.left.append(SkippedPath(path, error.message))
        return False

    def _leave_skipped(self, path: str) -> None:
        with suppress(PathRefused):
            count = sum(1 for _ in islice(self.rooted.walk(path), MOST_COUNTED))
            if count:
                self.left.append(SkippedPath(path, _add_count(_IN_SKIPPED, count)))

    def _mode(self, path: str, mode: _Mode, *, is_folder: bool) -> _Mode:
        if mode != "kept" or not self._is_ignored(path, is_folder=is_folder):
            return mode
        if self.selection.names(path):
            return "asked"
        return "ignored" if self.selection.made is None else "made"

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
            verdict = rules.verdict(join_path(prefix, path), is_folder=is_folder)
            if verdict is not None:
                return verdict
        return False

    def _read_rules(self, path: str) -> None:
        try:
            text = self.rooted.read_bytes(path, MOST_BYTES)
        except PathRefused as refused:
            if refused.why == "limit":
                raise
            return  # a link, or not readable: git does not follow it either
        self.rules[path.rpartition("/")[0]] = read_rules(text, path)


def names_path(glob: Glob, path: str) -> bool:
    """Whether the glob spells out this path on its way, other than by `*` and `**` alone."""
    word = word_of(tuple(path.split("/")))
    return any(
        segment not in (ANY, EVERY_NAME)
        and any_intersect((word,), (word_of(pattern[: depth + 1]),))
        for pattern in glob.patterns
        for depth, segment in enumerate(pattern)
    )


def covers_below(glob: Glob, folder: str) -> bool:
    return any_intersect((word_of((*folder.split("/"), ANY)),), glob.words)


def _add_count(why: str, files: int) -> str:
    many = f"{files:,}" if files < MOST_COUNTED else f"at least {files:,}"
    return f"{why} ({many} file{'' if files == 1 else 's'})"


def _parents(paths: Iterable[str]) -> set[str]:
    found = set[str]()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


@dataclass(frozen=True, slots=True)
class LeftOut:
    ignored: tuple[str, ...]  # files, and whole folders
    repositories: tuple[str, ...]

    def covered_by(self, sets: Sequence[Glob]) -> tuple[str, ...]:
        """What these sets cover, and a copy for them leaves out. Caches are not named."""
        meant = [glob for glob in sets if _says_where(glob)]
        return tuple(
            path
            for path in self.ignored
            if path.rpartition("/")[2] not in SKIPPED_NAMES
            and any(glob.matches(path) or covers_below(glob, path) for glob in meant)
            and not any(names_path(glob, path) for glob in sets)
        )

    def repositories_for(self, sets: Sequence[Glob]) -> tuple[str, ...]:
        return tuple(
            path for path in self.repositories if not any(names_path(glob, path) for glob in sets)
        )


def find_left_out(workspace: Path, apart: Iterable[str], limits: WorkspaceLimits) -> LeftOut:
    """Raises StrettoError: the workspace is too large for a copy, say."""
    workspace = workspace.resolve()
    repository = find_repository(workspace)
    tracked = frozenset[str]()
    if repository is not None:
        with TemporaryDirectory(prefix="stretto-git-") as own:
            make_git_dir(repository, Path(own) / "git")
            tracked = list_tracked(repository, Path(own) / "git", workspace)
    with RootedDir(workspace) as rooted:
        selection = Selection(tracked, apart=frozenset(apart))
        listing = list_workspace(rooted, selection, limits, read_outer_rules(repository, workspace))
    return LeftOut(listing.left_out, tuple(left.path for left in listing.left))


def _says_where(glob: Glob) -> bool:
    """False for `**/*`, the set of a step that names no files."""
    return any(segment not in (ANY, EVERY_NAME) for pattern in glob.patterns for segment in pattern)
