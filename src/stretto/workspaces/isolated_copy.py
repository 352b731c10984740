"""Give a writer a copy of the workspace for its own.

The copy holds what the workspace holds now, uncommitted and untracked files too, byte for byte. In
a repository git says what is tracked and the `.gitignore` files what is left out; git never writes
the files, because its filters and line endings would change them, and its index may be told to look
away (`assume-unchanged`). A checkout was measured, and is no faster: both make every file once.

    HOME/root/            the writer's. It has no `.git`; one that it makes is never merged
    HOME/git/             a git directory of ours, whose work tree `root` is (see git.py). A sandbox
                          may show it, read-only, as `root/.git`
    HOME/base/            the bytes as they were, by digest
    HOME/manifest.json    written last: without it, the copy was never finished

Every file is read once, so that the copy and the kept bytes are the same even while somebody writes:
a file that changes meanwhile is whole in both, or torn alike in both. The copy is not synced to disk,
so one from before the machine's last start may be torn, and says so. Empty folders are copied, but
they are no part of a change, as in git. Owners, extended attributes and setuid bits are not copied.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from threading import Event
from typing import BinaryIO, Literal, TypeAlias

from stretto.config.home import make_private
from stretto.globs.glob import parse_globs
from stretto.problems.errors import NotFound
from stretto.processes.process_table import boot_id
from stretto.workspaces.content import (
    LARGE_BYTES,
    BlobWriter,
    FileEntry,
    SkippedPath,
    copy_content,
    encode_record,
    read_record,
)
from stretto.workspaces.file_list import (
    DEFAULT_LIMITS,
    SKIPPED_NAMES,
    Listing,
    Selection,
    SizeMeter,
    WorkspaceLimits,
    list_workspace,
    read_outer_rules,
)
from stretto.workspaces.git import find_repository, list_tracked, make_git_dir
from stretto.workspaces.paths import FoundPath, PathAt, PathRefused, quote_path, refuse_errors
from stretto.workspaces.protected import LinkedSecrets, select_secret_globs
from stretto.workspaces.rollback import hold_off_merges
from stretto.workspaces.rooted_dir import RootedDir

_MOST_ROUNDS = 100  # only keeps two processes that remove one folder from going on for ever

CopyKind: TypeAlias = Literal["worktree", "copy"]

_MANIFEST = "manifest.json"


class CopyStopped(Exception):
    """The attempt that the copy was made for has ended, and nobody waits for it any more."""


@dataclass(frozen=True, slots=True)
class IsolatedCopy:
    workspace: Path  # which it was copied from
    home: Path
    kind: CopyKind
    files: dict[str, FileEntry]  # as they were, by path
    left: tuple[SkippedPath, ...]  # what was not copied and is not ignored either
    asked: tuple[str, ...]  # globs of its sets: what one names is copied although it is ignored
    writes: tuple[str, ...] = ()  # the globs of its write-set
    carried: tuple[str, ...] = ()  # folders that a sandbox shows in it, read-only
    boot: str = ""  # of the machine, when it was made; empty: not known

    @property
    def may_be_torn(self) -> bool:
        """Whether the machine was started since: a power cut takes what was not synced."""
        return self.boot != "" and self.boot != boot_id()

    @property
    def root(self) -> Path:
        """Where the writer works."""
        return self.home / "root"

    @property
    def base(self) -> Path:
        return self.home / "base"


def isolate(
    workspace: Path,
    home: Path,
    limits: WorkspaceLimits = DEFAULT_LIMITS,
    asked: Sequence[str] = (),
    *,
    writes: Sequence[str] = (),
    carry: Sequence[str] = (),
    engine_home: Path | None = None,
    stop: Event | None = None,
) -> IsolatedCopy:
    """Copy the workspace as it is now. What an earlier try left in `home` is removed.

    `asked` are globs of the step's sets: what one names (`dist/**`) is copied although a
    `.gitignore` leaves it out. Folders to `carry` are empty in the copy: a sandbox mounts the
    workspace's own there. `engine_home` is where merges are logged: with it, none is made while
    the copy is, and one that a crash left is undone first. Once `stop` is set, CopyStopped is raised.
    """
    workspace = workspace.resolve()
    remove_tree(home)
    make_private(home)
    with nullcontext() if engine_home is None else hold_off_merges(workspace, engine_home):
        carried = tuple(path for path in carry if is_real_folder(workspace, path))
        apart = _apart(workspace, engine_home or home, carried)
        selection = Selection(asked=parse_globs(asked), apart=apart)
        isolated = _copy(workspace, home, selection, limits, stop or Event())
        isolated = replace(isolated, asked=tuple(asked), writes=tuple(writes), carried=carried)
        for path in carried:
            (isolated.root / path).mkdir(parents=True, exist_ok=True)
    _write_manifest(isolated)
    return isolated


def _copy(
    workspace: Path, home: Path, selection: Selection, limits: WorkspaceLimits, stop: Event
) -> IsolatedCopy:
    repository = find_repository(workspace)
    if repository is not None:
        make_git_dir(repository, home / "git")
        tracked = list_tracked(repository, home / "git", workspace)
        selection = replace(selection, tracked=tracked)
    outer = read_outer_rules(repository, workspace)
    with RootedDir(workspace) as source, BlobWriter(home / "base") as base:
        listing = list_workspace(source, selection, limits, outer)
        secrets = LinkedSecrets(workspace, select_secret_globs(selection.asked))
        copier = _Copier(base, SizeMeter(limits), secrets, stop)
        snapshot = _copy_files(source, listing, home / "root", copier)
        base.finish(durable=False)
    kind: CopyKind = "copy" if repository is None else "worktree"
    left = (*listing.left, *listing.unfit, *snapshot.unread)
    return IsolatedCopy(workspace, home, kind, snapshot.files, left, (), boot=boot_id())


def open_isolated(home: Path) -> IsolatedCopy:
    """A copy that was made before. Raises NotFound when it was never finished."""
    return replace(read_record(home / _MANIFEST, IsolatedCopy, "isolated workspace"), home=home)


def discard_tree(folder: Path, trash: Path) -> None:
    """Remove a folder of ours that is no longer needed. It goes at once, by one rename: a folder
    that is half removed must not be taken for a whole one after a crash."""
    make_private(trash)
    going = trash / secrets.token_hex(8)
    try:
        folder.rename(going)
    except FileNotFoundError:
        return
    empty_trash(trash)


def empty_trash(trash: Path) -> None:
    """Remove also what other processes are removing just now, or left when they were killed."""
    for folder in _list_if_there(trash):
        with suppress(OSError):  # one that cannot be removed keeps no other
            remove_tree(folder)


def remove_tree(folder: Path) -> None:
    """Remove a folder, whatever a writer did to the modes of what is in it, and however deep it
    dug. Its paths may be longer than the system takes, and deeper than Python could descend. So
    folders are moved up to the top, each by one rename, before they are emptied. Another process
    may do the same beside us."""
    if folder.is_symlink():  # what it leads to is not ours
        folder.unlink(missing_ok=True)
        return
    for _ in range(_MOST_ROUNDS):
        below = [os.fspath(folder)]
        while below:
            below += _empty(below.pop(), folder)
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError as error:
            # Whoever removes it beside us may have moved something to the top just now.
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
    raise OSError(f"{folder} cannot be emptied")


def _empty(path: str, top: Path) -> list[str]:
    """Returns the folders that were in it, moved to the top; those of the top itself stay."""
    is_top = path == os.fspath(top)
    moved = []
    with suppress(FileNotFoundError):
        os.chmod(path, 0o700)
        with os.scandir(path) as entries:
            found = list(entries)
        for entry in found:
            with suppress(FileNotFoundError):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)
                    continue
                going = entry.path if is_top else os.path.join(top, secrets.token_hex(8))
                if not is_top:
                    os.chmod(entry.path, 0o700)  # or it could not be moved
                    os.rename(entry.path, going)
                moved.append(going)
        if not is_top:
            os.rmdir(path)
    return moved


def _list_if_there(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []


def why_lost(root: Path, workspace: Path, path: str) -> str | None:
    """Why a writer should not make this file in its copy: nothing of it would reach the workspace.

    `root` is the copy, as `isolate` made it.
    """
    names = path.split("/")
    skipped = next((i for i, name in enumerate(names) if name in SKIPPED_NAMES), None)
    if skipped is None and (_is_there(root, path) or not _is_there(workspace, path)):
        return None
    try:
        isolated = open_isolated(root.parent)
    except NotFound:
        return None
    if path in isolated.files:
        return None
    if skipped is not None:
        folder = "/".join(names[: skipped + 1])
        if Selection(asked=parse_globs(isolated.asked)).names(folder):
            return None
        return f"is in {quote_path(folder)}, which copies leave out; 'write_set' must name it"
    return (
        "is in the workspace, but not in this step's copy of it, and would not be replaced: "
        "a .gitignore leaves it out, or it was made since; 'write_set' must name it"
    )


def _is_there(root: Path, path: str) -> bool:
    try:
        with RootedDir(root) as rooted:
            rooted.stat(path, follow=False)
            return True
    except PathRefused:
        return False


def is_real_folder(workspace: Path, path: str) -> bool:
    """A link is none: a copy does not show what lies where it leads."""
    try:
        with RootedDir(workspace) as rooted:
            return rooted.stat(path, follow=False).kind == "folder"
    except PathRefused:
        return False


def _apart(workspace: Path, home: Path, carried: Sequence[str]) -> frozenset[str]:
    """Folders that are not copied: those that are carried, and our own when it lies in the
    workspace, because a copy must not hold itself."""
    own = home.resolve()
    inside = [own.relative_to(workspace).as_posix()] if own.is_relative_to(workspace) else []
    return frozenset((*carried, *inside))


def _write_manifest(isolated: IsolatedCopy) -> None:
    temporary = isolated.home / f"{_MANIFEST}.new"
    temporary.write_bytes(encode_record(isolated))
    temporary.rename(isolated.home / _MANIFEST)


_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class CopiedFiles:
    files: dict[str, FileEntry]
    unread: tuple[SkippedPath, ...]


def _copy_files(source: RootedDir, listing: Listing, root: Path, copying: "_Copier") -> CopiedFiles:
    root.mkdir()
    for folder in listing.folders:
        (root / folder).mkdir()
    for folder, found in groupby(listing.files, key=lambda each: each.path.rpartition("/")[0]):
        with ExitStack() as held:
            try:
                from_fd = held.enter_context(source.folder(folder, follow=False))
            except PathRefused:
                continue  # removed since it was listed
            copying.copy_files(found, from_fd, held.enter_context(_open_folder(root / folder)))
    # Last of all, so that nothing is ever written through one.
    for path, target in copying.links:
        os.symlink(target, root / path)
    return CopiedFiles(copying.files, tuple(copying.unread))


@dataclass(slots=True)
class _Copier:
    base: BlobWriter
    meter: SizeMeter  # measured again: a file may have grown since it was listed
    secrets: LinkedSecrets
    stop: Event
    files: dict[str, FileEntry] = field(default_factory=dict)
    unread: list[SkippedPath] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)

    def copy_files(self, found: Iterable[FoundPath], from_fd: int, to_fd: int) -> None:
        for each in found:
            if self.stop.is_set():
                raise CopyStopped
            place = PathAt(from_fd, each.path.rpartition("/")[2])
            # Only a file that cannot be read is passed over. An error in writing ends the copy.
            try:
                source = place.link_target() if each.kind == "link" else place.open_file()
            except FileNotFoundError:
                continue
            except (OSError, PathRefused) as error:
                self.unread.append(SkippedPath(each.path, f"cannot be read: {error}"))
                continue
            if isinstance(source, str):
                content = os.fsencode(source)
                self.links.append((each.path, source))
                self.files[each.path] = FileEntry("link", 0, len(content), self.base.add(content))
            elif source is not None:
                with source:
                    self._copy_file(source, to_fd, each.path)

    def _copy_file(self, source: BinaryIO, to_fd: int, path: str) -> None:
        status = os.fstat(source.fileno())
        if self.secrets.cover(path, status):
            # The copy would be a file of its own, which nothing tells from any other.
            self.unread.append(SkippedPath(path, "is a second name of a file with keys"))
            return
        entry = self._copy_content(source, status, to_fd, path.rpartition("/")[2])
        self.files[path] = entry
        self.meter.add(path, entry.size)

    def _copy_content(
        self, source: BinaryIO, status: os.stat_result, to_fd: int, name: str
    ) -> FileEntry:
        mode = stat.S_IMODE(status.st_mode) & 0o777
        with open(os.open(name, _CREATE, mode, dir_fd=to_fd), "w+b") as copy:
            os.fchmod(copy.fileno(), mode)
            if status.st_size > LARGE_BYTES:
                copy_content(source.fileno(), copy.fileno())
                size = os.fstat(copy.fileno()).st_size
                return FileEntry("file", mode, size, self.base.add_file(copy))
            content = source.read()
            copy.write(content)
            return FileEntry("file", mode, len(content), self.base.add(content))


@contextmanager
def _open_folder(path: Path) -> Iterator[int]:
    with refuse_errors(str(path)):
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield fd
        finally:
            os.close(fd)
