"""What a run gives (RECIPES §1). In: RunState. Out: its output."""

from collections import ChainMap
from dataclasses import replace

from weft.schedule.state import RunState, StepState
from weft.templates.render import TooLong, whole_value
from weft.templates.scope import EndedStep, Scope, StepValue
from weft.templates.value import MISSING
from weft.vocabulary.statuses import StepStatus
from weft.vocabulary.values import Json


def output_of(state: RunState) -> Json:
    plan = state.plan
    if plan.output is not None:
        try:
            value = whole_value(plan.output, _scope(state))
        except TooLong as error:
            return f"[{error}: read the outputs of the steps]"
        return None if value is MISSING else value
    if plan.dialect == "structural":
        return {step.id: _given(step) for step in state.order}
    return _given(state.order[-1]) if state.order else None


def _given(step: StepState) -> Json:
    """An error that stands in for an output is for later prompts: no run gives it as its own."""
    return None if step.status is StepStatus.FAILED else step.output


def _scope(state: RunState) -> Scope:
    failed = {step.id: step for step in state.order if step.status is StepStatus.FAILED}
    if not failed:
        return state.scope
    silenced: dict[str, EndedStep] = {
        id: StepValue(None, step.outputs, step.status, step.error, step.validation)
        for id, step in failed.items()
    }
    return replace(state.scope, steps=ChainMap(silenced, state.values))
