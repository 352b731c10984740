"""Why a step is not at work. In: RunState and a step. Out: a few words, or none."""

from stretto.plan.model import PlannedStep
from stretto.schedule.state import RunState, StepState
from stretto.vocabulary.durations import format_duration
from stretto.vocabulary.ids import StepId
from stretto.vocabulary.names import listed
from stretto.vocabulary.statuses import StepStatus


def why_waiting(state: RunState, step: StepId) -> str:
    """Empty when it is at work, or has ended."""
    found = state.steps.get(step)
    if found is None or found.ended_at is not None:
        return ""
    if found.awaits_approval:
        return "awaits approval"
    if found.status is StepStatus.RUNNING:
        return _why_paused(state, found)
    if state.started_at is None:
        return "waits for the run to start"
    if found.unmet:
        befores = (state.steps[before] for before in found.planned.depends_on)
        return f"waits for {listed(step.id for step in befores if step.ended_at is None)}"
    return _why_ready(state, found)


def _why_paused(state: RunState, step: StepState) -> str:
    if any(part.status == "running" for part in step.parts.values()):
        return ""
    if step.queued:
        return _no_place(state)
    due = [t.due_at for t in state.timers.values() if t.kind == "retry" and t.step == step.id]
    return f"retries in {format_duration(max(0.0, min(due) - state.now))}" if due else ""


def _no_place(state: RunState) -> str:
    """Empty when there is one."""
    running, width = state.startable.running, state.startable.width
    return f"waits for a free place ({running} of {width} running)" if running >= width else ""


def _why_ready(state: RunState, step: StepState) -> str:
    if said := _no_place(state):
        return said
    blocker = state.startable.blocker_of(step.index)
    if blocker is None:
        return ""
    planned = state.order[blocker].planned
    return f"waits for the files of {planned.id} ({listed(_files(planned), most=3)})"


def _files(planned: PlannedStep) -> tuple[str, ...]:
    return planned.write_set or planned.read_set
