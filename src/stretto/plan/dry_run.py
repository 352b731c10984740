"""What a run would do, as JSON: its waves, its prompts as far as they are known, its cost."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heappop, heappush

from stretto.plan.claims import ConflictIndex
from stretto.plan.composed_prompt import compose, describe_command, under_headings
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
    Target,
    briefs,
)
from stretto.problems.render import as_json
from stretto.templates.render import render_known
from stretto.templates.scope import Scope
from stretto.vocabulary.ids import AgentId, StepId
from stretto.vocabulary.json_value import Json

# What those get to whom the step itself says nothing.
_HANDED = {
    "validator": "(the candidate)",
    "reducer": "(the collected results)",
    "each element": "{{item}}",
    "stage 1": "{{item}}",
}


def dry_run(
    plan: Plan, inputs: Mapping[str, Json], default_model: str | None = None
) -> dict[str, object]:
    scope = Scope(inputs=dict(inputs), steps={}, stored=plan.stored, local={})
    return {
        "ok": True,
        "mode": "dry_run",
        "workflow": plan.name,
        "inputs": dict(inputs),
        "warnings": [as_json(warning) for warning in plan.warnings],
        "would_run": [_step(plan, step, scope, default_model) for step in plan.steps],
        "waves": [list(wave) for wave in waves(plan)],
        "summary": {
            "steps": len(plan.steps),
            "max_concurrency": plan.width,
            "max_model_calls": max_model_calls(plan),
            "max_delegations": max_delegations(plan),
        },
    }


def _step(
    plan: Plan, step: PlannedStep, scope: Scope, default_model: str | None
) -> dict[str, object]:
    delegations = [
        {
            "role": role,
            "agent": brief.agent,
            "model": None if brief.command else brief.model or default_model,
            "tools": list(plan.agents[brief.agent].tools),
            "prompt": prompt_of(plan, step, role, brief, scope),
            **({"playbooks": list(brief.playbooks)} if brief.playbooks else {}),
        }
        for role, brief in roles(step)
    ]
    is_single = isinstance(step.work, PlannedDelegation)
    return {
        "id": step.id,
        "type": step.type,
        "agent": delegations[0]["agent"] if is_single else None,
        "depends_on": list(step.depends_on),
        "posture": step.posture,
        "workspace_mode": step.workspace_mode,
        "read_set": list(step.read_set),
        "write_set": list(step.write_set),
        "prompt": delegations[0]["prompt"] if is_single else None,
        "model": delegations[0]["model"] if is_single else None,
        "delegations": delegations,
        "decides": decision_of(step),
        "when": step.when.text if step.when else None,
        "gate": "human" if step.is_gated else None,
        "on_failure": step.on_failure,
        "timeout_seconds": step.timeout_seconds,
    }


def prompt_of(plan: Plan, step: PlannedStep, role: str, brief: Brief, scope: Scope) -> str:
    """All that it would be told; what only a run can know stays `{{…}}`."""
    if (command := brief.command) is not None:
        env = {name: render_known(value, scope) for name, value in command.env.items()}
        stdin = render_known(command.stdin, scope) if command.stdin else _HANDED.get(role, "")
        return describe_command(command.run, env, stdin)
    agent = plan.agents[brief.agent]
    told = render_known(brief.instruction, scope) if brief.instruction is not None else None
    given = _default_input(plan, step, role, brief)

    def results() -> str:
        return _known_only_later(step.depends_on)

    own = render_known(agent.prompt, scope)
    return compose(brief.style, own, told, given, results).prompt


def _default_input(plan: Plan, step: PlannedStep, role: str, brief: Brief) -> str | None:
    if brief.gets_all_prior:
        return _known_only_later([earlier.id for earlier in plan.steps[: step.index]])
    return _HANDED.get(role)


def _known_only_later(ids: Iterable[StepId]) -> str:
    return under_headings((id, f"{{{{steps.{id}.output}}}}") for id in ids)


def roles(step: PlannedStep) -> Iterator[tuple[str, Brief]]:
    """Everyone whom the step may ask, and as what."""
    match step.work:
        case PlannedDelegation(brief):
            yield ("command" if brief.command else "agent"), brief
        case PlannedParallel(branches):
            for branch in branches:
                yield f"branch {branch.key}", branch.brief
        case PlannedCondition() as route:
            for word, target in (("true", route.if_true), ("false", route.if_false)):
                if target and target.brief:
                    yield f"when {word}", target.brief
        case PlannedSwitch() as choose:
            for case, target in (*choose.cases, ("default", choose.default)):
                if target and target.brief:
                    yield f"case {case}", target.brief
        case PlannedLoop() as loop:
            yield "producer", loop.producer
            if loop.validator:
                yield "validator", loop.validator
        case PlannedMap() as each:
            for number, stage in enumerate(each.stages, start=1):
                yield ("each element" if len(each.stages) == 1 else f"stage {number}"), stage
            if each.reducer:
                yield "reducer", each.reducer


def decision_of(step: PlannedStep) -> dict[str, object] | None:
    match step.work:
        case PlannedCondition() as route:
            chosen = {"true": _name(route.if_true), "false": _name(route.if_false)}
            return {"eval": route.condition.text, **chosen}
        case PlannedSwitch() as choose:
            cases = {case: _name(target) for case, target in choose.cases}
            return {"value": choose.value.text, "cases": cases, "default": _name(choose.default)}
        case _:
            return None


def _name(target: Target | None) -> str | None:
    return target.name if target else None


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
        wave, held_back, free = list[int](), list[int](), plan.width
        while ready and free > 0:
            i = heappop(ready)
            if any(index.conflicts(i, other) for other in wave):
                held_back.append(i)
            else:
                wave.append(i)
                free -= places_of(plan.steps[i])
        for i in held_back:
            heappush(ready, i)
        for follower in (follower for i in wave for follower in after[plan.steps[i].id]):
            waits_for[follower] -= 1
            if waits_for[follower] == 0:
                heappush(ready, follower)
        result.append(tuple(plan.steps[i].id for i in wave))
    return tuple(result)


def places_of(step: PlannedStep) -> int:
    """How many subagents it would set to work at once, if they were free."""
    match step.work:
        case PlannedParallel(branches):
            return len(branches)
        case PlannedMap(batch_size=size, max_items=most):
            return min(size, most)
        case _:
            return 1


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
