"""How a step and a run stand, in one word each. In: the state. Out: words of the vocabulary."""

from typing import cast

from weft.schedule.state import RunState, StepState
from weft.vocabulary.statuses import INTERRUPTED, StepStatus, StepWord


def word_of(step: StepState, is_interrupted: bool = False) -> StepWord:
    if step.awaits_approval:
        return "awaiting approval"
    if step.status is not StepStatus.RUNNING:
        return cast(StepWord, step.status.value)
    if is_interrupted:
        return "interrupted"
    if step.pending is not None:
        return "merging"
    # Whatever is at work has an open attempt, so a running step without one waits for its next.
    return "running" if step.open_attempts else "retrying"


def run_word(state: RunState, is_driven: bool) -> str:
    """A run that has not ended and that nobody drives was cut off, unless it waits for a person."""
    if state.has_ended or is_driven:
        return state.status.value
    return "waiting" if state.awaiting_approval else INTERRUPTED
