"""Find a sandbox that works here, and run commands in it.

Each way of confining is tried for real, by running a command in it, once for each process of Stretto.
"""

import asyncio
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

from msgspec import structs

from stretto.globs.glob import Glob, parse_glob
from stretto.processes.completion import complete, start_thread
from stretto.processes.limited import ProgramEnd, run_limited
from stretto.processes.programs import NOWHERE, ProgramStart, Writable, find_program
from stretto.workspaces.sandbox.bubblewrap import MOST_COMMAND_BYTES, Bubblewrap, make_shell_argv
from stretto.workspaces.sandbox.confinement import (
    Adapter,
    CommandRefused,
    Confinement,
    Ran,
    SandboxMissing,
    Task,
    is_shown,
)
from stretto.workspaces.sandbox.landlock import find_landlock
from stretto.workspaces.sandbox.view import WorkspaceView, open_view


@dataclass(frozen=True, slots=True)
class Unconfined:
    """No sandbox at all, by explicit setting. What is left: the clean environment, the limits, and
    that the command's process group is killed at the end."""

    name: ClassVar[str] = "off"
    is_confined: ClassVar[bool] = False
    has_local_sockets: ClassVar[bool] = True
    gaps: ClassVar[tuple[str, ...]] = (
        "The sandbox is off: a command can change and read whatever you can.",
        "A command that makes itself a session of its own outlives its tool call.",
    )

    @contextmanager
    def launch(self, task: Task) -> Iterator[ProgramStart]:
        confinement = task.confinement
        # Processes are not counted by the kernel: here it would count all that the user runs.
        argv = make_shell_argv(task.command, confinement.limits, counts_processes=False)
        yield ProgramStart(argv, confinement.workspace, confinement.environment)


# A workspace that holds one of these would bring it into the sandbox as the user sees it.
_NEVER_SHOWN = tuple(map(Path, ("/proc", "/sys", "/dev", "/run", "/etc", "/usr", "/tmp", "/var")))


@dataclass(frozen=True, slots=True)
class Sandbox:
    adapter: Adapter

    @property
    def name(self) -> str:
        return self.adapter.name

    async def run(self, command: str, confinement: Confinement) -> Ran | CommandRefused:
        """Cancelling it kills the command with all that it started."""
        fault = _why_unusable(command, confinement)
        if fault is not None:
            return fault
        if confinement.local_sockets and not self.adapter.has_local_sockets:
            return CommandRefused(
                f"{self.name} cannot allow local sockets safely", "install bubblewrap"
            )
        confinement = replace(confinement, workspace=confinement.workspace.resolve())
        if not self.adapter.is_confined:
            return await self._run_bare(Task(command, confinement, ()))
        view = await _open_view(confinement)
        if isinstance(view, CommandRefused):
            return view
        with closing(view):
            return await self._run_in_view(Task(command, confinement, view.mounts), view)

    async def _run_in_view(self, task: Task, view: WorkspaceView) -> Ran:
        try:
            with self.adapter.launch(task) as launch:
                ended = await _run(launch, task.confinement, view.writable, is_namespace=True)
        finally:
            # What a command has changed before it was stopped is settled too. A thread that went on in
            # a view that is closed might use its descriptors, which may be another workspace's by then.
            kept_out, new = await complete(start_thread(view.settle))
        return _describe_run(ended, True, kept_out, new)

    async def _run_bare(self, task: Task) -> Ran:
        with self.adapter.launch(task) as launch:
            places = [task.confinement.workspace]
            ended = await _run(launch, task.confinement, places, is_namespace=False)
        return _describe_run(ended, False)


async def _open_view(confinement: Confinement) -> WorkspaceView | CommandRefused:
    # In a thread: it may look at many files.
    opening = start_thread(partial(open_view, confinement))
    try:
        return await complete(opening)
    except asyncio.CancelledError:
        view = None if opening.exception() else opening.result()
        if isinstance(view, WorkspaceView):
            view.close()
        raise


async def _run(
    launch: ProgramStart, confinement: Confinement, writable: Sequence[Path], *, is_namespace: bool
) -> ProgramEnd:
    return await run_limited(
        structs.replace(launch, stdin_text=confinement.stdin),
        confinement.limits,
        writable,
        is_namespace=is_namespace,
        keeps_errors=confinement.keeps_errors,
    )


def _describe_run(
    ended: ProgramEnd, is_confined: bool, kept_out: tuple[str, ...] = (), new: tuple[str, ...] = ()
) -> Ran:
    return Ran(
        ended.exit_code,
        ended.output,
        ended.dropped_bytes,
        ended.duration_seconds,
        ended.limit_hit,
        ended.errors,
        is_confined,
        kept_out,
        new,
    )


def _why_unusable(command: str, confinement: Confinement) -> CommandRefused | None:
    if "\0" in command:
        return CommandRefused("the command holds a NUL character")
    size = len(command.encode(errors="surrogateescape"))
    if size > MOST_COMMAND_BYTES:
        return CommandRefused(
            f"the command has {size} bytes, {MOST_COMMAND_BYTES} is the most",
            "write it to a file and run that",
        )
    if not confinement.workspace.is_dir():
        return CommandRefused(f"the workspace {confinement.workspace} is not a directory")
    asked = (path for path in confinement.readable if not is_shown(path))
    for path in (confinement.workspace, *asked):
        shown = path.resolve()
        for place in _NEVER_SHOWN:
            if place.is_relative_to(shown):
                return CommandRefused(
                    f"{path} holds {place}, which no command is shown", "choose a folder"
                )
    return None


Setting: TypeAlias = Literal["auto", "bubblewrap", "landlock", "off"]

_PROBE_SECONDS = 20
_PROBE = "touch writable/made && ! touch made 2>/dev/null && echo confined"


@dataclass(frozen=True, slots=True)
class NoSandbox:
    missing: tuple[SandboxMissing, ...]  # one for each way that was tried

    def __str__(self) -> str:
        tried = "; ".join(f"{it.name}: {it.says}" for it in self.missing)
        return f"no sandbox works here, so Bash is refused ({tried})"


def find_sandbox(setting: Setting = "auto", writable: Writable = NOWHERE) -> Sandbox | NoSandbox:
    """`writable`: where steps write, and no program is taken from."""
    if setting == "off":
        return Sandbox(Unconfined())
    names = ("bubblewrap", "landlock") if setting == "auto" else (setting,)
    missing: list[SandboxMissing] = []
    for name in names:
        found = _find(name, writable)
        if isinstance(found, Sandbox):
            return found
        missing.append(found)
    return NoSandbox(tuple(missing))


@cache
def _find(name: str, writable: Writable) -> Sandbox | SandboxMissing:
    adapter = _find_bubblewrap(writable) if name == "bubblewrap" else find_landlock()
    if isinstance(adapter, SandboxMissing):
        return adapter
    said = _probe(adapter)
    return Sandbox(adapter) if said is None else explain_failure(name, said)


def _find_bubblewrap(writable: Writable) -> Bubblewrap | SandboxMissing:
    program = find_program("bwrap", writable=writable)
    if program is None:
        return explain_not_installed()
    offered = subprocess.run([program, "--help"], cwd="/", env={}, capture_output=True, text=True)
    if "--ro-bind-fd" not in offered.stdout:
        return explain_too_old(program)
    return Bubblewrap(program)


def _probe(adapter: Adapter) -> str | None:
    """What went wrong when a command was to be confined; None when all went well."""
    with tempfile.TemporaryDirectory(prefix="stretto-probe-") as place:
        workspace = Path(place).resolve()
        (workspace / "writable").mkdir()
        glob = parse_glob("writable")
        assert isinstance(glob, Glob)
        confinement = Confinement(workspace, writes=(glob,))
        try:
            with (
                closing(WorkspaceView(confinement)) as view,
                adapter.launch(Task(_PROBE, confinement, view.mounts)) as launch,
            ):
                done = subprocess.run(
                    launch.words,
                    env=dict(launch.environment),
                    cwd=launch.folder,
                    pass_fds=launch.keep_fds,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=_PROBE_SECONDS,
                    start_new_session=True,
                )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    if done.stdout.strip() == b"confined":
        return None
    return (done.stderr.decode(errors="replace").strip() or "it did not confine")[-1000:]


_SYSCTL = Path("/proc/sys")


def explain_not_installed() -> SandboxMissing:
    return SandboxMissing(
        "bubblewrap",
        "the program bwrap is not installed",
        "install the package 'bubblewrap' (apt, dnf, pacman, apk and zypper all have it)",
    )


def explain_too_old(program: str) -> SandboxMissing:
    return SandboxMissing(
        "bubblewrap",
        f"{program} is too old: it has no --bind-fd",
        "update the package 'bubblewrap': 0.10, or an older one with the security fixes of 2024",
    )


def explain_failure(name: str, said: str) -> SandboxMissing:
    """The settings of the kernel first: what programs say about namespaces is always vague."""
    says, fix = _namespaces_off(said) or (
        f"it failed: {said}",
        "run 'stretto doctor' for the details, or choose another sandbox",
    )
    return SandboxMissing(name, says, fix)


def _namespaces_off(said: str) -> tuple[str, str] | None:
    about_proc = "mount proc" in said
    words = ("namespace", "uid map", "setting up uid", "Operation not permitted", "No permissions")
    if not about_proc and not any(word in said for word in words):
        return None
    if _sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1":
        return (
            f"AppArmor forbids user namespaces to programs without a profile ({said})",
            "install the profile: 'apt install apparmor-profiles' and load 'bwrap-userns-restrict', "
            "or set kernel.apparmor_restrict_unprivileged_userns=0",
        )
    if _sysctl("kernel/unprivileged_userns_clone") == "0":
        return (
            f"user namespaces are off for users ({said})",
            "set kernel.unprivileged_userns_clone=1",
        )
    if _sysctl("user/max_user_namespaces") == "0":
        return f"no user namespaces are allowed ({said})", "set user.max_user_namespaces=15000"
    if about_proc:
        return (
            f"this container hides parts of /proc, so no new one can be mounted ({said})",
            "start the container with --security-opt systempaths=unconfined",
        )
    return (
        f"the kernel, or the container that this runs in, forbids namespaces ({said})",
        "in a container: --security-opt seccomp=unconfined --security-opt apparmor=unconfined, "
        "or a seccomp profile that allows unshare, clone and mount",
    )


def _sysctl(name: str) -> str | None:
    try:
        return (_SYSCTL / name).read_text().strip()
    except OSError:
        return None
