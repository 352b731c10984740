"""Open the project here. What it brings along is used once the user trusts it."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.assembly.project import Project, open_runs
from stretto.cli.printing import confirm, say
from stretto.config.settings import home_of
from stretto.config.trust import TrustStore, told
from stretto.vocabulary.ids import RunId

if TYPE_CHECKING:
    from stretto.run.history import History


def open_stretto(folder: Path | None = None) -> Project:
    stretto = Project(folder)
    settings = stretto.settings
    if settings.is_trusted:
        return stretto
    brings = told(settings.steering, settings.project)
    store = TrustStore(settings.home)
    is_known = store.was_trusted(settings.project)
    what = "not used: changed since you trusted it" if is_known else "not used until you trust it"
    said = f"{brings} in {settings.project}: {what}"
    if sys.stdin.isatty() and sys.stderr.isatty():
        say(f"{said}.", err=True)
        if confirm("Trust this folder as it is now?", default=False, err=True):
            store.trust(settings.project, settings.digest)
            return Project(folder)
    else:
        say(f"{said} (stretto trust, --trust or STRETTO_TRUST=1)", err=True)
    return stretto


def history_of(stretto: Project, run_id: str, *, with_speech: bool = False) -> "History":
    """A run as its journal tells it; `with_speech`: also what models said piece by piece."""
    import asyncio  # not for those who only check a recipe

    async def load() -> "History":
        async with stretto.runs() as runs:
            return await runs.history(RunId(run_id), with_speech=with_speech)

    return asyncio.run(load())


def sealed_history(run_id: str) -> "History":
    """The same, for those who act on what the run began with. Raises PlanNotAccepted."""
    import asyncio

    async def load() -> "History":
        async with open_runs(home_of(os.environ)) as runs:
            history = await runs.history(RunId(run_id))
            runs.check(history)
            return history

    return asyncio.run(load())


def stretto_of(history: "History", accepted: str | None = None) -> Project:
    """The project in which a run began: its settings count, wherever one stands."""
    project = history.started.project or history.started.workspace
    stretto = open_stretto(Path(project) if project else None)
    stretto.accepted = frozenset([accepted] if accepted else [])
    return stretto


def is_driven(stretto: Project, history: "History") -> bool:
    """Whether some process drives the run now."""
    import asyncio

    async def look() -> bool:
        async with stretto.runs() as runs:
            return await runs.is_driven(RunId(history.started.run_id))

    return not history.state.has_ended and asyncio.run(look())


def trust(folder: Path) -> Project:
    """Trust a folder as it is now."""
    stretto = Project(folder)
    if stretto.settings.steering or stretto.settings.workflows_dir.is_dir():
        TrustStore(stretto.settings.home).trust(stretto.settings.project, stretto.settings.digest)
    return Project(folder)
