"""Resume a run that another process has left, and do what that process still had to do.

What became of an attempt that was under way is not known; its step's `recovery` decides.
"""

from stretto.events.attempts import AttemptTimer
from stretto.events.model import RunResumed
from stretto.recipe.model import Recovery
from stretto.schedule.approvals import ask, needs_person, withdraw_approvals
from stretto.schedule.attempts import close_attempt, give_up, start_again, stop_part
from stretto.schedule.changes import collect
from stretto.schedule.commands import EndRun, SetTimer
from stretto.schedule.prompt import with_new_key
from stretto.schedule.state import (
    AttemptState,
    FailureReason,
    PartState,
    Resumption,
    RunState,
    StepState,
)
from stretto.schedule.transition import Transition
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.models import Setup

_INTERRUPTED = FailureReason(
    "in_doubt", "the run was interrupted, and it is not known what the attempt had done"
)


def resume(transition: Transition, event: RunResumed) -> None:
    state = transition.state
    if state.has_ended:
        if not state.is_recorded:
            transition.emit(EndRun(state.status))
        return
    state.resumptions.append(Resumption(state.now, transition.at, _has_work(state)))
    _set_up(state, event.setup)
    for old in [each for each in state.timers if isinstance(each, AttemptTimer)]:
        del state.timers[old]
    for timer, due_at in state.timers.items():
        transition.emit(SetTimer(timer, due_at))
    transition.asking.update(dict.fromkeys(state.awaiting_approval))
    for step in state.order:
        if _is_narrowed(transition, step):
            _ask_before_retries(transition, step)
        if step.open_attempts:
            if event.is_after_crash:
                step.crashes += any(each.stage == "running" for each in step.attempts)
            _take_up(transition, step, is_quarantined=step.crashes >= event.most_crashes)
        elif step.pending is not None and not step.is_merge_held:
            collect(transition, step)


def usage_with_interrupted(state: RunState) -> Usage:
    """What a run has used that another process has left, with its attempts under way."""
    under_way = (
        attempt.noted_usage
        for step in state.order
        if step.open_attempts
        for attempt in step.attempts
        if attempt.stage in ("running", "stopping")
    )
    return sum(under_way, state.usage)


def _has_work(state: RunState) -> bool:
    # An attempt that was approved while no process drove the run is planned, and not interrupted.
    attempts = (attempt for step in state.order for attempt in step.attempts)
    return state.retrying > 0 or any(each.stage not in ("planned", "ended") for each in attempts)


def _set_up(state: RunState, setup: Setup | None) -> None:
    """Another process may ask other models: what was planned for the old ones has new keys."""
    if setup == state.setup:
        return
    state.setup = setup
    state.key_frames.clear()
    withdraw_approvals(state)
    for step in state.order:
        for part in step.parts.values():
            attempt = part.attempts[-1] if part.attempts else None
            if attempt is not None and attempt.command is not None:
                attempt.command = with_new_key(state, attempt.command)
                attempt.key = attempt.command.key


def doubt(
    transition: Transition,
    step: StepState,
    part: PartState,
    attempt: AttemptState,
    failure: FailureReason,
    usage: Usage,
) -> None:
    """What the attempt has done is not known: run it again, ask a person, or fail."""
    if not close_attempt(transition, step, attempt, "in_doubt", usage):
        return
    attempt.failure = failure
    recovery: Recovery = "ask" if _is_narrowed(transition, step) else _recovery(step, attempt)
    match recovery:
        case "rerun":
            start_again(transition, step, part)
        case "ask":
            part.status = "asking"
            ask(transition, step)
        case "skip":
            give_up(transition, step, part, failure)


def _is_narrowed(transition: Transition, step: StepState) -> bool:
    """Whether the step could not start again now without the approval of a person."""
    return needs_person(transition, step)


def _recovery(step: StepState, attempt: AttemptState) -> Recovery:
    """If the recipe does not say it, planning guesses `recovery` from the tools. A call that was made
    and must not be repeated overrides that guess."""
    planned = step.planned
    if (
        attempt.has_doubtful_calls
        and planned.recovery == "rerun"
        and not planned.is_recovery_written
    ):
        return "ask"
    return planned.recovery


def _quarantine(
    transition: Transition, step: StepState, part: PartState, attempt: AttemptState
) -> None:
    """Fail a step that was running each time the process died: it would take down the next process
    and all other runs in it as well."""
    said = f"the process died {step.crashes} times while this step was running"
    if close_attempt(transition, step, attempt, "in_doubt", attempt.noted_usage):
        attempt.failure = FailureReason("in_doubt", said)
        give_up(transition, step, part, attempt.failure)


def _take_up(transition: Transition, step: StepState, is_quarantined: bool) -> None:
    for part in list(step.parts.values()):
        for attempt in list(part.attempts):
            if attempt.stage == "running" and is_quarantined:
                _quarantine(transition, step, part, attempt)
            elif attempt.stage == "running":
                doubt(transition, step, part, attempt, _INTERRUPTED, attempt.noted_usage)
            elif attempt.stage == "stopping":
                close_attempt(transition, step, attempt, "cancelled", attempt.noted_usage)
            elif attempt.command is not None and _is_narrowed(transition, step):
                doubt(transition, step, part, attempt, _INTERRUPTED, attempt.noted_usage)
            elif attempt.command is not None:
                transition.emit(attempt.command)


def _ask_before_retries(transition: Transition, step: StepState) -> None:
    for part in list(step.parts.values()):
        if part.status in ("retrying", "queued"):
            stop_part(transition, step, part)
            part.status = "asking"
            ask(transition, step)
