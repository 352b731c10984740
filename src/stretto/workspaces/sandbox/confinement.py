"""What a command may touch and use. In: what the step declared. Out: Confinement, for a sandbox."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from stretto.globs.glob import Glob
from stretto.processes.watchdog import ResourceLimits
from stretto.workspaces.protected import NOTHING_PROTECTED, Protected

PLAIN_ENVIRONMENT: Mapping[str, str] = MappingProxyType(
    {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
    }
)


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
    limits: ResourceLimits = ResourceLimits()
    protected: Protected = NOTHING_PROTECTED  # stays as it is, whatever `writes` says
    hidden: tuple[str, ...] = ()  # from the workspace on: neither read nor written
    named_secrets: tuple[Glob, ...] = ()  # files that hold keys and may be read all the same
    # All that the command inherits; HOME, TMPDIR and PWD are set for it.
    environment: Mapping[str, str] = field(default_factory=lambda: PLAIN_ENVIRONMENT)
