"""What a dry run shows. In: Plan. Out: waves, and an upper bound of model calls.

The waves are those that result when every step takes equally long and every route is taken;
at run time there are no waves and no barriers (RECIPES §9).
"""

from collections.abc import Callable, Mapping

from weft.plan.claims import ConflictIndex
from weft.plan.model import (
    Brief,
    Choose,
    Delegate,
    Each,
    Fan,
    Plan,
    PlannedAgent,
    PlannedStep,
    Refine,
    Route,
    briefs,
)
from weft.vocabulary.ids import AgentId, StepId

# A model may call a tool in every turn; an agent that names no cap gets this one.
DEFAULT_MAX_TURNS = 25


def waves(plan: Plan) -> tuple[tuple[StepId, ...], ...]:
    index = ConflictIndex([step.claims for step in plan.steps])
    ended: set[StepId] = set()
    left = list(plan.steps)
    result = []
    while left:
        wave: list[PlannedStep] = []
        for step in left:
            if len(wave) == plan.width:
                break
            is_ready = all(before in ended for before in step.depends_on)
            if is_ready and not any(index.conflicts(step.index, other.index) for other in wave):
                wave.append(step)
        started = {step.id for step in wave}
        left = [step for step in left if step.id not in started]
        ended |= started
        result.append(tuple(step.id for step in wave))
    return tuple(result)


def max_delegations(plan: Plan) -> int:
    """Subagents deployed at the most: every route, retry, iteration, element and fallback."""
    return sum(_most(step, _attempts) for step in plan.steps)


def max_model_calls(plan: Plan) -> int:
    """The same, with every turn an agent with tools may take."""
    return sum(_most(step, lambda brief: _calls(brief, plan.agents)) for step in plan.steps)


def _most(step: PlannedStep, cost: Callable[[Brief], int]) -> int:
    work = step.work
    match work:
        case Delegate():
            return cost(work.brief)
        case Fan():
            return sum(cost(branch.brief) for branch in work.branches)
        case Route() | Choose():
            return max((cost(brief) for brief in briefs(work)), default=0)
        case Refine():
            judged = cost(work.validator) if work.validator else 0
            return work.max_iterations * (cost(work.producer) + judged)
        case Each():
            reduced = cost(work.reducer) if work.reducer else 0
            return work.max_items * sum(map(cost, work.stages)) + reduced


def _attempts(brief: Brief) -> int:
    # A fallback gets the same input and one chance of its own.
    return brief.retry.max_attempts + (1 if brief.fallback else 0)


def _calls(brief: Brief, agents: Mapping[AgentId, PlannedAgent]) -> int:
    calls = brief.retry.max_attempts * _turns(agents[brief.agent])
    return calls + (_turns(agents[brief.fallback]) if brief.fallback else 0)


def _turns(agent: PlannedAgent) -> int:
    # Without tools there is nothing to take a second turn for; a judge adds one call.
    turns = (agent.max_turns or DEFAULT_MAX_TURNS) if agent.tools else 1
    return turns + (1 if agent.validation.rules else 0)
