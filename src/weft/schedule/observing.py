"""What an attempt does while it is under way. It changes no step; a report and a resume need it."""

from weft.events.model import Happening, ModelFailedOver, ModelSpoke, ToolEnded, ToolStarted
from weft.schedule.state import RunState


def observe(state: RunState, event: Happening) -> None:
    step = state.steps.get(event.step)
    part = step.parts.get(event.part) if step else None
    if step is None or part is None or not 1 <= event.attempt <= len(part.attempts):
        return
    attempt = part.attempts[event.attempt - 1]
    match event:
        case ToolStarted():
            attempt.has_doubtful_calls |= event.recovery == "in_doubt"
        case ToolEnded():
            attempt.tool_calls += 1
        case ModelFailedOver():
            step.warnings[
                f"{event.model} could not answer, {event.to} was asked: {event.error}"
            ] = None
        case ModelSpoke():
            pass
