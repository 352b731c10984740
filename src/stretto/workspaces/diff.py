"""What an isolated writer changed. In: Isolated. Out: Changes, durable in a folder of ours.

    ARTIFACT/objects/        the bytes before and after, by digest
    ARTIFACT/changes.json    what was changed

It is written beside its place, synced, and renamed: an artifact that is there is whole, and it is
never made again.

A file that the writer made and a `.gitignore` leaves out is part of it if the write-set covers it,
and marked as ignored. What is no part of it is named: ignored files outside the write-set, folders
such as `node_modules`, and a `.git` that the writer made. Empty folders are not.
"""

import os
import secrets
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import cast

from stretto.config.private import make_private
from stretto.globs.glob import Glob
from stretto.vocabulary.values import Json
from stretto.workspaces.blobs import BlobLost, Blobs, BlobWriter
from stretto.workspaces.copying import copy_content
from stretto.workspaces.durable import sync, write_durably
from stretto.workspaces.entries import Change, Changes, Entry, Left
from stretto.workspaces.git import find_repository
from stretto.workspaces.isolate import Isolated, is_real_folder, remove_tree
from stretto.workspaces.limits import DEFAULT_LIMITS, WorkspaceLimits
from stretto.workspaces.listing import Listing, Selection, list_workspace, outer_rules
from stretto.workspaces.paths import PathAt, PathRefused
from stretto.workspaces.protected import find_repository_folders, is_within
from stretto.workspaces.reading import entry_at
from stretto.workspaces.renames import with_renames
from stretto.workspaces.rooted_dir import RootedDir
from stretto.workspaces.stored import (
    change_from_json,
    change_to_json,
    lefts_from_json,
    lefts_to_json,
    read_object,
    to_bytes,
)

DRAFT = ".new-"  # stands in the name of an artifact that is not whole yet

_CHANGES = "changes.json"


def find_changes(
    isolated: Isolated,
    artifact: Path,
    limits: WorkspaceLimits = DEFAULT_LIMITS,
    *,
    key: str = "",
    is_explained: bool = False,
) -> Changes:
    """Compare the writer's copy with what it was given, and keep the difference.

    The writer must have ended. `artifact` must not be there yet.
    """
    draft = _new_draft(artifact)
    base = Blobs(isolated.base)
    with BlobWriter(draft / "objects") as keep, RootedDir(isolated.root) as root:
        listing = _list(root, isolated, limits.with_room)
        written, refused = _written(root, listing, isolated.files, keep)
        written, made = _without_repositories(written, listing, isolated.files)
        gone = _gone(isolated.files, listing, refused)
        refused += made
        for change in (*written, *gone):
            if change.before is not None:
                _keep_base(base, change.before, keep)
        keep.finish(durable=True)
    blobs = Blobs(draft / "objects")
    ignored = [change for change in written if change.is_ignored]
    plain = [change for change in (*written, *gone) if not change.is_ignored]
    found = [*with_renames(plain, lambda entry: blobs.read(entry.digest)), *ignored]
    changes = Changes(
        secrets.token_hex(16),
        artifact,
        tuple(sorted(found, key=lambda change: change.path)),
        tuple(refused),
        (*isolated.left, *listing.left, *_written_over(isolated)),
        len(isolated.files),
        key,
        is_explained,
    )
    _publish(changes, draft)
    return changes


def open_changes(artifact: Path) -> Changes:
    """Raises NotFound when there is no finished diff."""
    stored = read_object(artifact / _CHANGES, "diff")
    return Changes(
        cast(str, stored["id"]),
        artifact,
        tuple(change_from_json(change) for change in cast(list[Json], stored["changes"])),
        lefts_from_json(stored["refused"]),
        lefts_from_json(stored["left"]),
        cast(int, stored.get("base_files", 0)),
        cast(str, stored.get("key", "")),
        cast(bool, stored.get("is_explained", False)),
    )


def take_over(earlier: Changes, artifact: Path) -> Changes:
    """The same change once more, to be merged once more: the workspace may not hold it now."""
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


def is_complete(changes: Changes) -> bool:
    """Whether all bytes of a change are there: disks fail, and people tidy up."""
    try:
        blobs = Blobs(changes.objects)
        for change in changes.changes:
            for entry in (change.before, change.after):
                if entry is not None:
                    blobs.read(entry.digest)
    except (OSError, ValueError, BlobLost):
        return False
    return True


def outside(changes: Changes, write_set: Sequence[Glob]) -> tuple[str, ...]:
    """Paths that were changed and that no glob covers: more than the step said it would write."""
    touched = {path for change in changes.changes for path in change.touched}
    return tuple(
        path for path in sorted(touched) if not any(glob.matches(path) for glob in write_set)
    )


def _list(root: RootedDir, isolated: Isolated, limits: WorkspaceLimits) -> Listing:
    # What was copied counts as tracked: a rule that the writer adds does not remove a file.
    tracked, apart = frozenset(isolated.files), frozenset(isolated.carried)
    selection = Selection(tracked, isolated.asked, apart, made=isolated.writes)
    outer = outer_rules(find_repository(isolated.workspace), isolated.workspace)
    return list_workspace(root, selection, limits, outer)


def _written(
    root: RootedDir, listing: Listing, base: dict[str, Entry], keep: BlobWriter
) -> tuple[list[Change], list[Left]]:
    written, refused = list[Change](), list(listing.unfit)
    for folder, found in groupby(listing.files, key=lambda each: each.path.rpartition("/")[0]):
        with root.folder(folder, follow=False) as fd:
            for each in found:
                place = PathAt(fd, each.path.rpartition("/")[2])
                before = base.get(each.path)
                try:
                    if not entry_at(place).is_same(before):
                        after = entry_at(place, keep)
                        is_ignored = each.path in listing.ignored
                        written.append(Change(each.path, before, after, is_ignored=is_ignored))
                except (OSError, PathRefused) as error:
                    refused.append(Left(each.path, f"cannot be read: {error}"))
    return written, refused


def _written_over(isolated: Isolated) -> list[Left]:
    """Folders that a sandbox shows read-only, and that somebody without one has written to."""
    return [
        Left(path, "it is carried from the workspace, which is not changed")
        for path in isolated.carried
        if not is_real_folder(isolated.root, path) or any((isolated.root / path).iterdir())
    ]


def _without_repositories(
    written: list[Change], listing: Listing, base: dict[str, Entry]
) -> tuple[list[Change], list[Left]]:
    """Without what makes a folder a repository, or changes one: git would run what its config
    names for whoever stands there."""
    folders = find_repository_folders(
        each.path for each in listing.files
    ) | find_repository_folders(base)
    if not folders:
        return written, []
    why = "lies in a git repository, which no step makes or changes"
    kept = [each for each in written if not is_within(each.path, folders)]
    return kept, [Left(it.path, why) for it in written if is_within(it.path, folders)]


def _gone(base: dict[str, Entry], listing: Listing, refused: Sequence[Left]) -> list[Change]:
    there = {each.path for each in listing.files}
    unread = {left.path for left in refused}
    return [
        Change(path, before, None)
        for path, before in base.items()
        if path not in there and not _is_in(path, unread)
    ]


def _is_in(path: str, folders: set[str]) -> bool:
    names = path.split("/")
    return any("/".join(names[: depth + 1]) in folders for depth in range(len(names)))


def _keep_base(base: Blobs, entry: Entry, keep: BlobWriter) -> None:
    own = base.own_file(entry.digest)
    if own is None:
        keep.add(base.read(entry.digest))
    else:
        with own.open("rb") as file:
            keep.add_file(file)


def _new_draft(artifact: Path) -> Path:
    """What earlier tries left is removed: they were cut off before their artifact was whole."""
    make_private(artifact.parent)
    for old in artifact.parent.glob(f"{artifact.name}{DRAFT}*"):
        remove_tree(old)
    draft = artifact.with_name(f"{artifact.name}{DRAFT}{secrets.token_hex(4)}")
    draft.mkdir(mode=0o700)
    return draft


def _publish(changes: Changes, draft: Path) -> None:
    write_durably(
        draft / _CHANGES,
        to_bytes(
            {
                "id": changes.id,
                "changes": [change_to_json(change) for change in changes.changes],
                "refused": lefts_to_json(changes.refused),
                "left": lefts_to_json(changes.left),
                "base_files": changes.base_files,
                "key": changes.key,
                "is_explained": changes.is_explained,
            }
        ),
    )
    draft.rename(changes.artifact)
    sync(changes.artifact.parent)
