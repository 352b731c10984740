"""How a step and a run stand, in one word each. In: the state. Out: words of the vocabulary."""

from typing import cast

from stretto.schedule.state import RunState, StepState
from stretto.vocabulary.ids import StepId
from stretto.vocabulary.statuses import INTERRUPTED, StepStatus, StepWord


def word_of(step: StepState, is_interrupted: bool = False, *, is_overdue: bool = False) -> StepWord:
    if step.awaits_approval:
        return "overdue" if is_overdue else "awaiting approval"
    if step.status is not StepStatus.RUNNING:
        return cast(StepWord, step.status.value)
    if is_interrupted:
        return "interrupted"
    if step.pending is not None:
        return "merging"
    # Whatever is at work has an open attempt, so a running step without one waits for its next.
    return "running" if step.open_attempts else "retrying"


def run_word(state: RunState, is_driven: bool, now: float | None = None) -> str:
    """A run that has not ended and that nobody drives was cut off, unless it waits for a person."""
    if state.has_ended or is_driven:
        return state.status.value
    if any(is_overdue(state, step, now) for step in state.awaiting_approval):
        return "overdue"
    return "waiting" if state.awaiting_approval else INTERRUPTED


def overdue(state: RunState, now: float) -> list[str]:
    """Deadlines of the run and of steps that are past: they count before anything else does."""
    late = (name for name, timer in state.timers.items() if timer.due_at <= now)
    return [name for name in late if state.timers[name].kind in ("run", "step")]


def is_overdue(state: RunState, step: StepId, now: float | None) -> bool:
    """Whether a deadline that ends the step has passed, and nobody drives the run to see it."""
    late = [] if now is None else [state.timers[name] for name in overdue(state, now)]
    return any(timer.kind == "run" or timer.step == step for timer in late)
