"""Check a recipe. In: Recipe and Catalog. Out: Checked, or all Problems.

Kept apart from `build`, which needs all that a plan is made of: most checks want no plan.
"""

from dataclasses import dataclass

from stretto.plan.catalog import EMPTY_CATALOG, Catalog
from stretto.plan.draft import Draft, make_draft
from stretto.plan.edges import Edges, connect
from stretto.plan.rules import (
    agents,
    cycles,
    dependencies,
    ids,
    inputs,
    instructions,
    limits,
    lists,
    merging,
    references,
    schemas,
    sets,
    targets,
    tools,
    unused,
    waits,
)
from stretto.problems import Problem
from stretto.recipe.model import Recipe
from stretto.vocabulary.limits import DEFAULT_LIMITS, Limits

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


@dataclass(frozen=True, slots=True)
class Checked:
    """A recipe that can become a plan."""

    draft: Draft
    edges: Edges

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(self.draft.warnings)


def check(
    recipe: Recipe, catalog: Catalog = EMPTY_CATALOG, limits: Limits = DEFAULT_LIMITS
) -> Checked | Problems:
    draft = make_draft(recipe, catalog, limits)
    for rule in _RULES:
        rule.check(draft)
    edges = connect(draft)
    cycles.check(draft, edges)
    merging.check(draft, edges)
    problems = (*recipe.problems, *draft.problems)
    if problems:
        return Problems(tuple(sorted(problems, key=lambda problem: problem.sort_key)))
    unused.check(draft)
    return Checked(draft, edges)
