"""What an isolated writer changed, as a `ChangeSet` that is durable in a folder of ours.

    ARTIFACT/objects/        the bytes before and after, by digest
    ARTIFACT/changes.json    what was changed

It is written beside its place, synced, and renamed: an artifact that is there is whole, and it is
never made again.

A file that the writer made and a `.gitignore` leaves out is part of it if the write-set covers it,
and marked as ignored. What is no part of it is named: ignored files outside the write-set, folders
such as `node_modules`, a `.git` that the writer made, and new folders that are empty.

A removal and a new file may be one rename: files with the same bytes, those of the same name before
others, then texts that share most of their lines. A wrong guess does no harm: merged, the two
changes come to the same tree.
"""

import os
import secrets
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TypeGuard

from stretto.config.home import make_private
from stretto.globs.glob import Glob, parse_globs
from stretto.text.redaction import NOTHING_SECRET, Redactor
from stretto.text.short import listed
from stretto.workspaces.content import (
    BlobLost,
    Blobs,
    BlobWriter,
    FileEntry,
    SkippedPath,
    copy_content,
    encode_record,
    read_entry,
    read_record,
    sync,
    write_durably,
)
from stretto.workspaces.file_list import (
    DEFAULT_LIMITS,
    Listing,
    Selection,
    WorkspaceLimits,
    list_workspace,
    read_outer_rules,
)
from stretto.workspaces.git import find_repository
from stretto.workspaces.isolated_copy import IsolatedCopy, is_real_folder, remove_tree
from stretto.workspaces.line_diff import split_lines
from stretto.workspaces.paths import FoundPath, PathAt, PathRefused
from stretto.workspaces.protected import (
    NOTHING_PROTECTED,
    Protected,
    find_repository_folders,
    is_within,
)
from stretto.workspaces.rooted_dir import RootedDir


@dataclass(frozen=True, slots=True)
class FileChange:
    """One path. With `renamed_from`, `before` is what was at that path."""

    path: str
    before: FileEntry | None  # None: it was not there
    after: FileEntry | None  # None: it is gone
    renamed_from: str | None = None
    is_ignored: bool = False  # the writer made it where a `.gitignore` leaves files out of copies

    @property
    def touched(self) -> tuple[str, ...]:
        return (self.path,) if self.renamed_from is None else (self.renamed_from, self.path)


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """What an isolated writer did. Enough to show it and to merge it, without its copy."""

    id: str
    artifact: Path  # the folder that holds the bytes
    changes: tuple[FileChange, ...]  # by path
    refused: tuple[SkippedPath, ...] = ()  # what no merge may bring into a workspace
    left: tuple[SkippedPath, ...] = ()  # what is simply not taken along
    modes: tuple[SkippedPath, ...] = ()  # files of which the writer changed who may read or write
    base_files: int = 0  # how many files the writer was given; 0: not known
    key: str = ""  # of the attempt that made it; empty: more than one did
    is_explained: bool = False  # a call of the step can have removed what it removes

    @property
    def removed(self) -> tuple[str, ...]:
        return tuple(change.path for change in self.changes if change.after is None)

    @property
    def objects(self) -> Path:
        return self.artifact / "objects"


DRAFT = ".new-"  # stands in the name of an artifact that is not whole yet

_CHANGES = "changes.json"


def find_changes(
    isolated: IsolatedCopy,
    artifact: Path,
    limits: WorkspaceLimits = DEFAULT_LIMITS,
    *,
    key: str = "",
    is_explained: bool = False,
) -> ChangeSet:
    """Compare the writer's copy with what it was given, and keep the difference.

    The writer must have ended. `artifact` must not be there yet.
    """
    draft = _new_draft(artifact)
    try:
        found = _compare(isolated, draft, limits)
        changes = replace(
            found,
            artifact=artifact,
            left=(*isolated.left, *found.left, *_find_written_carried(isolated)),
            base_files=len(isolated.files),
            key=key,
            is_explained=is_explained,
        )
        _publish(changes, draft)
    except Exception:
        remove_tree(draft)  # the disk may be full, and half a draft is of no use
        raise
    return changes


def _compare(isolated: IsolatedCopy, draft: Path, limits: WorkspaceLimits) -> ChangeSet:
    """What was changed, what of it no merge may take, and what was left out. All bytes of the
    change are durable in the draft."""
    base = Blobs(isolated.base)
    with BlobWriter(draft / "objects") as keep, RootedDir(isolated.root) as root:
        listing = _list_copy(root, isolated, limits.with_room)
        seen, refused = _find_written(root, listing, isolated.files, keep)
        written = [each for each in seen if not _is_same(each)]
        written, made = _without_repositories(written, listing, isolated.files)
        gone = _find_removed(isolated.files, listing, refused)
        refused += made
        left = (*listing.left, *_find_empty(root, listing, isolated.workspace))
        for change in (*written, *gone):
            if change.before is not None:
                _keep_base(base, change.before, keep)
        keep.finish(durable=True)
    blobs = Blobs(draft / "objects")
    ignored = [change for change in written if change.is_ignored]
    plain = [change for change in (*written, *gone) if not change.is_ignored]
    found = [*join_renames(plain, lambda entry: blobs.read(entry.digest)), *ignored]
    modes = [*filter(_is_same, seen), *found]
    return ChangeSet(
        secrets.token_hex(16),
        draft,
        tuple(sorted(found, key=lambda change: change.path)),
        tuple(refused),
        left,
        tuple(SkippedPath(each.path, why) for each in modes if (why := _describe_mode(each))),
    )


def _is_same(change: FileChange) -> bool:
    return change.after is not None and change.after.is_same(change.before)


# Who may read a file, and whether its owner may write. Of the other bits, a file is executable or
# not, which is merged, and the umask of whoever writes a file anew decides which others may write.
_NOT_MERGED = 0o644


def _describe_mode(change: FileChange) -> str:
    """What of its mode is not merged; empty if nothing is."""
    before, after = change.before, change.after
    if before is None or after is None or not before.kind == after.kind == "file":
        return ""
    if not (before.mode ^ after.mode) & _NOT_MERGED:
        return ""
    return (
        f"had the mode {before.mode:04o} and was given {after.mode:04o}; of a mode, only whether a "
        "file is executable is merged"
    )


def open_changes(artifact: Path) -> ChangeSet:
    """Raises NotFound when there is no finished one."""
    return replace(read_record(artifact / _CHANGES, ChangeSet, "change"), artifact=artifact)


def copy_change_set(earlier: ChangeSet, artifact: Path) -> ChangeSet:
    """The same change again with an id of its own, so that it is merged again: the workspace may
    not hold it any more."""
    draft = _new_draft(artifact)
    (draft / "objects").mkdir()
    for file in earlier.objects.iterdir():
        with file.open("rb") as source, (draft / "objects" / file.name).open("xb") as copy:
            copy_content(source.fileno(), copy.fileno())
            os.fsync(copy.fileno())
    sync(draft / "objects")
    changes = replace(earlier, id=secrets.token_hex(16), artifact=artifact)
    _publish(changes, draft)
    return changes


def has_all_bytes(changes: ChangeSet) -> bool:
    """Whether all bytes of a change are there: disks fail, and people remove files."""
    try:
        blobs = Blobs(changes.objects)
        for change in changes.changes:
            for entry in (change.before, change.after):
                if entry is not None:
                    blobs.read(entry.digest)
    except BlobLost:
        return False
    return True


def find_paths_outside(changes: ChangeSet, write_set: Sequence[Glob]) -> tuple[str, ...]:
    """Paths that were changed and that no glob of the write-set covers."""
    touched = {path for change in changes.changes for path in change.touched}
    return tuple(
        path for path in sorted(touched) if not any(glob.matches(path) for glob in write_set)
    )


def _list_copy(root: RootedDir, isolated: IsolatedCopy, limits: WorkspaceLimits) -> Listing:
    # What was copied counts as tracked: a rule that the writer adds does not remove a file.
    tracked, apart = frozenset(isolated.files), frozenset(isolated.carried)
    selection = Selection(
        tracked, parse_globs(isolated.asked), apart, made=parse_globs(isolated.writes)
    )
    outer = read_outer_rules(find_repository(isolated.workspace), isolated.workspace)
    return list_workspace(root, selection, limits, outer)


def _find_written(
    root: RootedDir, listing: Listing, base: dict[str, FileEntry], keep: BlobWriter
) -> tuple[list[FileChange], list[SkippedPath]]:
    """Files whose content is another, or whose mode is."""
    written, refused = list[FileChange](), list(listing.unfit)
    for folder, found in groupby(listing.files, key=lambda each: each.path.rpartition("/")[0]):
        with root.folder(folder, follow=False) as fd:
            for each in found:
                place = PathAt(fd, each.path.rpartition("/")[2])
                before = base.get(each.path)
                try:
                    after = _read_listed(place, each)
                    if not after.is_same(before):
                        after = _read_listed(place, each, keep)
                    if after != before:
                        is_ignored = each.path in listing.ignored
                        written.append(FileChange(each.path, before, after, is_ignored=is_ignored))
                except (OSError, PathRefused) as error:
                    refused.append(SkippedPath(each.path, f"cannot be read: {error}"))
    return written, refused


def _read_listed(place: PathAt, found: FoundPath, keep: BlobWriter | None = None) -> FileEntry:
    """With the mode as it was listed: what the writer had closed to itself is open by now."""
    entry = read_entry(place, keep)
    mode = 0 if entry.kind == "link" else found.mode & 0o777
    return entry if entry.mode == mode else replace(entry, mode=mode)


def _find_empty(root: RootedDir, listing: Listing, workspace: Path) -> list[SkippedPath]:
    """New folders without any file, each with all that are in it."""
    told = [each.path for each in (*listing.left, *listing.unfit)]
    paths = (*(each.path for each in listing.files), *told)
    held = {*told, *(folder for path in paths for folder in _folders_above(path))}
    found = list[SkippedPath]()
    for path in listing.folders:  # those above first
        is_told = found and path.startswith(f"{found[-1].path}/")
        if path in held or is_told or is_real_folder(workspace, path):
            continue
        if not any(True for _ in root.walk(path)):  # no file that a rule leaves out either
            found.append(SkippedPath(path, "it is an empty folder"))
    return found


def _folders_above(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _find_written_carried(isolated: IsolatedCopy) -> list[SkippedPath]:
    """Folders that a sandbox shows read-only, and that a step without a sandbox has written to."""
    return [
        SkippedPath(path, "it is carried from the workspace, which is not changed")
        for path in isolated.carried
        if not is_real_folder(isolated.root, path) or any((isolated.root / path).iterdir())
    ]


def _without_repositories(
    written: list[FileChange], listing: Listing, base: dict[str, FileEntry]
) -> tuple[list[FileChange], list[SkippedPath]]:
    """Take out what makes a folder a repository, or changes one: git would run what its config
    names for whoever stands there."""
    folders = find_repository_folders(
        each.path for each in listing.files
    ) | find_repository_folders(base)
    if not folders:
        return written, []
    why = "lies in a git repository, which no step makes or changes"
    kept = [each for each in written if not is_within(each.path, folders)]
    return kept, [SkippedPath(it.path, why) for it in written if is_within(it.path, folders)]


def _find_removed(
    base: dict[str, FileEntry], listing: Listing, refused: Sequence[SkippedPath]
) -> list[FileChange]:
    there = {each.path for each in listing.files}
    unread = {left.path for left in refused}
    return [
        FileChange(path, before, None)
        for path, before in base.items()
        if path not in there and not _is_in(path, unread)
    ]


def _is_in(path: str, folders: set[str]) -> bool:
    names = path.split("/")
    return any("/".join(names[: depth + 1]) in folders for depth in range(len(names)))


def _keep_base(base: Blobs, entry: FileEntry, keep: BlobWriter) -> None:
    own = base.own_file(entry.digest)
    if own is None:
        keep.add(base.read(entry.digest))
    else:
        with own.open("rb") as file:
            keep.add_file(file)


def _new_draft(artifact: Path) -> Path:
    """What earlier tries left is removed: they ended before their artifact was whole."""
    make_private(artifact.parent)
    for old in artifact.parent.glob(f"{artifact.name}{DRAFT}*"):
        remove_tree(old)
    draft = artifact.with_name(f"{artifact.name}{DRAFT}{secrets.token_hex(4)}")
    draft.mkdir(mode=0o700)
    return draft


def _publish(changes: ChangeSet, draft: Path) -> None:
    write_durably(draft / _CHANGES, encode_record(changes))
    draft.rename(changes.artifact)
    sync(changes.artifact.parent)


_ALIKE = 0.6  # the share of its bytes that a renamed text keeps
_MOST_PAIRS = 2_500  # that are compared line by line
_MOST_COMPARED_BYTES = 512 * 1024  # of one file
_MOST_COMPARED_IN_ALL = 16 * 2**20


def join_renames(
    changes: Sequence[FileChange], read: Callable[[FileEntry], bytes]
) -> list[FileChange]:
    gone = {c.path: c.before for c in changes if c.after is None and _is_file(c.before)}
    new = {c.path: c.after for c in changes if c.before is None and _is_file(c.after)}
    old_paths = _pair_same(gone, new)
    taken = set(old_paths.values())
    old_paths |= _pair_alike(
        {path: entry for path, entry in gone.items() if path not in taken},
        {path: entry for path, entry in new.items() if path not in old_paths},
        read,
    )
    taken = set(old_paths.values())
    return [
        FileChange(c.path, gone[old_paths[c.path]], c.after, old_paths[c.path])
        if c.path in old_paths
        else c
        for c in changes
        if c.path not in taken
    ]


def _is_file(entry: FileEntry | None) -> TypeGuard[FileEntry]:
    # All empty files are alike, which does not make one of them a rename of another.
    return entry is not None and entry.kind == "file" and entry.size > 0


def _pair_same(gone: Mapping[str, FileEntry], new: Mapping[str, FileEntry]) -> dict[str, str]:
    by_digest = defaultdict[str, list[str]](list)
    for path, entry in gone.items():
        by_digest[entry.digest].append(path)
    found = dict[str, str]()
    for path, entry in new.items():
        candidates = by_digest[entry.digest]
        if candidates:
            namesakes = (old for old in candidates if _name(old) == _name(path))
            found[path] = next(namesakes, candidates[0])
            candidates.remove(found[path])
    return found


def _pair_alike(
    gone: Mapping[str, FileEntry], new: Mapping[str, FileEntry], read: Callable[[FileEntry], bytes]
) -> dict[str, str]:
    gone, new = _select_small(gone), _select_small(new)
    compared = sum(entry.size for entry in (*gone.values(), *new.values()))
    if not 0 < len(gone) * len(new) <= _MOST_PAIRS or compared > _MOST_COMPARED_IN_ALL:
        return {}
    old_lines = {path: _count_lines(read(entry)) for path, entry in gone.items()}
    scores = list[tuple[float, bool, str, str]]()
    # One new file at a time: its counted lines take many times its size.
    for fresh, entry in new.items():
        lines = _count_lines(read(entry))
        scores += (
            (-_likeness(counted, lines), _name(old) != _name(fresh), old, fresh)
            for old, counted in old_lines.items()
        )
    scores.sort()
    found = dict[str, str]()
    taken = set[str]()
    for score, _, old, fresh in scores:
        if -score >= _ALIKE and fresh not in found and old not in taken:
            found[fresh] = old
            taken.add(old)
    return found


def _select_small(entries: Mapping[str, FileEntry]) -> dict[str, FileEntry]:
    return {path: it for path, it in entries.items() if it.size <= _MOST_COMPARED_BYTES}


def _count_lines(content: bytes) -> Counter[bytes]:
    return Counter() if b"\0" in content else Counter(split_lines(content))


def _likeness(a: Counter[bytes], b: Counter[bytes]) -> float:
    """Bytes in lines that both have, of the bytes of the longer one."""
    longer = max(_sum_bytes(a), _sum_bytes(b))
    return _sum_bytes(a & b) / longer if longer else 0.0


def _sum_bytes(lines: Counter[bytes]) -> int:
    return sum(len(line) * times for line, times in lines.items())


def _name(path: str) -> str:
    return path.rpartition("/")[2]


# A step may remove this many files, or this share of them, without asking a person.
FEW_REMOVED = 10
SHARE_REMOVED = 0.1
# Larger files are not looked through for secrets.
_MOST_SEARCHED = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Inadmissible:
    """Why nothing of a change may be merged, and the paths that are the reason."""

    error: str
    paths: tuple[str, ...]


def why_inadmissible(
    changes: ChangeSet,
    write_set: Sequence[str],
    protected: Protected = NOTHING_PROTECTED,
    redactor: Redactor = NOTHING_SECRET,
) -> Inadmissible | None:
    outside = find_paths_outside(changes, parse_globs(write_set))
    if outside:
        return Inadmissible(f"it changed files outside its write-set: {listed(outside)}", outside)
    touched = dict.fromkeys(path for change in changes.changes for path in change.touched)
    trusted = tuple(path for path in touched if protected.covers(path))
    if trusted:
        said = f"it changed what the user has trusted, and no step may: {listed(trusted)}"
        return Inadmissible(said, trusted)
    if found := _find_new_secrets(changes, redactor):
        names = listed(dict.fromkeys(name for each in found.values() for name in each))
        said = f"it wrote the value of {names} into {listed(found)}"
        return Inadmissible(said, tuple(found))
    return None


def _find_new_secrets(changes: ChangeSet, redactor: Redactor) -> dict[str, tuple[str, ...]]:
    """By file: the variables whose values are in it and were not before."""
    if not redactor.has_secrets or not changes.changes:
        return {}
    blobs = Blobs(changes.objects)

    def find_secrets(entry: FileEntry | None) -> tuple[str, ...]:
        if entry is None or entry.size > _MOST_SEARCHED:
            return ()
        return redactor.named(blobs.read(entry.digest).decode("utf-8", "surrogateescape"))

    found: dict[str, tuple[str, ...]] = {}
    for change in changes.changes:
        names = find_secrets(change.after)
        if new := tuple(name for name in names if name not in find_secrets(change.before)):
            found[change.path] = new
    return found


def doubt_about(changes: ChangeSet) -> str:
    """What a person should know before a change is merged whose removals nothing explains.

    A copy that lost files, however it lost them, would look like a step that removed them.
    """
    removed = changes.removed
    if len(removed) <= FEW_REMOVED or len(removed) <= changes.base_files * SHARE_REMOVED:
        return ""
    of = f" of {changes.base_files:,}" if changes.base_files else ""
    return (
        f"its change removes {len(removed):,}{of} files ({listed(removed)}), "
        "and no tool call and no command of the step can have removed them"
    )
