"""Steps that are recipes. In: the plans of both. Out: one plan, in which the inner steps are `outer/inner`.

Templates are not rewritten: those of an inner step are filled in with the inputs and steps of its own
recipe. Also here: which values of inner inputs are known, before the run and when the step starts.
"""

import re
from collections.abc import Callable, Iterator, Mapping

from msgspec import structs

from stretto.plan.inputs import FindFile, Misfit, bind
from stretto.plan.model import (
    Brief,
    Plan,
    PlannedAgent,
    PlannedBranch,
    PlannedCondition,
    PlannedDelegation,
    PlannedLoop,
    PlannedMap,
    PlannedParallel,
    PlannedStep,
    PlannedSwitch,
    PlannedWork,
    PlannedWorkflow,
    Target,
)
from stretto.problems import Problem
from stretto.recipe.model import Input
from stretto.templates.json_text import MISSING, find_json
from stretto.templates.render import as_text, whole_value
from stretto.templates.scope import Scope
from stretto.templates.template import Reference
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import COMMAND_AGENT, AgentId, StepId

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def insert_inner(plan: Plan, inner: Mapping[StepId, Plan]) -> Plan:
    """Each inner plan after the step that uses it. Width and budget stay those of the outer one."""
    agents = dict(plan.agents)
    steps: list[PlannedStep] = []
    for step in plan.steps:
        used = inner.get(step.id)
        if used is None or not isinstance(step.work, PlannedWorkflow):
            steps.append(step)
            continue
        steps.append(structs.replace(step, work=_describe(step.work, used)))
        names = {id: _agent_name(step.id, id, agents, used) for id in used.agents}
        agents |= {names[id]: agent for id, agent in used.agents.items()}
        steps += (_move(each, step.id, names) for each in used.steps)
    numbered = tuple(structs.replace(step, index=i) for i, step in enumerate(steps))
    return structs.replace(plan, steps=numbered, agents=agents)


def _describe(work: PlannedWorkflow, used: Plan) -> PlannedWorkflow:
    return structs.replace(
        work,
        name=used.name,
        file=used.file,
        version=used.version,
        digest=used.digest,
        dialect=used.dialect,
        inputs=used.inputs,
        output=used.output,
        stored=used.stored,
        timeout_seconds=used.timeout_seconds,
        timeout_template=used.timeout_template,
    )


def _agent_name(
    outer: StepId, id: AgentId, taken: Mapping[AgentId, PlannedAgent], used: Plan
) -> AgentId:
    """The agent's own id, unless another agent has it. Where its timeout names inputs, the
    agent is another one in each step, since the inputs differ."""
    agent = used.agents[id]
    is_shared = id == COMMAND_AGENT or (
        "/" not in id and agent.timeout_template is None and taken.get(id, agent) == agent
    )
    return id if is_shared else AgentId(f"{outer}/{id}")


def _move(step: PlannedStep, outer: StepId, names: Mapping[AgentId, AgentId]) -> PlannedStep:
    def renamed(id: StepId) -> StepId:
        return StepId(f"{outer}/{id}")

    def brief(old: Brief) -> Brief:
        fallback = names[old.fallback] if old.fallback is not None else None
        return structs.replace(old, agent=names[old.agent], fallback=fallback)

    def target(old: Target) -> Target:
        return structs.replace(
            old,
            step=renamed(old.step) if old.step is not None else None,
            brief=brief(old.brief) if old.brief is not None else None,
        )

    return structs.replace(
        step,
        id=renamed(step.id),
        work=with_briefs(step.work, brief, target),
        edges={renamed(before): reason for before, reason in step.edges.items()},
        merge_after=renamed(step.merge_after) if step.merge_after is not None else None,
        inside=renamed(step.inside) if step.inside is not None else outer,
    )


def with_briefs(
    work: PlannedWork,
    change: Callable[[Brief], Brief],
    aim: Callable[[Target], Target] | None = None,
) -> PlannedWork:
    """The same work, with every brief changed; `aim` changes where conditions lead to as well."""

    def target(old: Target | None) -> Target | None:
        if old is None or aim is not None:
            return aim(old) if old is not None and aim is not None else None
        return structs.replace(old, brief=change(old.brief)) if old.brief is not None else old

    match work:
        case PlannedDelegation():
            return structs.replace(work, brief=change(work.brief))
        case PlannedParallel():
            branches = (PlannedBranch(each.key, change(each.brief)) for each in work.branches)
            return structs.replace(work, branches=tuple(branches))
        case PlannedCondition():
            return structs.replace(
                work, if_true=target(work.if_true), if_false=target(work.if_false)
            )
        case PlannedSwitch():
            cases = tuple((case, target(each) or each) for case, each in work.cases)
            return structs.replace(work, cases=cases, default=target(work.default))
        case PlannedLoop():
            validator = change(work.validator) if work.validator else None
            return structs.replace(work, producer=change(work.producer), validator=validator)
        case PlannedMap():
            reducer = change(work.reducer) if work.reducer else None
            return structs.replace(work, stages=tuple(map(change, work.stages)), reducer=reducer)
        case PlannedWorkflow():
            return work


def inner_steps(plan: Plan, id: StepId) -> tuple[PlannedStep, ...]:
    """All that stand in a workflow step, however deep."""
    return tuple(step for step in plan.steps if step.id.startswith(f"{id}/"))


def precedence(plan: Plan) -> dict[StepId, tuple[StepId, ...]]:
    """What goes before each step if a workflow step begins before those in it, and whoever waits for
    a workflow step waits for the last ones in it."""
    if all(step.inside is None for step in plan.steps):
        return {step.id: step.depends_on for step in plan.steps}
    ends: dict[StepId, tuple[StepId, ...]] = {}
    followed = {before for step in plan.steps for before in step.edges}
    for step in reversed(plan.steps):  # what stands in a workflow step is listed after it
        own = ends.setdefault(step.id, ())
        ends[step.id] = (step.id, *own)
        if step.inside is not None and step.id not in followed:
            ends[step.inside] = (*ends[step.id], *ends.get(step.inside, ()))
    found = {}
    for step in plan.steps:
        befores = dict.fromkeys(end for before in step.edges for end in ends[before])
        if not befores and step.inside is not None:
            befores[step.inside] = None
        found[step.id] = tuple(befores)
    return found


def known_scopes(plan: Plan, inputs: Mapping[str, Json]) -> dict[StepId | None, Scope]:
    """What templates see before the run: of the plan (None), and in each workflow step."""
    scopes: dict[StepId | None, Scope] = {None: Scope(inputs=inputs, stored=plan.stored)}
    for step in plan.steps:
        if isinstance(step.work, PlannedWorkflow):
            scopes[step.id] = Scope(inputs=step.work.known, stored=step.work.stored)
    return scopes


def known_inputs(
    work: PlannedWorkflow, scope: Scope, find_file: FindFile | None
) -> tuple[dict[str, Json], tuple[Problem, ...]]:
    """The inner inputs that can be told before the run. `scope`: of the recipe that gives them."""
    late = {
        name for name, given in work.given.items() if not all(map(_is_in(scope), given.references))
    }
    declared = tuple(each for each in work.inputs if each.name not in late)
    return bind(declared, _values(work, declared, scope), find_file)


def _is_in(scope: Scope) -> Callable[[Reference], bool]:
    def is_known(reference: Reference) -> bool:
        head, *rest = reference.path
        if head == "inputs":
            return bool(rest) and rest[0] in scope.inputs
        return head not in ("steps", "run", *scope.stored) and head in scope.inputs

    return is_known


def inner_inputs(
    work: PlannedWorkflow, scope: Scope
) -> tuple[dict[str, Json], tuple[Problem, ...]]:
    """All inner inputs, once the step starts. Raises TooLong.

    A path that an earlier step gave is checked as text: whoever opens the file looks where it leads.
    """
    late = tuple(each for each in work.inputs if each.name not in work.known)
    values, problems = bind(late, _values(work, late, scope), _check_path)
    return {**work.known, **values}, problems


def _values(work: PlannedWorkflow, declared: tuple[Input, ...], scope: Scope) -> dict[str, Json]:
    return dict(_each_value(work, declared, scope))


def _each_value(
    work: PlannedWorkflow, declared: tuple[Input, ...], scope: Scope
) -> Iterator[tuple[str, Json]]:
    for each in declared:
        if each.name in work.given:
            value = whole_value(work.given[each.name], scope)
            if value is MISSING:
                continue
            if each.type == "json" and isinstance(value, str):
                held = find_json(value)  # an answer often has words around its JSON
                value = value if held is MISSING else held
            elif each.type == "string" and isinstance(value, dict | list):
                value = as_text(value)
            yield each.name, value
        elif each.name in work.constants:
            yield each.name, work.constants[each.name]


def _check_path(declared: Input, written: str) -> str | Misfit:
    names = written.removeprefix("./").split("/")
    if any(name in ("", ".", "..") for name in names) or _CONTROL.search(written):
        message = f"input '{declared.name}' is '{written[:60]}', which is no path in the workspace"
        return Misfit("RCP305", message, "give the path of a file, without '..'")
    return written
