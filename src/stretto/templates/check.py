"""Whether a reference can be known before the run: inputs, steps, and what their schemas say."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from msgspec import Struct, field

from stretto.templates.template import Fault, PathPart, Reference
from stretto.text.short import closest, did_you_mean, listed


class Closed(NamedTuple):
    """No such field."""

    kind: str  # what stands there: 'an object', 'text', …
    names: tuple[str, ...] = ()  # the fields there are
    depth: int = 0  # which part of the path it refuses


class _Found(NamedTuple):
    schema: object


# What a schema says of one field: the schema of it, Closed, or None: nothing at all.
_Verdict: TypeAlias = _Found | Closed | None
_ANYTHING = _Found(True)

_KINDS_OF_VALUES = {
    "object": "an object",
    "array": "a list",
    "string": "text",
    "number": "a number",
    "integer": "a number",
    "boolean": "true or false",
    "null": "null",
}
# Each of these can add fields by rules that only the value decides.
_OPENING = ("if", "dependentSchemas", "dependencies", "$dynamicRef", "$recursiveRef")
_DEEPEST = 64
# Schemas looked at along one path. What is found at one part is joined for the next, so two
# schemas that name each other would double at every part.
_MOST_LOOKS = 5_000


def closed_at(schema: object, path: Sequence[PathPart]) -> Closed | None:
    """The first part of the path that the schema refuses."""
    walk, current = _Walk(schema), schema
    for depth, part in enumerate(path):
        verdict = walk.enter(current, part)
        if isinstance(verdict, Closed):
            return Closed(verdict.kind, verdict.names, depth)
        if verdict is None:
            return None
        current = verdict.schema
    return None


def schema_at(schema: object, path: Sequence[PathPart]) -> object:
    """What a schema says of the value at a path; None if it says nothing."""
    walk, current = _Walk(schema), schema
    for part in path:
        verdict = walk.enter(current, part)
        if not isinstance(verdict, _Found) or verdict is _ANYTHING:
            return None
        current = verdict.schema
    return current


class _Walk:
    """The way down a schema along one path. For each part of it, each $ref is followed once, so that
    a cycle ends."""

    def __init__(self, root: object) -> None:
        self.root = root
        self.left = _MOST_LOOKS
        self.part: PathPart = ""
        self.followed: dict[str, _Verdict] = {}

    def enter(self, schema: object, part: PathPart) -> _Verdict:
        self.part, self.followed = part, {}
        verdict = self.verdict(schema, 0)
        # A schema that was not looked at may name what the others refuse.
        return None if self.left < 0 else verdict

    def verdict(self, schema: object, depth: int) -> _Verdict:
        self.left -= 1
        if schema is False:
            return Closed("nothing")
        if not isinstance(schema, Mapping) or depth > _DEEPEST or self.left < 0:
            return None
        if any(word in schema for word in _OPENING):
            return _ANYTHING
        said = [self.own(schema), self.follow(schema.get("$ref"), depth)]
        said += [self.verdict(member, depth + 1) for member in _schemas(schema.get("allOf"))]
        for word in ("anyOf", "oneOf"):
            members = _schemas(schema.get(word))
            said.append(_either([self.verdict(member, depth + 1) for member in members]))
        return _all(said)

    def follow(self, ref: object, depth: int) -> _Verdict:
        if not isinstance(ref, str):
            return None
        if ref not in self.followed:
            self.followed[ref] = None
            self.followed[ref] = self.verdict(_target(self.root, ref), depth + 1)
        return self.followed[ref]

    def own(self, schema: Mapping[str, object]) -> _Verdict:
        if isinstance(self.part, str):
            return _closed_by_type(schema, "object") or _field(schema, self.part)
        return _closed_by_type(schema, "array") or _element(schema, self.part)


def _closed_by_type(schema: Mapping[str, object], wanted: str) -> Closed | None:
    kinds = schema.get("type")
    if kinds is None:
        kinds = _implied_type(schema)
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if (
        not isinstance(kinds, list)
        or not kinds
        or not all(kind in _KINDS_OF_VALUES for kind in kinds)
    ):
        return None
    if wanted in kinds:
        return None
    names = schema.get("properties")
    said = next((kind for kind in kinds if kind != "null"), "null")
    return Closed(_KINDS_OF_VALUES[said], tuple(names) if isinstance(names, Mapping) else ())


def _implied_type(schema: Mapping[str, object]) -> str | None:
    has_fields, has_elements = "properties" in schema, "items" in schema or "prefixItems" in schema
    if has_fields == has_elements:
        return None
    return "object" if has_fields else "array"


def _field(schema: Mapping[str, object], name: str) -> _Verdict:
    named = schema.get("properties")
    others = schema.get("additionalProperties")
    if isinstance(named, Mapping) and name in named:
        return _Found(named[name])
    if "patternProperties" in schema or schema.get("unevaluatedProperties"):
        return _ANYTHING
    if others is True or isinstance(others, Mapping):
        return _Found(others)
    if isinstance(named, Mapping) or others is False:
        return Closed("an object", tuple(named) if isinstance(named, Mapping) else ())
    return None


def _element(schema: Mapping[str, object], index: int) -> _Verdict:
    rest = schema.get("items")
    first = schema.get("prefixItems", rest)
    if isinstance(first, list):
        if index < len(first):
            return _Found(first[index])
        rest = schema.get("additionalItems") if first is rest else rest
    return None if rest is None else _Found(rest)


def _all(said: Iterable[_Verdict]) -> _Verdict:
    """All of them hold: one that knows the field outweighs those that do not name it."""
    said = list(said)
    found = [verdict.schema for verdict in said if isinstance(verdict, _Found)]
    return _Found(_join_schemas("allOf", found)) if found else _merge(said)


def _either(said: Sequence[_Verdict]) -> _Verdict:
    """Any of them may hold."""
    found = [verdict.schema for verdict in said if isinstance(verdict, _Found)]
    if None in said:
        return _ANYTHING if found else None
    return _Found(_join_schemas("anyOf", found)) if found else _merge(said)


def _merge(said: Iterable[_Verdict]) -> Closed | None:
    closed = [verdict for verdict in said if isinstance(verdict, Closed)]
    if not closed:
        return None
    names = dict.fromkeys(name for verdict in closed for name in verdict.names)
    kind = next((verdict.kind for verdict in closed if verdict.names), closed[0].kind)
    return Closed(kind, tuple(names))


def _join_schemas(word: str, schemas: Sequence[object]) -> object:
    distinct = list({id(schema): schema for schema in schemas}.values())
    return distinct[0] if len(distinct) == 1 else {word: distinct}


def _schemas(written: object) -> Sequence[object]:
    return written if isinstance(written, list | tuple) else ()


def _target(root: object, ref: str) -> object:
    """What `#/$defs/name` points at. What cannot be found here admits everything."""
    if not ref.startswith("#"):
        return True
    target = root
    for step in ref[1:].split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(target, Mapping) or key not in target:
            return True
        target = target[key]
    return target if ref == "#" or ref.startswith("#/") else True


class KnownStep(NamedTuple):
    output_keys: tuple[str, ...] | None = None  # of a parallel step; its `output` has them too
    schema: Mapping[str, object] | None = None  # of the output, or of each element of it
    is_list: bool = False  # a map without reduce
    is_text: bool = False  # text may still hold JSON, so it may have any field
    has_change: bool = False  # an isolated writer
    is_condition: bool = False
    is_loop: bool = False
    is_prose: bool = False  # nothing tells whoever answers to write JSON
    is_stdout: bool = False  # of a command: it may well print JSON
    branches: "Mapping[str, KnownStep] | None" = None  # of a parallel step, by output key
    targets: tuple[str, ...] = ()  # of a condition: what it may choose


class Known(Struct, frozen=True):
    inputs: Mapping[str, str] = field(default_factory=dict)  # name -> type
    steps: Mapping[str, KnownStep] = field(default_factory=dict)
    stored: Mapping[str, str] = field(default_factory=dict)  # store_as name -> step id
    local: frozenset[str] = frozenset()  # which loop variables are in scope here
    item: object = None  # the schema of `item`, where it is known


# What other tools and languages write instead.
_WORDS_FOR_OUTPUT = (
    "result", "results", "value", "response", "text", "content", "answer", "stdout", "data",
    "message", "string", "body",
)  # fmt: skip
_WORDS_FOR_SIZE = ("length", "len", "size", "count")
_WORDS_FOR_EXIT = ("exit_code", "exitcode", "returncode", "code", "rc")
_WORDS_FOR_STATUSES = (
    "succeeded", "failed", "skipped", "cancelled", "success", "failure", "completed", "done", "ok",
)  # fmt: skip
_FACETS = ("output", "outputs", "status", "error", "validation", "chosen", "diff", "files")
_LOOP_VARIABLES = {
    "item": "'item' exists inside a map step",
    "index": "'index' exists inside a map step",
    "candidate": "'candidate' exists inside a loop step",
    "feedback": "'feedback' exists inside a loop step",
    "iteration": "'iteration' exists inside a loop step",
}
_COUNTERS = ("index", "iteration")


_STATUSES = ("succeeded", "failed", "skipped", "held", "cancelled")
_MEANT_STATUSES = {
    **dict.fromkeys(("success", "successful", "ok", "done", "complete", "completed"), "succeeded"),
    **dict.fromkeys(("passed", "finished", "succeed"), "succeeded"),
    **dict.fromkeys(("error", "failure", "fail", "errored"), "failed"),
    **dict.fromkeys(("skip", "ignored"), "skipped"),
    **dict.fromkeys(("canceled", "aborted"), "cancelled"),
}


def statuses_that_count() -> Sequence[str]:
    return _STATUSES


def is_status(reference: object) -> bool:
    return isinstance(reference, Reference) and (
        len(reference.path) == 3 and (reference.path[0], reference.path[2]) == ("steps", "status")
    )


def status_fault(word: str, offset: int, width: int) -> Fault | None:
    """A word that `steps.ID.status` is compared with: no other than these can ever be equal."""
    if word in _STATUSES:
        return None
    meant = _MEANT_STATUSES.get(word.strip().lower()) or closest(word, _STATUSES)
    hint = f"write '{meant}'" if meant else f"it is one of {listed(_STATUSES)}"
    return Fault("RCP213", f"no step ever has the status '{word[:40]}'", hint, offset, width)


class NamedOutput(NamedTuple):
    """What a reference names, where it names the output of a step or of a branch."""

    owner: str  # the step or the branch, as messages call it
    step: KnownStep
    at: int  # where in the path its fields begin


def named_output(reference: Reference, known: Known) -> NamedOutput | None:
    path = reference.path
    is_stored = path[0] in known.stored
    name = known.stored[str(path[0])] if is_stored else str(path[1] if len(path) > 1 else "")
    if not is_stored and (path[0] != "steps" or path[2:3] not in (("output",), ("outputs",))):
        return None
    step, at = known.steps.get(name, KnownStep()), 1 if is_stored else 3
    branch = (step.branches or {}).get(str(path[at])) if len(path) > at else None
    if branch is not None:
        return NamedOutput(f"branch '{path[at]}'", branch, at + 1)
    return NamedOutput(f"step '{name}'", step, at)


def element_schema(reference: Reference, known: Known) -> object:
    """The schema of the elements of a list that a reference names; None if it is not known."""
    named = named_output(reference, known)
    if named is None:
        return None
    step, fields = named.step, reference.path[named.at :]
    if step.is_text or step.output_keys is not None:
        return None
    if step.is_list:
        return schema_at(step.schema, (*fields[1:], 0)) if fields else step.schema
    return schema_at(step.schema, (*fields, 0))


def prose_fault(reference: Reference, known: Known) -> Fault | None:
    """A field of a text in which there will hardly be one. Text may hold JSON, so it is a warning."""
    path = reference.path
    if path[0] == "steps" and len(path) > 2 and path[2] == "validation":
        step = known.steps.get(str(path[1]))
        if step is None or step.is_loop:
            return None
        message = f"step '{path[1]}' is no loop, so its validation is always null"
        return _fault("RCP910", reference, 2, message, f"write steps.{path[1]}.status")
    named = named_output(reference, known)
    if named is None or len(reference.path) <= named.at:
        return None
    owner, step, at = named
    if step.is_list and isinstance(reference.path[at], int):
        at += 1
    field = reference.path[at] if len(reference.path) > at else None
    is_meant = step.is_prose or (step.is_stdout and field in (*_WORDS_FOR_SIZE[:2], "stdout"))
    if field is None or not is_meant:
        return None
    start, _ = reference.span(at)
    whole = reference.text[: start - reference.offset].rstrip(".[")
    shown = f"field '{field}'" if isinstance(field, str) else "elements"
    message = f"the output of {owner} is free text, which has no {shown}"
    if not step.is_stdout:
        message = f"nothing asks {owner} for JSON, so its output may have no {shown}"
    hint = f"write {whole}, or give the step output: {{format: json}}"
    if field in _WORDS_FOR_OUTPUT:
        hint = f"write {whole}"
    elif field in _WORDS_FOR_SIZE:
        hint = _size_hint(whole)
    return _fault("RCP910", reference, at, message, hint)


def _size_hint(whole: str) -> str:
    return f"write size({whole}), in an expression such as when:"


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
        if name == "parameters" and len(reference.path) > 2:
            hint = f"write inputs.{reference.path[2]}"
            return _fault("RCP202", reference, 1, f"unknown input '{name}'", hint)
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
        return _fault("RCP203", reference, 1, f"unknown step '{step}'", _of_step(step, known))
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
        case "chosen" if not known.steps[step].is_condition:
            message = f"step '{step}' is no condition: it chooses nothing"
            return _fault("RCP208", reference, 2, message, f"write steps.{step}.output")
        case "status" | "error" | "diff" | "chosen" as facet:
            if len(path) == 3:
                return None
            message = f"'{facet}' is text: it has no fields"
            return _fault("RCP208", reference, 3, message, f"write steps.{step}.{facet}")
        case other:
            return _no_facet(reference, step, str(other))


def _of_step(name: str, known: Known) -> str:
    for id, each in known.steps.items():
        if name in (each.output_keys or ()):
            return f"write steps.{id}.outputs.{name}"
    return _suggestion(name, known.steps, "the steps are", "this recipe has no steps")


def _no_facet(reference: Reference, step: str, written: str) -> Fault:
    hint = _suggestion(written, _FACETS, "a step has", "")
    if written in _WORDS_FOR_OUTPUT:
        hint = f"write steps.{step}.output"
    elif written in _WORDS_FOR_STATUSES:
        hint = f"write steps.{step}.status == '{_MEANT_STATUSES.get(written, written)}'"
    elif written in _WORDS_FOR_EXIT:
        hint = f"write steps.{step}.status: it is 'failed' unless the exit code is 0"
    return _fault("RCP208", reference, 2, f"a step has no '{written}'", hint)


def _bare(reference: Reference, known: Known) -> Fault | None:
    name = str(reference.path[0])
    if name in known.local:
        if name in _COUNTERS and len(reference.path) > 1:
            message = f"'{name}' is a number: it has no fields"
            return _fault("RCP208", reference, 1, message, f"write {name}")
        closed = closed_at(known.item, reference.path[1:]) if name == "item" else None
        return None if closed is None else _no_field(reference, 1 + closed.depth, closed)
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
    if name in (*_WORDS_FOR_OUTPUT, "output") and "candidate" in known.local:
        rest = reference.text[reference.span(0)[1] :]
        return _fault("RCP207", reference, 0, f"unknown name '{name}'", f"write candidate{rest}")
    if hint := _of_other_tools(reference.path):
        return _fault("RCP207", reference, 0, f"unknown name '{name}'", hint)
    # `input.topic` and `step.a.output` are the commonest slips of all.
    roots = ("inputs", "steps") if len(reference.path) > 1 else ()
    names = [*sorted(known.local), *known.stored, *known.inputs]
    none = "write inputs.<name> or steps.<id>.output"
    hint = _minus(name, names) or _suggestion(name, names, "the names are", none, roots)
    return _fault("RCP207", reference, 0, f"unknown name '{name}'", hint)


_INPUT_ROOTS = ("workflow", "params", "parameters", "variables", "vars", "context", "state", "args")
_STEP_ROOTS = ("needs", "tasks", "jobs", "nodes", "agents", "dependencies", "outputs", "results")
_STEPS_BEFORE = ("prev", "previous", "previous_output", "last", "last_output", "prior", "upstream")
_TIMES = ("date", "now", "today", "time", "timestamp")


def _of_other_tools(path: Sequence[PathPart]) -> str:
    """`workflow.input.topic` and `tasks.a.outputs.result`, as they are written here."""
    names = [part for part in path if isinstance(part, str)]
    if names[0] in _STEPS_BEFORE:
        return "write steps.ID.output, with the id of the step that is meant"
    if names[0] in _TIMES:
        return "a recipe does not know the time: declare an input for it"
    if len(names) < 2:
        return ""
    if names[0] in _STEP_ROOTS:
        return f"write steps.{names[1]}.output"
    if names[0] in _INPUT_ROOTS:
        said = [name for name in names[1:] if name not in ("input", "inputs", "parameters")]
        return f"write inputs.{said[0]}" if said else "write inputs.<name>"
    if names[0] in ("env", "secrets"):
        return "declare an input for it; a step with run: has env:"
    return ""


def _input_fields(reference: Reference, known: Known, at: int) -> Fault | None:
    """`at` is where in the path the input's name stands."""
    name = str(reference.path[at])
    kind = known.inputs[name]
    if kind == "json" or len(reference.path) == at + 1:
        return None
    message = f"input '{name}' is of type {kind}: it has no fields"
    hint = f"declare '{name}' with type: json"
    if reference.path[at + 1] in _WORDS_FOR_SIZE and kind == "string":
        hint = _size_hint(f"inputs.{name}")
    elif reference.path[at + 1] in _WORDS_FOR_OUTPUT and kind == "file_path":
        hint = (
            "an input of this type is the path: a step with the tool Read, or run:, reads the file"
        )
    return _fault("RCP205", reference, at + 1, message, hint)


def _outputs(reference: Reference, step: str, known: KnownStep) -> Fault | None:
    if known.output_keys is None:
        message = f"step '{step}' is not parallel: it has no outputs"
        return _fault("RCP204", reference, 2, message, f"write steps.{step}.output")
    return _key(reference, known, 3)


def _output(reference: Reference, step: KnownStep, at: int) -> Fault | None:
    """`at` is where in the path the output itself stands; its fields come after."""
    first, fields = at + 1, reference.path[at + 1 :]
    if step.output_keys is not None:
        return _key(reference, step, first)
    if not fields or step.is_text:
        return None
    if step.is_list:
        if isinstance(fields[0], str):
            return _no_field(reference, first, Closed("a list"))
        first, fields = first + 1, fields[1:]
    closed = closed_at(step.schema, fields)
    return None if closed is None else _no_field(reference, first + closed.depth, closed)


def _key(reference: Reference, step: KnownStep, at: int) -> Fault | None:
    keys = step.output_keys or ()
    if len(reference.path) <= at:
        return None
    key = str(reference.path[at])
    if reference.path[at] in keys:
        branch = (step.branches or {}).get(key)
        return None if branch is None else _output(reference, branch, at)
    hint = _suggestion(key, keys, "its outputs are", "")
    return _fault("RCP204", reference, at, f"no branch has the output key '{key}'", hint)


def _no_field(reference: Reference, at: int, closed: Closed) -> Fault:
    part = reference.path[at]
    start, _ = reference.span(at)
    owner = reference.text[: start - reference.offset].rstrip(".")
    if closed.kind in ("a list", "text") and part in _WORDS_FOR_SIZE:
        message, hint = f"'{owner}' is {closed.kind}: it has no field '{part}'", _size_hint(owner)
    elif closed.kind == "a list" and isinstance(part, str):
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
