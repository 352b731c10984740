"""No sandbox at all, by explicit setting. In: a Task. Out: a ProgramStart of a bare shell.

What is left: the clean environment, the limits, and that its process group is killed at the end.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from stretto.processes.programs import ProgramStart
from stretto.workspaces.sandbox import shell
from stretto.workspaces.sandbox.adapter import Task


@dataclass(frozen=True, slots=True)
class Unconfined:
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
        argv = shell.argv(task.command, confinement.limits, counts_processes=False)
        yield ProgramStart(argv, confinement.workspace, confinement.environment)
