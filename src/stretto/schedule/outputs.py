"""What a run gives, and how a large output leaves memory."""

from collections import ChainMap
from collections.abc import Iterator

from msgspec import structs

from stretto.events.attempts import ItemPart
from stretto.events.model import AttemptSucceeded
from stretto.schedule.state import RecipeState, RunState, StepState
from stretto.templates.render import TooLong, whole_value
from stretto.templates.scope import MISSING, EndedStep, Scope, StepValue, resolve
from stretto.text.short import listed
from stretto.validation.blank import is_blank
from stretto.vocabulary.json_value import Json, Large
from stretto.vocabulary.names import StepId
from stretto.vocabulary.statuses import StepStatus


def output_of(state: RunState) -> Json:
    return recipe_output(state.recipe, has_ended=state.has_ended)


def recipe_output(recipe: RecipeState, *, has_ended: bool = True) -> Json:
    if recipe.output is not None:
        try:
            value = whole_value(recipe.output, _scope(recipe))
        except TooLong as error:
            return f"[{error}: read the outputs of the steps]"
        return None if value is MISSING else value
    if recipe.dialect == "structural":
        return {step.own_id: _own_output(recipe, step) for step in recipe.steps.values()}
    if not has_ended:
        return None
    # Conditions decide which steps run, so the last listed step may not be among them.
    listed = reversed(recipe.steps.values())
    return next((step.output for step in listed if _has_output(recipe, step)), None)


def lack_of_output(recipe: RecipeState) -> str:
    """Why there is no output; empty when there is one."""
    who = "the run" if recipe.holder is None else "the workflow"
    template = recipe.output
    if template is not None:
        references, scope = template.references, _scope(recipe)
        values = (resolve(each, scope) for each in references)
        if not references or any(value is not MISSING and value is not None for value in values):
            return ""
        named = listed(dict.fromkeys(f"{{{{{each.text}}}}}" for each in references), 4)
        return f"{who} has no output: nothing is there for {named}"
    if any(_has_output(recipe, step) for step in recipe.steps.values()):
        return ""
    return f"{who} has no output: none of its steps gave one"


def doubts_about_output(recipe: RecipeState, whose: str) -> Iterator[str]:
    """What is missing in an output that is there. What was skipped is not: a join of two ways is written so."""
    for each in dict.fromkeys(recipe.output.references if recipe.output is not None else ()):
        named = each.step or recipe.scope.stored.get(str(each.path[0]))
        step = recipe.steps.get(StepId(named)) if named is not None else None
        has_run = step is None or step.status is StepStatus.SUCCEEDED
        if has_run and resolve(each, recipe.scope) is MISSING:
            yield f"{{{{{each.text}}}}} is not there and was left empty in {whose}"
    if lack := _lack_of_words(recipe, whose):
        yield lack


def _lack_of_words(recipe: RecipeState, whose: str) -> str:
    """Empty unless the output is there and says nothing. Without an `output:`, a recipe whose steps have
    changed files gives those: a command that copies a file need not say so."""
    if recipe.output is None:
        last = next((e for e in reversed(recipe.steps.values()) if _has_output(recipe, e)), None)
        is_empty = last is not None and _is_empty_text(last.kept_output)
        has_files = any(e.changes and e.changes.files for e in recipe.steps.values())
        return f"{whose} is an empty text" if is_empty and not has_files else ""
    scope, named = _scope(recipe), recipe.output.references
    # What a reference gives is in the output: only where all of them give nothing it is rendered.
    if not all(_is_empty_text(resolve(each, scope)) for each in named):
        return ""
    if _is_empty_text(recipe_output(recipe)):
        return f"{whose} is an empty text"
    # Words around what gave nothing say nothing of what happened.
    return f"all that {whose} names is empty" if named else ""


def _is_empty_text(value: object) -> bool:
    return value is MISSING or value is None or (isinstance(value, str) and is_blank(value))


def nobody_answered(recipe: RecipeState) -> bool:
    """Whether no step of it, nor of the workflows in it, has an answer of somebody who was asked."""
    return not any(
        has_answered(step) or (step.inner is not None and not nobody_answered(step.inner))
        for step in recipe.steps.values()
    )


def has_answered(step: StepState) -> bool:
    """Whether the step succeeded, and somebody who was asked in it has answered."""
    return step.status is StepStatus.SUCCEEDED and any(
        attempt.outcome == "succeeded" for attempt in step.attempts
    )


def _has_output(recipe: RecipeState, step: StepState) -> bool:
    has_ended_well = step.status is StepStatus.SUCCEEDED and not _has_failed(recipe, step)
    return has_ended_well and step.kept_output is not None


def _own_output(recipe: RecipeState, step: StepState) -> Json:
    return None if _has_failed(recipe, step) else step.output


def _has_failed(recipe: RecipeState, step: StepState) -> bool:
    """Whether the step, or the step that gave a condition its output, has failed. An inlined error
    is meant for later prompts, and is no output of the run."""
    while step.choice is not None:
        assert step.chosen is not None
        step = recipe.steps[StepId(step.chosen)]
    return step.status is StepStatus.FAILED


def _scope(recipe: RecipeState) -> Scope:
    failed = [step for step in recipe.steps.values() if _has_failed(recipe, step)]
    if not failed:
        return recipe.scope
    silenced: dict[str, EndedStep] = {
        step.own_id: StepValue(
            None, step.outputs, step.status, step.error, step.validation, chosen=step.chosen
        )
        for step in failed
    }
    return structs.replace(recipe.scope, steps=ChainMap(silenced, recipe.values))


def _enclosing(step: StepState) -> Iterator[StepState]:
    """The workflow steps around it, whose output may be its own."""
    while step.recipe.holder is not None:
        step = step.recipe.holder
        yield step


def release_output(state: RunState, event: AttemptSucceeded, large: Large) -> None:
    step = state.steps.get(event.attempt.step)
    part = step.parts.get(event.attempt.part) if step else None
    if step is None or part is None:
        return
    if part.kept_output is event.output:
        part.kept_output = large
    for holder in (step, *_enclosing(step)):
        for each in (holder, *holder.all_chosen_by()):
            if each.kept_output is event.output:
                each.kept_output = large
    if step.kept_outputs is not None and step.kept_outputs.get(part.name) is event.output:
        step.kept_outputs[part.name] = large
    results = step.items.results if step.items is not None else []
    if isinstance(part.id, ItemPart) and results[part.id.index] is event.output:
        results[part.id.index] = large
