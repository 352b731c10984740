"""Confine a command with bubblewrap.

Its options travel through a descriptor, so that no other user reads them in a list of processes,
and it starts with an empty environment: what it is given stays readable in /proc/1/environ.

The shell that runs the command is the first process of its namespace, so that all others end with
it. It sets the kernel's limits before the command starts: only inside the namespace are processes
counted for this sandbox alone.
"""

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from stretto.processes.programs import ProgramStart
from stretto.processes.watchdog import ResourceLimits
from stretto.workspaces.sandbox import seccomp
from stretto.workspaces.sandbox.confinement import (
    PROGRAMS,
    Access,
    Confinement,
    Mount,
    Task,
    is_shown,
    list_settings,
)

MOST_COMMAND_BYTES = 128 * 1024 - 1  # the kernel's own limit for one argument
_OPEN_FILES = 4096
# The first process cannot be ended by its own signals, so the command is a child of it. Limits
# that are lower already stay.
_FIRST = '{limits} "$0" -c "$1"\nexit $?'


def make_shell_argv(
    command: str, limits: ResourceLimits, *, counts_processes: bool
) -> tuple[str, ...]:
    seconds = max(1, round(limits.cpu_seconds))
    settings = [
        # At the soft limit a signal says why, at the hard limit the kernel only kills.
        f"-H -t {seconds + 2}",
        f"-S -t {seconds}",
        f"-d {max(1, limits.memory_bytes // 1024)}",
        f"-f {max(1, limits.file_bytes // 512)}",
        f"-n {_OPEN_FILES}",
        "-c 0",
    ]
    words = [f"ulimit {setting} 2>/dev/null;" for setting in settings]
    if counts_processes and _counts_by_namespace():
        # Bash calls the option -u, other shells -p.
        words.append(
            f"ulimit -u {limits.processes} 2>/dev/null || ulimit -p {limits.processes} 2>/dev/null;"
        )
    return ("/bin/sh", "-c", _FIRST.format(limits=" ".join(words)), find_shell(), command)


def find_shell() -> str:
    return next((path for path in ("/bin/bash", "/usr/bin/bash") if Path(path).exists()), "/bin/sh")


def _counts_by_namespace() -> bool:
    # Before Linux 5.14 the limit counted all processes of the user, on the whole machine.
    version = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return version is not None and (int(version[1]), int(version[2])) >= (5, 14)


HOME = "/tmp/home"
_USER = "stretto"


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    program: str
    name: ClassVar[str] = "bubblewrap"
    is_confined: ClassVar[bool] = True
    has_local_sockets: ClassVar[bool] = True

    @property
    def gaps(self) -> tuple[str, ...]:
        pipes = "A command can write into a named pipe that lies in the workspace."
        if seccomp.program(local_sockets=False) is not None:
            return (pipes,)
        return (
            pipes,
            f"No filter of system calls for {seccomp.machine()}: a command can reach the Unix "
            "sockets that lie in the workspace.",
        )

    @contextmanager
    def launch(self, task: Task) -> Iterator[ProgramStart]:
        with ExitStack() as closing:
            options, fds = _Options(closing), [mount.source for mount in task.mounts]
            _add_namespaces(options, task.confinement)
            _add_system(options, task.confinement)
            for mount in task.mounts:
                _add_mount(options, mount)
            # Last, for until here new mounts still need places to be put on.
            options.add("--remount-ro", "/", "--chdir", str(task.confinement.workspace))
            filtered = seccomp.program(local_sockets=task.confinement.local_sockets)
            if filtered is not None:
                options.add("--seccomp", options.pass_bytes(filtered))
            command = make_shell_argv(
                task.command, task.confinement.limits, counts_processes=os.geteuid() != 0
            )
            argv = (self.program, "--args", options.write_all(), "--", *command)
            inherited = [fd for fd in (*fds, *options.fds) if fd >= 0]
            yield ProgramStart(argv, Path("/"), {}, keep_fds=tuple(inherited))


class _Options:
    """The options of one start, with the descriptors that they name."""

    def __init__(self, closing: ExitStack) -> None:
        self._closing = closing
        self._words: list[str] = []
        self.fds: list[int] = []

    def add(self, *words: str) -> None:
        self._words += words

    def pass_bytes(self, content: bytes) -> str:
        """A descriptor to read this from. A file of memory has no size that could block us."""
        fd = os.memfd_create("stretto")
        self._closing.callback(os.close, fd)
        os.write(fd, content)
        os.lseek(fd, 0, os.SEEK_SET)
        self.fds.append(fd)
        return str(fd)

    def write_all(self) -> str:
        return self.pass_bytes(b"".join(os.fsencode(word) + b"\0" for word in self._words))


def _add_namespaces(options: _Options, confinement: Confinement) -> None:
    options.add("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts")
    options.add("--unshare-cgroup-try", "--die-with-parent", "--new-session", "--as-pid-1")
    options.add("--hostname", _USER, "--cap-drop", "ALL")
    options.add("--uid", str(_uid()), "--gid", str(_uid()))
    if not confinement.network:
        options.add("--unshare-net")
    if seccomp.program(local_sockets=False) is None:
        options.add("--disable-userns")
    options.add("--clearenv")
    for name, value in environment(confinement).items():
        options.add("--setenv", name, value)


def _add_system(options: _Options, confinement: Confinement) -> None:
    for path in PROGRAMS:
        if os.path.islink(path):
            options.add("--symlink", os.readlink(path), path)
        elif os.path.isdir(path):
            options.add("--ro-bind", path, path)
    for setting in list_settings(network=confinement.network):
        target = setting.resolve()
        if setting.is_symlink() and is_shown(target):
            options.add("--symlink", str(target), str(setting))  # cheaper than a mount
        elif target.exists():
            options.add("--ro-bind", str(target), str(setting))
    for path, text in _identity().items():
        options.add("--ro-bind-data", options.pass_bytes(text.encode()), path)
    size = str(confinement.limits.scratch_bytes)
    # A user that is root outside may write to /proc/sys without any capability.
    options.add("--proc", "/proc", "--remount-ro", "/proc")
    options.add("--dev", "/dev", "--size", size, "--perms", "1777", "--tmpfs", "/dev/shm")
    options.add("--remount-ro", "/dev")
    options.add("--size", size, "--perms", "1777", "--tmpfs", "/tmp", "--dir", HOME)


def _add_mount(options: _Options, mount: Mount) -> None:
    target = str(mount.target)
    if mount.access is Access.READ:
        options.add("--ro-bind-fd", str(mount.source), target)
    elif mount.access is Access.WRITE:
        options.add("--bind-fd", str(mount.source), target)
    elif mount.is_directory:
        options.add("--size", "4096", "--tmpfs", target, "--remount-ro", target)
    else:
        options.add("--ro-bind", "/dev/null", target)


def environment(confinement: Confinement) -> dict[str, str]:
    own = {"HOME": HOME, "TMPDIR": "/tmp", "PWD": str(confinement.workspace)}
    return {"USER": _USER, "LOGNAME": _USER, **confinement.environment, **own}


def _identity() -> dict[str, str]:
    uid = _uid()
    return {
        "/etc/passwd": f"{_USER}:x:{uid}:{uid}::{HOME}:{find_shell()}\n"
        "nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n",
        "/etc/group": f"{_USER}:x:{uid}:\nnogroup:x:65534:\n",
        "/etc/hosts": f"127.0.0.1 localhost {_USER}\n::1 localhost\n",
    }


def _uid() -> int:
    # Programs behave differently for root, who has no rights here anyway.
    return os.geteuid() or 1000
