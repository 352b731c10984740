"""Plans as JSON, for RunStarted. In: a Plan. Out: the text of a JSON object. Back: from its value.

Driven by the annotations of the dataclasses: what a field is says how it is written and read.
A class of a union is named in the object, under "is", and only the union's own are accepted.
What was parsed is written as its text and parsed again, and claims follow from their sets.
What most steps are is left out, and text is written at once, without dicts on the way: every run
stores its plan, and a plan may have thousands of steps (docs/decisions/0005).
Unlike an event's, a plan's unknown fields are refused: they may say what must not happen.
"""

import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, lru_cache
from itertools import groupby
from json import JSONEncoder
from json.encoder import encode_basestring_ascii as quoted
from operator import attrgetter, call
from types import NoneType, UnionType
from typing import Any, Literal, NewType, TypeAlias, Union, cast, get_args, get_origin

from msgspec import Raw

from stretto.documents.node import Path, spell
from stretto.globs.glob import Glob, parse_glob
from stretto.plan.claims import Claims
from stretto.plan.model import Brief, Edge, EdgeReason, Plan, PlannedStep, RetryPolicy
from stretto.problems.errors import StrettoError
from stretto.recipe.model import NO_OUTPUT
from stretto.templates.expression import Expression, parse_expression
from stretto.templates.fault import Fault
from stretto.templates.reference import Reference, parse_reference
from stretto.templates.template import Template, parse_template
from stretto.vocabulary.ids import StepId
from stretto.vocabulary.names import listed
from stretto.vocabulary.values import Json

_TAG = "is"
_encode_json = JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def encode_plan(plan: Plan) -> Raw:
    return Raw(_form(Plan).write(plan))


def decode_plan(stored: Raw) -> Plan:
    try:
        return cast(Plan, _form(Plan).read(json.loads(bytes(stored))))
    except _Unreadable as unreadable:
        where = spell(unreadable.path)
        said = f"{where}: {unreadable.says}" if where else unreadable.says
        raise StrettoError(f"this stored plan cannot be read: {said}") from None


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
    write: Callable[[Any], str]
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


def _record(kind: type, head: str = "") -> _Form:
    derived, usual = _DERIVED.get(kind, {}), _USUAL.get(kind, {})
    known = {field.name: field for field in fields(kind) if field.name not in derived}
    forms = {name: _form(cast(Hashable, field.type)) for name, field in known.items()}
    needed = [n for n, field in known.items() if n not in usual and field.default is MISSING]

    def read(value: Json) -> Any:
        row = _object(value)
        if unknown := [name for name in row if name not in forms]:
            raise _Unreadable(f"unknown here: {listed(unknown)}; is it from a newer Stretto?")
        if missing := [name for name in needed if name not in row]:
            raise _Unreadable(f"missing: {listed(missing)}")
        values = usual | {name: _inside(name, forms[name], part) for name, part in row.items()}
        for name, derive in derived.items():
            values[name] = derive(values)
        return kind(**values)

    return _Form(_record_writer(forms, usual, head), read)


def _record_writer(
    forms: Mapping[str, _Form], usual: Mapping[str, object], head: str
) -> Callable[[Any], str]:
    always = [name for name in forms if name not in usual]
    template = f"{{{','.join([head, *_keys(always)] if head else _keys(always))}"
    writes = [forms[name].write for name in always]
    take, take_usual = _taker(always), _taker(list(usual))
    usual_parts = tuple(usual.values())

    def write(value: Any) -> str:
        text = template % tuple(map(call, writes, take(value)))
        # One comparison of two tuples, whose parts are the very same objects as a rule.
        if not usual or take_usual(value) == usual_parts:
            return text + "}"
        parts = ((name, getattr(value, name), usually) for name, usually in usual.items())
        rare = [f',"{name}":{forms[name].write(part)}' for name, part, it in parts if part != it]
        return f"{text}{''.join(rare)}}}"

    return write


def _keys(names: Sequence[str]) -> list[str]:
    return [f'"{name}":%s' for name in names]


def _taker(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) != 1:
        return attrgetter(*names) if names else lambda value: ()
    only = attrgetter(*names)  # of one name, it gives the part itself
    return lambda value: (only(value),)


def _union(members: tuple[Any, ...]) -> _Form:
    some = tuple(member for member in members if member is not NoneType)
    inner = _form(some[0]) if len(some) == 1 else _choice(some)
    if len(some) == len(members):
        return inner
    return _Form(
        lambda value: "null" if value is None else inner.write(value),
        lambda value: None if value is None else inner.read(value),
    )


def _choice(members: tuple[Any, ...]) -> _Form:
    return _tagged(members) if all(map(is_dataclass, members)) else _any_of(members)


def _tagged(kinds: tuple[type, ...]) -> _Form:
    forms = {it.__name__: _record(it, f'"{_TAG}":"{it.__name__}"') for it in kinds}

    def write(value: Any) -> str:
        return forms[type(value).__name__].write(value)

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

    return _Form(_encode_json, read)


def _literal(values: tuple[Any, ...]) -> _Form:
    def read(value: Json) -> Any:
        if not isinstance(value, str) or value not in values:
            raise _Unreadable(f"must be one of {listed(map(str, values))}, not {_shown(value)}")
        return value

    return _Form(quoted, read)


def _many(element: _Form) -> _Form:
    def read(value: Json) -> Any:
        return tuple(_inside(at, element, part) for at, part in enumerate(_list(value)))

    return _Form(lambda values: f"[{','.join(map(element.write, values))}]", read)


def _row(columns: tuple[_Form, ...]) -> _Form:
    def write(values: Any) -> str:
        parts = [column.write(value) for column, value in zip(columns, values, strict=True)]
        return f"[{','.join(parts)}]"

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

    def write(values: Any) -> str:
        parts = [f"{quoted(key)}:{element.write(part)}" for key, part in values.items()]
        return f"{{{','.join(parts)}}}"

    return _Form(write, read)


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


def _write_template(template: Template) -> str:
    # A registered agent's prompt was never parsed, and must not be now: `{{` in it is only text.
    text = template.text
    is_literal = template.parts == (text,) and ("{{" in text or not text)
    return f'{{"literal":{quoted(text)}}}' if is_literal else quoted(text)


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
    is_writer, is_isolated = step["posture"] == "writer", step["workspace_mode"] == "isolated"
    # A plan from before there were aliases has none.
    reads = (*step["read_set"], *step.get("read_aliases", ()))
    writes = (*step["write_set"], *step.get("write_aliases", ()))
    return _claims_of(reads, writes, is_writer, is_isolated)


@lru_cache(maxsize=256)  # most steps of a plan claim the same
def _claims_of(
    reads: tuple[str, ...], writes: tuple[str, ...], is_writer: bool, is_isolated: bool
) -> Claims:
    return Claims(
        tuple(_inside("read_set", _GLOB, text) for text in reads),
        tuple(_inside("write_set", _GLOB, text) for text in writes),
        is_writer,
        is_isolated,
    )


def _read_glob(value: Json) -> Glob:
    glob = parse_glob(_read_text(value))
    if not isinstance(glob, Glob):
        raise _Unreadable(f"is no glob: {glob.message}")
    return glob


class _EdgesWriter:
    """In dense layers, edges are most of a plan. They are written together as long as their reason
    is the same, and once for neighbours that wait for the same: those share one tuple."""

    def __init__(self) -> None:
        self._last: tuple[tuple[Edge, ...], str] = ((), "[]")

    def __call__(self, edges: tuple[Edge, ...]) -> str:
        last, text = self._last
        if edges is not last:
            runs = [_write_run(*run) for run in groupby(edges, attrgetter("reason"))]
            text = f"[{','.join(runs)}]"
            self._last = edges, text
        return text


def _write_run(reason: EdgeReason, edges: Iterable[Edge]) -> str:
    return f"[{quoted(reason)},[{','.join([quoted(edge.before) for edge in edges])}]]"


def _read_edges(value: Json) -> tuple[Edge, ...]:
    runs = _form(tuple[tuple[EdgeReason, tuple[StepId, ...]], ...]).read(value)
    return tuple(Edge(before, reason) for reason, befores in runs for before in befores)


_Derive: TypeAlias = Callable[[Mapping[str, Any]], object]

_TEXT = _Form(quoted, _read_text)
_GLOB = _Form(lambda glob: quoted(glob.text), _read_glob)
_LEAVES: dict[object, _Form] = {
    str: _TEXT,
    bool: _Form(_encode_json, _read_bool),
    int: _Form(int.__repr__, _read_int),
    float: _Form(_encode_json, _read_number),
    Json: _Form(_encode_json, _as_is),
    Template: _Form(_write_template, _read_template),
    Expression: _Form(lambda expression: quoted(expression.text), _read_expression),
    tuple[Edge, ...]: _Form(_EdgesWriter(), _read_edges),
    Reference: _Form(lambda reference: quoted(reference.text), _read_reference),
}
# Not written: they follow from the fields beside them.
_DERIVED: dict[type, dict[str, _Derive]] = {PlannedStep: {"claims": _claims}}
# Not written where they are so, as in most steps. Never change one: stored plans mean these.
_USUAL: dict[type, dict[str, object]] = {
    PlannedStep: {
        "type": "sequential",
        "when": None,
        "timeout_seconds": None,
        "on_failure": "inline",
        "is_gated": False,
        "posture": "read_only",
        "read_set": ("**/*",),
        "write_set": (),
        "workspace_mode": "shared",
        "merge_back": "auto",
        "recovery": "rerun",
        "output": NO_OUTPUT,
        "is_cached": False,
        "read_aliases": (),
        "write_aliases": (),
        "is_recovery_written": False,
        "max_output_tokens": None,
        "merge_after": None,
        "merge_when": None,
        "is_gated_by_permission": False,
    },
    Brief: {
        "style": "prompt",
        "gets_all_prior": False,
        "model": None,
        "retry": RetryPolicy(1, "none"),
        "on_failure": None,
        "fallback": None,
    },
}
