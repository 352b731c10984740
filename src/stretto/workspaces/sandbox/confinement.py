"""What a command may touch and use. In: what the step declared. Out: Confinement, for a sandbox."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from stretto.globs.glob import Glob
from stretto.workspaces.protected import NOTHING_PROTECTED, Protected

_MIB = 1024 * 1024

PLAIN_ENVIRONMENT: Mapping[str, str] = MappingProxyType(
    {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
    }
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Of the command and all that it starts, together; only `file_bytes` is for each file."""

    wall_seconds: float = 120.0
    cpu_seconds: float = 120.0
    memory_bytes: int = 2048 * _MIB
    processes: int = 512  # threads count too
    file_bytes: int = 1024 * _MIB
    disk_bytes: int = 4096 * _MIB  # of all that it writes in the workspace
    scratch_bytes: int = 512 * _MIB  # of /tmp, and again of /dev/shm: both are memory
    output_bytes: int = 64 * 1024

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be more than 0")


@dataclass(frozen=True, slots=True)
class Carried:
    """A folder from elsewhere that a command sees in the workspace, and cannot change. It is seen
    at its own place too: scripts of a virtual environment name their interpreter by that."""

    source: Path
    path: str  # in the workspace


@dataclass(frozen=True, slots=True)
class Confinement:
    workspace: Path
    writes: tuple[Glob, ...] = ()
    readable: tuple[Path, ...] = ()  # outside the workspace: a toolchain, a repository's .git
    carried: tuple[Carried, ...] = ()
    network: bool = False  # all of it, with what listens on this machine's loopback
    # Unix sockets in the workspace lead to programs outside. So a command has none, unless asked.
    local_sockets: bool = False
    limits: Limits = Limits()
    protected: Protected = NOTHING_PROTECTED  # stays as it is, whatever `writes` says
    hidden: tuple[str, ...] = ()  # from the workspace on: neither read nor written
    named_secrets: tuple[Glob, ...] = ()  # files that hold keys and may be read all the same
    # All that the command inherits; HOME, TMPDIR and PWD are set for it.
    environment: Mapping[str, str] = field(default_factory=lambda: PLAIN_ENVIRONMENT)
