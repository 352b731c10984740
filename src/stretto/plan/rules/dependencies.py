"""Every dependency exists."""

from stretto.plan.draft import Draft
from stretto.vocabulary.names import did_you_mean, listed


def check(draft: Draft) -> None:
    for step in draft.recipe.steps:
        befores = set(step.depends_on or ())
        if len(befores) == len(step.depends_on or ()) and befores <= draft.by_id.keys():
            continue
        seen: set[str] = set()
        for position, before in enumerate(step.depends_on or ()):
            at = draft.element((*step.at, "depends_on"), position, before)
            if before not in draft.by_id:
                message = (
                    f"step '{step.id}' depends on '{before}', which this recipe does not define"
                )
                if draft.has_nameless_step:
                    continue  # it may well be the one whose id cannot be read
                known = [id for id in draft.step_ids() if id != step.id]
                hint = did_you_mean(before, known)
                if hint is None:
                    hint = (
                        f"its steps: {listed(known)}" if known else "this recipe has no other step"
                    )
                draft.problem_at("RCP104", at, message, hint)
            elif before in seen:
                draft.warning_at("RCP901", at, f"'{before}' is listed twice in depends_on")
            seen.add(before)
