"""The kinds of work, and who does each. In: a step. Out: its parts begun, and ended."""

from typing import assert_never

from stretto.plan.model import (
    PlannedCondition,
    PlannedDelegation,
    PlannedLoop,
    PlannedMap,
    PlannedParallel,
    PlannedSwitch,
)
from stretto.schedule import condition, delegation, loop, map_, parallel
from stretto.schedule.closing import close_run
from stretto.schedule.outcomes import fail
from stretto.schedule.state import PartState, StepState
from stretto.schedule.turn import Turn
from stretto.vocabulary.statuses import RunStatus


def begin_work(turn: Turn, step: StepState) -> None:
    work = step.planned.work
    match work:
        case PlannedDelegation():
            delegation.begin(turn, step, work)
        case PlannedParallel():
            parallel.begin(turn, step, work)
        case PlannedCondition() | PlannedSwitch():
            condition.begin(turn, step, work)
        case PlannedLoop():
            loop.begin(turn, step, work)
        case PlannedMap():
            map_.begin(turn, step, work)
        case _:
            assert_never(work)


def end_part(turn: Turn, step: StepState, part: PartState) -> None:
    work = step.planned.work
    if part.failure is not None and part.failure.kind == "permanent":
        # No policy feeds this on: whoever came next would meet the same.
        fail(turn, step, part.failure, "abort")
        return
    if part.failure is not None and part.failure.kind == "budget":
        # Nothing new starts. What runs has been paid for, and goes on.
        close_run(turn, RunStatus.FAILED, part.failure.error)
    match work:
        case PlannedDelegation() | PlannedCondition() | PlannedSwitch():
            delegation.end_part(turn, step, part)
        case PlannedParallel():
            parallel.end_part(turn, step, work, part)
        case PlannedLoop():
            loop.end_part(turn, step, work, part)
        case PlannedMap():
            map_.end_part(turn, step, work, part)
        case _:
            assert_never(work)
