"""What a run may do to files (seed 002). In: a plan and a permission. Out: the plan as it may run.

read_only: no writer step starts, so a plan that has one is refused before anything starts.
ask: a person allows each writer step. auto: the plan as it is.
"""

from dataclasses import replace

from stretto.plan.model import Plan, PlannedStep
from stretto.problems import Problem
from stretto.problems.errors import PermissionDenied
from stretto.vocabulary.names import listed


def permitted(plan: Plan, permission: str) -> Plan:
    """A plan that another permission has gated, for an earlier run, is taken as it was written."""
    if any(step.is_gated_by_permission for step in plan.steps):
        plan = replace(plan, steps=tuple(map(_as_written, plan.steps)))
    writers = [step for step in plan.steps if step.posture == "writer"]
    if permission == "auto" or not writers:
        return plan
    if permission == "read_only":
        names = listed([step.id for step in writers])
        problems = [_denied(step, plan) for step in writers]
        hint = "--permission ask lets you allow each of them, --permission auto all"
        raise PermissionDenied(
            f"{plan.name} has writer steps ({names}), and this run may only read", problems, hint
        )
    steps = tuple(_gated(step) if step.posture == "writer" else step for step in plan.steps)
    return replace(plan, steps=steps)


def _gated(step: PlannedStep) -> PlannedStep:
    if step.is_gated:
        return step
    return replace(step, is_gated=True, is_gated_by_permission=True)


def _as_written(step: PlannedStep) -> PlannedStep:
    if not step.is_gated_by_permission:
        return step
    return replace(step, is_gated=False, is_gated_by_permission=False)


def _denied(step: PlannedStep, plan: Plan) -> Problem:
    writes = ", ".join(step.write_set)
    return Problem("PRM001", f"step '{step.id}' writes ({writes})", file=plan.file, path=step.id)
