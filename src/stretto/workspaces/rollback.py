"""Roll back a merge that did not end: the workspace is as it was before it.

A rollback works from what it finds, so it may be begun again at any point: the names in the stage
tell the state of every put. A file that another process or a person changed since is left as it is,
and named.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stretto.config.home import make_private
from stretto.workspaces.content import FEW, FileEntry, holds_entry, sync_file_system
from stretto.workspaces.merge_state import (
    Checkpoint,
    Intent,
    MergeLog,
    MergeStage,
    is_same_file,
    merge_lock,
    merges_folder,
    no_checkpoint,
    remove_stage,
    rename_at,
    touched_stage,
)
from stretto.workspaces.paths import PathAt, PathRefused
from stretto.workspaces.rooted_dir import RootedDir


@dataclass(frozen=True, slots=True)
class Recovered:
    id: str  # of the changes
    outcome: Literal["undone", "finished"]
    disturbed: tuple[str, ...] = ()  # changed by others since; the old files are in `kept`
    kept: Path | None = None


def recover_merges(
    workspace: Path, home: Path, at: Checkpoint = no_checkpoint
) -> tuple[Recovered, ...]:
    """To be called before anything reads a workspace after a crash. Idempotent."""
    with merge_lock(home, workspace):
        return recover_locked(workspace, home, at)


def unfinished_merges(home: Path) -> tuple[Path, ...]:
    """Workspaces with an unfinished merge, of any run."""
    logs = map(MergeLog, sorted((home / "merges").glob("*")))
    return tuple(
        dict.fromkeys(
            intent.workspace
            for log in logs
            for intent in (*log.unfinished("pending"), *log.unfinished("committed"))
        )
    )


@contextmanager
def hold_off_merges(workspace: Path, home: Path) -> Iterator[None]:
    """Inside, no merge is made and none is unfinished: the tree is no mixture of two states."""
    while True:
        with merge_lock(home, workspace, shared=True):
            log = MergeLog(merges_folder(home, workspace))
            if not any(log.unfinished("pending")):
                yield
                return
        recover_merges(workspace, home)


def recover_locked(
    workspace: Path, home: Path, at: Checkpoint = no_checkpoint
) -> tuple[Recovered, ...]:
    """As `recover_merges`, for a caller that holds the lock."""
    log = MergeLog(merges_folder(home, workspace))
    recovered = list[Recovered]()
    committed, pending = list(log.unfinished("committed")), list(log.unfinished("pending"))
    if not committed and not pending:
        return ()
    with RootedDir(workspace) as rooted:
        for intent in committed:
            remove_stage(rooted, intent.stage, at)
            log.move(intent.id, "committed", "done")
            recovered.append(Recovered(intent.id, "finished"))
        for intent in pending:
            disturbed = roll_back(intent, rooted, log, at)
            kept = log.kept(intent.id) if disturbed else None
            recovered.append(Recovered(intent.id, "undone", disturbed, kept))
    return tuple(recovered)


def roll_back(
    intent: Intent, rooted: RootedDir, log: MergeLog, at: Checkpoint = no_checkpoint
) -> tuple[str, ...]:
    """Undo a merge and forget it. Returns the paths that somebody else changed meanwhile."""
    disturbed: tuple[str, ...] = ()
    with touched_stage(rooted, intent.stage) as stage:
        if stage is not None:
            disturbed = _Rollback(intent, rooted, stage, at).run()
            _keep_old(intent, stage, log.kept(intent.id))
    sync_touched(intent, rooted)
    at("undone")
    remove_stage(rooted, intent.stage, at)
    log.forget(intent.id)
    return disturbed


def _keep_old(intent: Intent, stage: MergeStage, kept: Path) -> None:
    """Copy the old files whose place somebody else has taken to `kept`, before the stage goes."""
    for number, put in enumerate(intent.puts):
        old = stage.old(number)
        if old.status() is None:
            continue
        target = old.link_target()
        if target is None:
            with old.open_file(put.path) as file:
                content = file.read()
        else:
            content = os.fsencode(target)
        make_private(kept)
        with RootedDir(kept) as rooted:
            if folder := put.path.rpartition("/")[0]:
                rooted.mkdir(folder)
            rooted.write_bytes(put.path, content, durable=True)


def sync_touched(intent: Intent, rooted: RootedDir) -> None:
    """Make the entries of every folder durable that the merge changes."""
    paths = [*(put.path for put in intent.puts), *(path for path, _ in intent.removed)]
    folders = sorted({path.rpartition("/")[0] for path in (*paths, *intent.made, "")})
    if len(folders) > FEW:
        with rooted.folder() as fd:
            if sync_file_system(fd):
                return
    for folder in folders:
        with suppress(PathRefused), rooted.folder(folder, follow=False) as fd:
            os.fsync(fd)


@dataclass(frozen=True, slots=True)
class _Rollback:
    intent: Intent
    rooted: RootedDir
    stage: MergeStage
    at: Checkpoint

    def run(self) -> tuple[str, ...]:
        return (*self.undo_writes(), *self.undo_folders(), *self.restore_removed())

    def undo_writes(self) -> list[str]:
        disturbed = list[str]()
        for number, put in reversed(list(enumerate(self.intent.puts))):
            if put.after is None:
                continue
            with suppress(PathRefused), self.rooted.place(put.path, follow=False) as target:
                undo_one = self._undo_create if put.before is None else self._undo_replace
                if not undo_one(number, put.after, target):
                    disturbed.append(put.path)
                self.at("put undone")
        return disturbed

    def _undo_create(self, number: int, after: FileEntry, target: PathAt) -> bool:
        new = self.stage.new(number)
        if target.status() is None:
            return True
        if new.status() is not None and not is_same_file(new, target):
            return True  # never created by us: another process made what is there
        if not holds_entry(target, after):
            return False
        os.unlink(target.name, dir_fd=target.folder_fd)
        return True

    def _undo_replace(self, number: int, after: FileEntry, target: PathAt) -> bool:
        new, old = self.stage.new(number), self.stage.old(number)
        if old.status() is None:
            return True  # not touched yet, or undone already
        if target.status() is None:
            rename_at(old, target)
        elif new.status() is not None:
            # The old file was kept but not replaced; or moved away, and another one was made there.
            if not is_same_file(old, target):
                return False
            os.unlink(old.name, dir_fd=old.folder_fd)
        elif holds_entry(target, after):
            rename_at(old, target)
        else:
            return False
        return True

    def undo_folders(self) -> list[str]:
        for path in reversed(self.intent.made):
            with suppress(PathRefused, OSError), self.rooted.place(path, follow=False) as place:
                os.rmdir(place.name, dir_fd=place.folder_fd)
                self.at("folder removed again")
        disturbed = list[str]()
        for path, mode in reversed(self.intent.removed):
            try:
                self._restore_folder(path, mode)
            except PathRefused:
                disturbed.append(path)
        return disturbed

    def _restore_folder(self, path: str, mode: int) -> None:
        with self.rooted.place(path, follow=False) as place:
            if place.status() is None:
                os.mkdir(place.name, dir_fd=place.folder_fd)
                os.chmod(place.name, mode, dir_fd=place.folder_fd)
                self.at("folder restored")

    def restore_removed(self) -> list[str]:
        disturbed = list[str]()
        for number, put in reversed(list(enumerate(self.intent.puts))):
            if put.after is not None:
                continue
            old = self.stage.old(number)
            if old.status() is None:
                continue
            try:
                with self.rooted.place(put.path, follow=False) as target:
                    if target.status() is None:
                        rename_at(old, target)
                        self.at("file restored")
                    else:
                        disturbed.append(put.path)
            except PathRefused:
                disturbed.append(put.path)
        return disturbed
