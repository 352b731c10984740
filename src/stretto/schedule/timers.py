"""A timer fired: of the run, of a step, of an attempt or of a retry (RECIPES §6)."""

from typing import assert_never

from stretto.schedule.attempts import attempt_timer, retry_now, time_out_attempt
from stretto.schedule.commands import StartAttempt
from stretto.schedule.outcomes import fail, stop_run
from stretto.schedule.state import Failure, PartState, RunState, StepState
from stretto.schedule.transition import RUN_TIMER, Transition, step_timer
from stretto.vocabulary.durations import format_duration
from stretto.vocabulary.ids import StepId
from stretto.vocabulary.names import listed
from stretto.vocabulary.statuses import RunStatus, StepStatus


def fire(transition: Transition, name: str) -> None:
    state = transition.state
    timer = state.timers.pop(name, None)
    if timer is None:
        return
    if timer.kind == "run":
        _time_out_run(transition)
        return
    # A timer lives no longer than what it is for, so step, part and attempt are there.
    step = state.steps[StepId(timer.step)]
    if timer.kind == "step":
        said = f"the step timed out after {format_duration(step.planned.timeout_seconds or 0)}"
        if step.awaits_approval:
            said += ", while it awaited approval"
        fail(
            transition, step, Failure("timeout", said + _waited_for(step)), step.planned.on_failure
        )
        return
    part = step.parts[timer.part]
    match timer.kind:
        case "attempt":
            time_out_attempt(transition, step, part, part.attempts[timer.attempt - 1])
        case "retry":
            retry_now(transition, step, part)
        case _:
            assert_never(timer.kind)


def _waited_for(step: StepState) -> str:
    """What it was trying to get over when its time was up."""
    errors = dict.fromkeys(_last_trouble(part) for part in step.parts.values())
    known = listed([error for error in errors if error], 3)
    return f", after: {known}" if known else ""


def _last_trouble(part: PartState) -> str:
    if part.status not in ("running", "retrying"):
        return ""
    if part.attempts and part.attempts[-1].provider_retries:
        return part.attempts[-1].provider_retries[-1]
    return part.failure.error if part.failure else ""


def deadline_of(state: RunState, command: StartAttempt) -> float | None:
    """When the first timer ends this attempt: its own, its step's or the run's."""
    step = state.steps[command.step]
    names = (
        RUN_TIMER,
        step_timer(step),
        attempt_timer(command.step, command.part, command.attempt),
    )
    return min((state.timers[name].due_at for name in names if name in state.timers), default=None)


def _time_out_run(transition: Transition) -> None:
    state = transition.state
    has_success = any(step.status is StepStatus.SUCCEEDED for step in state.order)
    said = f"the run timed out after {format_duration(state.plan.timeout_seconds or 0)}"
    stop_run(transition, RunStatus.PARTIAL if has_success else RunStatus.FAILED, said)
