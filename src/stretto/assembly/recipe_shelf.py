"""Find the recipe that a `workflow:` step names. In: a name or a file, and who names it. Out: the recipe.

A name means what it means to `stretto run`. A file is relative to the recipe that names it, and must
lie in the project, or in the folder of the recipe that the run is of.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.config.settings import Settings
from stretto.plan.inputs import Misfit
from stretto.recipe.model import Recipe
from stretto.recipe.read import SUFFIXES, read_recipe_file
from stretto.text.short import did_you_mean, listed

if TYPE_CHECKING:
    from stretto.registry.workflows import Workflows

_CODE = "RCP143"


class RecipeShelf:
    """The recipes that those of one project may use. Meets `plan.catalog.Recipes`."""

    def __init__(
        self, settings: Settings, workflows: "Callable[[], Workflows]", shown: Callable[[Path], str]
    ) -> None:
        self._limits = settings.limits
        self._project = settings.project.resolve()
        # A folder other than the usual one was named by the user or by trusted settings.
        is_users_choice = settings.workflows_dir != settings.project / "workflows"
        self._is_trusted = settings.may_shadow or is_users_choice
        self._workflows = workflows
        self._shown = shown

    def identity(self, recipe: Recipe) -> str:
        file = recipe.source.file
        return str(_real(file)) if file else f"text {recipe.source.digest}"

    def find(self, named: str, user: Recipe, outermost: Recipe) -> Recipe | Misfit:
        if is_named_as_file(named):
            return self._file(named, user, outermost)
        return self._find_saved(named, user)

    def _find_saved(self, name: str, user: Recipe) -> Recipe | Misfit:
        entry = self._workflows().find(name)
        if entry is None:
            known = self._workflows().names()
            hint = did_you_mean(name, known) or f"stretto list shows them: {listed(known)}"
            return Misfit(_CODE, f"there is no workflow '{name[:60]}'", hint)
        is_of_project = self._folder_of(user).is_relative_to(self._project)
        if entry.passed_over is not None and is_of_project:
            shown = self._shown(entry.passed_over)
            message = (
                f"{shown} is not used until you trust this folder, and the {entry.layer} recipe "
                f"'{name}' would run in its place"
            )
            return Misfit(_CODE, message, "stretto trust, or name the file")
        if entry.layer == "project" and not is_of_project and not self._is_trusted:
            message = (
                f"'{name}' is a recipe of {self._shown(self._project)}, which you have not trusted"
            )
            return Misfit(_CODE, message, "read it, then: stretto trust")
        return entry.recipe

    def _file(self, written: str, user: Recipe, outermost: Recipe) -> Recipe | Misfit:
        path = Path(written)
        if path.is_absolute() or written.startswith("~"):
            hint = "a file is named relative to the recipe that names it"
            return Misfit(_CODE, f"'{written[:100]}' is not a relative path", hint)
        try:
            found = (self._folder_of(user) / path).resolve(strict=True)
            is_file = found.is_file()
        except (OSError, ValueError, RuntimeError):
            hint = f"it is looked for in {self._shown(self._folder_of(user))}"
            return Misfit(_CODE, f"there is no file '{written[:100]}'", hint)
        folders = (self._project, self._folder_of(outermost))
        if not any(found.is_relative_to(folder) for folder in folders):
            message = f"'{written[:100]}' leads out of the project"
            return Misfit(_CODE, message, "use a recipe inside it, or save one and name it")
        if not is_file or found.suffix not in SUFFIXES:
            return Misfit(
                _CODE, f"'{written[:100]}' is no recipe file", "name a .yaml or .json file"
            )
        shown = self._shown(found)
        return read_recipe_file(found, self._limits, shown)

    def _folder_of(self, recipe: Recipe) -> Path:
        file = recipe.source.file
        return _real(file).parent if file else self._project


def _real(file: str) -> Path:
    """Where it really is; of a name that leads nowhere, the name."""
    try:
        return Path(os.path.realpath(file))
    except (OSError, ValueError):
        return Path(file)


def is_named_as_file(name: str) -> bool:
    return Path(name).suffix in SUFFIXES or os.sep in name
