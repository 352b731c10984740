"""End a step, or keep a run from starting anything new. Who depends on it is not looked at here."""

from stretto.schedule.state import StepState
from stretto.schedule.turn import Turn
from stretto.vocabulary.statuses import RunStatus, StepStatus

RUN_TIMER = "run"


def step_timer(step: StepState) -> str:
    return f"step:{step.id}"


def end_step(turn: Turn, step: StepState, status: StepStatus) -> None:
    state = turn.state
    if step.status is StepStatus.RUNNING:
        del state.running[step.id]
        if step.is_resting:
            step.is_resting = False
        else:
            state.startable.leave()
        # What was told to stop may write until it says that it did.
        if step.open_attempts == 0:
            state.startable.let_go(step.index)
    if step.planned.timeout_seconds is not None:
        turn.clear_timer(step_timer(step))
    stop_asking(turn, step)
    step.status = status
    step.ended_at = turn.at
    state.values[step.id] = step


def stop_asking(turn: Turn, step: StepState) -> None:
    if step.awaits_approval:
        step.awaits_approval = False
        step.asked_key = ""
        del turn.state.awaiting_approval[step.id]


def close_run(turn: Turn, status: RunStatus, reason: str) -> None:
    """Nothing new starts; what runs goes on. The first reason to close is the one that counts."""
    state = turn.state
    state.warnings[reason] = None
    if state.closed_as is not None:
        return
    state.closed_as = status
    state.closing_reason = reason
    state.startable.clear()
    for step in state.order:
        if step.status is StepStatus.WAITING:
            step.reason = reason
            end_step(turn, step, StepStatus.CANCELLED)
