"""Open the project here. What it brings along is used once the user trusts it."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.assembly.project import Project, open_runs
from stretto.cli.terminal import confirm, say
from stretto.config.settings import home_of
from stretto.config.trust import TrustStore, told
from stretto.recipe.model import Recipe
from stretto.vocabulary.ids import RunId

if TYPE_CHECKING:
    from stretto.execution.history import History
    from stretto.plan.model import Plan
    from stretto.registry.workflows import Entry


def open_project(folder: Path | None = None) -> Project:
    project = Project(folder)
    settings = project.settings
    if settings.is_trusted:
        return project
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
    return project


def history_of(project: Project, run_id: str, *, with_speech: bool = False) -> "History":
    """A run as its journal tells it; `with_speech`: also what models said piece by piece."""
    import asyncio  # not for those who only check a recipe

    async def load() -> "History":
        async with project.runs() as runs:
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


def project_of(history: "History", accepted: str | None = None) -> Project:
    """The project in which a run began: its settings count, wherever one stands."""
    folder = history.started.project or history.started.workspace
    project = open_project(Path(folder) if folder else None)
    project.accepted = frozenset([accepted] if accepted else [])
    return project


def is_driven(project: Project, history: "History") -> bool:
    """Whether some process drives the run now."""
    import asyncio

    async def look() -> bool:
        async with project.runs() as runs:
            return await runs.is_driven(RunId(history.started.run_id))

    return not history.state.has_ended and asyncio.run(look())


def trust(folder: Path) -> Project:
    """Trust a folder as it is now."""
    project = Project(folder)
    if project.settings.steering or project.settings.workflows_dir.is_dir():
        TrustStore(project.settings.home).trust(project.settings.project, project.settings.digest)
    return Project(folder)


def open_recipe(project: Project, name_or_file: str) -> Recipe:
    if name_or_file == "-":
        return project.recipe_from_text(sys.stdin.buffer.read(), "<stdin>")
    entry = project.saved(name_or_file)
    if entry is None:
        return project.recipe(name_or_file)
    if entry.passed_over is not None:
        say(passed_over(project, entry), err=True)
    return entry.recipe


def passed_over(project: Project, entry: "Entry") -> str:
    assert entry.passed_over is not None
    return (
        f"{project.shown(entry.passed_over)} is not used: '{entry.name}' means the {entry.layer} "
        "recipe until you trust this folder (stretto trust), or name the file"
    )


def open_plan(project: Project, name_or_file: str) -> "Plan":
    return project.plan(open_recipe(project, name_or_file))
