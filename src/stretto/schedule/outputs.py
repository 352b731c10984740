"""What a run gives (RECIPES §1, §6), and how a large output leaves memory."""

from collections import ChainMap
from dataclasses import replace

from stretto.events.attempts import ItemPart
from stretto.events.model import AttemptSucceeded
from stretto.schedule.state import RunState, StepState
from stretto.templates.render import TooLong, whole_value
from stretto.templates.scope import MISSING, EndedStep, Scope, StepValue, resolve
from stretto.text.short import listed
from stretto.vocabulary.json_value import Json, Large
from stretto.vocabulary.statuses import StepStatus


def output_of(state: RunState) -> Json:
    plan = state.plan
    if plan.output is not None:
        try:
            value = whole_value(plan.output, _scope(state))
        except TooLong as error:
            return f"[{error}: read the outputs of the steps]"
        return None if value is MISSING else value
    if plan.dialect == "structural":
        return {step.id: _own_output(state, step) for step in state.order}
    if not state.has_ended:
        return None
    # Conditions decide which steps run, so the last listed step may not be among them.
    listed = reversed(state.order)
    return next((step.output for step in listed if _has_output(state, step)), None)


def lack_of_output(state: RunState) -> str:
    """Why the run has no output; empty when it has one."""
    template = state.plan.output
    if template is not None:
        references, scope = template.references, _scope(state)
        values = (resolve(each, scope) for each in references)
        if not references or any(value is not MISSING and value is not None for value in values):
            return ""
        named = listed(dict.fromkeys(f"{{{{{each.text}}}}}" for each in references), 4)
        return f"the run has no output: nothing is there for {named}"
    if any(_has_output(state, step) for step in state.order):
        return ""
    return "the run has no output: none of its steps gave one"


def _has_output(state: RunState, step: StepState) -> bool:
    has_ended_well = step.status is StepStatus.SUCCEEDED and not _has_failed(state, step)
    return has_ended_well and step.kept_output is not None


def _own_output(state: RunState, step: StepState) -> Json:
    return None if _has_failed(state, step) else step.output


def _has_failed(state: RunState, step: StepState) -> bool:
    """Whether the step, or the step that gave a condition its output, has failed. An inlined error
    is meant for later prompts, and is no output of the run."""
    while step.choice is not None:
        step = state.steps[step.choice]
    return step.status is StepStatus.FAILED


def _scope(state: RunState) -> Scope:
    failed = [step for step in state.order if _has_failed(state, step)]
    if not failed:
        return state.scope
    silenced: dict[str, EndedStep] = {
        step.id: StepValue(
            None, step.outputs, step.status, step.error, step.validation, chosen=step.chosen
        )
        for step in failed
    }
    return replace(state.scope, steps=ChainMap(silenced, state.values))


def release_output(state: RunState, event: AttemptSucceeded, large: Large) -> None:
    step = state.steps.get(event.attempt.step)
    part = step.parts.get(event.attempt.part) if step else None
    if step is None or part is None:
        return
    if part.kept_output is event.output:
        part.kept_output = large
    for holder in (step, *step.all_chosen_by()):
        if holder.kept_output is event.output:
            holder.kept_output = large
    if step.kept_outputs is not None and step.kept_outputs.get(part.name) is event.output:
        step.kept_outputs[part.name] = large
    results = step.items.results if step.items is not None else []
    if isinstance(part.id, ItemPart) and results[part.id.index] is event.output:
        results[part.id.index] = large
