"""What a run would do, as JSON: its waves, its prompts as far as they are known, and its cost at the most."""

from collections.abc import Callable, Iterable, Iterator, Mapping

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
    PlannedWorkflow,
    RetryPolicy,
    Target,
    briefs,
)
from stretto.plan.waves import waves
from stretto.plan.workflow_steps import known_scopes
from stretto.problems.render import as_json
from stretto.recipe.model import NO_OUTPUT
from stretto.templates.render import TooLong, render_known, whole_json
from stretto.templates.scope import Scope
from stretto.templates.template import Template
from stretto.validation.combined_schema import combine_schemas
from stretto.validation.rules import understand
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.models import ModelSelection
from stretto.vocabulary.names import AgentId, StepId

_UNKNOWN: Mapping[StepId, int] = {}
# A model may call a tool in every turn; an agent that names no cap gets this one.
DEFAULT_MAX_TURNS = 25


def max_delegations(plan: Plan, lengths: Mapping[StepId, int] = _UNKNOWN) -> int:
    """Subagents deployed at the most: every route, retry, iteration, element and fallback."""
    return sum(_most(step, _attempts, lengths) for step in plan.steps)


def max_model_calls(plan: Plan, lengths: Mapping[StepId, int] = _UNKNOWN) -> int:
    """Calls of models at the most: as many turns for each subagent as its tools allow."""
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


# What an agent is given by its role, where the step itself says nothing.
_HANDED = {
    "validator": "(the candidate)",
    "reducer": "(the collected results)",
    "each element": "{{item}}",
    "stage 1": "{{item}}",
}


_NO_MODEL = ModelSelection("")
# Who decides a rule that code cannot, where nobody has named a model yet.
_WHOEVER_ANSWERS = "the model that answers"


def dry_run(
    plan: Plan, inputs: Mapping[str, Json], models: ModelSelection = _NO_MODEL
) -> dict[str, object]:
    scopes = known_scopes(plan, inputs)
    lengths = _known_lengths(plan, inputs)
    return {
        "ok": True,
        "mode": "dry_run",
        "workflow": plan.name,
        "inputs": dict(inputs),
        "output": plan.output.text if plan.output else None,
        "timeout_seconds": plan.timeout_seconds,
        "warnings": [as_json(warning) for warning in plan.warnings],
        "would_run": [
            _step(plan, step, scopes[step.inside], models, lengths.get(step.id))
            for step in plan.steps
        ],
        "waves": [list(wave) for wave in waves(plan, lengths)],
        "summary": {
            "steps": len(plan.steps),
            "max_concurrency": plan.width,
            "max_model_calls": max_model_calls(plan, lengths),
            "max_delegations": max_delegations(plan, lengths),
        },
    }


def _step(
    plan: Plan, step: PlannedStep, scope: Scope, models: ModelSelection, length: int | None
) -> dict[str, object]:
    delegations = [
        _delegation(plan, step, role, brief, scope, models) for role, brief in roles(step)
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
        **_repetition(step, length),
        **_workflow(step, scope),
        "when": step.when.text if step.when else None,
        "gate": "human" if step.is_gated else None,
        "on_failure": step.on_failure,
        "timeout_seconds": step.timeout_seconds,
        "store_as": step.output.store_as,
    }


def _delegation(
    plan: Plan,
    step: PlannedStep,
    role: str,
    brief: Brief,
    scope: Scope,
    models: ModelSelection,
) -> dict[str, object]:
    agent = plan.agents[brief.agent]
    output = step.output if _gives_output(step, brief) else NO_OUTPUT
    model = None if brief.command else models.override or brief.model or models.default or None
    return {
        "role": role,
        "agent": brief.agent,
        "model": model,
        "tools": list(agent.tools),
        "prompt": prompt_of(plan, step, role, brief, scope),
        "format": output.format,
        "schema": combine_schemas(agent.validation.schema, output.schema),
        "rules": _rules(agent.validation.rules, model, models),
        "retry": _retry(brief.retry),
        "fallback": {"agent": brief.fallback, **_retry(brief.fallback_retry)}
        if brief.fallback
        else None,
        "timeout_seconds": agent.timeout_seconds,
        **({"playbooks": list(brief.playbooks)} if brief.playbooks else {}),
    }


def _gives_output(step: PlannedStep, brief: Brief) -> bool:
    """Whether its answer is the step's output, or an element of it."""
    match step.work:
        case PlannedLoop(validator=validator):
            return brief is not validator
        case PlannedMap(reducer=reducer, stages=stages):
            return brief is (reducer or stages[-1])
        case _:
            return True


def _rules(
    rules: Iterable[str], model: str | None, models: ModelSelection
) -> list[dict[str, str | None]]:
    """Each with who decides it: code, a judge (also where code finds an answer unclear), or nobody."""
    judge = models.judge_of(model or "") or (
        _WHOEVER_ANSWERS if models.judge is None and model is None else None
    )
    return [
        {
            "rule": rule,
            "decided_by": "code" if understand(rule) else "judge" if judge else "nobody",
            "judge": judge,
        }
        for rule in rules
    ]


def _retry(policy: RetryPolicy) -> dict[str, object]:
    return {"max_attempts": policy.max_attempts, "backoff": policy.backoff}


def _repetition(step: PlannedStep, length: int | None) -> dict[str, object]:
    """How often a step asks, and for how many answers it waits."""
    match step.work:
        case PlannedParallel() as fan:
            return {"wait": fan.wait, "branches_needed": fan.needed}
        case PlannedLoop() as loop:
            until = loop.until.text if loop.until else None
            return {"max_iterations": loop.max_iterations, "until": until}
        case PlannedMap() as each:
            return {
                "over": each.over.text,
                "elements": length,
                "max_items": each.max_items,
                "batch_size": each.batch_size,
                "on_item_failure": each.on_item_failure,
            }
        case _:
            return {}


def _workflow(step: PlannedStep, scope: Scope) -> dict[str, object]:
    """Which recipe the step is, and what it is given."""
    if not isinstance(work := step.work, PlannedWorkflow):
        return {}
    later = {
        name: _tell(given, scope) for name, given in work.given.items() if name not in work.known
    }
    recipe = {"name": work.name, "file": work.file, "version": work.version, "digest": work.digest}
    return {"workflow": recipe, "inputs": {**work.known, **later}}


def _tell(template: Template, scope: Scope) -> str:
    try:
        return render_known(template, scope)
    except TooLong as error:
        return f"[{error}, so this step would fail]"


def prompt_of(plan: Plan, step: PlannedStep, role: str, brief: Brief, scope: Scope) -> str:
    """All that it would be told; what only a run can know stays `{{…}}`."""
    if (command := brief.command) is not None:
        env = {name: _tell(value, scope) for name, value in command.env.items()}
        stdin = _tell(command.stdin, scope) if command.stdin else _HANDED.get(role, "")
        return describe_command(command.run, env, stdin)
    agent = plan.agents[brief.agent]
    told = _tell(brief.instruction, scope) if brief.instruction is not None else None
    given = _default_input(plan, step, role, brief)

    def results() -> str:
        return _known_only_later(plan.step(before).own_id for before in step.depends_on)

    own = _tell(agent.prompt, scope)
    return compose(brief.style, own, told, given, results).prompt


def _default_input(plan: Plan, step: PlannedStep, role: str, brief: Brief) -> str | None:
    if brief.gets_all_prior:
        before = plan.steps[: step.index]
        return _known_only_later([each.own_id for each in before if each.inside == step.inside])
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


def _known_lengths(plan: Plan, inputs: Mapping[str, Json]) -> dict[StepId, int]:
    """How long the lists are that inputs or the recipe itself give."""
    lengths, scopes = dict[StepId, int](), known_scopes(plan, inputs)
    for step in plan.steps:
        if isinstance(step.work, PlannedMap):
            # `over` is one reference or a list as text: what a step gives is missing here.
            found = whole_json(step.work.over, scopes[step.inside])
            if isinstance(found, list):
                lengths[step.id] = len(found)
    return lengths
