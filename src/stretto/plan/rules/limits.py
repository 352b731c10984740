"""A recipe asks for no more than the limits allow (RECIPES §8)."""

from stretto.documents.node import ListNode
from stretto.documents.source import find
from stretto.plan.draft import Draft
from stretto.recipe.model import Map, Parallel

_RAISE = "only your own ~/.stretto/stretto.yaml may raise it, under limits:"


def check(draft: Draft) -> None:
    recipe, limits = draft.recipe, draft.limits
    steps_at = (*recipe.at, "steps")
    steps = find(recipe.root, steps_at) if recipe.root else None
    if isinstance(steps, ListNode) and not steps.items:
        draft.problem_at(
            "RCP119", steps_at, "a recipe needs at least one step", "add one under steps:"
        )
    if len(recipe.steps) > limits.steps:
        draft.problem_at(
            "RCP118",
            (*steps_at, limits.steps),
            f"the recipe has {len(recipe.steps):,} steps; at most {limits.steps:,} are allowed",
            _RAISE,
        )
    for step in recipe.steps:
        if isinstance(step.work, Parallel) and len(step.work.branches) > limits.branches:
            draft.problem_at(
                "RCP118",
                (*step.at, "parallel"),
                f"{len(step.work.branches)} branches; at most {limits.branches} are allowed",
                f"use map: for many alike, or {_RAISE}",
            )
        if isinstance(step.work, Map) and (step.work.max_items or 0) > limits.map_items_ceiling:
            draft.problem_at(
                "RCP118",
                (*step.at, "map", "max_items"),
                f"max_items is {step.work.max_items:,}; "
                f"at most {limits.map_items_ceiling:,} are allowed",
                _RAISE,
            )
