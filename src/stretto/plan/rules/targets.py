"""Every condition leads somewhere: to a step of this recipe or to a known agent."""

from stretto.plan.draft import Draft
from stretto.recipe.model import Condition, Switch
from stretto.vocabulary.ids import AgentId, StepId
from stretto.vocabulary.names import did_you_mean, listed


def check(draft: Draft) -> None:
    for drafted in draft.steps:
        for at, name in drafted.targets:
            if StepId(name) in draft.by_id or draft.agent(AgentId(name)):
                continue
            hint = did_you_mean(name, [*draft.step_ids(), *draft.agent_ids()])
            draft.problem_at(
                "RCP116",
                at,
                f"'{name}' is neither a step of this recipe nor an agent",
                hint or f"its steps: {listed(draft.step_ids())}",
            )
        work = drafted.step.work
        has_words = (isinstance(work, Condition) and work.eval) or (
            isinstance(work, Switch) and work.value
        )
        if has_words and not drafted.targets:
            draft.problem_at(
                "RCP116",
                drafted.step.at,
                f"step '{drafted.id}' leads nowhere",
                "name a step or an agent under true:, false: or cases:",
            )
