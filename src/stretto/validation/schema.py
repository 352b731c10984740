"""JSON schemas: can this one be used, and does a value fit it?

`schema_faults` is the one place that says whether a schema can be used. Checking a recipe or an
agent file asks it before the run; `schema_errors` uses no schema that has a fault.

Draft 2020-12, or the one that `$schema` names. Nothing is ever fetched, patterns are matched by RE2,
and the work on one value is bounded. `format` is a note, as the standard has it, since what checks
it would depend on what is installed.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from stretto.text.patterns import PatternError, compile_pattern
from stretto.validation.schema_messages import (
    describe_error,
    explain_error,
    json_type_of,
    shorthand_in,
    spell_path,
)
from stretto.vocabulary.json_value import Json

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

SchemaPath: TypeAlias = tuple[str | int, ...]

# The hint of a fault that has none of its own.
SCHEMA_EXAMPLE = (
    "for example {type: object, required: [score], properties: {score: {type: number}}}"
)
MOST_ERRORS = 5
MOST_SCHEMA_VALUES = 2_000  # to check a schema takes about 1 ms for each value in it
_MOST_GATHERED = 200

_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_BOUNDS = (
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
)
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
# Keywords whose schemas are applied to the same value as the schema that holds them.
_IN_PLACE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")


class SchemaFault(Struct, frozen=True):
    """Why a schema cannot be used. Its author must fix it; no answer can."""

    path: SchemaPath  # where in the schema
    message: str
    hint: str = SCHEMA_EXAMPLE  # what to write


class BadSchema(Struct, frozen=True):
    reason: str


class _Compiled(Struct, frozen=True):
    validator: "Validator | None"
    faults: tuple[SchemaFault, ...]


def schema_faults(schema: Mapping[str, Json]) -> tuple[SchemaFault, ...]:
    return _compile(schema).faults


def schema_errors(value: Json, schema: Mapping[str, Json]) -> tuple[str, ...] | BadSchema:
    """What does not fit, up to five lines."""
    compiled = _compile(schema)
    if compiled.validator is None:
        return _bad(compiled.faults[0])
    try:
        with limit_work():
            # Sorted, since one keyword goes through a set; gathered first, to sort all of them.
            found = list(islice(compiled.validator.iter_errors(value), _MOST_GATHERED))
        found.sort(key=lambda error: [str(part).rjust(9) for part in error.absolute_path])
        return tuple(dict.fromkeys(map(describe_error, found)))[:MOST_ERRORS]
    except RecursionError:
        return ("it is nested too deeply",)
    except TooMuchWork:
        return ("it takes too much work to check against its schema: answer with less",)
    except (ValueError, OverflowError, ArithmeticError):
        return ("it holds a number that cannot be checked",)


def _bad(fault: SchemaFault) -> BadSchema:
    place = spell_path(fault.path)
    where = f"at {place}: " if place else ""
    return BadSchema(f"the JSON schema of this step cannot be used: {where}{fault.message}")


def _compile(schema: Mapping[str, Json]) -> _Compiled:
    try:
        written = json.dumps(schema, default=dict)
    except (TypeError, ValueError, RecursionError):
        return _refuse((), "it is not JSON")
    return _compile_written(written)


def _refuse(path: SchemaPath, message: str) -> _Compiled:
    return _Compiled(None, (SchemaFault(path, message),))


@lru_cache(maxsize=256)
def _compile_written(written: str) -> _Compiled:
    # Not at the top: jsonschema takes longer to import than most commands take to run.
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry

    schema: dict[str, Json] = json.loads(written)
    named = schema.get("$schema")
    standard: Any = Draft202012Validator
    if named is not None:
        drafts: Any = validator_for
        standard = drafts({"$schema": named}, default=None) if isinstance(named, str) else None
        if standard is None:
            message = f"$schema names {str(named)[:80]!r}, a draft that is not known"
            return _refuse(("$schema",), message)
    paths = dict(islice(_walk(schema), MOST_SCHEMA_VALUES + 1))
    if len(paths) > MOST_SCHEMA_VALUES:
        return _refuse((), f"it holds more than {MOST_SCHEMA_VALUES:,} objects and lists")
    try:
        faults = _Inspection(schema, standard, paths).faults()
        if faults:
            return _Compiled(None, faults)
        # An empty registry knows the drafts themselves and nothing else, and has no way to fetch.
        validator: Validator = bound_keywords(standard)(schema, registry=Registry())
    except RecursionError:
        return _refuse((), "it is nested too deeply")
    return _Compiled(validator, ())


def _walk(schema: Json) -> Iterator[tuple[int, SchemaPath]]:
    """Every object and list in it, by identity, with its path."""
    waiting: list[tuple[Json, SchemaPath]] = [(schema, ())]
    while waiting:
        value, path = waiting.pop()
        if isinstance(value, dict):
            yield id(value), path
            waiting += ((inner, (*path, key)) for key, inner in value.items())
        elif isinstance(value, list):
            yield id(value), path
            waiting += ((inner, (*path, index)) for index, inner in enumerate(value))


class _Inspection:
    """One pass over all schemas inside a schema."""

    def __init__(
        self, schema: dict[str, Json], standard: Any, paths: dict[int, SchemaPath]
    ) -> None:
        self._schema = schema
        self._standard = standard
        self._paths = paths
        self._found: dict[SchemaPath, SchemaFault] = {}
        self._in_place: dict[int, set[int]] = {}
        self._has_patterns = False
        self._unevaluated: list[SchemaPath] = []

    def faults(self) -> tuple[SchemaFault, ...]:
        from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]
        from referencing.jsonschema import DRAFT202012, specification_with

        dialect = self._standard.META_SCHEMA.get("$schema", "")
        self._specification = specification_with(dialect, default=DRAFT202012)
        root = self._specification.create_resource(self._schema)
        self._check_form(self._schema)
        # Where a fault of form was found, a keyword may hold something that cannot be walked.
        expected = (AttributeError, TypeError, ValueError) if self._found else ()
        with suppress(*expected):
            self._check_parts(root, REGISTRY.resolver_with_root(root))
            self._check_cycles()
        if self._has_patterns:
            self._refuse_unevaluated()
        return tuple(sorted(self._found.values(), key=lambda fault: str(fault.path)))

    def _add(self, path: SchemaPath, message: str, hint: str = "") -> None:
        self._found.setdefault(path, SchemaFault(path, message, hint or SCHEMA_EXAMPLE))

    def _check_form(self, part: dict[str, Json]) -> None:
        """Against the schema of schemas."""
        at = self._paths[id(part)]
        errors = self._standard(self._standard.META_SCHEMA).iter_errors(part)
        for error in islice(errors, _MOST_GATHERED):
            path = (*at, *error.absolute_path)
            if "type" in path[-2:]:
                meant = json_type_of(error.instance)
                self._add(path, _unknown_type(error.instance), meant and f"write {meant}")
            else:
                meant = json_type_of(error.instance)
                self._add(path, explain_error(error), meant and f"write {{type: {meant}}}")

    def _check_parts(self, root: Any, resolver: Any) -> None:
        waiting, seen = [(root, resolver)], set[int]()
        while waiting:
            resource, resolver = waiting.pop()
            part = resource.contents
            if not isinstance(part, dict) or id(part) in seen or id(part) not in self._paths:
                continue
            seen.add(id(part))
            self._check_part(part, self._paths[id(part)])
            self._in_place[id(part)] = {
                id(inner) for key in _IN_PLACE for inner in _schemas_in(part, key)
            }
            waiting += self._targets(part, resolver)
            # A `$schema` further in changes nothing at run time, and so it hides nothing here.
            inner = [
                self._specification.create_resource(each.contents)
                for each in resource.subresources()
            ]
            waiting += [(each, resolver.in_subresource(each)) for each in inner]

    def _check_part(self, part: dict[str, Json], at: SchemaPath) -> None:
        if shorthand := shorthand_in(part):
            word, written_out = shorthand
            message = f"'{word[:60]}' is no word of JSON schema, so this says nothing about a field"
            self._add((*at, word), f"{message} '{word[:60]}'", written_out)
        if part.get("enum") == []:
            self._add((*at, "enum"), "'enum' must be a list with at least one value")
        for low, high in _BOUNDS:
            least, most = part.get(low), part.get(high)
            if isinstance(least, int | float) and isinstance(most, int | float) and least > most:
                message = f"'{low}' {least} is above '{high}' {most}: nothing fits"
                self._add((*at, low), message)
        if isinstance(pattern := part.get("pattern"), str):
            self._check_pattern(pattern, (*at, "pattern"))
        named = part.get("patternProperties")
        for pattern in named if isinstance(named, dict) else ():
            self._check_pattern(pattern, (*at, "patternProperties", pattern))
            self._has_patterns = True
        if "unevaluatedProperties" in part:
            self._unevaluated.append((*at, "unevaluatedProperties"))

    def _refuse_unevaluated(self) -> None:
        # That keyword looks for the patterns by itself, wherever they stand, with a matcher that
        # can hang.
        message = "patternProperties and unevaluatedProperties cannot be used together"
        for at in self._unevaluated:
            self._add(at, message)

    def _check_pattern(self, pattern: str, at: SchemaPath) -> None:
        try:
            compile_pattern(pattern)
        except PatternError as error:
            self._add(at, f"this pattern cannot be used: {error}")

    def _targets(self, part: dict[str, Json], resolver: Any) -> Iterator[tuple[Any, Any]]:
        from referencing.exceptions import Unresolvable

        for keyword in _REFERENCES:
            ref, at = part.get(keyword), (*self._paths[id(part)], keyword)
            if not isinstance(ref, str):
                continue
            try:
                found = resolver.lookup(ref)
            except (Unresolvable, ValueError):
                self._add(at, f"it refers to {ref[:200]!r}, which is not in it; nothing is fetched")
                continue
            target = found.contents
            if not isinstance(target, dict | bool):
                self._add(at, f"it refers to {ref[:200]!r}, which is no schema")
            elif isinstance(target, dict):
                if keyword == "$ref":
                    self._in_place[id(part)].add(id(target))
                if id(target) in self._paths:
                    # No keyword leads to some targets, so the form of those is unchecked so far.
                    self._check_form(target)
                    yield self._specification.create_resource(target), found.resolver

    def _check_cycles(self) -> None:
        try:
            TopologicalSorter(self._in_place).prepare()
        except CycleError as error:
            path = self._paths.get(error.args[1][0], ())
            self._add(path, "it refers to itself without end")


def _unknown_type(value: Json) -> str:
    names = value if isinstance(value, list) else [value]
    name = next((each for each in names if each not in _TYPES), value)
    return f"'{name}' is not a JSON type: {', '.join(_TYPES)}"


def _schemas_in(part: dict[str, Json], keyword: str) -> Iterable[Json]:
    written = part.get(keyword)
    if isinstance(written, list):
        return written
    if isinstance(written, dict) and keyword == "dependentSchemas":
        return written.values()
    return (written,)


MOST_KEYWORDS = 100_000  # keywords applied to one value
# Instructions of a pattern times bytes of a text: in the worst case measured, 20 ns each.
MOST_PATTERN_WORK = 50_000_000


class TooMuchWork(Exception):
    """A value takes more work to check than an answer is worth."""


class _WorkLeft(Struct):
    keywords: int
    patterns: int


# Of the check that is going on: validators are shared between threads and tasks.
_left: ContextVar[_WorkLeft] = ContextVar("work_left")


@contextmanager
def limit_work() -> Iterator[None]:
    token = _left.set(_WorkLeft(MOST_KEYWORDS, MOST_PATTERN_WORK))
    try:
        yield
    finally:
        _left.reset(token)


@lru_cache(maxsize=16)
def bound_keywords(standard: Any) -> Any:
    """The same draft: those keywords replaced whose cost a value chooses, and every use counted."""
    from jsonschema import validators

    extend: Any = validators.extend
    own = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
    }
    keywords = {**standard.VALIDATORS, **own}
    bounded = extend(standard, {name: _count(check) for name, check in keywords.items()})
    bounded.evolve = _keep_bounded(bounded.evolve)
    return bounded


def _keep_bounded(evolve: Any) -> Any:
    """A `$schema` below the root, or met again through a reference, would bring back the standard
    keywords, which are not bounded."""

    def evolve_bounded(validator: Any, **changes: Any) -> Any:
        schema = changes.get("schema", validator.schema)
        if isinstance(schema, dict) and "$schema" in schema:
            changes["schema"] = {key: schema[key] for key in schema if key != "$schema"}
        return evolve(validator, **changes)

    return evolve_bounded


def _count(check: Any) -> Any:
    def counted(validator: Any, argument: Any, value: Any, schema: Any) -> Any:
        left = _left.get()
        if left.keywords <= 0:
            raise TooMuchWork
        left.keywords -= 1
        return check(validator, argument, value, schema)

    return counted


def _occurs(pattern: str, text: str) -> bool:
    compiled, left = compile_pattern(pattern), _left.get()
    left.patterns -= compiled.size * 4 * len(text)  # a character has at most four bytes
    if left.patterns < 0:
        raise TooMuchWork
    return compiled.occurs_in(text)


def _pattern(validator: Any, pattern: str, value: Json, schema: Any) -> "Iterator[ValidationError]":
    from jsonschema.exceptions import ValidationError

    if isinstance(value, str) and not _occurs(pattern, value):
        yield ValidationError("does not match")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Json], value: Json, schema: Any
) -> "Iterator[ValidationError]":
    for pattern, inner in patterns.items():
        for key, found in value.items() if isinstance(value, dict) else ():
            if _occurs(pattern, key):
                yield from validator.descend(found, inner, path=key, schema_path=pattern)


def _additional_properties(
    validator: Any, argument: Json, value: Json, schema: Mapping[str, Any]
) -> "Iterator[ValidationError]":
    from jsonschema.exceptions import ValidationError

    if not isinstance(value, dict):
        return
    patterns = schema.get("patternProperties", {})
    others = [
        key
        for key in value
        if key not in schema.get("properties", {})
        and not any(_occurs(pattern, key) for pattern in patterns)
    ]
    if isinstance(argument, dict):
        for key in others:
            yield from validator.descend(value[key], argument, path=key)
    elif argument is False and others:
        error = ValidationError("has fields that must not be there")
        error.others = others  # type: ignore[attr-defined]  # for its message
        yield error


def _unique_items(
    validator: Any, argument: Json, value: Json, schema: Any
) -> "Iterator[ValidationError]":
    from jsonschema.exceptions import ValidationError

    if not argument or not isinstance(value, list):
        return
    # The standard one compares every pair. 1 and 1.0 are equal in JSON, true and 1 are not.
    seen = set[str]()
    for item in value:
        written = json.dumps(_comparable(item), sort_keys=True)
        if written in seen:
            yield ValidationError("has elements that are equal")
            return
        seen.add(written)


def _comparable(value: Json) -> Json:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_comparable(item) for item in value]
    if isinstance(value, dict):
        return {key: _comparable(inner) for key, inner in value.items()}
    return value
