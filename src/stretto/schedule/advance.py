"""The scheduler: an event changes the state of a run, and commands follow from it."""

from typing import TypeAlias, assert_never, get_args

from stretto.events.attempts import RUN_TIMER
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
from stretto.schedule.activity import observe
from stretto.schedule.approvals import ask_people, decide, hold_merge
from stretto.schedule.attempts import begin_attempt, cancel_attempt, fail_attempt, succeed_attempt
from stretto.schedule.commands import Command
from stretto.schedule.outcomes import receive_applied, receive_changes, stop_run
from stretto.schedule.progress import finish, progress
from stretto.schedule.recovery import doubt, resume
from stretto.schedule.state import FailureReason, RunState, StepState
from stretto.schedule.timers import fire
from stretto.schedule.transition import Transition
from stretto.text.short import listed
from stretto.vocabulary.statuses import RunStatus

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
            progress(transition)
            finish(transition)
            if transition.asking:
                ask_people(transition)
    return state, tuple(transition.commands)


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
                said = f"cancelled: {event.reason}" if event.reason else "cancelled"
                stop_run(transition, RunStatus.CANCELLED, said)
        case MessageDropped():
            state.warn(f"the run was left {event.what}: it does not count")
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
