"""Every subagent is told something: by its step, or by its own prompt."""

from dataclasses import dataclass

from stretto.documents.node import Path
from stretto.plan.draft import Draft, DraftStep
from stretto.recipe.model import Branch, Condition, Delegation, Loop, Parallel, Switch
from stretto.vocabulary.ids import AgentId


@dataclass(frozen=True, slots=True)
class _Listener:
    """Somebody who is told `text`, and how messages call it."""

    at: Path
    agent: AgentId | None
    text: str | None
    text_at: Path
    name: str
    key: str


def check(draft: Draft) -> None:
    for drafted in draft.steps:
        text = drafted.step.instruction
        if text and not text.isspace() and not isinstance(drafted.step.work, Parallel):
            continue
        for listener in _listeners(draft, drafted):
            # In the wrapped dialect, and inside other work, an agent's prompt may be all it needs.
            is_plain = isinstance(drafted.step.work, Delegation)
            must_be_told = is_plain and draft.recipe.dialect.needs_instruction
            if must_be_told or not _has_prompt(draft, listener.agent):
                _check(draft, listener)


def _listeners(draft: Draft, drafted: DraftStep) -> list[_Listener]:
    step, key = drafted.step, draft.recipe.dialect.instruction_key
    name = f"step '{step.id}'"

    def told(agent: AgentId | None) -> _Listener:
        return _Listener(step.at, agent, step.instruction, step.instruction_at, name, key)

    match step.work:
        case Delegation(agent):
            return [told(agent)]
        case Loop(agent):
            return [told(agent)]
        case Condition() | Switch():
            return [told(use.agent) for use in drafted.uses]
        case Parallel(branches):
            return [_branch(branch, told(branch.agent), key) for branch in branches]
        case _:  # a map hands each element over, and that is something
            return []


def _branch(branch: Branch, step: _Listener, key: str) -> _Listener:
    text = step.text if branch.instruction is None else branch.instruction
    at = branch.at if branch.instruction is None else branch.instruction_at
    return _Listener(branch.at, branch.agent, text, at, "a branch", key)


def _has_prompt(draft: Draft, id: AgentId | None) -> bool:
    agent = draft.agent(id) if id else None
    # A registered agent is its own file's business.
    return agent is None or not agent.is_local or bool(agent.prompt.strip())


def _check(draft: Draft, listener: _Listener) -> None:
    at, text = listener.at, listener.text
    if text is not None and text.strip():
        return
    if draft.has_problem_below(*((*at, each) for each in ("prompt", "input", "task"))):
        return
    if text is None:
        hint = f"{listener.key}: what the agent is told"
        draft.problem_at("RCP102", at, f"{listener.name} needs '{listener.key}'", hint)
    else:
        message = f"{listener.name} tells its agent nothing"
        draft.problem_at("RCP102", listener.text_at, message, "write what it should do")
