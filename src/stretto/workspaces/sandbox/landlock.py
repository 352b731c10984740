"""Confine a command with Landlock and namespaces, by a launcher of our own.

For machines without bubblewrap. Files are held by Landlock; the network, other processes, a
private /tmp and what is read-only in the workspace by namespaces, as with bubblewrap. The whole
file system stays in its place, closed rather than absent: a command can learn that a path exists.
The launcher (`landlock_launcher.py`) needs nothing but Python's standard library.
"""

import ctypes
import marshal
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypedDict, cast

from stretto.processes import python
from stretto.processes.programs import ProgramStart
from stretto.workspaces.sandbox import seccomp
from stretto.workspaces.sandbox.bubblewrap import environment, make_shell_argv
from stretto.workspaces.sandbox.confinement import (
    PROGRAMS,
    Access,
    Mount,
    SandboxMissing,
    Task,
    list_settings,
)

# Before the third, Landlock could not keep a file from being cut short.
_LEAST_VERSION = 3
_CREATE_RULESET = 444
_ASK_VERSION = 1
_LAUNCHER = Path(__file__).with_name("landlock_launcher.py")


class MountOrder(TypedDict):
    access: str  # the name of an Access
    source: str
    device: int
    inode: int
    target: str
    is_directory: bool


class LaunchOrder(TypedDict):
    """What the launcher is told."""

    argv: list[str]
    environment: dict[str, str]
    directory: str
    uid: int
    network: bool
    scratch_bytes: int
    version: int
    seccomp: bytes
    readable: list[str]
    mounts: list[MountOrder]


@dataclass(frozen=True, slots=True)
class Landlock:
    version: int
    name: ClassVar[str] = "landlock"
    is_confined: ClassVar[bool] = True
    has_local_sockets: ClassVar[bool] = False
    gaps: ClassVar[tuple[str, ...]] = (
        "A command can learn which paths exist outside the workspace, how large and how old they "
        "are, though not what they hold.",
        "Unix sockets of its own (`local_sockets`) need bubblewrap.",
        "Watching files for changes (inotify) is off.",
    )

    @contextmanager
    def launch(self, task: Task) -> Iterator[ProgramStart]:
        fd = os.memfd_create("stretto")
        try:
            os.write(fd, marshal.dumps(cast("dict[str, object]", self._order(task))))
            os.lseek(fd, 0, os.SEEK_SET)
            command = python.isolated(_LAUNCHER, str(fd))
            yield ProgramStart(command.words, command.folder, {}, keep_fds=(fd,))
        finally:
            os.close(fd)

    def _order(self, task: Task) -> LaunchOrder:
        confinement = task.confinement
        filtered = seccomp.program(local_sockets=False, watches=False)
        assert filtered is not None, "find() looks for it"
        command = make_shell_argv(
            task.command, confinement.limits, counts_processes=os.geteuid() != 0
        )
        return {
            "argv": list(command),
            "environment": dict(environment(confinement)),
            "directory": str(confinement.workspace),
            "uid": os.geteuid() or 1000,
            "network": confinement.network,
            "scratch_bytes": confinement.limits.scratch_bytes,
            "version": self.version,
            "seccomp": filtered,
            "readable": _readable(network=confinement.network),
            "mounts": [_mount(mount) for mount in task.mounts],
        }


def find_landlock() -> Landlock | SandboxMissing:
    version = landlock_version()
    if version < _LEAST_VERSION:
        says = f"the kernel has version {version} of it" if version > 0 else "the kernel lacks it"
        return SandboxMissing(
            "landlock", says, "Linux 6.2 or newer, started with 'landlock' in lsm="
        )
    if seccomp.program(local_sockets=False) is None:
        says = f"there is no filter of system calls for {seccomp.machine()}"
        return SandboxMissing("landlock", says, "install the package 'bubblewrap'")
    if not python.has_interpreter():
        return SandboxMissing(
            "landlock", "Python does not know its own program", "install bubblewrap"
        )
    return Landlock(version)


def landlock_version() -> int:
    """Of the kernel's interface; 0 if there is none."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, int(ctypes.CDLL(None).syscall(_CREATE_RULESET, None, 0, _ASK_VERSION)))


def _readable(*, network: bool) -> list[str]:
    programs = [path for path in PROGRAMS if os.path.isdir(path)]
    settings = [str(path.resolve()) for path in list_settings(network=network)]
    return [*programs, *settings, "/etc/passwd", "/etc/group", "/etc/hosts"]


def _mount(mount: Mount) -> MountOrder:
    """The launcher opens the source again, in its own namespace, and compares what it finds."""
    if mount.access is Access.NONE:
        source, device, inode = "", 0, 0
    else:
        status = os.fstat(mount.source)
        source = os.readlink(f"/proc/self/fd/{mount.source}")
        device, inode = status.st_dev, status.st_ino
    return {
        "access": mount.access.name,
        "source": source,
        "device": device,
        "inode": inode,
        "target": str(mount.target),
        "is_directory": mount.is_directory,
    }
