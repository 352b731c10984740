"""What a reference means during a run: a value, or MISSING."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field

from stretto.templates.json_text import MISSING, Missing, find_json
from stretto.templates.template import PathPart, Reference
from stretto.vocabulary.json_value import Json as Json

__all__ = ["MISSING", "EndedStep", "Missing", "Scope", "StepValue", "resolve"]


class EndedStep(Protocol):
    """What an ended step left behind: a run's own record of it, or a StepValue."""

    @property
    def output(self) -> Json: ...
    @property
    def kept_output(self) -> object:
        """As it is stored: in place of a large output, something that is neither text nor JSON."""

    @property
    def outputs(self) -> Mapping[str, Json] | None: ...
    @property
    def status(self) -> str: ...
    @property
    def error(self) -> str | None: ...
    @property
    def validation(self) -> Json: ...
    @property
    def chosen(self) -> str | None: ...
    @property
    def diff(self) -> str: ...
    @property
    def files(self) -> list[Json]: ...


class StepValue(Struct, frozen=True):
    """What an ended step left behind, without a run."""

    output: Json
    outputs: Mapping[str, Json] | None = None  # by output key; only a parallel step has them
    status: str = "succeeded"
    error: str | None = None
    validation: Json = None
    diff: str = ""  # what an isolated writer changed
    files: list[Json] = field(default_factory=list)
    chosen: str | None = None  # of a condition: the step or the agent

    @property
    def kept_output(self) -> object:
        return self.output


class Scope(Struct):
    inputs: Mapping[str, Json] = field(default_factory=dict)
    steps: Mapping[str, EndedStep] = field(default_factory=dict)
    stored: Mapping[str, str] = field(default_factory=dict)  # store_as name -> step id
    # Loop variables: item, index, candidate, feedback, iteration.
    local: Mapping[str, Json] = field(default_factory=dict)
    run_id: str = ""


def resolve(reference: Reference, scope: Scope) -> Json | Missing:
    """Never raises: what is not there is MISSING."""
    # `if` takes a third of the time of `match`, and every reference of every prompt comes here.
    path = reference.path
    head = path[0] if path else None
    if head == "steps":
        step = scope.steps.get(str(path[1])) if len(path) > 2 else None
        return MISSING if step is None else _facet(step, path[2], path[3:])
    if head == "inputs":
        name = path[1] if len(path) > 1 else None
        if type(name) is not str:
            return MISSING
        value = scope.inputs.get(name, MISSING)
        return value if len(path) == 2 else _walk(value, path[2:])
    if head == "run":
        return scope.run_id or MISSING if path == ("run", "id") else MISSING
    return _walk(_bare(head, scope), path[1:]) if type(head) is str else MISSING


def _facet(step: EndedStep, facet: PathPart, rest: Sequence[PathPart]) -> Json | Missing:
    match facet:
        case "output":
            return _walk(step.output, rest)
        case "outputs":
            return _walk(MISSING if step.outputs is None else dict(step.outputs), rest)
        case "validation":
            return _walk(step.validation, rest)
        case "diff":
            return MISSING if rest else step.diff
        case "files":
            return _walk(step.files, rest)
        case "status":
            return MISSING if rest else str(step.status)
        case "error":
            return MISSING if rest else step.error
        case "chosen":
            return MISSING if rest else step.chosen
        case _:
            return MISSING


def _bare(name: str, scope: Scope) -> Json | Missing:
    if name in scope.local:
        return scope.local[name]
    if name in scope.stored:
        step = scope.steps.get(scope.stored[name])
        return MISSING if step is None else step.output
    return scope.inputs.get(name, MISSING)


def _walk(value: Json | Missing, parts: Sequence[PathPart]) -> Json | Missing:
    opened = False
    for part in parts:
        # One text on the way may hold JSON; text inside that JSON is text.
        if isinstance(value, str) and not opened:
            value, opened = find_json(value), True
        if isinstance(value, dict) and isinstance(part, str):
            value = value.get(part, MISSING)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            return MISSING
    return value
