"""The recipe that a command names: a saved one, a file, or '-' for stdin."""

import sys
from typing import TYPE_CHECKING

from weft.assembly import Weft
from weft.cli.printing import say
from weft.recipe.model import Recipe

if TYPE_CHECKING:
    from weft.plan.model import Plan
    from weft.registry.workflows import Entry


def open_recipe(weft: Weft, name_or_file: str) -> Recipe:
    if name_or_file == "-":
        return weft.recipe_from_text(sys.stdin.buffer.read(), "<stdin>")
    entry = weft.saved(name_or_file)
    if entry is None:
        return weft.recipe(name_or_file)
    if entry.passed_over is not None:
        say(passed_over(weft, entry), err=True)
    return entry.recipe


def passed_over(weft: Weft, entry: "Entry") -> str:
    assert entry.passed_over is not None
    return (
        f"{weft.shown(entry.passed_over)} is not used: '{entry.name}' means the {entry.layer} "
        "recipe until you trust this folder (weft trust), or name the file"
    )


def open_plan(weft: Weft, name_or_file: str) -> "Plan":
    return weft.plan(open_recipe(weft, name_or_file))
