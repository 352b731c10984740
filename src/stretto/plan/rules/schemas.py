"""JSON schemas mean something. A schema that nothing can satisfy is a mistake, not a check."""

import re
import warnings
from collections.abc import Iterator, Mapping

from stretto.documents.node import Path
from stretto.plan.draft import Draft
from stretto.vocabulary.values import Json

_EXAMPLE = "for example {type: object, required: [score], properties: {score: {type: number}}}"
_TYPES = {"string", "number", "integer", "boolean", "object", "array", "null"}
_BOUNDS = (
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
)
_ONE_SCHEMA = ("items", "additionalProperties", "not", "if", "then", "else", "contains")
_MANY_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions")


def check(draft: Draft) -> None:
    for agent in draft.recipe.agents.values():
        if agent.validation.schema is not None:
            _check(draft, agent.validation.schema, (*agent.at, "validation", "schema"))
    for step in draft.recipe.steps:
        if step.output.schema is not None:
            _check(draft, step.output.schema, (*step.at, "output", "schema"))


def _check(draft: Draft, schema: Json | Mapping[str, Json], at: Path) -> None:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        draft.say("RCP124", at, "a JSON schema is a mapping", _EXAMPLE)
        return
    for part, message in _faults(schema):
        draft.say("RCP124", (*at, part), message, _EXAMPLE)
    for path, inner in _inner(schema):
        _check(draft, inner, (*at, *path))


def _faults(schema: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    types = schema.get("type", [])
    for name in types if isinstance(types, list) else [types]:
        if not isinstance(name, str) or name not in _TYPES:
            yield "type", f"'{name}' is not a JSON type: {', '.join(sorted(_TYPES))}"
    if "enum" in schema and (not isinstance(schema["enum"], list) or not schema["enum"]):
        yield "enum", "'enum' must be a list with at least one value"
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        yield "required", "'required' must be a list of names"
    for name in _NAMED_SCHEMAS:
        if not isinstance(schema.get(name, {}), Mapping):
            yield name, f"'{name}' must be a mapping"
    for low, high in _BOUNDS:
        least, most = schema.get(low), schema.get(high)
        if isinstance(least, int | float) and isinstance(most, int | float) and least > most:
            yield low, f"'{low}' {least} is above '{high}' {most}: nothing fits"
    pattern = schema.get("pattern")
    if pattern is not None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what Python may mean by it one day
                re.compile(pattern if isinstance(pattern, str) else "(")
        except (re.error, RecursionError, OverflowError):
            yield "pattern", "'pattern' is not a regular expression"


def _inner(schema: Mapping[str, Json]) -> Iterator[tuple[Path, Json]]:
    for name in _ONE_SCHEMA:
        if isinstance(schema.get(name), Mapping):
            yield (name,), schema[name]
    for name in _MANY_SCHEMAS:
        many = schema.get(name)
        for position, inner in enumerate(many if isinstance(many, list) else []):
            yield (name, position), inner
    for name in _NAMED_SCHEMAS:
        named = schema.get(name)
        for key, inner in (named if isinstance(named, Mapping) else {}).items():
            yield (name, key), inner
