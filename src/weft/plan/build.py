"""Check a recipe and say what it means. In: Recipe and Catalog. Out: Plan, or all Problems."""

from dataclasses import dataclass

from weft.plan.assemble import assemble
from weft.plan.catalog import EMPTY_CATALOG, Catalog
from weft.plan.draft import make_draft
from weft.plan.edges import connect
from weft.plan.model import Plan
from weft.plan.rules import (
    agents,
    cycles,
    dependencies,
    ids,
    inputs,
    instructions,
    limits,
    lists,
    references,
    schemas,
    sets,
    targets,
    tools,
    unused,
    waits,
)
from weft.problems import Problem
from weft.recipe.model import Recipe
from weft.vocabulary.limits import DEFAULT_LIMITS, Limits

DEFAULT_WIDTH = 4
_RULES = (
    ids,
    dependencies,
    agents,
    targets,
    instructions,
    references,
    lists,
    waits,
    sets,
    tools,
    schemas,
    inputs,
    limits,
)


@dataclass(frozen=True, slots=True)
class Problems:
    """Why there is no plan: everything at once, in the order of the file."""

    problems: tuple[Problem, ...]


def build(
    recipe: Recipe,
    catalog: Catalog = EMPTY_CATALOG,
    limits: Limits = DEFAULT_LIMITS,
    width: int = DEFAULT_WIDTH,
) -> Plan | Problems:
    """`width` is the user's subagents.max_concurrency; a recipe may write its own."""
    draft = make_draft(recipe, catalog, limits)
    for rule in _RULES:
        rule.check(draft)
    graph = connect(draft)
    cycles.check(draft, graph)
    problems = (*recipe.problems, *draft.problems)
    if problems:
        return Problems(tuple(sorted(problems, key=lambda problem: problem.sort_key)))
    unused.check(draft, graph)
    return assemble(draft, graph, width)
