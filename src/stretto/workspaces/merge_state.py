"""What a merge keeps on disk while it is made: a lock, a log and a stage.

The lock lets one merge at a time into a workspace, also between processes. It is on a file of ours,
and the system drops it when its holder dies.

The log lies with the engine, never in the workspace: a writer must not decide what recovery does. A
merge passes from one folder of it to the next by one rename, synced.

    pending/ID.json      begun: after a crash, everything in it is undone
    committed/ID.json    all is in place: only the staged files are still to be removed
    done/ID.json         the receipt
    kept/ID/PATH         old files of a merge that was undone, where somebody else had changed theirs

The stage is a folder in the workspace, so that a file gets in place by one rename. Which names exist
in it says how far each put has come: there is no other note that a crash could leave behind or ahead.

    .stretto-merge-ID/new/7     the new file of put 7, until it is in place
    .stretto-merge-ID/old/      made when all new files are synced: from now on puts are made
    .stretto-merge-ID/old/7     what was there before put 7
"""

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal, TypeAlias

from stretto.config.home import make_private
from stretto.problems.errors import StrettoError
from stretto.workspaces.content import (
    FEW,
    FileEntry,
    encode_record,
    read_record,
    sync,
    sync_file_system,
    write_durably,
)
from stretto.workspaces.paths import PathAt
from stretto.workspaces.rooted_dir import RootedDir

WAIT_SECONDS = 120.0
_LOOK_SECONDS = 0.02


class WorkspaceBusy(StrettoError):
    kind = "workspace_busy"


def merges_folder(home: Path, workspace: Path) -> Path:
    """Where the lock and the log of merges into this workspace are."""
    name = sha256(os.fsencode(workspace.resolve())).hexdigest()[:24]
    return home / "merges" / name


@contextmanager
def merge_lock(
    home: Path, workspace: Path, wait_seconds: float = WAIT_SECONDS, *, shared: bool = False
) -> Iterator[None]:
    """Hold the lock alone; or shared with others that only keep merges out while they read."""
    folder = merges_folder(home, workspace)
    make_private(folder)
    fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        _wait(fd, kind, workspace, time.monotonic() + wait_seconds)
        yield
    finally:
        os.close(fd)


def _wait(fd: int, kind: int, workspace: Path, until: float) -> None:
    while True:
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= until:
                raise WorkspaceBusy(
                    f"another merge into {workspace} has not ended",
                    hint="wait for it, or end the process that makes it",
                ) from None
            time.sleep(_LOOK_SECONDS)


MergeState: TypeAlias = Literal["pending", "committed", "done"]


@dataclass(frozen=True, slots=True)
class Put:
    """One path of the workspace: what it holds, and what it shall hold. Never the same."""

    path: str
    before: FileEntry | None
    after: FileEntry | None


@dataclass(frozen=True, slots=True)
class Intent:
    id: str
    workspace: Path
    stage: str  # the folder in the workspace where new files wait and old ones are kept
    puts: tuple[Put, ...]
    removed: tuple[tuple[str, int], ...]  # folders that may become empty, with their modes
    made: tuple[str, ...]  # folders that are needed, those above first


class MergeLog:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def begin(self, intent: Intent) -> None:
        for state in ("pending", "committed", "done"):
            make_private(self._folder / state)
        sync(self._folder)
        write_durably(self._file("pending", intent.id), encode_record(intent))

    def move(self, merge_id: str, before: MergeState, after: MergeState) -> None:
        self._file(before, merge_id).rename(self._file(after, merge_id))
        sync(self._folder / after)
        sync(self._folder / before)

    def forget(self, merge_id: str) -> None:
        self._file("pending", merge_id).unlink()
        sync(self._folder / "pending")

    def is_done(self, merge_id: str) -> bool:
        return self._file("committed", merge_id).exists() or self._file("done", merge_id).exists()

    def kept(self, merge_id: str) -> Path:
        return self._folder / "kept" / merge_id

    def unfinished(self, state: MergeState) -> Iterator[Intent]:
        for file in sorted((self._folder / state).glob("*.json")):
            yield read_record(file, Intent, "merge")

    def _file(self, state: MergeState, merge_id: str) -> Path:
        return self._folder / state / f"{merge_id}.json"


# Called with the name of every point that a merge passes; a test may kill the process there.
Checkpoint: TypeAlias = Callable[[str], None]

_FOLDER_NOT_LINK = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS)


def no_checkpoint(point: str) -> None:
    """The checkpoint of a merge that no test interrupts."""


@dataclass(frozen=True, slots=True)
class MergeStage:
    """The folders of a stage, held open. Without `old_fd`, the workspace has not been changed yet."""

    fd: int
    new_fd: int
    old_fd: int | None = None

    def new(self, number: int) -> PathAt:
        return PathAt(self.new_fd, str(number))

    def old(self, number: int) -> PathAt:
        assert self.old_fd is not None
        return PathAt(self.old_fd, str(number))


@contextmanager
def make_stage(rooted: RootedDir, name: str) -> Iterator[MergeStage]:
    with rooted.folder() as root_fd:
        os.mkdir(name, 0o700, dir_fd=root_fd)
        with _open_folder(name, root_fd) as fd:
            os.mkdir("new", 0o700, dir_fd=fd)
            with _open_folder("new", fd) as new_fd:
                yield MergeStage(fd, new_fd)


@contextmanager
def open_for_writes(stage: MergeStage) -> Iterator[MergeStage]:
    """All new files are staged and synced: from here on the workspace is changed."""
    _sync_files(stage.new_fd)
    os.mkdir("old", 0o700, dir_fd=stage.fd)
    os.fsync(stage.fd)
    with _open_folder("old", stage.fd) as old_fd:
        yield MergeStage(stage.fd, stage.new_fd, old_fd)


@contextmanager
def touched_stage(rooted: RootedDir, name: str) -> Iterator[MergeStage | None]:
    """The stage that a crash left; None when the workspace was not changed."""
    with ExitStack() as held, rooted.folder() as root_fd:
        stage: MergeStage | None = None
        with suppress(FileNotFoundError):
            fd = held.enter_context(_open_folder(name, root_fd))
            old_fd = held.enter_context(_open_folder("old", fd))
            stage = MergeStage(fd, held.enter_context(_open_folder("new", fd)), old_fd)
        yield stage


def remove_stage(rooted: RootedDir, name: str, at: Checkpoint = no_checkpoint) -> None:
    """Remove whatever of the stage there is."""
    with rooted.folder() as root_fd:
        # `old` first: once it is gone, a rollback that is begun again changes nothing.
        for part in ("old", "new"):
            with ExitStack() as held, suppress(FileNotFoundError):
                fd = held.enter_context(_open_folder(name, root_fd))
                part_fd = held.enter_context(_open_folder(part, fd))
                for file in os.listdir(part_fd):
                    at("cleaning")
                    os.unlink(file, dir_fd=part_fd)
                os.rmdir(part, dir_fd=fd)
        with suppress(FileNotFoundError):
            os.rmdir(name, dir_fd=root_fd)
        at("cleaned")


def rename_at(source: PathAt, target: PathAt) -> None:
    os.rename(source.name, target.name, src_dir_fd=source.folder_fd, dst_dir_fd=target.folder_fd)


def link_at(source: PathAt, target: PathAt) -> bool:
    """Give a file a second name. False where the file system has no hard links; raises if the name
    exists."""
    try:
        os.link(
            source.name,
            target.name,
            src_dir_fd=source.folder_fd,
            dst_dir_fd=target.folder_fd,
            follow_symlinks=False,
        )
        return True
    except OSError as error:
        if error.errno in _NO_LINKS:
            return False
        raise


def is_same_file(a: PathAt, b: PathAt) -> bool:
    """Whether two names are of one file."""
    first, second = a.status(), b.status()
    return first is not None and second is not None and os.path.samestat(first, second)


def _sync_files(folder_fd: int) -> None:
    names = os.listdir(folder_fd)
    if len(names) > FEW and sync_file_system(folder_fd):
        return
    for name in names:
        place = PathAt(folder_fd, name)
        if place.link_target() is None:
            with place.open_file() as file:
                os.fsync(file.fileno())
    os.fsync(folder_fd)


@contextmanager
def _open_folder(name: str, folder_fd: int) -> Iterator[int]:
    fd = os.open(name, _FOLDER_NOT_LINK, dir_fd=folder_fd)
    try:
        yield fd
    finally:
        os.close(fd)
