"""JSON schemas for constrained decoding by llama.cpp.

llama.cpp turns a schema into a grammar and refuses what it does not know. So there is a ladder:
the schema as it is, but with bounds; its structure alone; any JSON object at all. Whoever asked
for the schema checks the answer against all of it.
"""

from collections.abc import Callable, Mapping

from stretto.adapters.models.local.catalog import Traits
from stretto.vocabulary.json_value import Json

_DEEPEST = 24
_LISTS_OF_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
_MAPS_OF_SCHEMAS = ("properties", "$defs", "definitions", "patternProperties")
_TYPES = ("string", "number", "integer", "boolean", "null", "object", "array")
_PLAIN_KEYS = ("required", "const", "minItems", "maxItems", "minLength", "maxLength")
_OPEN: dict[str, Json] = {"type": "object"}


def ladder(schema: Mapping[str, Json], traits: Traits) -> tuple[dict[str, Json], ...]:
    bare = _bare(schema, schema, 0)
    rungs = [_add_bounds(each, traits, 0) for each in (dict(schema), bare, _OPEN)]
    return tuple(rung for n, rung in enumerate(rungs) if rung not in rungs[:n])


def any_object(traits: Traits) -> dict[str, Json]:
    return _add_bounds(_OPEN, traits, 0)


def _add_bounds(schema: Mapping[str, Json], traits: Traits, depth: int) -> dict[str, Json]:
    """The same with an end to every list and text, so that a tiny model comes to one."""
    if depth > _DEEPEST:
        return {"type": "string", "maxLength": 1}
    made = _map_inner(schema, lambda each: _add_bounds(each, traits, depth + 1))
    kind = made.get("type")
    is_chosen = any(key in made for key in ("enum", "const", "$ref", *_LISTS_OF_SCHEMAS))
    if is_chosen:
        return made
    if kind == "string" and traits.longest_text and not {"pattern", "format"} & made.keys():
        made.setdefault("maxLength", max(traits.longest_text, _number(made, "minLength")))
    if kind == "array" and traits.most_items:
        made.setdefault("maxItems", max(traits.most_items, _number(made, "minItems")))
        made.setdefault("items", _anything(traits))
    is_open = "properties" not in made and made.get("additionalProperties", True) is True
    if kind == "object" and is_open and "patternProperties" not in made:
        made["additionalProperties"] = _anything(traits)
    return made or _anything(traits)


def _anything(traits: Traits) -> dict[str, Json]:
    """Flat: free nesting is where a tiny model loses itself."""
    text: dict[str, Json] = {"type": "string"}
    if traits.longest_text:
        text["maxLength"] = traits.longest_text
    plain: list[Json] = [text, {"type": "number"}, {"type": "boolean"}, {"type": "null"}]
    some: dict[str, Json] = {"type": "array", "items": {"anyOf": plain}}
    if traits.most_items:
        some["maxItems"] = traits.most_items
    return {"anyOf": [*plain, some]}


def _bare(schema: Mapping[str, Json], root: Mapping[str, Json], depth: int) -> dict[str, Json]:
    """Only what every grammar knows: no patterns, no formats, no conditions."""
    if depth > _DEEPEST:
        return {}
    ref = schema.get("$ref")
    if isinstance(ref, str):
        return {"$ref": ref} if _is_there(ref, root) else {}
    kept = {key: schema[key] for key in _PLAIN_KEYS if key in schema}
    kept |= {key: schema[key] for key in ("minimum", "maximum") if isinstance(schema.get(key), int)}
    if isinstance(choices := schema.get("enum"), list) and choices:
        kept["enum"] = choices
    if kind := _kind(schema.get("type")):
        kept["type"] = kind
    shapes = {k: schema[k] for k in ("properties", "items", "$defs", "definitions") if k in schema}
    kept |= _map_inner(shapes, lambda each: _bare(each, root, depth + 1))
    if "additionalProperties" in schema:
        extra = schema["additionalProperties"]
        bare = _bare(extra, root, depth + 1) if isinstance(extra, dict) else extra
        kept["additionalProperties"] = bare
    either = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(either, list) and either:
        kept["anyOf"] = [_bare(each, root, depth + 1) for each in either if isinstance(each, dict)]
    return kept


def _kind(written: Json) -> Json:
    if isinstance(written, list):
        return [kind for kind in written if kind in _TYPES] or None
    return written if written in _TYPES else None


def _is_there(ref: str, root: Mapping[str, Json]) -> bool:
    parts = ref.split("/")
    if len(parts) != 3 or parts[0] != "#" or parts[1] not in ("$defs", "definitions"):
        return False
    shapes = root.get(parts[1])
    return isinstance(shapes, dict) and parts[2] in shapes


def _map_inner(
    schema: Mapping[str, Json], change: Callable[[dict[str, Json]], dict[str, Json]]
) -> dict[str, Json]:
    """A copy in which every schema directly inside is changed."""
    made = dict(schema)
    for key, value in schema.items():
        if key in _MAPS_OF_SCHEMAS and isinstance(value, dict):
            # `false` means never: a grammar that does not have the name says the same.
            some = {name: each for name, each in value.items() if each is not False}
            made[key] = {name: _change(each, change) for name, each in some.items()}
        elif key in _LISTS_OF_SCHEMAS and isinstance(value, list):
            made[key] = [_change(each, change) for each in value]
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            made[key] = change(value)
    return made


def _change(each: Json, change: Callable[[dict[str, Json]], dict[str, Json]]) -> Json:
    if isinstance(each, dict):
        return change(each)
    return change({}) if each is True else each  # `true` means anything


def _number(schema: Mapping[str, Json], key: str) -> int:
    value = schema.get(key)
    return value if isinstance(value, int) else 0
