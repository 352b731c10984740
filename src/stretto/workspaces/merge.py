"""Decide a merge. Nothing is written here.

Three ways, file by file: as the writer was given it (base), as the writer left it (theirs), as the
workspace has it now (ours). What only they changed is taken, what both changed alike is left, a
text that both changed is merged by lines. Anything else is a clash, and one clash stops it all.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Literal

from stretto.workspaces.change import ChangeSet, FileChange
from stretto.workspaces.content import Blobs, FileEntry, SkippedPath, read_entry
from stretto.workspaces.line_diff import LineClashes, is_text, merge_text
from stretto.workspaces.merge_state import Put
from stretto.workspaces.patch import LARGEST_TEXT
from stretto.workspaces.paths import PathKind, PathRefused, kind_of, quote_path
from stretto.workspaces.protected import is_protected
from stretto.workspaces.rooted_dir import RootedDir


@dataclass(frozen=True, slots=True)
class MergePlan:
    changes: ChangeSet
    workspace: Path
    puts: tuple[Put, ...]  # by path
    texts: dict[str, bytes]  # merged ones, by digest; other bytes are in the artifact
    left: tuple[SkippedPath, ...] = ()  # what stays as the workspace has it

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(put.path for put in self.puts)

    @property
    def merged_by_lines(self) -> tuple[str, ...]:
        return tuple(p.path for p in self.puts if p.after and p.after.digest in self.texts)


@dataclass(frozen=True, slots=True)
class Clash:
    path: str
    why: str
    base: FileEntry | None = None
    ours: FileEntry | None = None
    theirs: FileEntry | None = None


@dataclass(frozen=True, slots=True)
class Conflict:
    changes: ChangeSet
    workspace: Path
    clashes: tuple[Clash, ...]
    kept: Path | None = None  # folders `base`, `ours` and `theirs`, once they are written

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(clash.path for clash in self.clashes)


@dataclass(frozen=True, slots=True)
class Settlement:
    """How a person has settled clashes. What is settled in favour of the workspace stays as it is."""

    resolved: frozenset[str] = frozenset()  # paths that the workspace holds as they should be
    otherwise: Literal["ours", "theirs"] | None = None  # which side is taken; None: neither


UNSETTLED = Settlement()


def plan_merge(
    changes: ChangeSet, workspace: Path, settlement: Settlement = UNSETTLED
) -> MergePlan | Conflict:
    """What would happen now: a dry run, and the first half of a merge."""
    with RootedDir(workspace) as rooted:
        planner = _Planner(rooted, Blobs(changes.objects), settlement)
        planner.plan(changes)
    if planner.clashes:
        return Conflict(changes, workspace, tuple(planner.clashes))
    puts = sorted(planner.puts.values(), key=lambda put: put.path)
    return MergePlan(changes, workspace, tuple(puts), planner.texts, tuple(planner.left))


_UNSEEN = (
    "a .gitignore left the workspace's own out of the step's copy, and it is not replaced "
    "(name it in write_set to work on it)"
)


@dataclass(slots=True)
class _Planner:
    rooted: RootedDir
    blobs: Blobs
    settlement: Settlement
    puts: dict[str, Put] = field(default_factory=dict)
    texts: dict[str, bytes] = field(default_factory=dict)
    clashes: list[Clash] = field(default_factory=list)
    left: list[SkippedPath] = field(default_factory=list)
    kinds: dict[str, PathKind | None] = field(default_factory=dict)  # of what was asked about

    def plan(self, changes: ChangeSet) -> None:
        for left in changes.refused:
            if self._stays((left.path,)):
                self._leave((left.path,), left.why)
            else:
                self.clashes.append(Clash(left.path, left.why))
        for change in changes.changes:
            if any(path in self.settlement.resolved for path in change.touched):
                self._leave(change.touched, "it was resolved by hand")
                continue
            try:
                self._check(change)
                self._decide(change)
            except (_Clashing, PathRefused, OSError) as error:
                self._settle(change, error)
        self._clear_the_way(changes)

    def _clear_the_way(self, changes: ChangeSet) -> None:
        """Nothing of the workspace's own is removed to make room for a put."""
        change_at = {path: change for change in changes.changes for path in change.touched}
        # Anew once changes are dropped: a file that now stays may be in the way of others. No put
        # gets out of another's way by that, so all that are obstructed are dropped at once.
        while obstructed := [
            (put, why) for put in self.puts.values() if (why := self._obstacle(put))
        ]:
            if self.settlement.otherwise != "ours":
                sides = (
                    Clash(put.path, why, None, put.before, put.after) for put, why in obstructed
                )
                self.clashes.extend(sides)
                return
            for put, why in obstructed:
                for path in change_at[put.path].touched:
                    self.puts.pop(path, None)
                self._leave(change_at[put.path].touched, f"the step's {why}")

    def _stays(self, paths: tuple[str, ...]) -> bool:
        """Whether the workspace's own side of these paths is the one that counts."""
        settlement = self.settlement
        return settlement.otherwise == "ours" or any(p in settlement.resolved for p in paths)

    def _leave(self, paths: tuple[str, ...], why: str) -> None:
        self.left.extend(SkippedPath(path, why) for path in paths)

    def _settle(self, change: FileChange, error: Exception) -> None:
        if self._stays(change.touched):
            self._leave(change.touched, f"it {error}")
            return
        # What no merge may bring into a workspace is not taken by choice either.
        if self.settlement.otherwise != "theirs" or not isinstance(error, _BothChanged):
            self.clashes.extend(self._sides(change, str(error)))
            return
        if change.renamed_from is not None:
            self._put(change.renamed_from, self._ours(change.renamed_from), None)
        self._put(change.path, self._ours(change.path), change.after)

    def _sides(self, change: FileChange, why: str) -> Iterator[Clash]:
        is_renamed = change.renamed_from is not None
        base = None if is_renamed else change.before
        yield Clash(change.path, why, base, self._ours_or_none(change.path), change.after)
        if change.renamed_from is not None:
            old, why = change.renamed_from, f"was renamed to {quote_path(change.path)} by the step"
            yield Clash(old, why, change.before, self._ours_or_none(old), None)

    def _check(self, change: FileChange) -> None:
        if any(is_protected(path) for path in change.touched):
            raise _Clashing("is git's own, or a merge's")
        if change.after is not None and change.after.kind == "link":
            target = os.fsdecode(self.blobs.read(change.after.digest))
            if not stays_inside(change.path, target):
                raise _Clashing("is a symbolic link that leads out of the workspace")

    def _decide(self, change: FileChange) -> None:
        ours = self._ours(change.path)
        base, theirs = change.before, change.after
        if change.renamed_from is not None and base is not None and theirs is not None:
            self._decide_rename(change.renamed_from, change.path, base, theirs, ours)
        elif change.is_ignored and ours is not None and not ours.is_same(theirs):
            # The step was not shown this file. A compiler's output is not worth a failed step,
            # and an untracked file must not be replaced by a step that has not seen it.
            self.left.append(SkippedPath(change.path, _UNSEEN))
        elif not _are_same(ours, theirs):
            after = theirs
            if not _are_same(ours, base):
                after = self._merge_entry(change.path, base, ours, theirs)
            elif theirs is not None:
                after = replace(theirs, mode=_mode(base, ours, theirs))
            self._put(change.path, ours, after)

    def _decide_rename(
        self, old: str, new: str, base: FileEntry, theirs: FileEntry, ours: FileEntry | None
    ) -> None:
        ours_at_old = self._ours(old)
        if ours_at_old is None and theirs.is_same(ours):
            return
        if ours_at_old is None:
            raise _BothChanged(f"was {quote_path(old)} when the step began, which is gone now")
        after = replace(theirs, mode=_mode(base, ours_at_old, theirs))
        if not ours_at_old.is_same(base):
            after = self._merge_entry(old, base, ours_at_old, theirs)
        if ours is not None and not ours.is_same(after):
            raise _BothChanged("was made by both, with different content")
        self._put(old, ours_at_old, None)
        if ours is None:
            self._put(new, None, after)

    def _merge_entry(
        self, path: str, base: FileEntry | None, ours: FileEntry | None, theirs: FileEntry | None
    ) -> FileEntry:
        """Of a file that both changed. `path` is where ours is."""
        if ours is None:
            raise _BothChanged("was changed by the step, and is gone from the workspace")
        if theirs is None:
            raise _BothChanged("was removed by the step, and changed in the workspace")
        if base is None:
            raise _BothChanged("was made by both, with different content")
        if not base.kind == ours.kind == theirs.kind == "file":
            raise _BothChanged("was changed by both, and is a symbolic link")
        mode = _mode(base, ours, theirs)
        if ours.digest in (base.digest, theirs.digest):
            return replace(theirs, mode=mode)
        mine = self._read(path, ours)
        if theirs.digest == base.digest:
            return self._text(mine, mode)
        return self._text(self._merged_text(mine, base, ours, theirs), mode)

    def _merged_text(
        self, mine: bytes, base: FileEntry, ours: FileEntry, theirs: FileEntry
    ) -> bytes:
        if max(base.size, ours.size, theirs.size) > LARGEST_TEXT:
            raise _BothChanged("was changed by both, and is too large to be merged by lines")
        given, done = self.blobs.read(base.digest), self.blobs.read(theirs.digest)
        if not all(map(is_text, (given, mine, done))):
            raise _BothChanged("was changed by both, and is no text")
        merged = merge_text(given, mine, done)
        if isinstance(merged, LineClashes):
            where = ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in merged.lines[:5])
            more = ", …" if len(merged.lines) > 5 else ""
            raise _BothChanged(f"was changed by both in the same lines ({where}{more})")
        return merged

    def _text(self, content: bytes, mode: int) -> FileEntry:
        digest = sha256(content).hexdigest()
        self.texts[digest] = content
        return FileEntry("file", mode, len(content), digest)

    def _put(self, path: str, before: FileEntry | None, after: FileEntry | None) -> None:
        is_change = not _are_same(before, after)
        if is_change:
            self.puts[path] = Put(path, before, after)

    def _ours(self, path: str) -> FileEntry | None:
        try:
            with self.rooted.place(path, follow=False) as place:
                status = place.status()
                # A folder is no entry: whether it is in the way is seen when all is known.
                if status is None or kind_of(status.st_mode) == "folder":
                    return None
                return read_entry(place)
        except PathRefused as refused:
            # Something on the way is a file or a link: what lies behind it is not this path.
            if refused.why == "missing" or _is_way_blocked(refused):
                return None
            raise

    def _ours_or_none(self, path: str) -> FileEntry | None:
        with suppress(PathRefused, OSError):
            return self._ours(path)
        return None

    def _read(self, path: str, ours: FileEntry) -> bytes:
        with self.rooted.place(path, follow=False) as place, place.open_file(path) as file:
            content = file.read()
        if sha256(content).hexdigest() != ours.digest:
            raise _Clashing("is being changed in the workspace at this moment")
        return content

    def _obstacle(self, put: Put) -> str | None:
        """What else in the workspace keeps this put from being made, once all others are."""
        if put.after is None:
            return None
        names = put.path.split("/")
        for depth in range(1, len(names)):
            above = "/".join(names[:depth])
            if self._kind(above) not in (None, "folder") and not self._is_removed(above):
                return f"needs a folder {quote_path(above)}, which is something else here"
        if put.before is None and not all(map(self._is_removed, self._files_in(put.path))):
            return "is a folder here, with files that the step did not remove"
        return None

    def _kind(self, path: str) -> PathKind | None:
        if path not in self.kinds:
            try:
                self.kinds[path] = self.rooted.stat(path, follow=False).kind
            except PathRefused:
                self.kinds[path] = None
        return self.kinds[path]

    def _is_removed(self, path: str) -> bool:
        return path in self.puts and self.puts[path].after is None

    def _files_in(self, path: str) -> Iterator[str]:
        """The files below a folder; nothing where it is no folder."""
        waiting = [path] if self._kind(path) == "folder" else []
        while waiting:
            for each in self.rooted.list_folder(waiting.pop()):
                if each.kind == "folder":
                    waiting.append(each.path)
                else:
                    yield each.path


class _Clashing(Exception):
    """Why a change cannot be merged, as a sentence whose subject is its path."""


class _BothChanged(_Clashing):
    """Either side could be taken, once a person says which."""


def stays_inside(path: str, target: str) -> bool:
    """Whether a link at this path leads to a place in the workspace, whatever else is a link.

    Only leading `..`s are counted: behind a name, they would start from where that name leads.
    """
    names = [name for name in target.split("/") if name not in ("", ".")]
    climbs = 0
    while climbs < len(names) and names[climbs] == "..":
        climbs += 1
    is_relative = bool(target) and not target.startswith("/")
    return is_relative and ".." not in names[climbs:] and climbs <= path.count("/")


def _are_same(a: FileEntry | None, b: FileEntry | None) -> bool:
    return a is b if a is None else a.is_same(b)


def _mode(base: FileEntry | None, ours: FileEntry | None, theirs: FileEntry) -> int:
    """Ours, and executable if that is what they changed. A new file is never writable for all."""
    if theirs.kind == "link":
        return 0
    if base is None or ours is None or ours.kind == "link":
        return theirs.mode & 0o755 | 0o600
    decides = ours if theirs.is_executable == base.is_executable else theirs
    if decides.is_executable == ours.is_executable:
        return ours.mode
    # Those who may read it may then run it.
    return ours.mode | (ours.mode & 0o444) >> 2 if decides.is_executable else ours.mode & ~0o111


def _is_way_blocked(refused: PathRefused) -> bool:
    return isinstance(refused.__cause__, OSError) and refused.__cause__.errno in (
        errno.ENOTDIR,
        errno.ELOOP,
    )
