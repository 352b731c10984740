"""Make a plan final: after this, nothing is changed in it, and a run keeps it as it is.

A recipe says what its author wants. Three things it cannot say depend on the user and the
machine: the user's budget, what the run may do to files, and which further names the files of its
workspace have. All three are put into the plan here, from data: nothing is read.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from msgspec import structs

from stretto.plan.model import Plan, PlannedStep
from stretto.problems import Problem
from stretto.problems.errors import PermissionDenied
from stretto.recipe.model import Budget
from stretto.text.short import listed
from stretto.vocabulary.names import StepId

_Number = TypeVar("_Number", int, float)

# A set of globs, as a step has it → further globs that name the same files in the workspace,
# through links or in another case.
Aliases: TypeAlias = Mapping[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class RunPolicy:
    """What the user allows a run.

    read_only: a plan with a writer step is refused. ask: a person allows each writer step.
    auto: the plan may do what it says.
    """

    permission: str = "auto"
    budget: Budget = Budget()


def prepare(plan: Plan, policy: RunPolicy, aliases: Aliases | None = None) -> Plan:
    """Raises PermissionDenied. `aliases`: None leaves those that the plan has."""
    steps = tuple(_permit(step, policy.permission) for step in plan.steps)
    if policy.permission == "read_only":
        _refuse_writers(plan)
    if aliases is not None:
        steps = _claim_aliases(steps, aliases)
    if all(new is old for new, old in zip(steps, plan.steps, strict=True)):
        steps = plan.steps
    budget = lesser(plan.budget, policy.budget)
    if steps is plan.steps and budget == plan.budget:
        return plan
    return structs.replace(plan, steps=steps, budget=budget)


def _permit(step: PlannedStep, permission: str) -> PlannedStep:
    is_asked_for = permission == "ask" and step.posture == "writer"
    if step.is_gated_by_permission:
        # An earlier run of this plan was held to its own permission, which does not count now.
        return (
            step
            if is_asked_for
            else structs.replace(step, is_gated=False, is_gated_by_permission=False)
        )
    if step.is_gated or not is_asked_for:
        return step
    return structs.replace(step, is_gated=True, is_gated_by_permission=True)


def ask_to_start(plan: Plan) -> Plan:
    """The plan in which a person allows every step that would start first: nothing is done, and no
    model is asked, before somebody has said yes."""
    return ask_before(plan, [step.id for step in plan.steps if not step.depends_on])


def ask_before(plan: Plan, asked: Collection[StepId]) -> Plan:
    """The plan in which a person allows each of these steps."""

    def ask(step: PlannedStep) -> PlannedStep:
        if step.id not in asked or step.is_gated:
            return step
        return structs.replace(step, is_gated=True, is_gated_by_permission=True)

    return structs.replace(plan, steps=tuple(map(ask, plan.steps)))


def _refuse_writers(plan: Plan) -> None:
    writers = [step for step in plan.steps if step.posture == "writer"]
    if not writers:
        return
    names = listed([step.id for step in writers])
    raise PermissionDenied(
        f"{plan.name} has writer steps ({names}), and this run may only read",
        [_denial(step, plan) for step in writers],
        "--permission ask lets you allow each of them, --permission auto all",
    )


def _denial(step: PlannedStep, plan: Plan) -> Problem:
    writes = ", ".join(step.write_set)
    return Problem("PRM001", f"step '{step.id}' writes ({writes})", file=plan.file, path=step.id)


def add_globs(plan: Plan, more: Callable[[tuple[str, ...]], tuple[str, ...]]) -> Plan:
    """`more`: what the globs of a set cover besides, in the workspace as it is."""
    found = {globs: more(globs) for step in plan.steps for globs in (step.read_set, step.write_set)}
    if not any(found.values()):
        return plan

    def extend(step: PlannedStep) -> PlannedStep:
        reads, writes = (
            tuple(dict.fromkeys((*globs, *found[globs])))
            for globs in (step.read_set, step.write_set)
        )
        return structs.replace(step, read_set=reads, write_set=writes)

    return structs.replace(plan, steps=tuple(map(extend, plan.steps)))


def claimed_sets(plan: Plan) -> frozenset[tuple[str, ...]]:
    """The sets of globs whose aliases count: none in a plan without a writer."""
    sets = {step.write_set for step in plan.steps if step.is_writer}
    if _has_shared_writer(plan.steps):
        sets |= {step.read_set for step in plan.steps if not step.is_writer}
    return frozenset(sets)


def _has_shared_writer(steps: Iterable[PlannedStep]) -> bool:
    """Only a writer in the shared workspace conflicts with what others read."""
    return any(step.is_writer and not step.is_isolated for step in steps)


def _claim_aliases(steps: tuple[PlannedStep, ...], aliases: Aliases) -> tuple[PlannedStep, ...]:
    readers_count = _has_shared_writer(steps)

    def claim(step: PlannedStep) -> PlannedStep:
        is_writer = step.is_writer
        writes = aliases.get(step.write_set, ()) if is_writer else ()
        reads = aliases.get(step.read_set, ()) if readers_count and not is_writer else ()
        if (step.read_aliases, step.write_aliases) == (reads, writes):
            return step
        return structs.replace(step, read_aliases=reads, write_aliases=writes)

    return tuple(map(claim, steps))


def lesser(one: Budget, other: Budget) -> Budget:
    """The lower one of each limit."""
    return Budget(
        tokens=_least(one.tokens, other.tokens),
        usd=_least(one.usd, other.usd),
        agents=_least(one.agents, other.agents),
    )


def _least(one: _Number | None, other: _Number | None) -> _Number | None:
    return min((each for each in (one, other) if each is not None), default=None)
