"""The recipe that a command names: a saved one, a file, or '-' for stdin."""

import sys
from typing import TYPE_CHECKING

from stretto.assembly.project import Project
from stretto.cli.printing import say
from stretto.recipe.model import Recipe

if TYPE_CHECKING:
    from stretto.plan.model import Plan
    from stretto.registry.workflows import Entry


def open_recipe(stretto: Project, name_or_file: str) -> Recipe:
    if name_or_file == "-":
        return stretto.recipe_from_text(sys.stdin.buffer.read(), "<stdin>")
    entry = stretto.saved(name_or_file)
    if entry is None:
        return stretto.recipe(name_or_file)
    if entry.passed_over is not None:
        say(passed_over(stretto, entry), err=True)
    return entry.recipe


def passed_over(stretto: Project, entry: "Entry") -> str:
    assert entry.passed_over is not None
    return (
        f"{stretto.shown(entry.passed_over)} is not used: '{entry.name}' means the {entry.layer} "
        "recipe until you trust this folder (stretto trust), or name the file"
    )


def open_plan(stretto: Project, name_or_file: str) -> "Plan":
    return stretto.plan(open_recipe(stretto, name_or_file))
