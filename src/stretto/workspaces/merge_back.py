"""Merge a writer's changes back. In: Changes, a workspace. Out: Merged, or Conflict.

ARTIFACT/conflicts/{base,ours,theirs}/PATH    every side of what clashed
"""

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from stretto.workspaces.apply import Merged, WorkspaceMoved, apply_locked
from stretto.workspaces.blobs import Blobs
from stretto.workspaces.entries import Changes, Entry
from stretto.workspaces.isolate import remove_tree
from stretto.workspaces.locks import merge_lock, merges_folder
from stretto.workspaces.merge import UNSETTLED, Clash, Conflict, Settlement, plan_merge
from stretto.workspaces.merge_log import MergeLog
from stretto.workspaces.paths import PathRefused
from stretto.workspaces.rooted_dir import RootedDir
from stretto.workspaces.stage import Point, nowhere
from stretto.workspaces.undo import recover

_TRIES = 3


def merge_back(
    changes: Changes,
    workspace: Path,
    home: Path,
    at: Point = nowhere,
    settlement: Settlement = UNSETTLED,
) -> Merged | Conflict:
    """All of it or nothing. Changes that were merged before are not merged again.

    A file that changes under the merge is looked at anew; after a few times that is an error.
    """
    with merge_lock(home, workspace):
        at("locked")
        recover(workspace, home, at)
        if MergeLog(merges_folder(home, workspace)).is_done(changes.id):
            return Merged(changes.id, (), (), was_done=True)
        for tries_left in range(_TRIES - 1, -1, -1):
            plan = plan_merge(changes, workspace, settlement)
            if isinstance(plan, Conflict):
                return keep_sides(plan)
            try:
                return apply_locked(plan, home, at)
            except WorkspaceMoved:
                if not tries_left:
                    raise
    raise AssertionError("unreachable")


def is_merged(changes: Changes, workspace: Path, home: Path) -> bool:
    return MergeLog(merges_folder(home, workspace)).is_done(changes.id)


def keep_sides(conflict: Conflict) -> Conflict:
    """Write down all three sides of every clash, for whoever has to settle it."""
    kept = conflict.changes.artifact / "conflicts"
    remove_tree(kept)
    for side in ("base", "ours", "theirs"):
        (kept / side).mkdir(parents=True)
    blobs = Blobs(conflict.changes.objects)
    for clash in conflict.clashes:
        # What is gone again, or cannot be a file beside the others, is not kept.
        with suppress(PathRefused):
            _keep(kept / "base", clash.path, _bytes(blobs, clash.base))
            _keep(kept / "theirs", clash.path, _bytes(blobs, clash.theirs))
            _keep(kept / "ours", clash.path, _ours(conflict.workspace, clash))
    return replace(conflict, kept=kept)


def _bytes(blobs: Blobs, entry: Entry | None) -> bytes | None:
    return None if entry is None else blobs.read(entry.digest)


def _ours(workspace: Path, clash: Clash) -> bytes | None:
    if clash.ours is None:
        return None
    with RootedDir(workspace) as rooted, rooted.place(clash.path, follow=False) as place:
        target = place.link_target()
        if target is not None:
            return os.fsencode(target)
        with place.open_file(clash.path) as file:
            return file.read()


def _keep(side: Path, path: str, content: bytes | None) -> None:
    # The names are a writer's: they are used beneath the folder, as everywhere.
    if content is None:
        return
    with RootedDir(side) as rooted:
        folder = path.rpartition("/")[0]
        if folder:
            rooted.mkdir(folder)
        rooted.write_bytes(path, content, durable=True)
