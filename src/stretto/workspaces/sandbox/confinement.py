"""What a command may touch and use, what becomes of it, and the port that a way of confining fills.

There are three ways: `Bubblewrap`, `Landlock`, and `Unconfined`, which confines nothing.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from stretto.globs.glob import Glob
from stretto.processes.limited import ProgramEnd
from stretto.processes.programs import ProgramStart
from stretto.processes.watchdog import ResourceLimits
from stretto.workspaces.protected import NOTHING_PROTECTED, Protected

PLAIN_ENVIRONMENT: Mapping[str, str] = MappingProxyType(
    {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        # Python compares its cached code with a file by size and second. An agent's edit may keep
        # both, and the tests after it would then judge the code before it.
        "PYTHONDONTWRITEBYTECODE": "1",
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
    """What one command may touch and use."""

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
    # All that the command inherits; a sandbox also sets HOME, TMPDIR and PWD.
    environment: Mapping[str, str] = field(default_factory=lambda: PLAIN_ENVIRONMENT)
    stdin: str = ""
    keeps_errors: bool = False  # stderr is kept apart from stdout


@dataclass(frozen=True, slots=True)
class SandboxMissing:
    """Why one way of confining does not work here, and what would help."""

    name: str
    says: str
    fix: str


@dataclass(frozen=True, slots=True)
class Ran(ProgramEnd):
    """The command was started, and has ended."""

    is_confined: bool = True
    kept_out: tuple[str, ...] = ()  # changes outside the write-set, which were not kept
    new_repositories: tuple[str, ...] = ()  # made by the command, and renamed since


@dataclass(frozen=True, slots=True)
class CommandRefused:
    """The command was not started."""

    says: str
    fix: str = ""


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
    """One way of confining."""

    @property
    def name(self) -> str: ...

    @property
    def is_confined(self) -> bool: ...

    @property
    def gaps(self) -> tuple[str, ...]:
        """What it cannot prevent here, one sentence each."""
        ...

    @property
    def has_local_sockets(self) -> bool: ...

    def launch(self, task: Task) -> AbstractContextManager[ProgramStart]:
        """How the command is started. The context lasts as long as the command."""
        ...


# Programs and libraries. On most systems all but the first are links into it.
PROGRAMS = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
)  # fmt: skip
# What programs need in order to start, to tell the time, to check certificates, to find fonts. No
# passwords, no keys, no tokens, no names of other machines. Each costs a mount, so they are few.
_SETTINGS = (
    "alternatives", "ld.so.cache", "ld-musl-*.path", "localtime", "os-release", "nsswitch.conf",
    "services", "ssl/certs", "ssl/openssl.cnf", "ssl/cert.pem", "pki/tls/certs", "pki/ca-trust",
    "crypto-policies", "fonts", "java-*-openjdk",
)  # fmt: skip


def is_shown(path: Path) -> bool:
    """Whether every command sees this path, as a part of the system's programs."""
    return any(path.is_relative_to(place) for place in PROGRAMS)


def list_settings(*, network: bool) -> list[Path]:
    patterns = (*_SETTINGS, "resolv.conf") if network else _SETTINGS
    return [path for pattern in patterns for path in sorted(Path("/etc").glob(pattern))]
