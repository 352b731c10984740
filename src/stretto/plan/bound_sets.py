"""Fill in what a plan takes from its inputs before the run exists: sets of files and timeouts.

Text is put into a set as it is, and the whole is then checked like any glob. A `file_path` is the path of
one file, so `*` and `[` in it are characters. No value can lead upwards, out of the workspace, or name
nothing.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import is_

from msgspec import structs

from stretto.globs.glob import MOST_CHARACTERS, set_faults
from stretto.plan.inputs import FindFile
from stretto.plan.model import Plan, PlannedAgent, PlannedStep, PlannedWorkflow
from stretto.plan.workflow_steps import known_inputs
from stretto.problems import Problem
from stretto.recipe.model import Input
from stretto.templates.render import TooLong, as_text, render
from stretto.templates.scope import MISSING, Scope, resolve
from stretto.templates.template import Reference, Template
from stretto.vocabulary.amounts import guess_duration, parse_duration
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import StepId

_SPECIAL = re.compile(r"[*?\[{},(]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class _Refused(Exception):
    def __init__(self, code: str, message: str, hint: str) -> None:
        self.fault = (code, message, hint)


def bind_plan(
    plan: Plan, inputs: Mapping[str, Json], find_file: FindFile | None = None
) -> tuple[Plan, tuple[Problem, ...]]:
    """`find_file`: for the files that inputs of workflow steps name."""
    problems: list[Problem] = []
    outermost = _Binding(
        plan.file, Scope(inputs=inputs, stored=plan.stored), _paths(plan.inputs), problems
    )
    bindings: dict[StepId | None, _Binding] = {None: outermost}
    steps = list[PlannedStep]()
    for step in plan.steps:  # a workflow step stands before those in it
        bound = bindings[step.inside].step(step)
        if isinstance(bound.work, PlannedWorkflow):
            work = bindings[step.inside].workflow(step.id, bound.work, find_file)
            scope = Scope(inputs=work.known, stored=work.stored)
            inner = bindings[step.id] = _Binding(work.file, scope, _paths(work.inputs), problems)
            bound = structs.replace(bound, work=inner.recipe_timeout(step.id, work))
        steps.append(bound)
    agents = {
        # An agent whose timeout names inputs is kept under the step whose recipe defines it.
        id: bindings[StepId(id.rpartition("/")[0]) if "/" in id else None].agent(id, agent)
        if agent.timeout_template is not None
        else agent
        for id, agent in plan.agents.items()
    }
    seconds = outermost.seconds("timeout", plan.timeout_template, plan.timeout_seconds)
    kept = plan.steps if all(map(is_, steps, plan.steps)) else tuple(steps)
    # The same plan, where its inputs change nothing: how it is stored is then known already.
    if kept is not plan.steps or agents != plan.agents or seconds != plan.timeout_seconds:
        plan = structs.replace(plan, agents=agents, steps=kept, timeout_seconds=seconds)
    return plan, tuple(problems)


def _paths(declared: tuple[Input, ...]) -> frozenset[str]:
    return frozenset(each.name for each in declared if each.type == "file_path")


@dataclass(slots=True)
class _Binding:
    """What one recipe of the plan takes from its inputs."""

    file: str
    scope: Scope
    paths: frozenset[str]  # inputs that are files
    problems: list[Problem]

    def workflow(
        self, id: StepId, work: PlannedWorkflow, find_file: FindFile | None
    ) -> PlannedWorkflow:
        try:
            known, problems = known_inputs(work, self.scope, find_file)
        except TooLong as error:
            self._report("RCP147", f"steps.{id}.inputs", str(error), "give less")
            return work
        for each in problems:
            self._report(each.code, f"steps.{id}.{each.path or 'inputs'}", each.message, each.hint)
        return structs.replace(work, known=known)

    def recipe_timeout(self, id: StepId, work: PlannedWorkflow) -> PlannedWorkflow:
        """`self`: the binding of the inner recipe."""
        path = f"steps.{id}: timeout of {work.name}"
        seconds = self.seconds(path, work.timeout_template, work.timeout_seconds)
        return structs.replace(work, timeout_seconds=seconds)

    def agent(self, id: str, agent: PlannedAgent) -> PlannedAgent:
        path = f"agents.{id}.timeout"
        seconds = self.seconds(path, agent.timeout_template, agent.timeout_seconds)
        return structs.replace(agent, timeout_seconds=seconds)

    def step(self, step: PlannedStep) -> PlannedStep:
        if not (step.read_templates or step.write_templates or step.timeout_template):
            return step
        at = f"steps.{step.id}"
        return structs.replace(
            step,
            read_set=self._set(f"{at}.read_set", step.read_templates, step.read_set),
            write_set=self._set(f"{at}.write_set", step.write_templates, step.write_set),
            timeout_seconds=self.seconds(
                f"{at}.timeout", step.timeout_template, step.timeout_seconds
            ),
        )

    def seconds(self, path: str, template: Template | None, known: float | None) -> float | None:
        if template is None:
            return known
        try:
            text = render(template, self.scope).text
        except TooLong as error:
            self._report("RCP110", path, str(error), "give a duration such as 90s, 3m or 1h30m")
            return known
        seconds = parse_duration(text)
        if seconds is None:
            hint = f"give {guess_duration(text) or 'a duration such as 90s, 3m or 1h30m'}"
            self._report("RCP110", path, f"'{text[:40]}' is not a duration", hint)
        return seconds

    def _set(
        self, path: str, templates: Sequence[Template], known: tuple[str, ...]
    ) -> tuple[str, ...]:
        try:
            globs = tuple(glob for template in templates for glob in self._globs(template))
        except _Refused as refused:
            code, message, hint = refused.fault
            self._report(code, path, message, hint)
            return known
        faults = [fault for _, fault in set_faults(globs)]
        for fault in faults:
            self._report(fault.code, path, fault.message, fault.hint)
        return known if faults or not globs else globs

    def _report(self, code: str, path: str, message: str, hint: str) -> None:
        self.problems.append(Problem(code, f"{path}: {message}", self.file, path=path, hint=hint))

    def _globs(self, template: Template) -> Iterator[str]:
        parts = template.parts
        if len(parts) == 1 and isinstance(parts[0], Reference):
            value = resolve(parts[0], self.scope)
            if isinstance(value, list):
                if not value:
                    message = f"{parts[0].text} is an empty list"
                    raise _Refused("RCP122", message, "give at least one path")
                for element in value:
                    yield _check_insertable(parts[0].text, element, is_first=True)
                return
        text = ""
        for part in parts:
            text += part if isinstance(part, str) else self._insert(part, is_first=not text)
            if len(text) > MOST_CHARACTERS:  # of a glob, so it is refused and the rest is not made
                break
        yield text

    def _insert(self, reference: Reference, is_first: bool) -> str:
        value = resolve(reference, self.scope)
        text = _check_insertable(reference.text, None if value is MISSING else value, is_first)
        return _literal(text, is_first) if reference.path[1] in self.paths else text


def _check_insertable(name: str, value: Json, is_first: bool) -> str:
    if value is None or isinstance(value, dict | list):
        said = "has no value" if value is None else "is no text"
        raise _Refused("RCP122", f"{name} {said}", "give a path")
    text = as_text(value)
    if not text.strip():
        raise _Refused("RCP122", f"{name} is empty", "give a path")
    if _CONTROL.search(text):
        raise _Refused("RCP122", f"{name} holds a control character: {text[:60]!r}", "give a path")
    names = text.removesuffix("/").split("/")
    if is_first and names[0] == ".":
        names = names[1:]
    if any(each in ("", ".", "..") for each in names):
        hint = "give a path inside the workspace, without '..' and without a '/' at its beginning"
        raise _Refused("RCP121", f"{name} is '{text[:60]}', which leads elsewhere", hint)
    return text


def _literal(path: str, is_first: bool) -> str:
    """The path as a glob that matches it and nothing else."""
    text = _SPECIAL.sub(r"[\g<0>]", path)
    return f"./{text}" if is_first and text.startswith("!") else text
