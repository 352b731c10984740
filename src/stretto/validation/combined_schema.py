"""One schema that holds what two ask for: the agent's own, and that of the step it works for."""

import json
from collections.abc import Mapping
from typing import cast

from stretto.vocabulary.json_value import Json

# What a schema may say that is merged key by key. Such a schema is plainer for a model than
# `allOf`, and more models can be held to it.
_PLAIN = {"type", "properties", "required", "title", "description"}
# Keywords that hold values as they are, and those that hold schemas by names that their author chose.
_VALUES = {"enum", "const", "default", "examples"}
_BY_NAME = {
    "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies",
}  # fmt: skip


def combine_schemas(
    first: Mapping[str, Json] | None, second: Mapping[str, Json] | None
) -> Mapping[str, Json] | None:
    if first is None or second is None or first == second:
        return first if second is None else second
    if _is_plain_object(first) and _is_plain_object(second):
        return _merge_objects(first, second)
    return _hold_both(first, second)


def _is_plain_object(schema: Mapping[str, Json]) -> bool:
    has_fields = isinstance(schema.get("properties", {}), Mapping)
    has_names = isinstance(schema.get("required", []), list | tuple)
    is_object = schema.get("type") == "object" and has_fields and has_names
    return is_object and schema.keys() <= _PLAIN and '"$' not in json.dumps(schema, default=dict)


def _merge_objects(first: Mapping[str, Json], second: Mapping[str, Json]) -> dict[str, Json]:
    merged: dict[str, Json] = {**first, **second}
    fields = dict(cast(Mapping[str, Json], first.get("properties", {})))
    for name, schema in cast(Mapping[str, Json], second.get("properties", {})).items():
        fields[name] = _both_fields(fields[name], schema) if name in fields else schema
    if fields:
        merged["properties"] = fields
    names = [*_names(first), *_names(second)]
    if names:
        merged["required"] = list(dict.fromkeys(names))
    return merged


def _names(schema: Mapping[str, Json]) -> list[Json]:
    return list(cast("list[Json]", schema.get("required", [])))


def _both_fields(first: Json, second: Json) -> Json:
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return cast(Json, combine_schemas(first, second))
    return first if first == second else {"allOf": [first, second]}


def _hold_both(first: Mapping[str, Json], second: Mapping[str, Json]) -> dict[str, Json]:
    members = [
        _move_schema(schema, f"#/allOf/{place}") for place, schema in enumerate((first, second))
    ]
    both: dict[str, Json] = {}
    for word in ("$schema", "type"):
        said = [schema[word] for schema in (first, second) if word in schema]
        if said and (word == "$schema" or said == [said[0]] * 2):
            both[word] = said[0]
    return {**both, "allOf": cast(Json, members)}


def _move_schema(schema: Mapping[str, Json], place: str) -> dict[str, Json]:
    """The schema as a part of another: its references begin where it now stands."""
    moved = cast("dict[str, Json]", _move(cast(Json, schema), place))
    moved.pop("$schema", None)
    return moved


def _move(value: Json, place: str) -> Json:
    if not isinstance(value, Mapping):
        return value
    # What has an identity is where its references begin, wherever it stands. "#name" only names it.
    if isinstance(own := value.get("$id"), str) and not own.startswith("#"):
        return dict(value)
    return {key: _move_entry(key, each, place) for key, each in value.items()}


def _move_entry(key: str, value: Json, place: str) -> Json:
    if key == "$ref" and isinstance(value, str) and (value == "#" or value.startswith("#/")):
        return f"{place}{value[1:]}"
    if key in _VALUES:
        return value
    if key in _BY_NAME and isinstance(value, Mapping):
        return {name: _move(each, place) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_move(each, place) for each in value]
    return _move(value, place)
