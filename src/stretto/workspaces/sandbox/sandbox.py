"""Run one command in a sandbox. In: its text and a Confinement. Out: Ran, or Refused."""

import asyncio
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from stretto.processes.limited import ProgramEnd, run_limited
from stretto.workspaces.sandbox import system
from stretto.workspaces.sandbox.adapter import Adapter, Task
from stretto.workspaces.sandbox.confinement import Confinement
from stretto.workspaces.sandbox.outcome import Ran, Refused
from stretto.workspaces.sandbox.shell import MOST_COMMAND_BYTES
from stretto.workspaces.sandbox.view import View, open_view

# A workspace that holds one of these would bring it into the sandbox as the user sees it.
_NEVER_SHOWN = tuple(map(Path, ("/proc", "/sys", "/dev", "/run", "/etc", "/usr", "/tmp", "/var")))


@dataclass(frozen=True, slots=True)
class Sandbox:
    adapter: Adapter

    @property
    def name(self) -> str:
        return self.adapter.name

    async def run(self, command: str, confinement: Confinement) -> Ran | Refused:
        """Cancelling it kills the command with all that it started."""
        fault = _unusable(command, confinement)
        if fault is not None:
            return fault
        if confinement.local_sockets and not self.adapter.has_local_sockets:
            return Refused(f"{self.name} cannot allow local sockets safely", "install bubblewrap")
        confinement = replace(confinement, workspace=confinement.workspace.resolve())
        if not self.adapter.is_confined:
            return await self._run_bare(Task(command, confinement, ()))
        # In a thread: it may look at many files.
        view = await asyncio.to_thread(open_view, confinement)
        if isinstance(view, Refused):
            return view
        with closing(view):
            return await self._run_in_view(Task(command, confinement, view.mounts), view)

    async def _run_in_view(self, task: Task, view: View) -> Ran:
        try:
            with self.adapter.launch(task) as launch:
                ended = await run_limited(
                    launch, task.confinement.limits, view.writable, is_namespace=True
                )
        finally:
            # A command that was stopped has changed what it has changed.
            kept_out, new = await asyncio.shield(asyncio.to_thread(view.settle))
        return _ran(ended, True, kept_out, new)

    async def _run_bare(self, task: Task) -> Ran:
        with self.adapter.launch(task) as launch:
            ended = await run_limited(
                launch, task.confinement.limits, [task.confinement.workspace], is_namespace=False
            )
        return _ran(ended, False)


def _ran(
    ended: ProgramEnd, is_confined: bool, kept_out: tuple[str, ...] = (), new: tuple[str, ...] = ()
) -> Ran:
    return Ran(
        exit_code=ended.exit_code,
        output=ended.output,
        dropped_bytes=ended.dropped_bytes,
        duration_seconds=ended.duration_seconds,
        limit_hit=ended.limit_hit,
        is_confined=is_confined,
        kept_out=kept_out,
        new_repositories=new,
    )


def _unusable(command: str, confinement: Confinement) -> Refused | None:
    if "\0" in command:
        return Refused("the command holds a NUL character")
    size = len(command.encode(errors="surrogateescape"))
    if size > MOST_COMMAND_BYTES:
        return Refused(
            f"the command has {size} bytes, {MOST_COMMAND_BYTES} is the most",
            "write it to a file and run that",
        )
    if not confinement.workspace.is_dir():
        return Refused(f"the workspace {confinement.workspace} is not a directory")
    asked = (path for path in confinement.readable if not system.is_shown(path))
    for path in (confinement.workspace, *asked):
        shown = path.resolve()
        for place in _NEVER_SHOWN:
            if place.is_relative_to(shown):
                return Refused(
                    f"{path} holds {place}, which no command is shown", "choose a folder"
                )
    return None
