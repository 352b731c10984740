"""The recipe that a command names: a saved one, a file, or '-' for stdin."""

import sys
from typing import TYPE_CHECKING

from weft.assembly import Weft
from weft.recipe.model import Recipe

if TYPE_CHECKING:
    from weft.plan.model import Plan


def open_recipe(weft: Weft, name_or_file: str) -> Recipe:
    if name_or_file == "-":
        return weft.recipe_from_text(sys.stdin.buffer.read(), "<stdin>")
    return weft.recipe(name_or_file)


def open_plan(weft: Weft, name_or_file: str) -> "Plan":
    return weft.plan(open_recipe(weft, name_or_file))
