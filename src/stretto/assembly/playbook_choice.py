"""Which playbooks a run has: where they are found, who is given them, and the count of their use."""

import os
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.problems.errors import NotFound, StrettoError
from stretto.registry.folders import Folder, once
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import LEAD

if TYPE_CHECKING:
    from stretto.config.settings import Settings
    from stretto.plan.model import Plan
    from stretto.playbooks.choice import ChoiceLimits
    from stretto.playbooks.library import Library
    from stretto.ports.runner import AttemptRequest, AttemptResult, Runner, Witness
    from stretto.ports.tool import Tool
    from stretto.vocabulary.models import Setup

_FILE = "playbooks.db"


def own_folder(settings: "Settings") -> Path:
    """The user's own playbooks."""
    return settings.home / "playbooks"


def playbook_folders(settings: "Settings") -> tuple[Folder, ...]:
    """From the first layer to the last; a later one counts before an earlier one."""
    from stretto.playbooks.library import BUNDLED

    written = settings.playbooks
    project = (Folder(written.project_dir, "project"),) if written.project_dir else ()
    return (
        Folder(BUNDLED, "bundled"),
        Folder(own_folder(settings), "user"),
        *(Folder(path, "settings") for path in written.dirs),
        *project,
    )


def open_playbooks(
    settings: "Settings", now: Callable[[], float]
) -> AbstractContextManager["Library"]:
    """Raises StrettoError where their file cannot be used."""
    from stretto.playbooks.library import open_library

    folders, half_life = playbook_folders(settings), settings.playbooks.half_life_days
    return open_library(settings.home / _FILE, folders, now, half_life)


def choice_limits(settings: "Settings") -> "ChoiceLimits":
    from stretto.playbooks.choice import ChoiceLimits

    written = settings.playbooks
    return ChoiceLimits(written.top, written.named, written.max_characters)


def has_playbooks(settings: "Settings") -> bool:
    """Whether a step might be given any. Cheap: most users have none, and every run asks."""
    folders = (own_folder(settings), *settings.playbooks.folders)
    return (settings.home / _FILE).exists() or any(map(_has_folders, folders))


def equip_plan(
    plan: "Plan",
    inputs: Mapping[str, Json],
    settings: "Settings",
    now: Callable[[], float],
    is_dry_run: bool = False,
) -> "tuple[Plan, tuple[str, ...]]":
    """The plan, with the playbooks that each of its agents is given; and what the user should know.

    What an earlier run was given is taken out first: a run gets the playbooks of its own day.
    """
    # The bundled ones are for the lead agent.
    has_any = LEAD in plan.agents or once(
        ("playbooks", id(settings)), lambda: has_playbooks(settings)
    )
    is_wanted = settings.playbooks.is_enabled and has_any
    if not plan.playbooks and not is_wanted:
        return plan, ()
    from stretto.playbooks.choice import with_playbooks, without_playbooks
    from stretto.playbooks.curation import curate_if_due

    plan = without_playbooks(plan)
    if not is_wanted:
        return plan, ()
    try:
        with open_playbooks(settings, now) as library:
            if not is_dry_run:
                curate_if_due(library)
            return with_playbooks(plan, inputs, library, choice_limits(settings)), ()
    except StrettoError as error:
        return plan, (f"no step is given playbooks: {error.with_hint}",)


def _has_folders(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(entry.is_dir() for entry in entries)
    except OSError:
        return False


def make_load_tool(settings: "Settings", request: "AttemptRequest") -> "Tool":
    """The tool load_playbook of one attempt."""
    from stretto.adapters.tools.load_playbook import LoadedPlaybook, load_playbook
    from stretto.playbooks.store import PlaybookUse

    def load(name: str, file: str) -> LoadedPlaybook | None:
        try:
            with open_playbooks(settings, time.time) as library:
                found = library.named(name)
                text = library.store.file_text(found.id, file) if file else found.body
                library.count_use([name], PlaybookUse(request.run_id, request.step))
                return LoadedPlaybook(found.digest, text, found.files)
        except NotFound:
            return None

    return load_playbook(dict(request.loadable), load)


class CountedRunner:
    """A runner that counts the use of the playbooks that its attempts are given."""

    def __init__(self, runner: "Runner", settings: "Settings") -> None:
        self._runner = runner
        self._settings = settings

    def identify(self, models: Collection[str], tools: Collection[str]) -> "Setup":
        from stretto.ports.runner import is_identified

        if not is_identified(self._runner):
            raise TypeError(f"{type(self._runner).__name__} cannot say who answers")
        return self._runner.identify(models, tools)

    async def run(self, request: "AttemptRequest", witness: "Witness") -> "AttemptResult":
        if request.playbooks:
            import asyncio  # not at the top: `equip_plan` is used without it

            await asyncio.to_thread(self._count, request, witness.now())
        return await self._runner.run(request, witness)

    def _count(self, request: "AttemptRequest", at: float) -> None:
        from stretto.playbooks.store import PlaybookUse

        # How often a playbook was used is no reason for a step to fail.
        with suppress(StrettoError), open_playbooks(self._settings, lambda: at) as library:
            library.count_use(request.playbooks, PlaybookUse(request.run_id, request.step))
