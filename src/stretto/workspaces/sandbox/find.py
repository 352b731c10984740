"""Find a sandbox that works here. In: the setting. Out: Sandbox, or NoSandbox with reasons.

Each one is tried for real, by running a command in it, once for each process of Stretto.
"""

import subprocess
import tempfile
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from stretto.globs.glob import Glob, parse_glob
from stretto.processes.programs import NOWHERE, Writable, find_program
from stretto.workspaces.sandbox import landlock, reasons
from stretto.workspaces.sandbox.adapter import Adapter, Task
from stretto.workspaces.sandbox.bubblewrap import Bubblewrap
from stretto.workspaces.sandbox.confinement import Confinement
from stretto.workspaces.sandbox.reasons import Missing
from stretto.workspaces.sandbox.sandbox import Sandbox
from stretto.workspaces.sandbox.unconfined import Unconfined
from stretto.workspaces.sandbox.view import View

Setting: TypeAlias = Literal["auto", "bubblewrap", "landlock", "off"]

_PROBE_SECONDS = 20
_PROBE = "touch writable/made && ! touch made 2>/dev/null && echo confined"


@dataclass(frozen=True, slots=True)
class NoSandbox:
    missing: tuple[Missing, ...]  # one for each way that was tried

    def __str__(self) -> str:
        tried = "; ".join(f"{it.name}: {it.says}" for it in self.missing)
        return f"no sandbox works here, so Bash is refused ({tried})"


def find_sandbox(setting: Setting = "auto", writable: Writable = NOWHERE) -> Sandbox | NoSandbox:
    """`writable`: where steps write, and no program is taken from."""
    if setting == "off":
        return Sandbox(Unconfined())
    names = ("bubblewrap", "landlock") if setting == "auto" else (setting,)
    missing: list[Missing] = []
    for name in names:
        found = _find(name, writable)
        if isinstance(found, Sandbox):
            return found
        missing.append(found)
    return NoSandbox(tuple(missing))


@cache
def _find(name: str, writable: Writable) -> Sandbox | Missing:
    adapter = _find_bubblewrap(writable) if name == "bubblewrap" else landlock.find()
    if isinstance(adapter, Missing):
        return adapter
    said = _probe(adapter)
    return Sandbox(adapter) if said is None else reasons.explain(name, said)


def _find_bubblewrap(writable: Writable) -> Bubblewrap | Missing:
    program = find_program("bwrap", writable=writable)
    if program is None:
        return reasons.not_installed()
    offered = subprocess.run([program, "--help"], cwd="/", env={}, capture_output=True, text=True)
    if "--ro-bind-fd" not in offered.stdout:
        return reasons.too_old(program)
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
                closing(View(confinement)) as view,
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
