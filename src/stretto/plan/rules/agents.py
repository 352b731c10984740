"""Every agent exists, is told something, and is given tools that exist and never those that delegate."""

from collections.abc import Mapping

from msgspec import Struct

from stretto.documents.node import Path
from stretto.plan.draft import Draft, DraftStep
from stretto.recipe.model import (
    Agent,
    Branch,
    Condition,
    Delegation,
    Loop,
    Map,
    OnFailure,
    Parallel,
    Switch,
)
from stretto.text.short import did_you_mean, listed
from stretto.toolnames.filters import ToolFault, is_delegating, tool_fault
from stretto.vocabulary.names import AgentId, tool_name


def check_agents(draft: Draft) -> None:
    for drafted in draft.steps:
        _check_named(draft, drafted.step.work, drafted.step.at, drafted.id)
        for use in drafted.uses:
            # Where `agents:` itself could not be read, any agent may be one of it.
            if draft.agent(use.agent) is None and not draft.has_told((*draft.recipe.at, "agents")):
                draft.problem_at(
                    "RCP108",
                    _agent_at(draft, use.at),
                    f"agent '{use.agent}' is not defined here or registered",
                    _agent_hint(draft, use.agent),
                )
        step = drafted.step
        if step.on_failure is not None or step.retry.on_failure is not None:
            users = {use.agent for use in drafted.uses}
            _check_fallback(draft, step.on_failure, (*step.at, "on_failure"), users)
            _check_fallback(draft, step.retry.on_failure, (*step.at, "retry", "on_failure"), users)
    _check_fallback_circles(draft)
    for agent in draft.recipe.agents.values():
        _check_fallback(
            draft, agent.retry.on_failure, (*agent.at, "retry", "on_failure"), {agent.id}
        )


_FOR_ALL_STEPS = ("defaults", "default_agent")


def _agent_at(draft: Draft, at: Path) -> Path:
    """The key that names the agent, if the part has one."""
    return next((here for key in ("subagent", "agent") if draft.is_written(here := (*at, key))), at)


def _check_named(draft: Draft, work: object, at: Path, id: str) -> None:
    """A delegation without an agent, unless the dialect has a default one."""
    key = draft.recipe.dialect.agent_key
    if (
        isinstance(work, Delegation)
        and work.agent is None
        and not draft.recipe.dialect.default_agent
    ):
        _report_missing(draft, at, f"step '{id}' needs '{key}'")
    if isinstance(work, Parallel):
        for branch in work.branches:
            if branch.agent is None:
                _report_missing(draft, branch.at, "a branch needs 'agent'")
    if isinstance(work, Map):
        for stage in work.stages:
            if stage.agent is None:
                _report_missing(draft, stage.at, "a stage needs 'agent'")
        if draft.is_written((*at, "map", "stages")) and not work.stages:
            _report_missing(draft, (*at, "map", "stages"), "'map' needs at least one stage")


def _report_missing(draft: Draft, at: Path, message: str) -> None:
    # An agent that is written but unreadable has its problem already, and so has one that is
    # written once for all steps.
    is_elsewhere = any(draft.has_told((*draft.recipe.at, key)) for key in _FOR_ALL_STEPS)
    if not is_elsewhere and not draft.has_problem_below(at):
        draft.problem_at("RCP102", at, message, "name the agent that does it")


def _check_fallback(
    draft: Draft, on_failure: OnFailure | None, at: Path, users: set[AgentId]
) -> None:
    if on_failure is None or on_failure.fallback is None:
        return
    if on_failure.fallback in users and len(users) == 1:
        draft.problem_at(
            "RCP115",
            at,
            f"agent '{on_failure.fallback}' falls back to itself",
            "name another agent, or retry with max_attempts",
        )
    elif draft.agent(on_failure.fallback) is None:
        draft.problem_at(
            "RCP115",
            at,
            f"fallback agent '{on_failure.fallback}' is not defined or registered",
            _agent_hint(draft, on_failure.fallback),
        )


def _check_fallback_circles(draft: Draft) -> None:
    own = draft.recipe.agents
    told: set[AgentId] = set()
    for start in own:
        chain, id = [start], start
        while (next_id := _fallback_agent(own, id)) and next_id not in chain:
            chain.append(next_id)
            id = next_id
        if next_id == start and len(chain) > 1 and not told & set(chain):
            told |= set(chain)
            spelt = " → ".join([*chain, start])
            at = (*own[id].at, "retry", "on_failure")
            message = f"these agents fall back to each other: {spelt}"
            draft.problem_at("RCP115", at, message, f"write another policy for '{id}'")


def _fallback_agent(agents: Mapping[AgentId, Agent], id: AgentId) -> AgentId | None:
    agent = agents.get(id)
    on_failure = agent.retry.on_failure if agent else None
    return on_failure.fallback if on_failure else None


def _agent_hint(draft: Draft, name: str) -> str | None:
    broken = draft.catalog.broken.get(AgentId(name))
    if broken is not None:
        line = f":{broken.place.line}" if broken.place else ""
        return f"its file cannot be used: {broken.file}{line}: {broken.message}"
    known = draft.agent_ids()
    return did_you_mean(name, known) or (
        f"known agents: {listed(known)}" if known else "define it under agents:"
    )


def check_tools(draft: Draft) -> None:
    for agent in draft.recipe.agents.values():
        for position, tool in enumerate(agent.tools):
            fault = tool_fault(tool, draft.catalog.tools)
            _report_tool(draft, (*agent.at, "tools"), position, tool, fault)
        for position, tool in enumerate(agent.disallowed_tools):
            # Forbidding a tool that the agent does not have is harmless; a misspelt name is not.
            # A filter is not read here: whatever it says, the whole tool is forbidden.
            if not is_delegating(tool_name(tool)):
                fault = tool_fault(tool_name(tool), draft.catalog.tools)
                _report_tool(draft, (*agent.at, "disallowed_tools"), position, tool, fault)


def _report_tool(draft: Draft, at: Path, position: int, tool: str, fault: ToolFault | None) -> None:
    if fault is not None:
        draft.problem_at_word(fault.code, at, position, tool, fault.message, fault.hint)


class _Listener(Struct, frozen=True):
    """Somebody who is told `text`, and how messages call it."""

    at: Path
    agent: AgentId | None
    text: str | None
    text_at: Path
    name: str
    key: str


def check_instructions(draft: Draft) -> None:
    for drafted in draft.steps:
        text = drafted.step.instruction
        if text and not text.isspace() and not isinstance(drafted.step.work, Parallel):
            continue
        for listener in _listeners(draft, drafted):
            # In the wrapped dialect, and inside other work, an agent's prompt may be all it needs.
            is_plain = isinstance(drafted.step.work, Delegation)
            must_be_told = is_plain and draft.recipe.dialect.needs_instruction
            if must_be_told or not _has_prompt(draft, listener.agent):
                _check_instruction(draft, listener)


def _listeners(draft: Draft, drafted: DraftStep) -> list[_Listener]:
    step, key = drafted.step, draft.recipe.dialect.instruction_key
    name = f"step '{step.id}'"

    def listener(agent: AgentId | None) -> _Listener:
        return _Listener(step.at, agent, step.instruction, step.instruction_at, name, key)

    match step.work:
        case Delegation(agent):
            return [listener(agent)]
        case Loop(agent):
            return [listener(agent)]
        case Condition() | Switch():
            return [listener(use.agent) for use in drafted.uses]
        case Parallel(branches):
            return [_branch_listener(branch, listener(branch.agent), key) for branch in branches]
        case _:  # a map hands each element over, and that is something
            return []


def _branch_listener(branch: Branch, step: _Listener, key: str) -> _Listener:
    text = step.text if branch.instruction is None else branch.instruction
    at = branch.at if branch.instruction is None else branch.instruction_at
    return _Listener(branch.at, branch.agent, text, at, "a branch", key)


def _has_prompt(draft: Draft, id: AgentId | None) -> bool:
    agent = draft.agent(id) if id else None
    # What a registered agent is told stands in its own file.
    return agent is None or not agent.is_local or bool(agent.prompt.strip())


def _check_instruction(draft: Draft, listener: _Listener) -> None:
    at, text = listener.at, listener.text
    if text is not None and text.strip():
        return
    if draft.has_problem_below(*((*at, each) for each in ("prompt", "input", "task"))):
        return
    if draft.has_unknown_key(at):
        return
    if text is None:
        hint = f"{listener.key}: what the agent is told"
        draft.problem_at("RCP102", at, f"{listener.name} needs '{listener.key}'", hint)
    else:
        message = f"{listener.name} tells its agent nothing"
        draft.problem_at("RCP102", listener.text_at, message, "write what it should do")
