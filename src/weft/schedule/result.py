"""What a run gives (RECIPES §1). In: RunState. Out: its output."""

from weft.schedule.state import RunState
from weft.templates.render import TooLong, whole_value
from weft.templates.value import MISSING
from weft.vocabulary.values import Json


def output_of(state: RunState) -> Json:
    plan = state.plan
    if plan.output is not None:
        try:
            value = whole_value(plan.output, state.scope)
        except TooLong as error:
            return f"[{error}: read the outputs of the steps]"
        return None if value is MISSING else value
    if plan.dialect == "structural":
        return {step.id: step.output for step in state.order}
    return state.order[-1].output if state.order else None
