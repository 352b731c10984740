"""The playbooks of one project as one user sees them, managed by hand: `Stretto.playbooks`."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from stretto.assembly.arguments import check_flags, check_number, check_place, check_text
from stretto.assembly.playbook_choice import choice_limits, open_playbooks, own_folder
from stretto.assembly.run import user_name
from stretto.problems.errors import InvalidUsage, NotFound
from stretto.vocabulary.names import RunId
from stretto.vocabulary.statuses import StepStatus

if TYPE_CHECKING:
    from stretto.assembly.engine import Engine
    from stretto.config.settings import Settings
    from stretto.execution.history import History
    from stretto.playbooks.curation import CurationStep, EmittedSkill
    from stretto.playbooks.library import FoundPlaybook, Library
    from stretto.playbooks.playbook import Playbook
    from stretto.playbooks.store import AuditEntry, PlaybookUse

_T = TypeVar("_T")


def skill_of(history: "History", step: str) -> "EmittedSkill":
    """The delegation of a step that worked, as a skill-v1. Raises NotFound and InvalidUsage."""
    from stretto.events.model import ToolEnded
    from stretto.lead.captures import slug as words_slug
    from stretto.lead.tasks import written_prompt
    from stretto.plan.model import PlannedDelegation
    from stretto.playbooks.curation import EmittedSkill, slug
    from stretto.text.visible import one_line

    state = history.state
    found, plan = history.step(step), state.plan
    work = found.planned.work
    if not isinstance(work, PlannedDelegation):
        raise InvalidUsage(f"step '{step}' is not one delegation", hint="capture a plain step")
    if found.status != StepStatus.SUCCEEDED:
        raise InvalidUsage(f"step '{step}' has not succeeded, so it is no example to follow")
    template = (work.brief.instruction or plan.agents[work.brief.agent].prompt).text
    name = f"{plan.name}-{step}"
    if told := written_prompt(plan.name, history.started.inputs, found.planned.index):
        template, name = told, words_slug(told)
    used = dict.fromkeys(
        event.tool
        for event in history.events
        if isinstance(event, ToolEnded) and event.step == step and event.verdict == "ok"
    )
    about = f"{plan.description.strip()} " if plan.description else ""
    return EmittedSkill(
        slug(name),
        one_line(f"{about}{template}", 300),
        template,
        tuple(used),
        origin={"run": state.run_id, "step": step, "agent": work.brief.agent},
    )


def add_playbook(library: "Library", path: Path, settings: "Settings", by: str) -> "Playbook":
    """A folder with a SKILL.md, that file itself, or a skill-v1 file. Raises InvalidUsage."""
    from stretto.playbooks.curation import emit, read_emitted

    if not path.exists():
        raise NotFound(f"there is no file or folder {path}")
    if path.is_dir() or path.name == "SKILL.md":
        folder = path if path.is_dir() else path.resolve().parent
        return library.add(folder, own_folder(settings), by)
    return emit(library, read_emitted(path), by)


class Playbooks:
    """The playbooks that count in a project: `Stretto.playbooks`."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine

    def __repr__(self) -> str:
        return "<stretto.Playbooks>"

    async def list(self) -> "tuple[Playbook, ...]":
        """All that count here, by name; one that cannot be used has a `fault`. `confidence` is what
        is left of it today."""
        return await self._with(lambda library: tuple(map(library.faded, library.playbooks())))

    async def search(self, query: str, limit: int = 10) -> "tuple[FoundPlaybook, ...]":
        """The best first."""
        check_text(query=query)
        check_number("limit", limit, 1, 1000)

        def find(library: "Library") -> "tuple[FoundPlaybook, ...]":
            found = library.search(query, limit)
            return tuple(replace(each, playbook=library.faded(each.playbook)) for each in found)

        return await self._with(find)

    async def show(self, name: str) -> "Playbook":
        """Raises NotFound."""
        check_text(name=name)
        return await self._with(lambda library: library.faded(library.named(name)))

    async def add(self, path: str | Path) -> "Playbook":
        """Copy a folder with a SKILL.md into your own ones, or take a skill-v1 file as emitted.

        Raises NotFound, InvalidUsage and RefusedToOverwrite.
        """
        check_place(path=path)
        settings = self._engine.project.settings
        return await self._with(
            lambda library: add_playbook(library, Path(path), settings, user_name())
        )

    async def capture(self, run_id: str, step: str) -> "Playbook":
        """Keep the prompt and the tools of a step that succeeded as an emitted playbook."""
        from stretto.playbooks.curation import emit

        check_text(run_id=run_id, step=step)
        runs = await self._engine.runs_of()
        skill = skill_of(await runs.history(RunId(run_id)), step)
        return await self._with(lambda library: emit(library, skill, user_name()))

    async def pin(self, name: str) -> "Playbook":
        """Curation leaves it alone from now on."""
        check_text(name=name)
        return await self._with(lambda library: library.pin(name, True, user_name()))

    async def unpin(self, name: str) -> "Playbook":
        check_text(name=name)
        return await self._with(lambda library: library.pin(name, False, user_name()))

    async def delete(self, name: str) -> "Playbook":
        """Stop using a playbook; its folder stays, and `restore` undoes it."""
        check_text(name=name)
        return await self._with(lambda library: library.delete(name, user_name()))

    async def restore(self, name: str) -> "Playbook":
        check_text(name=name)
        return await self._with(lambda library: library.restore(name, user_name()))

    async def audit(self, limit: int = 100, name: str = "") -> "tuple[AuditEntry, ...]":
        """Who changed which playbook, newest first. `name`: that playbook alone."""
        check_number("limit", limit)
        return await self._with(lambda library: tuple(library.store.audit(limit, name)))

    async def uses(self, name: str, limit: int = 100) -> "tuple[PlaybookUse, ...]":
        """The steps that it was given to, newest first. Raises NotFound."""
        check_text(name=name)
        check_number("limit", limit)
        return await self._with(
            lambda library: tuple(library.store.uses_of(library.named(name).id, limit))
        )

    async def curate(self, *, dry_run: bool = False) -> "tuple[CurationStep, ...]":
        """Prune what nobody uses, merge what says the same. Pinned ones are not touched."""
        from stretto.playbooks.curation import curate

        check_flags(dry_run=dry_run)
        return await self._with(lambda library: tuple(curate(library, is_dry_run=dry_run)))

    async def block_for(self, prompt: str) -> str:
        """The `<learned_skills>` block for a prompt, bundled playbooks included; empty for none."""
        from stretto.playbooks.choice import choose

        check_text(prompt=prompt)
        settings = self._engine.project.settings
        if not settings.playbooks.is_enabled:
            return ""
        limits = choice_limits(settings)
        return await self._with(lambda library: choose(library, prompt, limits).text)

    async def _with(self, work: "Callable[[Library], _T]") -> "_T":
        def do() -> "_T":
            with open_playbooks(self._engine.project.settings, self._engine.now) as library:
                return work(library)

        return await asyncio.to_thread(do)
