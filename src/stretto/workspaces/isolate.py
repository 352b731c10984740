"""Give a writer a copy of its own. In: a workspace, an engine-owned folder. Out: Isolated.

The copy holds what the workspace holds now, uncommitted and untracked files too, byte for byte. In
a repository git says what is tracked and the `.gitignore` files what is left out; git never writes
the files, for its filters and line endings would change them, and its index may be told to look
away (`assume-unchanged`). A checkout was measured, and is no faster: both make every file once.

    HOME/root/            the writer's. It has no `.git`; one that it makes is never merged
    HOME/git/             a git directory of ours, whose work tree `root` is (see git.py). A sandbox
                          may show it, read-only, as `root/.git`
    HOME/base/            the bytes as they were, by digest
    HOME/manifest.json    written last: without it, the copy was never finished

It is not synced to disk, so a copy of an earlier boot of the machine may be torn, and says so. Empty folders are copied, but they
are no part of a change, as in git. Owners, extended attributes and setuid bits are not copied.
"""

import os
import secrets
import shutil
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias, cast

from stretto.config.private import make_private
from stretto.globs.glob import Glob, parse_glob
from stretto.problems.errors import NotFound
from stretto.processes.process_table import boot_id
from stretto.vocabulary.values import Json
from stretto.workspaces.blobs import BlobWriter
from stretto.workspaces.entries import Entry, Left
from stretto.workspaces.git import find_repository, own_git_dir, tracked_paths
from stretto.workspaces.limits import DEFAULT_LIMITS, WorkspaceLimits
from stretto.workspaces.listing import SKIPPED_NAMES, Selection, list_workspace, outer_rules
from stretto.workspaces.paths import PathRefused, quote_path
from stretto.workspaces.rooted_dir import RootedDir
from stretto.workspaces.snapshot import take_snapshot
from stretto.workspaces.stored import (
    entry_from_json,
    entry_to_json,
    lefts_from_json,
    lefts_to_json,
    read_object,
    to_bytes,
)
from stretto.workspaces.undo import settled

IsolatedKind: TypeAlias = Literal["worktree", "copy"]

_MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Isolated:
    workspace: Path  # which it was copied from
    home: Path
    kind: IsolatedKind
    files: dict[str, Entry]  # as they were, by path
    left: tuple[Left, ...]  # what was not copied and is not ignored either
    asked: tuple[Glob, ...]  # of its sets: what one names is copied although it is ignored
    writes: tuple[Glob, ...] = ()  # its write-set
    carried: tuple[str, ...] = ()  # folders that a sandbox shows in it, read-only
    boot: str = ""  # of the machine, when it was made; empty: not known

    @property
    def may_be_torn(self) -> bool:
        """Whether the machine was restarted since: a power cut takes what was not synced."""
        return self.boot != "" and self.boot != boot_id()

    @property
    def root(self) -> Path:
        """Where the writer works."""
        return self.home / "root"

    @property
    def base(self) -> Path:
        return self.home / "base"

    @property
    def git_dir(self) -> Path | None:
        """Ours, to be shown read-only or not at all."""
        return self.home / "git" if self.kind == "worktree" else None


def isolate(
    workspace: Path,
    home: Path,
    limits: WorkspaceLimits = DEFAULT_LIMITS,
    asked: Sequence[Glob] = (),
    *,
    writes: Sequence[Glob] = (),
    carry: Sequence[str] = (),
    engine_home: Path | None = None,
) -> Isolated:
    """Copy the workspace as it is now. What an earlier try left in `home` is removed.

    `asked` are globs of the step's sets: what one names (`dist/**`) is copied although a
    `.gitignore` leaves it out. Folders to `carry` are empty in the copy: a sandbox mounts the
    workspace's own there. `engine_home` is where merges are logged: with it, none is made while
    the copy is, and one that a crash left is undone first.
    """
    workspace = workspace.resolve()
    remove_tree(home)
    make_private(home)
    with nullcontext() if engine_home is None else settled(workspace, engine_home):
        carried = tuple(path for path in carry if is_real_folder(workspace, path))
        apart = _apart(workspace, engine_home or home, carried)
        isolated = _copy(workspace, home, Selection(asked=tuple(asked), apart=apart), limits)
        isolated = replace(isolated, writes=tuple(writes), carried=carried)
        for path in carried:
            (isolated.root / path).mkdir(parents=True, exist_ok=True)
    _write_manifest(isolated)
    return isolated


def _copy(workspace: Path, home: Path, selection: Selection, limits: WorkspaceLimits) -> Isolated:
    repository = find_repository(workspace)
    if repository is not None:
        own_git_dir(repository, home / "git")
        tracked = tracked_paths(repository, home / "git", workspace)
        selection = replace(selection, tracked=tracked)
    outer = outer_rules(repository, workspace)
    with RootedDir(workspace) as source, BlobWriter(home / "base") as base:
        listing = list_workspace(source, selection, limits, outer)
        snapshot = take_snapshot(source, listing, home / "root", base, limits)
        base.finish(durable=False)
    kind: IsolatedKind = "copy" if repository is None else "worktree"
    left = (*listing.left, *listing.unfit, *snapshot.unread)
    return Isolated(workspace, home, kind, snapshot.files, left, selection.asked, boot=boot_id())


def open_isolated(home: Path) -> Isolated:
    """One that was made before. Raises NotFound when it was never finished."""
    manifest = read_object(home / _MANIFEST, "isolated workspace")
    entries = cast(dict[str, Json], manifest["files"])
    return Isolated(
        Path(cast(str, manifest["workspace"])),
        home,
        cast(IsolatedKind, manifest["kind"]),
        {path: cast(Entry, entry_from_json(entry)) for path, entry in entries.items()},
        lefts_from_json(manifest["left"]),
        _globs(manifest["asked"]),
        _globs(manifest.get("writes", manifest["asked"])),
        tuple(cast(list[str], manifest.get("carried", []))),
        cast(str, manifest.get("boot", "")),
    )


def discard_tree(folder: Path, trash: Path) -> None:
    """Remove a folder of ours that is no longer needed. It goes at once, by one rename: a folder
    that is half removed must not be taken for a whole one by whoever finds it after a crash."""
    make_private(trash)
    going = trash / secrets.token_hex(8)
    try:
        folder.rename(going)
    except FileNotFoundError:
        return
    empty_trash(trash)


def empty_trash(trash: Path) -> None:
    """Also what others are removing at this moment, or left when they were killed."""
    for folder in _entries(trash):
        with suppress(FileNotFoundError):
            remove_tree(folder)
        # Two who remove one folder stumble over each other.
        shutil.rmtree(folder, ignore_errors=True)


def _globs(texts: Json) -> tuple[Glob, ...]:
    found = map(parse_glob, cast(list[str], texts))
    return tuple(glob for glob in found if isinstance(glob, Glob))


def remove_tree(folder: Path) -> None:
    """Remove a folder of ours, whatever a writer did to the modes of what is in it."""
    if not folder.exists():
        return
    for path, names, _ in os.walk(folder):
        for name in names:
            below = os.path.join(path, name)
            if not os.path.islink(below) and not os.access(below, os.R_OK | os.W_OK | os.X_OK):
                os.chmod(below, 0o700)
    shutil.rmtree(folder)


def _entries(folder: Path) -> list[Path]:
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
        if Selection(asked=isolated.asked).names(folder):
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
    """A link is none: where it leads is not for a copy to show."""
    try:
        with RootedDir(workspace) as rooted:
            return rooted.stat(path, follow=False).kind == "folder"
    except PathRefused:
        return False


def _apart(workspace: Path, home: Path, carried: Sequence[str]) -> frozenset[str]:
    """What is carried, and our own folder when it lies in the workspace: a copy must not hold
    itself."""
    own = home.resolve()
    inside = [own.relative_to(workspace).as_posix()] if own.is_relative_to(workspace) else []
    return frozenset((*carried, *inside))


def _write_manifest(isolated: Isolated) -> None:
    files: dict[str, Json] = {path: entry_to_json(e) for path, e in isolated.files.items()}
    manifest: dict[str, Json] = {
        "workspace": str(isolated.workspace),
        "kind": isolated.kind,
        "files": files,
        "left": lefts_to_json(isolated.left),
        "asked": [glob.text for glob in isolated.asked],
        "writes": [glob.text for glob in isolated.writes],
        "carried": list(isolated.carried),
        "boot": isolated.boot,
    }
    temporary = isolated.home / f"{_MANIFEST}.new"
    temporary.write_bytes(to_bytes(manifest))
    temporary.rename(isolated.home / _MANIFEST)
