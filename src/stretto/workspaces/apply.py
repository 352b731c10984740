"""Make a merge. In: MergePlan. Out: Merged, with all of it in place; or an error, with nothing.

The order is the safety: the intent is durable, then the new files are, then puts are made one by
one, each after a look at what it replaces; then the folders are synced and the merge is committed.
A crash before the commit is undone, a crash after it is tidied up (see undo.py). A file is replaced
by a rename, so that readers of the workspace see the old one or the new one.
"""

import errno
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from stretto.problems.errors import StrettoError
from stretto.workspaces.blobs import Blobs
from stretto.workspaces.entries import Left
from stretto.workspaces.locks import merge_lock, merges_folder
from stretto.workspaces.merge import MergePlan, Put
from stretto.workspaces.merge_log import Intent, MergeLog
from stretto.workspaces.paths import PathAt, PathRefused, copy_mode_and_owner, quote_path
from stretto.workspaces.protected import STAGE_PREFIX
from stretto.workspaces.reading import holds
from stretto.workspaces.rooted_dir import RootedDir
from stretto.workspaces.stage import (
    Point,
    Stage,
    link,
    make_stage,
    nowhere,
    ready,
    remove_stage,
    rename,
)
from stretto.workspaces.undo import recover, sync_touched, take_back

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
    left: tuple[Left, ...] = ()  # what stays as the workspace has it


def apply_merge(plan: MergePlan, home: Path, at: Point = nowhere) -> Merged:
    """Under the workspace's lock. A merge that a crash left unfinished is undone first."""
    with merge_lock(home, plan.workspace):
        recover(plan.workspace, home)
        return apply_locked(plan, home, at)


def apply_locked(plan: MergePlan, home: Path, at: Point = nowhere) -> Merged:
    log = MergeLog(merges_folder(home, plan.workspace))
    with RootedDir(plan.workspace) as rooted:
        intent = _intend(plan, rooted)
        at("planned")
        log.begin(intent)
        at("intended")
        if not plan.puts:
            log.move(intent.id, "pending", "done")
            return Merged(intent.id, (), (), left=plan.left)
        try:
            _make(plan, intent, rooted, at)
        except BaseException:
            take_back(intent, rooted, log, at)
            raise
        log.move(intent.id, "pending", "committed")
        at("committed")
        remove_stage(rooted, intent.stage, at)
        log.move(intent.id, "committed", "done")
        at("done")
    return Merged(intent.id, plan.paths, plan.merged_by_lines, left=plan.left)


def _intend(plan: MergePlan, rooted: RootedDir) -> Intent:
    written = [put.path for put in plan.puts if put.after is not None]
    deleted = [put.path for put in plan.puts if put.after is None]
    needed = set(_above(written))
    emptied = {*_above(deleted), *_folders_in(rooted, written)} - needed
    return Intent(
        plan.changes.id,
        plan.workspace,
        f"{STAGE_PREFIX}{secrets.token_hex(8)}",
        plan.puts,
        # The deepest first: a folder is empty when those in it are gone.
        tuple((path, _mode(rooted, path)) for path in sorted(emptied, key=_depth, reverse=True)),
        tuple(path for path in sorted(needed, key=_depth) if not _is_folder(rooted, path)),
    )


def _make(plan: MergePlan, intent: Intent, rooted: RootedDir, at: Point) -> None:
    with make_stage(rooted, intent.stage) as empty:
        _fill(plan, empty, rooted, at)
        with ready(empty) as stage:
            at("staged")
            making = _Making(intent, rooted, stage, at)
            making.remove_files()
            making.change_folders()
            making.write_files()
            sync_touched(intent, rooted)
            at("synced")


def _fill(plan: MergePlan, stage: Stage, rooted: RootedDir, at: Point) -> None:
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
class _Making:
    intent: Intent
    rooted: RootedDir
    stage: Stage
    at: Point

    def remove_files(self) -> None:
        for number, put in enumerate(self.intent.puts):
            if put.after is None:
                with _moving(put), self.rooted.place(put.path, follow=False) as target:
                    rename(target, self.stage.old(number))
                self.at("removed")
                # Looked at after the move: nobody can change it in between.
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
                with _moving(put), self.rooted.place(put.path, follow=False) as target:
                    if put.before is None:
                        self._create(number, target)
                    else:
                        self._replace(number, put, target)

    def _create(self, number: int, target: PathAt) -> None:
        new = self.stage.new(number)
        if not link(new, target):
            if target.status() is not None:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            rename(new, target)
        self.at("created")

    def _replace(self, number: int, put: Put, target: PathAt) -> None:
        old = self.stage.old(number)
        # A second name keeps the old file. Without them it is moved, and missing for a moment.
        if not link(target, old):
            rename(target, old)
        self.at("kept")
        self._verify(number, put)
        rename(self.stage.new(number), target)
        self.at("replaced")

    def _verify(self, number: int, put: Put) -> None:
        if not holds(self.stage.old(number), put.before):
            raise _moved(put)


@contextmanager
def _moving(put: Put) -> Iterator[None]:
    """A file that came, went, or became a folder since the plan is no fault of the system."""
    try:
        yield
    except PathRefused as refused:
        if refused.why in ("missing", "exists", "kind", "link"):
            raise _moved(put) from refused
        raise


def _moved(put: Put) -> WorkspaceMoved:
    return WorkspaceMoved(
        f"{quote_path(put.path)} was changed in the workspace while a merge was being made",
        hint="merge again: it is looked at anew",
    )


def _above(paths: Iterable[str]) -> Iterable[str]:
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
