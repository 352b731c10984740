"""A step that is one delegation."""

from stretto.plan.model import PlannedDelegation
from stretto.schedule.outcomes import fail, policy_for, succeed
from stretto.schedule.parts import start_part
from stretto.schedule.state import PartState, StepState
from stretto.schedule.turn import Turn


def begin(turn: Turn, step: StepState, work: PlannedDelegation) -> None:
    start_part(turn, step, "", work.brief)


def end_part(turn: Turn, step: StepState, part: PartState) -> None:
    """The part's outcome is the step's: of any step that is down to one part."""
    if part.failure is None:
        succeed(turn, step, part.kept_output)
    else:
        fail(turn, step, part.failure, policy_for(step, part))
