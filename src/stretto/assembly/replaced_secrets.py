"""Secrets that a run is given: in its inputs, or in its recipe. In: a bound plan, inputs. Out: the plan
with a warning for each.

No run keeps a secret: `[redacted]` stands in its place. A model can be told so. A command or a function
would compute with those letters, and a set would name other files, so then the run is refused.
"""

import json
from collections.abc import Collection, Iterator, Mapping

from msgspec import structs

from stretto.plan.model import (
    Brief,
    Plan,
    PlannedMap,
    PlannedStep,
    PlannedWorkflow,
    briefs,
    encode_plan,
)
from stretto.problems import Problem
from stretto.problems.errors import InvalidInputs
from stretto.templates.template import Reference, Template
from stretto.text.redaction import MASK, Redactor
from stretto.text.short import listed
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.models import FUNCTION_MODEL
from stretto.vocabulary.names import StepId

REPLACED = "RUN010"
_HINT = "leave it out: bash.environment lists the variables that commands are given"


def tell_of_secrets(
    plan: Plan, inputs: Mapping[str, Json], redactor: Redactor, kept: Collection[str] = ()
) -> Plan:
    """`kept`: inputs with values that were on record, without their secrets. Raises InvalidInputs."""
    bare = structs.replace(plan, warnings=()) if plan.warnings else plan
    written = bytes(encode_plan(bare)).decode()
    found = {name: _why(name, value, redactor, kept) for name, value in inputs.items()}
    secrets = {name: why for name, why in found.items() if why}
    if named := redactor.named_in_plan(written):
        secrets[""] = f"the recipe holds the value of {listed(named)}"
    # A stored plan has the warnings of its first run.
    others = tuple(each for each in plan.warnings if each.code != REPLACED)
    if not secrets:
        return plan if len(others) == len(plan.warnings) else structs.replace(plan, warnings=others)
    if refused := tuple(_find_refused(plan, secrets, redactor)):
        words = "; ".join(problem.message for problem in refused)
        raise InvalidInputs(f"{plan.name}: {words}", refused)
    said = (f"{why}: {MASK} stands in its place" for why in secrets.values())
    told = tuple(Problem(REPLACED, each, hint=_HINT) for each in said)
    return structs.replace(plan, warnings=(*others, *told))


def _why(name: str, value: Json, redactor: Redactor, kept: Collection[str]) -> str:
    text = _text(value)
    if named := redactor.named(text):
        return f"input '{name}' holds the value of {listed(named)}"
    if name in kept and MASK in text:
        return f"input '{name}' held a secret, which was not kept"
    return ""


def _text(value: object) -> str:
    # As it is written, and not as JSON: escapes would hide the secret of several lines.
    if isinstance(value, dict):
        return "\n".join(f"{key}\n{_text(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return "\n".join(map(_text, value))
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _find_refused(plan: Plan, secrets: Mapping[str, str], redactor: Redactor) -> Iterator[Problem]:
    for step in plan.steps:
        sets = (*step.read_set, *step.write_set, *step.read_aliases, *step.write_aliases)
        if redactor.named("\n".join(sets)):
            templates = (*step.read_templates, *step.write_templates)
            sources = {each for t in templates for each in _sources(plan, step, t)}
            yield _problem(step, sources, secrets, "its sets would name other files")
            continue
        sources = {
            each for brief in briefs(step.work) for each in _computed_inputs(plan, step, brief)
        }
        if not sources.isdisjoint(secrets):
            yield _problem(step, sources, secrets, f"it would be given {MASK}")
        elif any(redactor.named(each) for each in _own_texts(plan, step)):
            yield _problem(step, {""}, secrets, f"its command would hold {MASK}")


def _problem(
    step: PlannedStep, sources: Collection[str], secrets: Mapping[str, str], but: str
) -> Problem:
    why = "; ".join(secrets[each] for each in sorted(sources) if each in secrets) or secrets[""]
    return Problem(REPLACED, f"{why}, which no run keeps: step '{step.id}' needs it, but {but}",
                   hint=_HINT)  # fmt: skip


def _computed_inputs(plan: Plan, step: PlannedStep, brief: Brief) -> Iterator[str]:
    """The inputs of the run that a program of this step computes with."""
    for template in _templates(plan, step, brief):
        yield from _sources(plan, step, template)


def _templates(plan: Plan, step: PlannedStep, brief: Brief) -> Iterator[Template]:
    if brief.command is not None:
        yield from brief.command.templates
    elif (brief.model or plan.agents[brief.agent].model or "").startswith(FUNCTION_MODEL):
        yield plan.agents[brief.agent].prompt
        yield from (brief.instruction,) if brief.instruction else ()
        yield from (step.work.over,) if isinstance(step.work, PlannedMap) else ()


def _sources(plan: Plan, step: PlannedStep, template: Template) -> Iterator[str]:
    for each in template.references:
        yield from _inputs_read(plan, step.inside, each)


def _inputs_read(plan: Plan, inside: StepId | None, reference: Reference) -> Iterator[str]:
    """An input of an inner recipe is what that recipe is given."""
    if reference.step is not None:
        return
    is_named = reference.path[0] == "inputs"
    if is_named and len(reference.path) == 1:
        names = (
            [each.name for each in plan.inputs] if inside is None else _given_names(plan, inside)
        )
    else:
        names = [str(reference.path[1 if is_named else 0])]
    if inside is None:
        yield from names
        return
    holder = plan.step(inside)
    assert isinstance(holder.work, PlannedWorkflow)
    for name in names:
        given = holder.work.given.get(name)
        for each in given.references if given else ():
            yield from _inputs_read(plan, holder.inside, each)


def _given_names(plan: Plan, inside: StepId) -> list[str]:
    work = plan.step(inside).work
    return list(work.given) if isinstance(work, PlannedWorkflow) else []


def _own_texts(plan: Plan, step: PlannedStep) -> Iterator[str]:
    """What stands in the recipe and a command computes with: its own text, and what the recipes around
    it are given."""
    commands = [each.command for each in briefs(step.work) if each.command is not None]
    for command in commands:
        yield from (command.run, *(each.text for each in command.templates))
    inside = step.inside if commands else None
    while inside is not None:
        holder = plan.step(inside)
        if isinstance(holder.work, PlannedWorkflow):
            yield from (each.text for each in holder.work.given.values())
            yield _text(dict(holder.work.constants))
            yield from (_text(each.default) for each in holder.work.inputs)
        inside = holder.inside
