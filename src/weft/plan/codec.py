"""Plans as JSON, for RunStarted. In: a Plan. Out: a JSON object; and back.

Driven by the annotations of the dataclasses: what a field is says how it is written and read.
A class of a union is named in the object, under "is", and only the union's own are accepted.
What was parsed is written as its text and parsed again, and claims follow from their sets.
Unlike an event's, a plan's unknown fields are refused: they may say what must not happen.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Literal, NewType, TypeAlias, Union, cast, get_args, get_origin

from weft.documents.node import Path, spell
from weft.plan.claims import Claims
from weft.plan.globs import Glob, parse_glob
from weft.plan.model import Edge, EdgeReason, Plan, PlannedStep
from weft.problems.errors import WeftError
from weft.templates.expression import Expression, parse_expression
from weft.templates.fault import Fault
from weft.templates.reference import Reference, parse_reference
from weft.templates.template import Template, parse_template
from weft.vocabulary.ids import StepId
from weft.vocabulary.names import listed
from weft.vocabulary.values import Json

_TAG = "is"


def plan_to_json(plan: Plan) -> dict[str, Json]:
    return cast(dict[str, Json], _form(Plan).write(plan))


def plan_from_json(value: Json) -> Plan:
    try:
        return cast(Plan, _form(Plan).read(value))
    except _Unreadable as unreadable:
        where = spell(unreadable.path)
        said = f"{where}: {unreadable.says}" if where else unreadable.says
        raise WeftError(f"this stored plan cannot be read: {said}") from None


class _Unreadable(Exception):
    """Its path grows from the innermost part outwards, on the way up."""

    def __init__(self, says: str, path: Path = ()) -> None:
        super().__init__(says)
        self.says = says
        self.path = path

    def inside(self, part: str | int) -> "_Unreadable":
        return _Unreadable(self.says, (part, *self.path))


@dataclass(frozen=True, slots=True)
class _Form:
    write: Callable[[Any], Json]
    read: Callable[[Json], Any]


@cache  # built when first used: importing this costs nothing
def _form(annotation: Hashable) -> _Form:
    if annotation in _LEAVES:
        return _LEAVES[annotation]
    if isinstance(annotation, NewType):
        return _form(annotation.__supertype__)
    if is_dataclass(annotation):
        return _record(cast(type, annotation))
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return _literal(arguments)
    if origin in (Union, UnionType):
        return _union(arguments)
    if origin is tuple and arguments[1:] == (...,):
        return _many(_form(arguments[0]))
    if origin is tuple:
        return _row(tuple(map(_form, arguments)))
    if origin is Mapping and _form(arguments[0]) is _TEXT:
        return _mapping(_form(arguments[1]))
    raise TypeError(f"no JSON form is known for {annotation}")


def _record(kind: type) -> _Form:
    derived = _DERIVED.get(kind, {})
    known = {field.name: field for field in fields(kind) if field.name not in derived}
    forms = {name: _form(cast(Hashable, field.type)) for name, field in known.items()}
    needed = [name for name, field in known.items() if field.default is MISSING]

    names = tuple(forms)
    take = attrgetter(*names) if len(names) > 1 else lambda value: (getattr(value, names[0]),)
    # Most fields are written as they are, and a plan has tens of thousands of them.
    changed = [(name, form.write) for name, form in forms.items() if form.write is not _as_is]

    def write(value: Any) -> Json:
        row: dict[str, Json] = dict(zip(names, take(value), strict=True))
        for name, write_field in changed:
            row[name] = write_field(row[name])
        return row

    def read(value: Json) -> Any:
        row = _object(value)
        if unknown := [name for name in row if name not in forms]:
            raise _Unreadable(f"unknown here: {listed(unknown)}; is it from a newer Weft?")
        if missing := [name for name in needed if name not in row]:
            raise _Unreadable(f"missing: {listed(missing)}")
        values = {name: _inside(name, forms[name], part) for name, part in row.items()}
        for name, derive in derived.items():
            values[name] = derive(values)
        return kind(**values)

    return _Form(write, read)


def _union(members: tuple[Any, ...]) -> _Form:
    some = tuple(member for member in members if member is not NoneType)
    inner = _form(some[0]) if len(some) == 1 else _choice(some)
    if len(some) == len(members):
        return inner
    return _Form(
        _as_is
        if inner.write is _as_is
        else lambda value: None if value is None else inner.write(value),
        lambda value: None if value is None else inner.read(value),
    )


def _choice(members: tuple[Any, ...]) -> _Form:
    return _tagged(members) if all(map(is_dataclass, members)) else _any_of(members)


def _tagged(kinds: tuple[type, ...]) -> _Form:
    forms = {kind.__name__: _form(kind) for kind in kinds}

    def write(value: Any) -> Json:
        name = type(value).__name__
        return {_TAG: name, **cast(dict[str, Json], forms[name].write(value))}

    def read(value: Json) -> Any:
        row = _object(value)
        name = row.get(_TAG)
        if not isinstance(name, str) or name not in forms:
            raise _Unreadable(f"'{_TAG}' must be one of {listed(forms)}, not {_shown(name)}")
        return forms[name].read({key: part for key, part in row.items() if key != _TAG})

    return _Form(write, read)


def _any_of(members: tuple[Any, ...]) -> _Form:
    """Plain values that tell themselves apart, such as `"all" | "any" | int`."""
    forms = tuple(map(_form, members))

    def read(value: Json) -> Any:
        says = []
        for form in forms:
            try:
                return form.read(value)
            except _Unreadable as unreadable:
                says.append(unreadable.says)
        raise _Unreadable(", or ".join(says))

    return _Form(_as_is, read)


def _literal(values: tuple[Any, ...]) -> _Form:
    def read(value: Json) -> Any:
        if not isinstance(value, str) or value not in values:
            raise _Unreadable(f"must be one of {listed(map(str, values))}, not {_shown(value)}")
        return value

    return _Form(_as_is, read)


def _many(element: _Form) -> _Form:
    def read(value: Json) -> Any:
        return tuple(_inside(at, element, part) for at, part in enumerate(_list(value)))

    if element.write is _as_is:
        return _Form(list, read)
    return _Form(lambda values: [element.write(value) for value in values], read)


def _row(columns: tuple[_Form, ...]) -> _Form:
    def write(values: Any) -> Json:
        return [column.write(value) for column, value in zip(columns, values, strict=True)]

    def read(value: Json) -> Any:
        parts = _list(value)
        if len(parts) != len(columns):
            raise _Unreadable(f"must have {len(columns)} elements, not {len(parts)}")
        pairs = enumerate(zip(columns, parts, strict=True))
        return tuple(_inside(at, column, part) for at, (column, part) in pairs)

    return _Form(write, read)


def _mapping(element: _Form) -> _Form:
    def read(value: Json) -> Any:
        return {key: _inside(key, element, part) for key, part in _object(value).items()}

    return _Form(lambda values: {key: element.write(v) for key, v in values.items()}, read)


def _inside(part: str | int, form: _Form, value: Json) -> Any:
    try:
        return form.read(value)
    except _Unreadable as unreadable:
        raise unreadable.inside(part) from None


def _as_is(value: Json) -> Json:
    return value


def _object(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise _Unreadable(f"must be an object, not {_shown(value)}")
    return value


def _list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise _Unreadable(f"must be a list, not {_shown(value)}")
    return value


def _read_text(value: Json) -> str:
    if not isinstance(value, str):
        raise _Unreadable(f"must be text, not {_shown(value)}")
    return value


def _read_bool(value: Json) -> bool:
    if not isinstance(value, bool):
        raise _Unreadable(f"must be true or false, not {_shown(value)}")
    return value


def _read_int(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _Unreadable(f"must be a whole number, not {_shown(value)}")
    return value


def _read_number(value: Json) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _Unreadable(f"must be a number, not {_shown(value)}")
    return value


def _shown(value: Json) -> str:
    match value:
        case dict():
            return "an object"
        case list():
            return "a list"
        case None:
            return "null"
        case _:
            text = repr(value)
            return text if len(text) <= 40 else f"{text[:39]}…"


def _write_template(template: Template) -> Json:
    # A registered agent's prompt was never parsed, and must not be now: `{{` in it is only text.
    text = template.text
    is_literal = template.parts == (text,) and ("{{" in text or not text)
    return {"literal": text} if is_literal else text


def _read_template(value: Json) -> Template:
    if isinstance(value, dict):
        text = _read_text(value.get("literal"))
        return Template(text, (text,))
    template, faults = parse_template(_read_text(value))
    if faults:
        raise _Unreadable(f"is no template: {faults[0].message}")
    return template


def _read_expression(value: Json) -> Expression:
    expression = parse_expression(_read_text(value))
    if isinstance(expression, Fault):
        raise _Unreadable(f"is no expression: {expression.message}")
    return expression


def _read_reference(value: Json) -> Reference:
    # Its offset is for carets under the author's text, and there is no caret in a plan.
    reference = parse_reference(_read_text(value))
    if isinstance(reference, Fault):
        raise _Unreadable(f"is no reference: {reference.message}")
    return reference


def _claims(step: Mapping[str, Any]) -> Claims:
    return Claims(
        reads=_globs(step, "read_set", "read_aliases"),
        writes=_globs(step, "write_set", "write_aliases"),
        is_writer=step["posture"] == "writer",
        is_isolated=step["workspace_mode"] == "isolated",
    )


def _globs(step: Mapping[str, Any], *names: str) -> tuple[Glob, ...]:
    # A plan from before there were aliases has none.
    return tuple(_inside(name, _GLOB, text) for name in names for text in step.get(name, ()))


def _read_glob(value: Json) -> Glob:
    glob = parse_glob(_read_text(value))
    if not isinstance(glob, Glob):
        raise _Unreadable(f"is no glob: {glob.message}")
    return glob


def _write_edges(edges: tuple[Edge, ...]) -> Json:
    # Together as long as their reason is the same: in dense layers, edges are most of a plan.
    runs: list[Json] = []
    befores: list[Json] = []
    reason = None
    for edge in edges:
        if edge.reason != reason:
            reason, befores = edge.reason, []
            runs.append([reason, befores])
        befores.append(edge.before)
    return runs


def _read_edges(value: Json) -> tuple[Edge, ...]:
    runs = _form(tuple[tuple[EdgeReason, tuple[StepId, ...]], ...]).read(value)
    return tuple(Edge(before, reason) for reason, befores in runs for before in befores)


_Derive: TypeAlias = Callable[[Mapping[str, Any]], object]

_TEXT = _Form(_as_is, _read_text)
_GLOB = _Form(lambda glob: glob.text, _read_glob)
_LEAVES: dict[object, _Form] = {
    str: _TEXT,
    bool: _Form(_as_is, _read_bool),
    int: _Form(_as_is, _read_int),
    float: _Form(_as_is, _read_number),
    Json: _Form(_as_is, _as_is),
    Template: _Form(_write_template, _read_template),
    Expression: _Form(lambda expression: expression.text, _read_expression),
    tuple[Edge, ...]: _Form(_write_edges, _read_edges),
    Reference: _Form(lambda reference: reference.text, _read_reference),
}
# Not written: they follow from the fields beside them.
_DERIVED: dict[type, dict[str, _Derive]] = {PlannedStep: {"claims": _claims}}
