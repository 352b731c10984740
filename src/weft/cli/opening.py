"""Open the project here. What it brings along is used once the user trusts it."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from weft.assembly import Weft
from weft.assembly.weft import open_runs
from weft.cli.printing import confirm, say
from weft.config.settings import home_of
from weft.config.trust import TrustStore, told
from weft.vocabulary.ids import RunId

if TYPE_CHECKING:
    from weft.run.history import History


def open_weft(folder: Path | None = None) -> Weft:
    weft = Weft(folder)
    settings = weft.settings
    if settings.is_trusted:
        return weft
    brings = told(settings.steering, settings.project)
    store = TrustStore(settings.home)
    is_known = store.was_trusted(settings.project)
    what = "not used: changed since you trusted it" if is_known else "not used until you trust it"
    said = f"{brings} in {settings.project}: {what}"
    if sys.stdin.isatty() and sys.stderr.isatty():
        say(f"{said}.", err=True)
        if confirm("Trust this folder as it is now?", default=False, err=True):
            store.trust(settings.project, settings.digest)
            return Weft(folder)
    else:
        say(f"{said} (weft trust, --trust or WEFT_TRUST=1)", err=True)
    return weft


def history_of(weft: Weft, run_id: str, *, with_speech: bool = False) -> "History":
    """A run as its journal tells it; `with_speech`: also what models said piece by piece."""
    import asyncio  # not for those who only check a recipe

    async def load() -> "History":
        async with weft.runs() as runs:
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


def weft_of(history: "History", accepted: str | None = None) -> Weft:
    """The project in which a run began: its settings count, wherever one stands."""
    project = history.started.project or history.started.workspace
    weft = open_weft(Path(project) if project else None)
    weft.accepted = frozenset([accepted] if accepted else [])
    return weft


def is_driven(weft: Weft, history: "History") -> bool:
    """Whether some process drives the run now."""
    import asyncio

    async def look() -> bool:
        async with weft.runs() as runs:
            return await runs.is_driven(RunId(history.started.run_id))

    return not history.state.has_ended and asyncio.run(look())


def trust(folder: Path) -> Weft:
    """Trust a folder as it is now."""
    weft = Weft(folder)
    if weft.settings.steering or weft.settings.workflows_dir.is_dir():
        TrustStore(weft.settings.home).trust(weft.settings.project, weft.settings.digest)
    return Weft(folder)
