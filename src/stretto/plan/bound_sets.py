"""Fill in what a plan takes from its inputs before the run exists: sets of files and timeouts.

A value that is put into a set is a name or a path and no pattern: `*` in it is a character. It stays
where the recipe puts it: it cannot lead upwards, out of the workspace, or name nothing.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import structs

from stretto.globs.glob import GlobFault, parse_glob
from stretto.plan.model import Plan, PlannedStep
from stretto.problems import Problem
from stretto.templates.render import as_text, render
from stretto.templates.scope import MISSING, Scope, resolve
from stretto.templates.template import Reference, Template
from stretto.vocabulary.durations import parse_duration
from stretto.vocabulary.json_value import Json

MOST_GLOBS = 256
_SPECIAL = re.compile(r"[*?\[{},]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class _Refused(Exception):
    def __init__(self, code: str, message: str, hint: str) -> None:
        self.fault = (code, message, hint)


def bind_plan(plan: Plan, inputs: Mapping[str, Json]) -> tuple[Plan, tuple[Problem, ...]]:
    scope = Scope(inputs=inputs)
    problems: list[Problem] = []
    steps = tuple(_bind_step(plan, step, scope, problems) for step in plan.steps)
    seconds = plan.timeout_seconds
    if plan.timeout_template is not None:
        seconds = _duration(plan, "timeout", plan.timeout_template, scope, problems)
    if all(new is old for new, old in zip(steps, plan.steps, strict=True)):
        steps = plan.steps
    return structs.replace(plan, steps=steps, timeout_seconds=seconds), tuple(problems)


def _bind_step(plan: Plan, step: PlannedStep, scope: Scope, problems: list[Problem]) -> PlannedStep:
    if not (step.read_templates or step.write_templates or step.timeout_template):
        return step
    reads, writes, seconds = step.read_set, step.write_set, step.timeout_seconds
    at = f"steps.{step.id}"
    if step.read_templates:
        reads = _bind_set(plan, f"{at}.read_set", step.read_templates, scope, problems) or reads
    if step.write_templates:
        writes = _bind_set(plan, f"{at}.write_set", step.write_templates, scope, problems) or writes
    if step.timeout_template is not None:
        seconds = _duration(plan, f"{at}.timeout", step.timeout_template, scope, problems)
    return structs.replace(step, read_set=reads, write_set=writes, timeout_seconds=seconds)


def _bind_set(
    plan: Plan, path: str, templates: Sequence[Template], scope: Scope, problems: list[Problem]
) -> tuple[str, ...]:
    try:
        globs = tuple(glob for template in templates for glob in _globs(template, scope))
        _check_globs(globs)
    except _Refused as refused:
        code, message, hint = refused.fault
        problems.append(Problem(code, f"{path}: {message}", file=plan.file, path=path, hint=hint))
        return ()
    return globs


def _globs(template: Template, scope: Scope) -> Iterator[str]:
    parts = template.parts
    if len(parts) == 1 and isinstance(parts[0], Reference):
        value = resolve(parts[0], scope)
        if isinstance(value, list):
            if not value:
                raise _Refused(
                    "RCP122", f"{parts[0].text} is an empty list", "give at least one path"
                )
            for element in value:
                yield _literal(parts[0].text, element, is_first=True)
            return
    text = ""
    for part in parts:
        text += part if isinstance(part, str) else _insert(part, scope, is_first=not text)
    yield text


def _insert(reference: Reference, scope: Scope, is_first: bool) -> str:
    value = resolve(reference, scope)
    return _literal(reference.text, None if value is MISSING else value, is_first)


def _literal(name: str, value: Json, is_first: bool) -> str:
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
    return _SPECIAL.sub(r"[\g<0>]", text)


def _check_globs(globs: Sequence[str]) -> None:
    count = 0
    for text in globs:
        glob = parse_glob(text)
        if isinstance(glob, GlobFault):
            raise _Refused(glob.code, glob.message, glob.hint)
        count += len(glob.patterns)
    if count > MOST_GLOBS:
        raise _Refused(
            "RCP118", f"{count:,} globs; at most {MOST_GLOBS} are allowed", "name folders"
        )


def _duration(
    plan: Plan, path: str, template: Template, scope: Scope, problems: list[Problem]
) -> float | None:
    text = render(template, scope).text
    seconds = parse_duration(text)
    if seconds is None:
        message = f"{path}: '{text[:40]}' is not a duration"
        hint = "give a duration such as 90s, 3m or 1h30m"
        problems.append(Problem("RCP110", message, file=plan.file, path=path, hint=hint))
    return seconds
