"""One event being worked off: the state that it changes, and the commands that follow.

Also how a step or a run is closed, wherever that is decided: steps that depend on it are not
looked at here.
"""

from msgspec import Struct, field

from stretto.events.attempts import StepTimer, Timer
from stretto.schedule.commands import ClearTimer, Command, SetTimer
from stretto.schedule.state import RunState, StepState
from stretto.vocabulary.names import StepId
from stretto.vocabulary.statuses import RunStatus, StepStatus


class Transition(Struct, eq=False):
    state: RunState
    at: float  # when the event happened: the only time there is
    commands: list[Command] = field(default_factory=list)
    asking: dict[StepId, None] = field(default_factory=dict)  # who asks a person from now on
    starting: StepState | None = None  # the step whose work begins just now

    def emit(self, command: Command) -> None:
        self.commands.append(command)

    def set_timer(self, timer: Timer, due_at: float) -> None:
        self.state.timers[timer] = due_at
        self.emit(SetTimer(timer, due_at))

    def clear_timer(self, timer: Timer) -> None:
        if self.state.timers.pop(timer, None) is not None:
            self.emit(ClearTimer(timer))


def end_step(transition: Transition, step: StepState, status: StepStatus) -> None:
    state = transition.state
    if step.status is StepStatus.RUNNING:
        del state.running[step.id]
        # An attempt that was told to stop may write until it confirms that it has stopped.
        if step.open_attempts == 0:
            state.ready.release_files(step.index)
    if step.planned.timeout_seconds is not None or step.inner is not None:
        transition.clear_timer(StepTimer(step.id))
    stop_asking(transition, step)
    step.status = status
    step.ended_at = transition.at
    state.values[step.id] = step
    if step.inner is not None and status is not StepStatus.SUCCEEDED:
        _end_inside(transition, step, status)
    recipe = step.recipe
    if recipe.holder is not None:
        recipe.values[step.own_id] = step
        recipe.left -= 1
        if not recipe.left and recipe.holder.status is StepStatus.RUNNING:
            state.done_inside.append(recipe.holder)


def _end_inside(transition: Transition, holder: StepState, status: StepStatus) -> None:
    """End the steps that have not begun in a workflow step that ends early."""
    assert holder.inner is not None
    own = StepStatus.CANCELLED if status is StepStatus.FAILED else status
    for step in holder.inner.steps.values():
        if step.status is StepStatus.WAITING:
            step.reason = holder.reason or f"{holder.id} failed"
            end_step(transition, step, own)


def stop_asking(transition: Transition, step: StepState) -> None:
    if step.awaits_approval:
        step.awaits_approval = False
        step.asked_key = ""
        del transition.state.awaiting_approval[step.id]


def close_run(transition: Transition, status: RunStatus, reason: str) -> None:
    """Start nothing new, and let running attempts finish. Only the first reason counts."""
    state = transition.state
    state.warn(reason)
    if state.closed_as is not None:
        return
    state.closed_as = status
    state.closing_reason = reason
    state.ready.clear()
    for step in state.order:
        if step.status is StepStatus.WAITING:
            step.reason = reason
            end_step(transition, step, StepStatus.CANCELLED)
