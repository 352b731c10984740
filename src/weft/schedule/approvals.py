"""What a person decides: whether a gated step starts, whether work in doubt is done again, and
whether a change is merged that somebody should look at first."""

from weft.events.model import MergeHeld
from weft.schedule.closing import stop_asking
from weft.schedule.collecting import collect_allowed, hold
from weft.schedule.commands import AskApproval
from weft.schedule.outcomes import changes_of, end_collected, fail
from weft.schedule.parts import give_up, start_again
from weft.schedule.state import Failure, StepState
from weft.schedule.turn import Turn
from weft.vocabulary.statuses import StepStatus


def needs_person(turn: Turn, step: StepState) -> bool:
    """Whether a person must let the step start, and has not yet."""
    if step.is_approved:
        return False
    is_asked_for = turn.state.asks_for_writers and step.planned.posture == "writer"
    return step.planned.is_gated or is_asked_for


def ask(turn: Turn, step: StepState) -> None:
    if not step.awaits_approval:
        step.awaits_approval = True
        turn.state.awaiting_approval[step.id] = step
        turn.say(AskApproval(step.id))


def hold_merge(turn: Turn, step: StepState, event: MergeHeld) -> None:
    if step.pending is None or step.is_merge_held:
        return
    step.changes = changes_of(step, event)
    hold(turn, step, event.question)
    ask(turn, step)


def approve(turn: Turn, step: StepState) -> None:
    if not step.awaits_approval:
        return
    stop_asking(turn, step)
    step.is_approved = True
    if step.is_merge_held:
        collect_allowed(turn, step)
    if step.status is StepStatus.WAITING:
        turn.state.startable.push(step.index)
    for part in list(step.parts.values()):
        if part.status == "asking":
            start_again(turn, step, part)


def reject(turn: Turn, step: StepState, by: str, reason: str) -> None:
    if not step.awaits_approval:
        return
    stop_asking(turn, step)
    said = f"rejected by {by or 'a person'}" + (f": {reason}" if reason else "")
    if step.is_merge_held:
        end_collected(turn, step, Failure("refused", f"its change was {said}"))
        return
    if step.status is StepStatus.WAITING:
        fail(turn, step, Failure("refused", said), step.planned.on_failure)
    for part in list(step.parts.values()):
        if part.status == "asking":
            give_up(turn, step, part, Failure("in_doubt", said))
