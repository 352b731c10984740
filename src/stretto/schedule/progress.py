"""Do everything that has become possible. In: a Turn. Out: the same, when nothing is left to do.

One flat loop: parts that ended first, then steps that only wait to retry, then steps whose
dependencies have ended, then, in listing order, steps that fit. A plan of ten thousand steps that skip each other needs no stack.
"""

from heapq import heappop

from stretto.schedule.approvals import ask, needs_person
from stretto.schedule.closing import step_timer
from stretto.schedule.outcomes import skip
from stretto.schedule.parts import rest, return_to_work
from stretto.schedule.state import StepState, Timer
from stretto.schedule.turn import Turn
from stretto.schedule.work import begin_work, end_part
from stretto.templates.evaluate import Undecided, decide
from stretto.vocabulary.statuses import StepStatus


def progress(turn: Turn) -> None:
    state = turn.state
    ended_parts = state.ended_parts
    while True:
        if ended_parts:
            step, part = ended_parts.popleft()
            if step.status is StepStatus.RUNNING and step.pending is None:
                end_part(turn, step, part)
                if state.retrying:
                    turn.idle[step.id] = step
        elif turn.idle:
            _, step = turn.idle.popitem()
            if step.status is StepStatus.RUNNING:
                rest(turn, step)
        elif state.arrived:
            _arrive(turn, state.order[heappop(state.arrived)])
        elif (index := state.startable.take()) is not None:
            _start(turn, state.order[index])
        else:
            return


def _arrive(turn: Turn, step: StepState) -> None:
    """Nothing before the step is left to wait for: is it to run at all, and who must agree?"""
    if step.status is not StepStatus.WAITING:
        return
    planned = step.planned
    if step.is_target and not step.is_chosen:
        skip(turn, step, "no condition chose it")
    elif step.skipped and step.skipped == len(planned.edges):
        skip(turn, step, "all steps before it were skipped")
    elif planned.when is not None and not _is_wanted(turn, step):
        skip(turn, step, f"its condition is not met: {planned.when.text}")
    elif needs_person(turn, step):
        ask(turn, step)
    else:
        turn.state.startable.push(step.index)


def _is_wanted(turn: Turn, step: StepState) -> bool:
    assert step.planned.when is not None
    claim = decide(step.planned.when, turn.state.scope)
    if isinstance(claim, Undecided):
        step.warnings[f"'when' is undecided and counts as false: {claim.reason}"] = None
        return False
    return claim


def _start(turn: Turn, step: StepState) -> None:
    if step.is_resting:
        return_to_work(turn, step)
        return
    if not _may_start(turn, step):
        turn.state.startable.leave()
        turn.state.startable.let_go(step.index)
        return
    step.status = StepStatus.RUNNING
    step.started_at = turn.at
    turn.state.running[step.id] = step
    # Of a step that a person was asked about, it runs already.
    if step.planned.timeout_seconds is not None and step_timer(step) not in turn.state.timers:
        due_at = turn.at + step.planned.timeout_seconds
        turn.set_timer(step_timer(step), Timer("step", due_at, step.id))
    begin_work(turn, step)


def _may_start(turn: Turn, step: StepState) -> bool:
    """Not if its time ran out in the queue, nor if a person must be asked again: the run was
    resumed with a narrower permission, or with other models than the person had allowed."""
    if step.status is not StepStatus.WAITING:
        return False
    if needs_person(turn, step):
        ask(turn, step)
        return False
    return True
