"""Every subagent is told something: by its step, or by its own prompt."""

from weft.documents.node import Path
from weft.plan.draft import Draft
from weft.recipe.model import Delegation, Parallel
from weft.vocabulary.ids import AgentId


def check(draft: Draft) -> None:
    dialect = draft.recipe.dialect
    for drafted in draft.steps:
        step = drafted.step
        match step.work:
            case Delegation(agent):
                name = f"step '{step.id}'"
                key = dialect.instruction_key
                _told(draft, step.instruction, step.instruction_at, step.at, agent, name, key)
            case Parallel(branches):
                for branch in branches:
                    told = (
                        branch.instruction if branch.instruction is not None else step.instruction
                    )
                    at = branch.instruction_at if branch.instruction is not None else branch.at
                    _told(draft, told, at, branch.at, branch.agent, "a branch", "input")
            case _:
                pass


def _told(
    draft: Draft,
    text: str | None,
    text_at: Path,
    at: Path,
    agent: AgentId | None,
    name: str,
    key: str,
) -> None:
    if (text is not None and text.strip()) or _speaks_itself(draft, agent):
        return
    if draft.has_problem_below(*((*at, each) for each in ("prompt", "input", "task"))):
        return
    if text is None:
        draft.say("RCP102", at, f"{name} needs '{key}'", "write what the agent is told")
    else:
        draft.say("RCP102", text_at, f"{name} tells its agent nothing", "write what it should do")


def _speaks_itself(draft: Draft, id: AgentId | None) -> bool:
    """In the wrapped dialect an agent's own prompt may be all that it is told."""
    if draft.recipe.dialect.needs_instruction:
        return False
    agent = draft.agent(id) if id else None
    return agent is None or bool(agent.prompt.strip())
