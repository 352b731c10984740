"""Which steps could run together, and how many model calls a plan needs at most.

The waves are those that result when every step takes equally long and every route is taken;
at run time there are no waves and no barriers (RECIPES §9).
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from heapq import heappop, heappush

from stretto.plan.claims import ConflictIndex
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
    briefs,
)
from stretto.vocabulary.ids import AgentId, StepId

# A model may call a tool in every turn; an agent that names no cap gets this one.
DEFAULT_MAX_TURNS = 25


def waves(plan: Plan) -> tuple[tuple[StepId, ...], ...]:
    index = ConflictIndex([step.claims for step in plan.steps])
    waits_for = [len(set(step.depends_on)) for step in plan.steps]
    after: defaultdict[StepId, list[int]] = defaultdict(list)
    for step in plan.steps:
        for before in set(step.depends_on):
            after[before].append(step.index)
    ready = [i for i, count in enumerate(waits_for) if count == 0]  # a heap: in listing order
    result = []
    while ready:
        wave, held_back = list[int](), list[int]()
        while ready and len(wave) < plan.width:
            i = heappop(ready)
            conflicts = any(index.conflicts(i, other) for other in wave)
            (held_back if conflicts else wave).append(i)
        for i in held_back:
            heappush(ready, i)
        for follower in (follower for i in wave for follower in after[plan.steps[i].id]):
            waits_for[follower] -= 1
            if waits_for[follower] == 0:
                heappush(ready, follower)
        result.append(tuple(plan.steps[i].id for i in wave))
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
