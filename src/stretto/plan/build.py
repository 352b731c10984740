"""Make a plan of a recipe, or list everything that is wrong with it."""

from msgspec import structs

from stretto.plan.assemble import assemble
from stretto.plan.catalog import EMPTY_CATALOG, Catalog
from stretto.plan.check import Checked, Problems as Problems, check
from stretto.plan.model import Plan
from stretto.plan.workflow_steps import insert_inner
from stretto.recipe.model import Recipe
from stretto.vocabulary.amounts import DEFAULT_LIMITS, Limits

DEFAULT_WIDTH = 4


def build(
    recipe: Recipe,
    catalog: Catalog = EMPTY_CATALOG,
    limits: Limits = DEFAULT_LIMITS,
    width: int = DEFAULT_WIDTH,
) -> Plan | Problems:
    """`width` is the user's subagents.max_concurrency; a recipe may write its own."""
    checked = check(recipe, catalog, limits)
    return checked if isinstance(checked, Problems) else _plan(checked, width)


def _plan(checked: Checked, width: int) -> Plan:
    plan = assemble(checked.draft, checked.edges, width)
    if not checked.inner:
        return plan
    inner = {id: _plan(each, width) for id, each in checked.inner.items()}
    return structs.replace(insert_inner(plan, inner), warnings=checked.warnings)
