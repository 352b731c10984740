"""A parallel step waits for branches that it has, and has some."""

from stretto.plan.draft import Draft
from stretto.recipe.model import Parallel


def check(draft: Draft) -> None:
    for step in draft.recipe.steps:
        if not isinstance(step.work, Parallel):
            continue
        count = len(step.work.branches)
        at = (*step.at, "parallel")
        if count == 0 and not draft.has_problem_below(at):
            draft.problem_at("RCP112", at, f"step '{step.id}' has no branches", "list at least one")
        if isinstance(step.work.wait, int) and step.work.wait > count > 0:
            draft.problem_at(
                "RCP112",
                (*step.at, "wait"),
                f"it waits for {step.work.wait} branches and has {count}",
                f"write all, any, or a number from 1 to {count}",
            )
