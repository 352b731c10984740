"""Check a recipe and say what it means. In: Recipe and Catalog. Out: Plan, or all Problems."""

from weft.plan.assemble import assemble
from weft.plan.catalog import EMPTY_CATALOG, Catalog
from weft.plan.check import Problems as Problems
from weft.plan.check import check
from weft.plan.model import Plan
from weft.recipe.model import Recipe
from weft.vocabulary.limits import DEFAULT_LIMITS, Limits

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
    return assemble(checked.draft, checked.graph, width)
