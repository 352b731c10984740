"""A step that is one delegation."""

from weft.plan.model import Delegate
from weft.schedule.outcomes import fail, policy_for, succeed
from weft.schedule.parts import start_part
from weft.schedule.state import PartState, StepState
from weft.schedule.turn import Turn


def begin(turn: Turn, step: StepState, work: Delegate) -> None:
    start_part(turn, step, "", work.brief)


def end_part(turn: Turn, step: StepState, part: PartState) -> None:
    """The part's outcome is the step's: of any step that is down to one part."""
    if part.failure is None:
        succeed(turn, step, part.kept_output)
    else:
        fail(turn, step, part.failure, policy_for(step, part))
