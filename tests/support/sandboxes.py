"""What the tests of the sandbox share: workspaces, and each sandbox that works on this machine."""

import asyncio
from pathlib import Path

import pytest

from stretto.globs.glob import Glob, parse_glob
from stretto.processes.watchdog import ResourceLimits
from stretto.workspaces.sandbox.confinement import PLAIN_ENVIRONMENT, Confinement, Ran
from stretto.workspaces.sandbox.sandbox import NoSandbox, Sandbox, Setting, find_sandbox

QUICK = ResourceLimits(wall_seconds=20)


def find(setting: Setting) -> Sandbox:
    """Skips the test where there is none."""
    found = find_sandbox(setting)
    if isinstance(found, NoSandbox):
        pytest.skip(f"{setting}: {found.missing[0].says}")
    return found


def globs(*texts: str) -> tuple[Glob, ...]:
    return tuple(glob for glob in map(parse_glob, texts) if isinstance(glob, Glob))


def confined(
    workspace: Path,
    *writes: str,
    limits: ResourceLimits = QUICK,
    readable: tuple[Path, ...] = (),
    local_sockets: bool = False,
    **environment: str,
) -> Confinement:
    return Confinement(
        workspace,
        writes=globs(*writes),
        limits=limits,
        readable=readable,
        local_sockets=local_sockets,
        environment={**PLAIN_ENVIRONMENT, **environment},
    )


def run(sandbox: Sandbox, command: str, confinement: Confinement) -> Ran:
    ran = asyncio.run(sandbox.run(command, confinement))
    assert isinstance(ran, Ran), ran
    return ran
