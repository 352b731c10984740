"""What a command sees of the workspace. In: a Confinement. Out: a View, while it is open.

A View holds descriptors of all that is mounted, and the copies of what is staged. `settle` takes
the changes back and says what was not kept.
"""

import os
import shutil
import subprocess
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

from weft.workspaces.sandbox import nofollow, stage, system
from weft.workspaces.sandbox.adapter import Access, Mount
from weft.workspaces.sandbox.confinement import Carried, Confinement
from weft.workspaces.sandbox.outcome import Refused
from weft.workspaces.sandbox.take_back import take_back
from weft.workspaces.sandbox.write_set import Layout, Names, find_git, lay_out

MOST_MOUNTS = 256  # each costs more than the one before
# Not the command's to read, should somebody take a home for a workspace.
_PRIVATE = (".ssh", ".weft", ".gnupg", ".aws", ".kube", ".docker", ".config", ".netrc", ".local")


class View:
    def __init__(self, confinement: Confinement) -> None:
        self._closing = ExitStack()
        self._workspace = confinement.workspace
        self._mounts: list[Mount] = []
        self._stage: stage.Stage | None = None
        try:
            self._workspace_fd = os.open(self._workspace, os.O_RDONLY | os.O_DIRECTORY)
            self._closing.callback(os.close, self._workspace_fd)
            self._layout = lay_out(self._workspace_fd, confinement.writes, confinement.protected)
            self._git = self._guard_git()
            self._mount_all(confinement)
        except BaseException:
            self.close()
            raise

    @property
    def mounts(self) -> tuple[Mount, ...]:
        return tuple(self._mounts)

    def settle(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The changes that were not kept, and the repositories that were made."""
        kept_out = take_back(self._stage, self._workspace_fd) if self._stage else ()
        new = find_git(self._workspace_fd, self._layout.whole) - self._git
        return kept_out, tuple("/".join(names) for names in sorted(new))

    def close(self) -> None:
        self._closing.close()

    def _guard_git(self) -> frozenset[Names]:
        """Every `.git` that a command could reach. The workspace's own is made if it is missing,
        for only what exists can be mounted over, and a command could make it."""
        if () in self._layout.whole:
            with suppress(FileExistsError):
                os.mkdir(".git", dir_fd=self._workspace_fd)
                self._closing.callback(self._remove_git)
        return find_git(self._workspace_fd, self._layout.whole)

    def _remove_git(self) -> None:
        with suppress(OSError):  # no longer empty: somebody outside has made a repository of it
            os.rmdir(".git", dir_fd=self._workspace_fd)

    def _mount_all(self, confinement: Confinement) -> None:
        for path in confinement.readable:
            if system.is_shown(path):
                continue
            self._add(os.open(path, os.O_PATH | os.O_CLOEXEC), path, Access.READ)
        access = Access.WRITE if () in self._layout.whole else Access.READ
        self._add(nofollow.place(self._workspace_fd, ()), self._workspace, access)
        self._mount_stage(self._layout)
        for names in self._layout.whole:
            if names:
                self._add_beneath(names, Access.WRITE)
        for names in sorted(self._git):
            self._add_beneath(names, Access.READ)
        for protected in confinement.protected.paths:
            names = tuple(protected.split("/"))
            # In a copy the change is left behind; only what is written in place must be held.
            is_in_place = any(names[: len(whole)] == whole for whole in self._layout.whole)
            if is_in_place and nofollow.is_there(self._workspace_fd, names):
                self._add_beneath(names, Access.READ)
        for carried in confinement.carried:
            self._carry(carried)
        self._hide_private()
        if len(self._mounts) > MOST_MOUNTS:
            raise stage.TooLarge(
                f"it would take {len(self._mounts)} mounts, {MOST_MOUNTS} is the most"
            )

    def _mount_stage(self, layout: Layout) -> None:
        if not layout.staged:
            return
        root = Path(tempfile.mkdtemp(prefix="weft-stage-"))
        self._closing.callback(_remove_tree, root)
        self._stage = stage.fill(layout, self._workspace_fd, root)
        for names, copy in self._stage.tops.items():
            source = os.open(copy, os.O_PATH | os.O_CLOEXEC)
            self._add(source, self._workspace.joinpath(*names), Access.WRITE)
        for names, access in sorted(self._stage.mounted.items()):
            if names not in layout.whole:
                self._add_beneath(names, access)

    def _carry(self, carried: Carried) -> None:
        names = tuple(carried.path.split("/"))
        # Where the mount is put must be there; a link in its place would be followed.
        with nofollow.directory(self._workspace_fd, names, create=True):
            pass
        for target in (carried.source, self._workspace.joinpath(*names)):
            source = os.open(carried.source, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
            self._add(source, target, Access.READ)

    def _hide_private(self) -> None:
        with suppress(RuntimeError):  # a user without a home
            for name in _PRIVATE:
                path = Path.home() / name
                if path.is_relative_to(self._workspace) and path.exists():
                    self._mounts.append(Mount(-1, path, Access.NONE, path.is_dir()))

    def _add_beneath(self, names: Names, access: Access) -> None:
        source = nofollow.place(self._workspace_fd, names)
        self._add(source, self._workspace.joinpath(*names), access)

    def _add(self, source: int, target: Path, access: Access) -> None:
        self._closing.callback(os.close, source)
        is_directory = os.path.isdir(f"/proc/self/fd/{source}")
        self._mounts.append(Mount(source, target, access, is_directory))


def open_view(confinement: Confinement) -> View | Refused:
    try:
        return View(confinement)
    except stage.TooLarge as error:
        return Refused(
            f"the write-set cannot be mounted, nor its directory copied for each command: {error}",
            "name whole directories, such as 'src/**'",
        )
    except OSError as error:
        return Refused(f"the workspace cannot be shown to a command: {error}")


def _remove_tree(root: Path) -> None:
    try:
        shutil.rmtree(root)
    except (OSError, RecursionError):  # a command may have dug deeper than Python goes
        subprocess.run(["/bin/rm", "-rf", "--", root], cwd="/", check=False, capture_output=True)
