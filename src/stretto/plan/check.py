"""Check a recipe and collect every problem of it.

Kept apart from `build`: checking imports neither the classes of a plan nor msgspec.
"""

from dataclasses import dataclass

from stretto.plan.catalog import EMPTY_CATALOG, Catalog
from stretto.plan.draft import Draft, make_draft
from stretto.plan.edges import Edges, connect
from stretto.plan.rules.agents import check_agents, check_instructions, check_tools
from stretto.plan.rules.commands import check_commands
from stretto.plan.rules.graph import (
    check_cycles,
    check_dependencies,
    check_merge_order,
    check_targets,
)
from stretto.plan.rules.names import check_inputs, check_names
from stretto.plan.rules.steps import (
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
    warn_unused,
)
from stretto.problems import Problem
from stretto.recipe.model import Recipe
from stretto.vocabulary.limits import DEFAULT_LIMITS, Limits

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
        rule(draft)
    edges = connect(draft)
    check_cycles(draft, edges)
    check_merge_order(draft, edges)
    problems = (*recipe.problems, *draft.problems)
    if problems:
        return Problems(tuple(sorted(problems, key=lambda problem: problem.sort_key)))
    warn_empty(draft)
    warn_unused(draft)
    return Checked(draft, edges)
