"""Make a plan of a recipe, or list everything that is wrong with it."""

from stretto.plan.assemble import assemble
from stretto.plan.catalog import EMPTY_CATALOG, Catalog
from stretto.plan.check import Problems as Problems, check
from stretto.plan.model import Plan
from stretto.recipe.model import Recipe
from stretto.vocabulary.limits import DEFAULT_LIMITS, Limits

DEFAULT_WIDTH = 4


def build(
    recipe: Recipe,
    catalog: Catalog = EMPTY_CATALOG,
    limits: Limits = DEFAULT_LIMITS,
    width: int = DEFAULT_WIDTH,
) -> Plan | Problems:
    """`width` is the user's subagents.max_concurrency; a recipe may write its own."""
    checked = check(recipe, catalog, limits)
    if isinstance(checked, Problems):
        return checked
    return assemble(checked.draft, checked.edges, width)
