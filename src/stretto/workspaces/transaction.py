"""Merge a change set into a workspace: all of it is put in place, or nothing.

The order is the safety: the intent is durable, then the new files are, then puts are made one by
one, each after a look at what it replaces; then the folders are synced and the merge is committed.
A crash before the commit is rolled back, a crash after it is tidied up (see rollback.py). A file is
replaced by a rename, so that readers of the workspace see the old one or the new one.

Every side of what clashed is kept: ARTIFACT/conflicts/{base,ours,theirs}/PATH
"""

import errno
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from stretto.problems.errors import StrettoError
from stretto.workspaces.change import ChangeSet
from stretto.workspaces.content import Blobs, FileEntry, SkippedPath, holds_entry
from stretto.workspaces.isolated_copy import remove_tree
from stretto.workspaces.merge import (
    UNSETTLED,
    Clash,
    Conflict,
    MergePlan,
    Settlement,
    plan_merge,
)
from stretto.workspaces.merge_state import (
    Checkpoint,
    Intent,
    MergeLog,
    MergeStage,
    Put,
    link_at,
    make_stage,
    merge_lock,
    merges_folder,
    no_checkpoint,
    open_for_writes,
    remove_stage,
    rename_at,
)
from stretto.workspaces.paths import PathAt, PathRefused, copy_mode_and_owner, quote_path
from stretto.workspaces.protected import STAGE_PREFIX
from stretto.workspaces.rollback import recover_locked, roll_back, sync_touched
from stretto.workspaces.rooted_dir import RootedDir

_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class WorkspaceMoved(StrettoError):
    """Somebody changed a file between the plan and the put. The workspace is as it was."""

    kind = "workspace_moved"


@dataclass(frozen=True, slots=True)
class Merged:
    id: str
    paths: tuple[str, ...]  # that were written or removed
    merged_by_lines: tuple[str, ...]
    was_done: bool = False  # an earlier merge did it, and this one had nothing to do
    left: tuple[SkippedPath, ...] = ()  # what stays as the workspace has it


def apply_locked(plan: MergePlan, home: Path, at: Checkpoint = no_checkpoint) -> Merged:
    log = MergeLog(merges_folder(home, plan.workspace))
    with RootedDir(plan.workspace) as rooted:
        intent = _plan_intent(plan, rooted)
        at("planned")
        log.begin(intent)
        at("intended")
        if not plan.puts:
            log.move(intent.id, "pending", "done")
            return Merged(intent.id, (), (), left=plan.left)
        try:
            _write_all(plan, intent, rooted, at)
        except BaseException:
            roll_back(intent, rooted, log, at)
            raise
        log.move(intent.id, "pending", "committed")
        at("committed")
        remove_stage(rooted, intent.stage, at)
        log.move(intent.id, "committed", "done")
        at("done")
    return Merged(intent.id, plan.paths, plan.merged_by_lines, left=plan.left)


def _plan_intent(plan: MergePlan, rooted: RootedDir) -> Intent:
    written = [put.path for put in plan.puts if put.after is not None]
    deleted = [put.path for put in plan.puts if put.after is None]
    needed = set(_folders_above(written))
    emptied = {*_folders_above(deleted), *_folders_in(rooted, written)} - needed
    return Intent(
        plan.changes.id,
        plan.workspace,
        f"{STAGE_PREFIX}{secrets.token_hex(8)}",
        plan.puts,
        # The deepest first: a folder is empty when those in it are gone.
        tuple((path, _mode(rooted, path)) for path in sorted(emptied, key=_depth, reverse=True)),
        tuple(path for path in sorted(needed, key=_depth) if not _is_folder(rooted, path)),
    )


def _write_all(plan: MergePlan, intent: Intent, rooted: RootedDir, at: Checkpoint) -> None:
    with make_stage(rooted, intent.stage) as empty:
        _stage_files(plan, empty, rooted, at)
        with open_for_writes(empty) as stage:
            at("staged")
            making = _Writer(intent, rooted, stage, at)
            making.remove_files()
            making.change_folders()
            making.write_files()
            sync_touched(intent, rooted)
            at("synced")


def _stage_files(plan: MergePlan, stage: MergeStage, rooted: RootedDir, at: Checkpoint) -> None:
    blobs = Blobs(plan.changes.objects)
    device = os.fstat(stage.fd).st_dev
    for number, put in enumerate(plan.puts):
        old = _status(rooted, put.path)
        if old is not None and old.st_dev != device:
            message = f"{quote_path(put.path)} is on another file system than its workspace"
            raise PathRefused(put.path, "failed", message)
        if put.after is None:
            continue
        at("staging")
        name = str(number)
        if put.after.kind == "link":
            os.symlink(os.fsdecode(blobs.read(put.after.digest)), name, dir_fd=stage.new_fd)
            continue
        fd = os.open(name, _CREATE, 0o600, dir_fd=stage.new_fd)
        with open(fd, "w+b") as file:
            if put.after.digest in plan.texts:
                file.write(plan.texts[put.after.digest])
                file.flush()
            else:
                blobs.copy_to(put.after.digest, file)
            copy_mode_and_owner(fd, old if put.before is not None else None, put.after.mode)


@dataclass(frozen=True, slots=True)
class _Writer:
    intent: Intent
    rooted: RootedDir
    stage: MergeStage
    at: Checkpoint

    def remove_files(self) -> None:
        for number, put in enumerate(self.intent.puts):
            if put.after is None:
                with _detect_moves(put), self.rooted.place(put.path, follow=False) as target:
                    rename_at(target, self.stage.old(number))
                self.at("removed")
                # Verified after the move: from then on no other process opens it by its path.
                self._verify(number, put)

    def change_folders(self) -> None:
        for path, _ in self.intent.removed:
            with self.rooted.place(path, follow=False) as place:
                try:
                    os.rmdir(place.name, dir_fd=place.folder_fd)
                    self.at("folder removed")
                except OSError:
                    continue  # it holds something else
        for path in self.intent.made:
            with self.rooted.place(path, follow=False) as place, suppress(FileExistsError):
                os.mkdir(place.name, dir_fd=place.folder_fd)
                self.at("folder made")

    def write_files(self) -> None:
        for number, put in enumerate(self.intent.puts):
            if put.after is not None:
                with _detect_moves(put), self.rooted.place(put.path, follow=False) as target:
                    if put.before is None:
                        self._create(number, target)
                    else:
                        self._replace(number, put, target)

    def _create(self, number: int, target: PathAt) -> None:
        new = self.stage.new(number)
        if not link_at(new, target):
            if target.status() is not None:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            rename_at(new, target)
        self.at("created")

    def _replace(self, number: int, put: Put, target: PathAt) -> None:
        old = self.stage.old(number)
        # A second name keeps the old file. Without them it is moved, and missing for a moment.
        if not link_at(target, old):
            rename_at(target, old)
        self.at("kept")
        self._verify(number, put)
        rename_at(self.stage.new(number), target)
        self.at("replaced")

    def _verify(self, number: int, put: Put) -> None:
        if not holds_entry(self.stage.old(number), put.before):
            raise _workspace_moved(put)


@contextmanager
def _detect_moves(put: Put) -> Iterator[None]:
    """Raise WorkspaceMoved where a file came, went, or became a folder since the plan."""
    try:
        yield
    except PathRefused as refused:
        if refused.why in ("missing", "exists", "kind", "link"):
            raise _workspace_moved(put) from refused
        raise


def _workspace_moved(put: Put) -> WorkspaceMoved:
    return WorkspaceMoved(
        f"{quote_path(put.path)} was changed in the workspace while a merge was being made",
        hint="merge again: it is looked at anew",
    )


def _folders_above(paths: Iterable[str]) -> Iterable[str]:
    for path in paths:
        while path := path.rpartition("/")[0]:
            yield path


def _folders_in(rooted: RootedDir, paths: Iterable[str]) -> Iterable[str]:
    """Folders where a file or a link shall be, and those in them."""
    waiting = [path for path in paths if _is_folder(rooted, path)]
    while waiting:
        folder = waiting.pop()
        yield folder
        inside = rooted.list_folder(folder)
        waiting.extend(found.path for found in inside if found.kind == "folder")


def _depth(path: str) -> tuple[int, str]:
    return path.count("/"), path


def _status(rooted: RootedDir, path: str) -> os.stat_result | None:
    try:
        with rooted.place(path, follow=False) as place:
            return place.status()
    except PathRefused:
        return None


def _is_folder(rooted: RootedDir, path: str) -> bool:
    try:
        return rooted.stat(path, follow=False).kind == "folder"
    except PathRefused:
        return False


def _mode(rooted: RootedDir, folder: str) -> int:
    return rooted.stat(folder, follow=False).mode


_TRIES = 3


def merge_back(
    changes: ChangeSet,
    workspace: Path,
    home: Path,
    at: Checkpoint = no_checkpoint,
    settlement: Settlement = UNSETTLED,
) -> Merged | Conflict:
    """All of it or nothing. Changes that were merged before are not merged again.

    A file that changes under the merge is looked at anew; after a few times that is an error.
    """
    with merge_lock(home, workspace):
        at("locked")
        recover_locked(workspace, home, at)
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


def is_merged(changes: ChangeSet, workspace: Path, home: Path) -> bool:
    return MergeLog(merges_folder(home, workspace)).is_done(changes.id)


def keep_sides(conflict: Conflict) -> Conflict:
    """Write all three sides of every clash to files, for the person who settles it."""
    kept = conflict.changes.artifact / "conflicts"
    remove_tree(kept)
    for side in ("base", "ours", "theirs"):
        (kept / side).mkdir(parents=True)
    blobs = Blobs(conflict.changes.objects)
    for clash in conflict.clashes:
        # What is gone again, or cannot be a file beside the others, is not kept.
        with suppress(PathRefused):
            _write_side(kept / "base", clash.path, _read_blob(blobs, clash.base))
            _write_side(kept / "theirs", clash.path, _read_blob(blobs, clash.theirs))
            _write_side(kept / "ours", clash.path, _read_ours(conflict.workspace, clash))
    return replace(conflict, kept=kept)


def _read_blob(blobs: Blobs, entry: FileEntry | None) -> bytes | None:
    return None if entry is None else blobs.read(entry.digest)


def _read_ours(workspace: Path, clash: Clash) -> bytes | None:
    if clash.ours is None:
        return None
    with RootedDir(workspace) as rooted, rooted.place(clash.path, follow=False) as place:
        target = place.link_target()
        if target is not None:
            return os.fsencode(target)
        with place.open_file(clash.path) as file:
            return file.read()


def _write_side(side: Path, path: str, content: bytes | None) -> None:
    # The names are a writer's: they are used beneath the folder, as everywhere.
    if content is None:
        return
    with RootedDir(side) as rooted:
        folder = path.rpartition("/")[0]
        if folder:
            rooted.mkdir(folder)
        rooted.write_bytes(path, content, durable=True)
