"""The port of a sandbox: how one way of confining starts a command.

In: a Task. Out: a ProgramStart, which lasts as long as the command. There are three: `bubblewrap`,
`landlock`, and `unconfined`, which confines nothing.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Protocol

from stretto.processes.programs import ProgramStart
from stretto.workspaces.sandbox.confinement import Confinement


class Access(Enum):
    READ = auto()
    WRITE = auto()
    NONE = auto()  # an empty place hides what is there


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or directory to be seen at a path. It is opened once: what is swapped in later for
    its source is not what was checked."""

    source: int  # an open O_PATH descriptor; -1 for NONE
    target: Path
    access: Access
    is_directory: bool = True


@dataclass(frozen=True, slots=True)
class Task:
    command: str
    confinement: Confinement
    mounts: tuple[Mount, ...]  # the workspace first; a mount hides what is below it


class Adapter(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def is_confined(self) -> bool: ...

    @property
    def gaps(self) -> tuple[str, ...]:
        """What it cannot hold here, one sentence each."""
        ...

    @property
    def has_local_sockets(self) -> bool: ...

    def launch(self, task: Task) -> AbstractContextManager[ProgramStart]: ...
