"""A Stretto in a world of its own: journal in memory, virtual clock, scripted model."""

from collections.abc import Callable, Mapping
from pathlib import Path

from stretto.adapters.models.scripted import ScriptedRunner, read_script
from stretto.adapters.stores.memory import MemoryJournal
from stretto.assembly.ports import Ports
from stretto.assembly.project import Project
from stretto.assembly.stretto import Stretto
from stretto.config.settings import Settings
from stretto.testing.clock import VirtualClock

NOWHERE = Path("/nonexistent")


def settings_of(folder: Path, **changed: object) -> Settings:
    return Settings(folder, folder / "home", folder / "workflows", (), **changed)  # type: ignore[arg-type]


def in_memory(
    clock: VirtualClock,
    script: str = "default: an answer",
    *,
    settings: Settings | None = None,
    environ: Mapping[str, str] | None = None,
    agents: Mapping[str, Callable[..., object]] | None = None,
) -> Stretto:
    settings = settings or Settings(NOWHERE, NOWHERE, NOWHERE, ())
    project = Project(environ=environ or {}, settings=settings, agents=agents)
    runner = ScriptedRunner(read_script(script), clock)
    ports = Ports(MemoryJournal(clock.now), clock, runner, has_workspaces=False)
    return Stretto(_open_project=lambda folder: project, _ports=ports)
