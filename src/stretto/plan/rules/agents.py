"""Every agent exists: those that steps name, and those that take over when one fails."""

from stretto.documents.node import Path
from stretto.plan.draft import Draft
from stretto.recipe.model import Delegation, Map, OnFailure, Parallel
from stretto.vocabulary.ids import AgentId
from stretto.vocabulary.names import did_you_mean, listed


def check(draft: Draft) -> None:
    for drafted in draft.steps:
        _named(draft, drafted.step.work, drafted.step.at, drafted.id)
        for use in drafted.uses:
            if draft.agent(use.agent) is None:
                draft.problem_at(
                    "RCP108",
                    _agent_at(draft, use.at),
                    f"agent '{use.agent}' is not defined here or registered",
                    _hint(draft, use.agent),
                )
        step = drafted.step
        if step.on_failure is not None or step.retry.on_failure is not None:
            users = {use.agent for use in drafted.uses}
            _fallback(draft, step.on_failure, (*step.at, "on_failure"), users)
            _fallback(draft, step.retry.on_failure, (*step.at, "retry", "on_failure"), users)
    for agent in draft.recipe.agents.values():
        _fallback(draft, agent.retry.on_failure, (*agent.at, "retry", "on_failure"), {agent.id})


def _agent_at(draft: Draft, at: Path) -> Path:
    """The key that names the agent, if the part has one."""
    return next((here for key in ("subagent", "agent") if draft.is_written(here := (*at, key))), at)


def _named(draft: Draft, work: object, at: Path, id: str) -> None:
    """A delegation without an agent, unless the dialect has a default one."""
    key = draft.recipe.dialect.agent_key
    if (
        isinstance(work, Delegation)
        and work.agent is None
        and not draft.recipe.dialect.default_agent
    ):
        _missing(draft, at, f"step '{id}' needs '{key}'")
    if isinstance(work, Parallel):
        for branch in work.branches:
            if branch.agent is None:
                _missing(draft, branch.at, "a branch needs 'agent'")
    if isinstance(work, Map):
        for stage in work.stages:
            if stage.agent is None:
                _missing(draft, stage.at, "a stage needs 'agent'")
        if draft.is_written((*at, "map", "stages")) and not work.stages:
            _missing(draft, (*at, "map", "stages"), "'map' needs at least one stage")


def _missing(draft: Draft, at: Path, message: str) -> None:
    # An agent that is written but unreadable has its problem already.
    if not draft.has_problem_below(at):
        draft.problem_at("RCP102", at, message, "name the agent that does it")


def _fallback(draft: Draft, on_failure: OnFailure | None, at: Path, users: set[AgentId]) -> None:
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
            _hint(draft, on_failure.fallback),
        )


def _hint(draft: Draft, name: str) -> str | None:
    broken = draft.catalog.broken.get(AgentId(name))
    if broken is not None:
        line = f":{broken.place.line}" if broken.place else ""
        return f"its file cannot be used: {broken.file}{line}: {broken.message}"
    known = draft.agent_ids()
    return did_you_mean(name, known) or (
        f"known agents: {listed(known)}" if known else "define it under agents:"
    )
