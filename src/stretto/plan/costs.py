"""What a run may cost at the most: subagents and model calls, with every retry, route and element."""

from collections.abc import Callable, Mapping

from stretto.plan.model import (
    Brief,
    Plan,
    PlannedAgent,
    PlannedCondition,
    PlannedDelegation,
    PlannedLoop,
    PlannedMap,
    PlannedParallel,
    PlannedStep,
    PlannedSwitch,
    PlannedWorkflow,
    briefs,
)
from stretto.vocabulary.ids import AgentId, StepId

_UNKNOWN: Mapping[StepId, int] = {}
# A model may call a tool in every turn; an agent that names no cap gets this one.
DEFAULT_MAX_TURNS = 25


def max_delegations(plan: Plan, lengths: Mapping[StepId, int] = _UNKNOWN) -> int:
    """Subagents deployed at the most: every route, retry, iteration, element and fallback."""
    return sum(_most(step, _attempts, lengths) for step in plan.steps)


def max_model_calls(plan: Plan, lengths: Mapping[StepId, int] = _UNKNOWN) -> int:
    """The same, with every turn an agent with tools may take."""
    return sum(
        _most(step, lambda brief: _calls(brief, plan.agents), lengths) for step in plan.steps
    )


def _most(step: PlannedStep, cost: Callable[[Brief], int], lengths: Mapping[StepId, int]) -> int:
    work = step.work
    match work:
        case PlannedDelegation():
            return cost(work.brief)
        case PlannedParallel():
            return sum(cost(branch.brief) for branch in work.branches)
        case PlannedCondition() | PlannedSwitch():
            return max((cost(brief) for brief in briefs(work)), default=0)
        case PlannedLoop():
            judged = cost(work.validator) if work.validator else 0
            return work.max_iterations * (cost(work.producer) + judged)
        case PlannedMap():
            reduced = cost(work.reducer) if work.reducer else 0
            length = lengths.get(step.id, work.max_items)
            return length * sum(map(cost, work.stages)) + reduced
        case PlannedWorkflow():
            return 0  # its steps are counted by themselves


def _attempts(brief: Brief) -> int:
    if brief.command is not None:
        return 0  # it deploys no subagent
    return brief.retry.max_attempts + (brief.fallback_retry.max_attempts if brief.fallback else 0)


def _calls(brief: Brief, agents: Mapping[AgentId, PlannedAgent]) -> int:
    if brief.command is not None:
        return 0
    calls = brief.retry.max_attempts * _turns(agents[brief.agent])
    if brief.fallback is None:
        return calls
    return calls + brief.fallback_retry.max_attempts * _turns(agents[brief.fallback])


def _turns(agent: PlannedAgent) -> int:
    # Without tools there is nothing to take a second turn for; a judge adds one call.
    turns = (agent.max_turns or DEFAULT_MAX_TURNS) if agent.tools else 1
    return turns + (1 if agent.validation.rules else 0)
