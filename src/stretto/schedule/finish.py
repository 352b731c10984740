"""How a run stands, and how it ends (RECIPES §6). In: a Turn. Out: its EndRun, once."""

from stretto.schedule.budget import excess
from stretto.schedule.commands import EndRun
from stretto.schedule.result import lack_of_output
from stretto.schedule.state import RunState
from stretto.schedule.turn import Turn
from stretto.vocabulary.statuses import RunStatus, StepStatus

_AS_WANTED = (StepStatus.SUCCEEDED, StepStatus.SKIPPED)


def finish(turn: Turn) -> None:
    """A run ends when nothing is under way: whatever could start was started before this."""
    state = turn.state
    if state.open_attempts or state.retrying or state.collecting:
        state.status = RunStatus.RUNNING
    elif state.awaiting_approval:
        state.status = RunStatus.WAITING
    else:
        state.status = state.closed_as or _status(state)
        if said := excess(state):
            state.warnings[said] = None
        state.has_ended = True
        state.ended_at = turn.at
        for timer in list(state.timers):
            turn.clear_timer(timer)
        turn.say(EndRun(state.status))


def _status(state: RunState) -> RunStatus:
    # A step that failed, was held or cancelled is never as wanted, so a run whose output needs
    # what that step did not give is never complete. Nor is one whose output was routed away.
    is_complete = all(step.status in _AS_WANTED for step in state.order) and not state.is_partial
    if not is_complete:
        return RunStatus.PARTIAL if _has_success(state) else RunStatus.FAILED
    if lack := lack_of_output(state):
        state.warnings[lack] = None
        return RunStatus.PARTIAL
    if not _has_success(state):
        state.warnings["nobody was asked anything: no step of this run had an agent at work"] = None
    return RunStatus.COMPLETE


def _has_success(state: RunState) -> bool:
    """Whether a step succeeded in which somebody who was asked has answered: a condition that was
    decided is no answer, and an answer inside a step that failed is no success."""
    return any(
        step.status is StepStatus.SUCCEEDED
        and any(attempt.outcome == "succeeded" for attempt in step.attempts)
        for step in state.order
    )
