"""Check a recipe and collect every problem of it.

Kept apart from `build`: checking does not import the classes of a plan.
"""

from dataclasses import dataclass

from stretto.plan.catalog import EMPTY_CATALOG, Catalog
from stretto.plan.draft import Draft, make_draft
from stretto.plan.edges import Edges, connect
from stretto.plan.inner_recipes import (
    Checked as Checked,
    InnerRecipes,
    Problems as Problems,
    checked_of,
)
from stretto.plan.rules.agents import check_agents, check_instructions, check_tools
from stretto.plan.rules.graph import (
    check_cycles,
    check_dependencies,
    check_merge_order,
    check_targets,
    warn_untold,
)
from stretto.plan.rules.names import check_inputs, check_names
from stretto.plan.rules.steps import (
    check_commands,
    check_limits,
    check_schemas,
    check_sets,
    check_waits,
    warn_empty,
)
from stretto.plan.rules.templates import (
    check_early,
    check_lists,
    check_references,
    check_statuses,
    warn_prose,
    warn_unused,
)
from stretto.problems import Problem
from stretto.recipe.model import Recipe
from stretto.templates.template import Template
from stretto.vocabulary.amounts import DEFAULT_LIMITS, Limits
from stretto.vocabulary.names import StepId

_RULES = (
    check_names,
    check_dependencies,
    check_agents,
    check_targets,
    check_instructions,
    check_references,
    check_early,
    check_lists,
    check_statuses,
    check_waits,
    check_sets,
    check_tools,
    check_schemas,
    check_inputs,
    check_limits,
    check_commands,
)


@dataclass(frozen=True, slots=True)
class ExaminedRecipe:
    """A recipe as far as it can be read, for an editor in which it is still being written."""

    draft: Draft
    edges: Edges
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


def check(
    recipe: Recipe, catalog: Catalog = EMPTY_CATALOG, limits: Limits = DEFAULT_LIMITS
) -> Checked | Problems:
    """A recipe, with those that it uses as steps."""
    recipes = _inner_recipes(catalog, limits)
    return recipes.check(recipe, recipes)


def examine(
    recipe: Recipe, catalog: Catalog = EMPTY_CATALOG, limits: Limits = DEFAULT_LIMITS
) -> ExaminedRecipe:
    """The same with its draft and its edges, whatever is wrong with it."""
    recipes = _inner_recipes(catalog, limits)
    recipes.enter(recipe)
    return _examine(recipe, catalog, limits, recipes)[0]


def _inner_recipes(catalog: Catalog, limits: Limits) -> InnerRecipes:
    def check_one(each: Recipe, recipes: InnerRecipes) -> Checked | Problems:
        recipes.enter(each)
        found, inner = _examine(each, catalog, limits, recipes)
        recipes.leave()
        return (
            Problems(found.problems)
            if found.problems
            else checked_of(found.draft, found.edges, inner)
        )

    return InnerRecipes(check_one, catalog)


def _examine(
    recipe: Recipe, catalog: Catalog, limits: Limits, recipes: InnerRecipes
) -> tuple[ExaminedRecipe, dict[StepId, Checked]]:
    draft = make_draft(recipe, catalog, limits)
    inner = recipes.of(draft)  # first: references to their outputs are checked below
    for rule in _RULES:
        rule(draft)
    edges = connect(draft)
    check_cycles(draft, edges)
    check_merge_order(draft, edges)
    problems = dict.fromkeys((*recipe.problems, *draft.problems))
    if not problems:
        warn_empty(draft)
        warn_unused(draft)
        warn_prose(draft)
        if not all(isinstance(each, Template) for each in draft.parsed.values()):
            # On use: most recipes have no expressions.
            from stretto.plan.rules.expressions import warn_undecided

            warn_undecided(draft)
        warn_untold(draft, edges)
    ordered = tuple(sorted(problems, key=lambda problem: problem.sort_key))
    return ExaminedRecipe(draft, edges, ordered, tuple(draft.warnings)), inner
