"""Is this reference known, before the run? In: a Reference and what is Known. Out: a Fault."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from stretto.templates.fault import Fault
from stretto.templates.reference import Reference
from stretto.templates.schema import Closed, closed_at
from stretto.vocabulary.names import did_you_mean, listed


class KnownStep(NamedTuple):
    output_keys: tuple[str, ...] | None = None  # of a parallel step; its `output` has them too
    schema: Mapping[str, object] | None = None  # of the output, or of each element of it
    is_list: bool = False  # a map without reduce
    is_text: bool = False  # text may still hold JSON, so it may have any field
    has_change: bool = False  # an isolated writer


@dataclass(frozen=True, slots=True)
class Known:
    inputs: Mapping[str, str] = field(default_factory=dict)  # name -> type
    steps: Mapping[str, KnownStep] = field(default_factory=dict)
    stored: Mapping[str, str] = field(default_factory=dict)  # store_as name -> step id
    local: frozenset[str] = frozenset()  # which loop variables are in scope here


_FACETS = ("output", "outputs", "status", "error", "validation", "diff", "files")
_LOOP_VARIABLES = {
    "item": "'item' exists inside a map step",
    "index": "'index' exists inside a map step",
    "feedback": "'feedback' exists inside a loop step",
    "iteration": "'iteration' exists inside a loop step",
}
_COUNTERS = ("index", "iteration")


def check_reference(reference: Reference, known: Known) -> Fault | None:
    match reference.path[0]:
        case "inputs":
            return _inputs(reference, known)
        case "steps":
            return _steps(reference, known)
        case "run":
            if reference.path == ("run", "id"):
                return None
            return _fault("RCP208", reference, -1, "a run has only an id", "write run.id")
        case _:
            return _bare(reference, known)


def _inputs(reference: Reference, known: Known) -> Fault | None:
    if len(reference.path) == 1 or isinstance(reference.path[1], int):
        hint = f"name one: {_first('inputs.', known.inputs)}"
        return _fault("RCP208", reference, 0, "'inputs' is not a value by itself", hint)
    name = reference.path[1]
    if name not in known.inputs:
        hint = _minus(name, known.inputs) or _suggestion(
            name, known.inputs, "the inputs are", "this recipe declares no inputs"
        )
        return _fault("RCP202", reference, 1, f"unknown input '{name}'", hint)
    return _input_fields(reference, known, 1)


def _steps(reference: Reference, known: Known) -> Fault | None:
    path = reference.path
    if len(path) == 1 or isinstance(path[1], int):
        hint = f"name a step: {_first('steps.', known.steps)}.output"
        return _fault("RCP208", reference, 0, "'steps' is not a value by itself", hint)
    step = path[1]
    if step not in known.steps:
        hint = _suggestion(step, known.steps, "the steps are", "this recipe has no steps")
        return _fault("RCP203", reference, 1, f"unknown step '{step}'", hint)
    if len(path) == 2:
        message = f"a step is not a value: say what of '{step}'"
        return _fault("RCP208", reference, 1, message, f"write steps.{step}.output")
    match path[2]:
        case "output":
            return _output(reference, known.steps[step], 2)
        case "outputs":
            return _outputs(reference, step, known.steps[step])
        case "validation":
            return None
        case "diff" | "files" as facet if not known.steps[step].has_change:
            message = f"step '{step}' has no {facet}: it does not write in a copy of its own"
            hint = "only a writer with workspace_mode: isolated has"
            return _fault("RCP208", reference, 2, message, hint)
        case "files" if len(path) == 3 or (len(path) == 4 and isinstance(path[3], int)):
            return None
        case "files":
            message = "'files' is a list of paths: it has no fields"
            return _fault("RCP208", reference, 3, message, f"write steps.{step}.files")
        case "status" | "error" | "diff" as facet:
            if len(path) == 3:
                return None
            message = f"'{facet}' is text: it has no fields"
            return _fault("RCP208", reference, 3, message, f"write steps.{step}.{facet}")
        case other:
            hint = _suggestion(str(other), _FACETS, "a step has", "")
            return _fault("RCP208", reference, 2, f"a step has no '{other}'", hint)


def _bare(reference: Reference, known: Known) -> Fault | None:
    name = str(reference.path[0])
    if name in known.local:
        if name in _COUNTERS and len(reference.path) > 1:
            message = f"'{name}' is a number: it has no fields"
            return _fault("RCP208", reference, 1, message, f"write {name}")
        return None
    if name in known.stored:
        step = known.steps.get(known.stored[name], KnownStep())
        return _output(reference, step, 0)
    if name in known.inputs:
        return _input_fields(reference, known, 0)
    if name in _LOOP_VARIABLES:
        message = f"'{name}' is not available here"
        return _fault("RCP206", reference, 0, message, _LOOP_VARIABLES[name])
    if name in known.steps:
        message = f"unknown name '{name}'; it is a step"
        return _fault("RCP207", reference, 0, message, f"write steps.{name}.output")
    # `input.topic` and `step.a.output` are the commonest slips of all.
    roots = ("inputs", "steps") if len(reference.path) > 1 else ()
    names = [*sorted(known.local), *known.stored, *known.inputs]
    none = "write inputs.<name> or steps.<id>.output"
    hint = _minus(name, names) or _suggestion(name, names, "the names are", none, roots)
    return _fault("RCP207", reference, 0, f"unknown name '{name}'", hint)


def _input_fields(reference: Reference, known: Known, at: int) -> Fault | None:
    """`at` is where in the path the input's name stands."""
    name = str(reference.path[at])
    kind = known.inputs[name]
    if kind == "json" or len(reference.path) == at + 1:
        return None
    message = f"input '{name}' is of type {kind}: it has no fields"
    return _fault("RCP205", reference, at + 1, message, f"declare '{name}' with type: json")


def _outputs(reference: Reference, step: str, known: KnownStep) -> Fault | None:
    if known.output_keys is None:
        message = f"step '{step}' is not parallel: it has no outputs"
        return _fault("RCP204", reference, 2, message, f"write steps.{step}.output")
    return _key(reference, known.output_keys, 3)


def _output(reference: Reference, step: KnownStep, at: int) -> Fault | None:
    """`at` is where in the path the output itself stands; its fields come after."""
    first, fields = at + 1, reference.path[at + 1 :]
    if step.output_keys is not None:
        return _key(reference, step.output_keys, first)
    if not fields or step.is_text:
        return None
    if step.is_list:
        if isinstance(fields[0], str):
            return _no_field(reference, first, Closed("a list"))
        first, fields = first + 1, fields[1:]
    closed = closed_at(step.schema, fields)
    return None if closed is None else _no_field(reference, first + closed.depth, closed)


def _key(reference: Reference, keys: tuple[str, ...], at: int) -> Fault | None:
    if len(reference.path) <= at or reference.path[at] in keys:
        return None
    key = str(reference.path[at])
    hint = _suggestion(key, keys, "its outputs are", "")
    return _fault("RCP204", reference, at, f"no branch has the output key '{key}'", hint)


def _no_field(reference: Reference, at: int, closed: Closed) -> Fault:
    part = reference.path[at]
    start, _ = reference.span(at)
    owner = reference.text[: start - reference.offset].rstrip(".")
    if closed.kind == "a list" and isinstance(part, str):
        message, hint = f"'{owner}' is a list: it has no field '{part}'", f"write {owner}[0].{part}"
    elif closed.kind == "an object" and isinstance(part, str):
        message = f"'{owner}' has no field '{part}'"
        hint = _minus(part, closed.names) or _suggestion(
            part, closed.names, "its fields are", "its schema allows no fields"
        )
    elif closed.kind == "an object":
        message = f"'{owner}' is an object: it has no index"
        hint = f"its fields are {listed(closed.names)}" if closed.names else ""
    else:
        message, hint = f"'{owner}' is {closed.kind}: it has no fields", f"write {owner}"
    return _fault("RCP205", reference, at, message, hint)


def _suggestion(
    name: str, known: Iterable[str], listing: str, none: str, roots: tuple[str, ...] = ()
) -> str:
    """What was meant, else what there is. Roots may be meant, but are not listed."""
    names = list(known)
    listed_names = f"{listing} {listed(names)}" if names else none
    return did_you_mean(name, [*names, *roots]) or listed_names


def _minus(name: str, known: Iterable[str]) -> str | None:
    """`count-1` is one name; whoever has a `count` meant to subtract."""
    for at, character in enumerate(name):
        if character == "-" and name[:at] in known:
            return f"put blanks around the minus: {name[:at]} - {name[at + 1 :]}"
    return None


def _first(prefix: str, names: Iterable[str]) -> str:
    return prefix + next(iter(names), "<name>")


def _fault(code: str, reference: Reference, at: int, message: str, hint: str) -> Fault:
    offset, width = reference.span(at)
    return Fault(code, message, hint, offset, width)
