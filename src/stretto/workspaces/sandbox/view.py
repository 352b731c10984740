"""What a command sees of the workspace, while it runs.

A `WorkspaceView` holds descriptors of all that is mounted, and the copies of what is staged. `settle`
collects the changes and says what was not kept.
"""

import os
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

from stretto.workspaces.isolated_copy import remove_tree
from stretto.workspaces.paths import PathNames
from stretto.workspaces.protected import is_secret_by_folder
from stretto.workspaces.sandbox.confinement import (
    Access,
    Carried,
    CommandRefused,
    Confinement,
    Mount,
    is_shown,
)
from stretto.workspaces.sandbox.repository_guard import TopGuard, disarm, survey
from stretto.workspaces.sandbox.staged_copy import (
    CopyTooLarge,
    StagedCopy,
    WriteLayout,
    collect_changes,
    fill_copy,
    is_there,
    lay_out,
    open_directory,
    open_place,
)

MOST_MOUNTS = 256  # each costs more than the one before
# Folders of a home that a command must not read, if a home is used as the workspace. Files of keys
# are found by their names anyway.
_PRIVATE = (".stretto", ".docker", ".config", ".local")


class TooManySecrets(Exception):
    """More than can be hidden from one command."""


class WorkspaceView:
    def __init__(self, confinement: Confinement) -> None:
        self._closing = ExitStack()
        self._workspace = confinement.workspace
        self._hidden = [_names(path) for path in confinement.hidden]
        self._mounts: list[Mount] = []
        self._stage: StagedCopy | None = None
        try:
            self._workspace_fd = os.open(self._workspace, os.O_RDONLY | os.O_DIRECTORY)
            self._closing.callback(os.close, self._workspace_fd)
            self._layout = lay_out(self._workspace_fd, confinement.writes, confinement.protected)
            self._guard_top()
            self._survey = survey(self._workspace_fd)
            self._layout = self._layout.without(self._survey.repositories)
            self._mount_all(confinement)
        except BaseException:
            self.close()
            raise

    @property
    def mounts(self) -> tuple[Mount, ...]:
        return tuple(self._mounts)

    @property
    def writable(self) -> list[Path]:
        """The directories of the host that the command writes to."""
        whole = [self._workspace.joinpath(*names) for names in self._layout.whole]
        return [*whole, *(self._stage.tops.values() if self._stage else ())]

    def settle(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The changes that were not kept, and the repositories that were made, which are none now."""
        kept_out = collect_changes(self._stage, self._workspace_fd) if self._stage else ()
        below = (*self._layout.whole, *self._layout.staged)
        known, links = self._survey.repositories, self._survey.links
        new = disarm(self._workspace_fd, below, known, links, self._hidden)
        return kept_out, tuple("/".join(names) or "." for names in new)

    def close(self) -> None:
        self._closing.close()

    def _guard_top(self) -> None:
        if () in self._layout.whole:
            self._closing.callback(TopGuard(self._workspace_fd).close)

    def _mount_all(self, confinement: Confinement) -> None:
        for path in confinement.readable:
            if is_shown(path):
                continue
            self._add(os.open(path, os.O_PATH | os.O_CLOEXEC), path, Access.READ)
        access = Access.WRITE if () in self._layout.whole else Access.READ
        self._add(open_place(self._workspace_fd, ()), self._workspace, access)
        self._mount_stage(self._layout)
        for names in self._layout.whole:
            if names:
                self._add_beneath(names, Access.WRITE)
        self._hold_read_only(
            {*self._survey.repositories, *map(_names, confinement.protected.paths)}
        )
        for carried in confinement.carried:
            self._carry(carried)
        self._hide(set(self._hidden), is_pinned=True)
        self._hide_secrets(confinement)
        self._hide_private()
        if len(self._mounts) > MOST_MOUNTS:
            raise CopyTooLarge(
                f"it would take {len(self._mounts)} mounts, {MOST_MOUNTS} is the most"
            )

    def _hold_read_only(self, places: set[PathNames]) -> None:
        """Mount these places read-only, and keep them where they are. Only those in a directory
        that is written in place need it: in a staged copy, changes of them are not collected."""
        held = {names for names in places if self._is_writable(names) and self._is_there(names)}
        self._pin(held)
        for names in sorted(held, key=len):
            self._add_beneath(names, Access.READ)

    def _pin(self, places: set[PathNames]) -> None:
        """Keep the directories above from being renamed, which would move a place away and let
        another be put there: the kernel refuses to rename a directory that something is mounted on."""
        pins = set[PathNames]()
        for names in places:
            whole = self._whole_above(names)
            pins.update(names[:depth] for depth in range(len(whole or ()) + 1, len(names)))
        for names in sorted(pins - places, key=len):
            self._add_beneath(names, Access.WRITE)

    def _whole_above(self, names: PathNames) -> PathNames | None:
        return next((it for it in self._layout.whole if names[: len(it)] == it), None)

    def _is_writable(self, names: PathNames) -> bool:
        """In place, all of it or something in it."""
        below = any(it[: len(names)] == names for it in self._layout.whole)
        return below or self._whole_above(names) is not None

    def _is_there(self, names: PathNames) -> bool:
        return not names or is_there(self._workspace_fd, names)

    def _hide(self, places: set[PathNames], *, is_pinned: bool = False) -> None:
        held = {names for names in places if self._is_there(names)}
        if is_pinned:
            self._pin({names for names in held if self._whole_above(names) is not None})
        for names in sorted(held, key=len):
            path = self._workspace.joinpath(*names)
            self._mounts.append(Mount(-1, path, Access.NONE, path.is_dir()))

    def _hide_secrets(self, confinement: Confinement) -> None:
        secrets = {
            names
            for names in self._survey.secrets
            if not any(glob.matches("/".join(names)) for glob in confinement.named_secrets)
        }
        room = MOST_MOUNTS - len(self._mounts)
        if len(secrets) > room:
            raise TooManySecrets(
                f"{len(secrets)} files here are called as keys are; {room} can be hidden"
            )
        by_folder = {names for names in secrets if is_secret_by_folder(names)}
        self._hide(by_folder, is_pinned=True)
        self._hide(secrets - by_folder)

    def _mount_stage(self, layout: WriteLayout) -> None:
        if not layout.staged:
            return
        root = Path(tempfile.mkdtemp(prefix="stretto-stage-"))
        self._closing.callback(_discard, root)
        self._stage = fill_copy(layout, self._workspace_fd, root)
        for names, copy in self._stage.tops.items():
            source = os.open(copy, os.O_PATH | os.O_CLOEXEC)
            self._add(source, self._workspace.joinpath(*names), Access.WRITE)
        for names, access in sorted(self._stage.mounted.items()):
            if names not in layout.whole:
                self._add_beneath(names, access)

    def _carry(self, carried: Carried) -> None:
        names = tuple(carried.path.split("/"))
        # Where the mount is put must be there; a link in its place would be followed.
        with open_directory(self._workspace_fd, names, create=True):
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

    def _add_beneath(self, names: PathNames, access: Access) -> None:
        source = open_place(self._workspace_fd, names)
        self._add(source, self._workspace.joinpath(*names), access)

    def _add(self, source: int, target: Path, access: Access) -> None:
        self._closing.callback(os.close, source)
        is_directory = os.path.isdir(f"/proc/self/fd/{source}")
        self._mounts.append(Mount(source, target, access, is_directory))


def open_view(confinement: Confinement) -> WorkspaceView | CommandRefused:
    try:
        return WorkspaceView(confinement)
    except CopyTooLarge as error:
        return CommandRefused(
            f"the write-set cannot be mounted, nor its directory copied for each command: {error}",
            "name whole directories, such as 'src/**'",
        )
    except OSError as error:
        return CommandRefused(f"the workspace cannot be shown to a command: {error}")
    except TooManySecrets as error:
        return CommandRefused(
            str(error),
            "if they are no secrets, name them in the step's read_set, such as '**/*.pem'",
        )


def _names(path: str) -> PathNames:
    return tuple(path.split("/"))


def _discard(root: Path) -> None:
    with suppress(OSError):  # as where the disk has a fault: the command has ended all the same
        remove_tree(root)
