"""How a run and its steps stand, in words, and what a step that is not at work waits for."""

from typing import cast

from stretto.events.attempts import RetryTimer, RunTimer, StepTimer
from stretto.plan.model import PlannedStep
from stretto.schedule.state import RecipeState, RunState, StepState
from stretto.text.short import listed
from stretto.vocabulary.amounts import format_duration
from stretto.vocabulary.names import StepId
from stretto.vocabulary.statuses import INTERRUPTED, StepStatus, StepWord


def step_word(
    step: StepState, is_interrupted: bool = False, *, is_overdue: bool = False
) -> StepWord:
    if step.awaits_approval:
        return "overdue" if is_overdue else "awaiting approval"
    if step.status is not StepStatus.RUNNING:
        return cast(StepWord, step.status.value)
    if step.inner is not None:
        word = _word_of_workflow(step.inner)
        return "interrupted" if is_interrupted and word == "running" else word
    if is_interrupted:
        return "interrupted"
    if step.pending is not None:
        return "merging"
    # Whatever is at work has an open attempt, so a running step without one waits for its next.
    return "running" if step.open_attempts else "retrying"


def _word_of_workflow(inner: RecipeState) -> StepWord:
    """A workflow step waits where only a person can let one of its steps go on, as a run does."""
    begun = [
        step_word(each)
        for each in inner.steps.values()
        if each.ended_at is None and (each.awaits_approval or each.started_at is not None)
    ]
    is_held_up = bool(begun) and all(word in ("awaiting approval", "waiting") for word in begun)
    return "waiting" if is_held_up else "running"


def run_word(state: RunState, is_driven: bool, now: float | None = None) -> str:
    """A run that has not ended and that no process drives is interrupted, or waits for a person."""
    if state.has_ended or is_driven:
        return state.status.value
    if any(is_overdue(state, step, now) for step in state.awaiting_approval):
        return "overdue"
    return "waiting" if state.awaiting_approval else INTERRUPTED


def overdue_timers(state: RunState, now: float) -> list[RunTimer | StepTimer]:
    """Deadlines of the run and of steps that are past: they count before anything else does."""
    late = (timer for timer, due_at in state.timers.items() if due_at <= now)
    return [timer for timer in late if isinstance(timer, RunTimer | StepTimer)]


def is_overdue(state: RunState, step: StepId, now: float | None) -> bool:
    """Whether a deadline that ends the step has passed while no process drove the run."""
    due_at = deadline_of(state, step)
    return now is not None and due_at is not None and due_at <= now


def deadline_of(state: RunState, step: StepId) -> float | None:
    """When the time of the run, of the step or of a workflow step around it is up: what comes first."""
    return min(
        (
            due_at
            for timer, due_at in state.timers.items()
            if isinstance(timer, RunTimer)
            or (isinstance(timer, StepTimer) and f"{step}/".startswith(f"{timer.step}/"))
        ),
        default=None,
    )


def why_waiting(state: RunState, step: StepId) -> str:
    """Empty when it is at work, or has ended."""
    found = state.steps.get(step)
    if found is None or found.ended_at is not None:
        return ""
    if found.awaits_approval:
        return "awaits approval"
    if found.inner is not None and found.status is StepStatus.RUNNING:
        asking = [each for each in state.awaiting_approval if each.startswith(f"{step}/")]
        return f"waits for approval of {listed(asking)}" if step_word(found) == "waiting" else ""
    if found.status is StepStatus.RUNNING:
        return _why_paused(state, found)
    if state.started_at is None:
        return "waits for the run to start"
    if found.unmet:
        befores = [state.steps[before] for before in found.planned.depends_on]
        if found.recipe.holder is not None and found.recipe.holder.started_at is None:
            befores.append(found.recipe.holder)
        return f"waits for {listed(step.id for step in befores if step.ended_at is None)}"
    return _why_ready(state, found)


def _why_paused(state: RunState, step: StepState) -> str:
    if any(part.status == "running" for part in step.parts.values()):
        return ""
    if step.queued:
        return _no_slot(state)
    due_at = retry_due_at(state, step)
    return "" if due_at is None else f"retries in {format_duration(max(0.0, due_at - state.now))}"


def retry_due_at(state: RunState, step: StepState) -> float | None:
    """When the step's next attempt after a failure is due, if one is."""
    timers = state.timers.items()
    retries = ((timer, at) for timer, at in timers if isinstance(timer, RetryTimer))
    return min((at for timer, at in retries if timer.attempt.step == step.id), default=None)


def _no_slot(state: RunState) -> str:
    """Why the step has no slot; empty when one is free."""
    running, width = state.ready.running, state.ready.width
    return f"waits for a free slot ({running} of {width} running)" if running >= width else ""


def _why_ready(state: RunState, step: StepState) -> str:
    if said := _no_slot(state):
        return said
    blocker = state.ready.blocker_of(step.index)
    if blocker is None:
        return ""
    planned = state.order[blocker].planned
    return f"waits for the files of {planned.id} ({listed(_files(planned), most=3)})"


def _files(planned: PlannedStep) -> tuple[str, ...]:
    return planned.write_set or planned.read_set
