"""A timer fired: of the run, of a step, of an attempt or of a retry."""

from typing import assert_never

from stretto.events.attempts import (
    RUN_TIMER,
    AttemptId,
    AttemptTimer,
    RetryTimer,
    RunTimer,
    StepTimer,
    Timer,
)
from stretto.plan.model import PlannedWorkflow
from stretto.schedule.attempts import retry_now, time_out_attempt
from stretto.schedule.outcomes import fail, stop_run
from stretto.schedule.state import FailureReason, PartState, RunState, StepState
from stretto.schedule.transition import Transition
from stretto.text.short import listed
from stretto.vocabulary.durations import format_duration
from stretto.vocabulary.statuses import RunStatus, StepStatus


def fire(transition: Transition, timer: Timer) -> None:
    state = transition.state
    if state.timers.pop(timer, None) is None:
        return
    # A timer is cleared when its step or attempt ends, so the ones that it names exist.
    match timer:
        case RunTimer():
            _time_out_run(transition)
        case StepTimer():
            _time_out_step(transition, state.steps[timer.step])
        case AttemptTimer():
            step, part = _part_of(state, timer.attempt)
            time_out_attempt(transition, step, part, part.attempts[timer.attempt.number - 1])
        case RetryTimer():
            retry_now(transition, *_part_of(state, timer.attempt))
        case _:
            assert_never(timer)


def _part_of(state: RunState, attempt: AttemptId) -> tuple[StepState, PartState]:
    step = state.steps[attempt.step]
    return step, step.parts[attempt.part]


def _time_out_step(transition: Transition, step: StepState) -> None:
    said = f"the step timed out after {format_duration(_limit_of(step))}"
    if step.awaits_approval:
        said += ", while it awaited approval"
    failure = FailureReason("timeout", said + _waited_for(step))
    fail(transition, step, failure, step.planned.on_failure)


def _limit_of(step: StepState) -> float:
    """The shorter one of the step's own timeout and that of its recipe."""
    work, own = step.planned.work, step.planned.timeout_seconds
    recipe = work.timeout_seconds if isinstance(work, PlannedWorkflow) else None
    is_recipes = recipe is not None and step.started_at is not None
    return min((each for each in (own, recipe if is_recipes else None) if each), default=0.0)


def _waited_for(step: StepState) -> str:
    """Which errors the step was retrying when its time was up."""
    errors = dict.fromkeys(_last_trouble(part) for part in step.parts.values())
    known = listed([error for error in errors if error], 3)
    return f", after: {known}" if known else ""


def _last_trouble(part: PartState) -> str:
    if part.status not in ("running", "retrying", "queued"):
        return ""
    if part.attempts and part.attempts[-1].provider_retries:
        return part.attempts[-1].provider_retries[-1]
    return part.failure.error if part.failure else ""


def deadline_of(state: RunState, attempt: AttemptId) -> float | None:
    """When the first timer ends this attempt: its own, that of a step around it, or the run's."""
    timers: list[Timer] = [RUN_TIMER, AttemptTimer(attempt)]
    step: StepState | None = state.steps[attempt.step]
    while step is not None:
        timers.append(StepTimer(step.id))
        step = step.recipe.holder
    return min((state.timers[each] for each in timers if each in state.timers), default=None)


def _time_out_run(transition: Transition) -> None:
    state = transition.state
    has_success = any(step.status is StepStatus.SUCCEEDED for step in state.order)
    said = f"the run timed out after {format_duration(state.plan.timeout_seconds or 0)}"
    stop_run(transition, RunStatus.PARTIAL if has_success else RunStatus.FAILED, said)
