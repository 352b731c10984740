"""The scheduler: an event changes the state of a run, and commands follow from it."""

from typing import TypeAlias, assert_never, get_args

from stretto.events.attempts import (
    RUN_TIMER,
    AttemptId,
    AttemptTimer,
    RetryTimer,
    RunTimer,
    StepTimer,
    Timer,
)
from stretto.events.model import (
    ApprovalRequested,
    Approved,
    AttemptCancelled,
    AttemptFailed,
    AttemptStarted,
    AttemptSucceeded,
    CancelRequested,
    ChangesApplied,
    ChangesCollected,
    CommandEnded,
    Event,
    Happening,
    MergeFailed,
    MergeHeld,
    MergeUndone,
    MessageDropped,
    ModelFailedOver,
    ModelRetried,
    ModelSpoke,
    PhaseLasted,
    Rejected,
    RunEnded,
    RunResumed,
    RunStarted,
    TimerFired,
    ToolEnded,
    ToolStarted,
    UsageNoted,
)
from stretto.plan.model import PlannedWorkflow
from stretto.schedule.activity import observe
from stretto.schedule.approvals import ask_people, decide, hold_merge
from stretto.schedule.attempts import (
    begin_attempt,
    cancel_attempt,
    fail_attempt,
    retry_now,
    succeed_attempt,
    time_out_attempt,
)
from stretto.schedule.commands import Command
from stretto.schedule.outcomes import fail, receive_applied, receive_changes, stop_run
from stretto.schedule.progress import finish, progress
from stretto.schedule.recovery import doubt, resume
from stretto.schedule.state import FailureReason, PartState, RunState, StepState
from stretto.schedule.transition import Transition
from stretto.text.short import listed
from stretto.vocabulary.amounts import format_duration
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
    failure = FailureReason("timeout", said + _retried_errors(step))
    fail(transition, step, failure, step.planned.on_failure)


def _limit_of(step: StepState) -> float:
    """The shorter one of the step's own timeout and that of its recipe."""
    work, own = step.planned.work, step.planned.timeout_seconds
    recipe = work.timeout_seconds if isinstance(work, PlannedWorkflow) else None
    is_recipes = recipe is not None and step.started_at is not None
    return min((each for each in (own, recipe if is_recipes else None) if each), default=0.0)


def _retried_errors(step: StepState) -> str:
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


ChangesEvent: TypeAlias = ChangesCollected | MergeFailed | MergeHeld | ChangesApplied
AttemptEvent: TypeAlias = AttemptStarted | AttemptSucceeded | AttemptFailed | AttemptCancelled
# These free no slot and end no step; the first is half of all events. Looked up by type: isinstance
# asks a struct's class and its bases, 50 ns for each that an event is not.
_CHANGES_NO_STEP = frozenset({AttemptStarted, *get_args(Happening)})


def advance(state: RunState, event: Event) -> tuple[RunState, tuple[Command, ...]]:
    """Synchronous, total, deterministic. An event about nothing that is known changes nothing."""
    transition = Transition(state, event.at)
    if state.started_at is not None:
        _receive(transition, event)
    elif isinstance(event, RunStarted):
        _start(transition, event)
    if state.started_at is not None and not state.has_ended:
        state.now = event.at
        if type(event) not in _CHANGES_NO_STEP:
            _go_on(transition)
    return state, tuple(transition.commands)


def _go_on(transition: Transition) -> None:
    """Until nothing follows any more."""
    has_failed = True
    while has_failed:
        progress(transition)
        finish(transition)
        has_failed = bool(transition.asking) and ask_people(transition)


def _start(transition: Transition, event: RunStarted) -> None:
    state = transition.state
    state.started_at = event.at
    state.run_id = state.recipe.scope.run_id = event.run_id
    state.workspace = event.workspace
    state.setup = event.setup
    state.inputs = state.recipe.scope.inputs = event.inputs
    state.seed = event.seed
    state.parent = event.parent
    state.trigger = event.trigger
    if state.plan.timeout_seconds is not None:
        transition.set_timer(RUN_TIMER, event.at + state.plan.timeout_seconds)


def _receive(transition: Transition, event: Event) -> None:
    state = transition.state
    # The most frequent ones first.
    match event:
        case AttemptStarted() | AttemptSucceeded() | AttemptFailed() | AttemptCancelled():
            _receive_attempt(transition, event)
        case ModelSpoke() | ToolStarted() | ToolEnded() | PhaseLasted() | CommandEnded():
            observe(state, event)
        case ModelFailedOver() | ModelRetried() | UsageNoted():
            observe(state, event)
        case ChangesCollected() | MergeFailed() | MergeHeld() | ChangesApplied():
            if step := state.steps.get(event.step):
                _receive_changes(transition, step, event)
        case MergeUndone():
            state.warn(_describe_undone(event))
        case TimerFired():
            fire(transition, event.timer)
        case ApprovalRequested():
            if step := state.steps.get(event.step):
                step.asked_key = event.key if step.awaits_approval else ""
        case Approved() | Rejected():
            if step := state.steps.get(event.step):
                decide(transition, step, event)
        case CancelRequested():
            if not state.has_ended:
                why = f": {event.reason}" if event.reason else ""
                stop_run(transition, RunStatus.CANCELLED, f"the run was cancelled{why}")
        case MessageDropped():
            state.warn(f"ignored {event.what} in the run's mailbox")
        case RunResumed():
            state.asks_for_writers = event.permission == "ask"
            resume(transition, event)
        case RunEnded():
            state.is_recorded = True
        case RunStarted():
            pass  # it has started
        case _:
            assert_never(event)


def _receive_changes(transition: Transition, step: StepState, event: ChangesEvent) -> None:
    match event:
        case ChangesCollected() | MergeFailed():
            receive_changes(transition, step, event)
        case MergeHeld():
            hold_merge(transition, step, event)
        case ChangesApplied():
            receive_applied(step, event)
        case _:
            assert_never(event)


def _describe_undone(event: MergeUndone) -> str:
    return (
        "a merge that a crash interrupted was rolled back; these files were changed since and stay as they are: "
        f"{listed(event.paths)} (as they were before: {event.kept})"
    )


def _receive_attempt(transition: Transition, event: AttemptEvent) -> None:
    id = event.attempt
    step = transition.state.steps.get(id.step)
    part = step.parts.get(id.part) if step else None
    if step is None or part is None or not 1 <= id.number <= len(part.attempts):
        return
    attempt = part.attempts[id.number - 1]
    if attempt.stage == "ended" and not isinstance(event, AttemptStarted):
        return
    match event:
        case AttemptStarted():
            begin_attempt(transition, step, part, attempt, event)
        case AttemptSucceeded():
            attempt.model, attempt.reused_from = event.model, event.reused_from
            if event.warnings:
                step.warn(*event.warnings)
                attempt.warnings += event.warnings
            succeed_attempt(transition, step, part, attempt, event.output, event.usage)
        case AttemptFailed():
            attempt.model = event.model
            if event.warnings:
                step.warn(*event.warnings)
            failure = FailureReason(event.kind, event.error)
            if event.kind == "in_doubt" and step.planned.recovery != "rerun":
                doubt(transition, step, part, attempt, failure, event.usage)
                return
            retry_after = event.retry_after_seconds
            fail_attempt(transition, step, part, attempt, failure, event.usage, retry_after)
        case AttemptCancelled():
            step.warn(*event.warnings)
            cancel_attempt(transition, step, part, attempt, event.usage)
        case _:
            assert_never(event)
