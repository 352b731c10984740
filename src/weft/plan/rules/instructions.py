"""Every subagent is told something: by its step, or by its own prompt."""

from weft.plan.draft import Draft
from weft.recipe.model import Delegation


def check(draft: Draft) -> None:
    dialect = draft.recipe.dialect
    for drafted in draft.steps:
        step = drafted.step
        is_blank = step.instruction is not None and not step.instruction.strip()
        if is_blank and not _agent_speaks(draft, drafted.step.work):
            draft.say(
                "RCP102",
                step.instruction_at,
                f"step '{step.id}' tells its agent nothing",
                "write what it should do",
            )
        if not isinstance(step.work, Delegation) or step.instruction is not None:
            continue
        if draft.has_problem_below(*((*step.at, key) for key in ("prompt", "input", "task"))):
            continue
        if dialect.needs_instruction or not _agent_speaks(draft, step.work):
            draft.say(
                "RCP102",
                step.at,
                f"step '{step.id}' needs '{dialect.instruction_key}'",
                "what the agent is told",
            )


def _agent_speaks(draft: Draft, work: object) -> bool:
    if draft.recipe.dialect.needs_instruction:
        return False
    if not isinstance(work, Delegation) or work.agent is None:
        return True
    agent = draft.agent(work.agent)
    return agent is None or bool(agent.prompt.strip())
