"""The saved recipes of one project as one user sees them: `Stretto.workflows`."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from stretto.assembly.arguments import check_flags, check_text
from stretto.assembly.recipe_files import (
    ListedWorkflow,
    SaveOptions,
    list_workflows,
    remove_workflow,
    restore_workflow,
    save_workflow,
    versions_of,
)
from stretto.assembly.run import user_name
from stretto.problems.errors import InvalidUsage

if TYPE_CHECKING:
    from stretto.assembly.captures import CapturedWorkflow
    from stretto.assembly.engine import Engine
    from stretto.assembly.project import RecipeSource
    from stretto.registry.saved_recipe import SavedRecipe
    from stretto.registry.versions import RecipeOrigin, RecipeVersion


class SavedWorkflows:
    """The saved recipes that count in a project: `Stretto.workflows`."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine

    def __repr__(self) -> str:
        return "<stretto.SavedWorkflows>"

    async def list(self) -> tuple[ListedWorkflow, ...]:
        """By name, broken ones too."""
        return await asyncio.to_thread(list_workflows, self._engine.project)

    async def save(
        self,
        recipe: "RecipeSource",
        *,
        name: str | None = None,
        emitted: bool = False,
        read: bool = False,
        overwrite: bool = False,
        why: str = "saved",
        replaces: str | None = None,
        by: str = "",
    ) -> "SavedRecipe":
        """Save a recipe under its name, or under another one. The version before it is kept.

        `emitted`: an agent made it. Then it replaces no recipe of a person's and leaves out no gate,
        and one that is saved already under another name is not saved twice; its commands, and what it may
        do besides to the machine, are asked for in each run, unless a person has `read` it. `overwrite`: a person
        wants to replace what is there. `replaces`: only if the file still has this SHA-256 (empty: only
        if there is none). `by`: who saves it, where that is not the user.

        Raises ChangedMeanwhile, InvalidRecipe, InvalidUsage, RefusedToOverwrite and PermissionDenied.
        """
        check_text(name=name or "", why=why, replaces=replaces or "", by=by)
        check_flags(emitted=emitted, read=read, overwrite=overwrite)
        origin: RecipeOrigin = "emitted" if emitted else "written"
        now = self._engine.now()
        whose = by or user_name()
        wanted = SaveOptions(name, origin, why, overwrite, now, replaces, whose, is_read=read)
        return await asyncio.to_thread(save_workflow, self._engine.project, recipe, wanted)

    async def capture(
        self,
        *ids: str,
        name: str | None = None,
        inputs: Mapping[str, str] | None = None,
    ) -> "CapturedWorkflow":
        """Make a recipe of delegations that worked: of a chat, of one turn of it, or of runs of tasks.

        What flowed from one into another becomes a reference, and what came from the person an input.
        `inputs`: texts of the prompts that are to be inputs, by the names of these. The recipe is
        checked, and replayed once against what was recorded. Nothing is saved: where
        `captured.is_proven`, `save(captured.recipe, emitted=True)` does that.

        Raises NotFound and InvalidUsage.
        """
        from stretto.assembly.captures import capture_workflow

        for id in ids:
            check_text(id=id)
        given = dict(inputs or {})
        for key, value in given.items():
            check_text(input=key, value=value)
        check_text(name=name or "")
        return await capture_workflow(self._engine, ids, name or "", given)

    async def delete(self, name: str, *, replaces: str | None = None, by: str = "") -> int:
        """Remove a saved recipe. What it was is kept as a version, whose number this gives; `restore`
        brings it back. `replaces` and `by` as in `save`.

        Raises NotFound, PermissionDenied for a bundled one, and ChangedMeanwhile.
        """
        check_text(name=name, replaces=replaces or "", by=by)
        project, now = self._engine.project, self._engine.now()
        return await asyncio.to_thread(
            remove_workflow, project, name, replaces, by or user_name(), now
        )

    async def versions(self, name: str) -> "tuple[RecipeVersion, ...]":
        """Oldest first. Raises NotFound."""
        check_text(name=name)
        return await asyncio.to_thread(versions_of, self._engine.project, name)

    async def restore(
        self, name: str, version: int | None = None, *, by: str = ""
    ) -> "SavedRecipe":
        """Make an earlier version the current one; without a number, the one before the current.

        Raises NotFound.
        """
        check_text(name=name, by=by)
        if version is not None and type(version) is not int:
            raise InvalidUsage("version must be a whole number")
        now = self._engine.now()
        return await asyncio.to_thread(
            restore_workflow, self._engine.project, name, version, now, by or user_name()
        )
