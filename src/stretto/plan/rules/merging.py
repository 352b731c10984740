"""A change that is merged after another step: one that exists, and waits for the writer."""

from stretto.plan.draft import Draft
from stretto.plan.edges import Edges
from stretto.recipe.model import Step
from stretto.vocabulary.ids import StepId
from stretto.vocabulary.names import did_you_mean, listed

_CODE = "RCP127"


def check(draft: Draft, edges: Edges) -> None:
    for step in draft.recipe.steps:
        at = (*step.at, "merge_back")
        if step.merge_after is None:
            if step.merge_when is not None:
                message = "'merge_when' decides about 'merge_back: after STEP', and there is none"
                draft.problem_at(
                    _CODE, (*step.at, "merge_when"), message, "write merge_back: after STEP"
                )
        elif step.merge_after not in draft.by_id:
            known = [id for id in draft.step_ids() if id != step.id]
            hint = did_you_mean(step.merge_after, known) or f"its steps: {listed(known)}"
            message = f"'{step.merge_after}' is no step of this recipe"
            draft.problem_at(_CODE, at, message, hint)
        elif not _waits_for(edges, step.merge_after, step):
            message = f"step '{step.merge_after}' does not wait for '{step.id}'"
            hint = f"give it depends_on: [{step.id}], or a prompt with {{{{steps.{step.id}.diff}}}}"
            draft.problem_at(_CODE, at, message, hint)


def _waits_for(edges: Edges, later: StepId, step: Step) -> bool:
    waiting, seen = [later], set[StepId]()
    while waiting:
        for before in edges[waiting.pop()]:
            if before == step.id:
                return True
            if before not in seen:
                seen.add(before)
                waiting.append(before)
    return False
