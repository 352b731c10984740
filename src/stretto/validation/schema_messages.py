"""Turn an error of jsonschema into a line that tells a model or an author what to change, and find
schemas that are written as shorthand.
"""

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from stretto.templates.json_text import kind_of
from stretto.text.short import list_names, show_json
from stretto.vocabulary.json_value import Json

if TYPE_CHECKING:
    from jsonschema.exceptions import SchemaError, ValidationError

_KINDS = {
    "object": "an object",
    "array": "an array",
    "string": "text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
}
_BOUNDS = {
    "minimum": "must be at least {0}",
    "maximum": "must be at most {0}",
    "exclusiveMinimum": "must be above {0}",
    "exclusiveMaximum": "must be below {0}",
    "multipleOf": "must be a multiple of {0}",
    "minLength": "must have at least {0} characters",
    "maxLength": "must have at most {0} characters",
    "minItems": "must have at least {0} elements",
    "maxItems": "must have at most {0} elements",
    "minProperties": "must have at least {0} fields",
    "maxProperties": "must have at most {0} fields",
    "pattern": "must match the pattern {0}",
    "const": "must be {0}",
    "enum": "must be one of {0}",
    "not": "must not fit {0}",
}
_DEEPEST = 4


def describe_error(error: "ValidationError | SchemaError", depth: int = 0) -> str:
    place = spell_path(error.absolute_path)
    return f"{f'at {place}:' if place else 'the answer'} {explain_error(error, depth)}"


def spell_path(path: Iterable[str | int]) -> str:
    written = ""
    for part in path:
        if isinstance(part, int):
            written += f"[{part}]"
        else:
            written += f".{part[:60]}" if written else part[:60]
    return f"`{written[:200]}`" if written else ""


def explain_error(error: "ValidationError | SchemaError", depth: int = 0) -> str:
    """The same without the place."""
    keyword = str(error.validator)
    wanted: Any = error.validator_value
    value: Any = error.instance
    match keyword:
        case "type":
            kinds = wanted if isinstance(wanted, list) else [wanted]
            names = " or ".join(_KINDS.get(str(kind), str(kind)) for kind in kinds)
            return f"must be {names}, but is {_show(value)}"
        case "required":
            missing = [name for name in wanted if isinstance(value, dict) and name not in value]
            return f"must have the field {list_names(missing)}, which is missing"
        case "additionalProperties" if hasattr(error, "others"):
            return f"must not have the field {list_names(error.others)}"
        case "uniqueItems":
            return f"{error.message}: each may occur only once"
        case "minItems" | "maxItems" if isinstance(value, list):
            return f"{_BOUNDS[keyword].format(wanted)}, but has {len(value)}"
        case "minLength" | "maxLength" if isinstance(value, str):
            return f"{_BOUNDS[keyword].format(wanted)}, but has {len(value)}"
        case "anyOf" | "oneOf" if error.context and depth < _DEEPEST:
            return _nearest(error, depth)
        case _ if keyword in _BOUNDS:
            bound = _BOUNDS[keyword].format(show_json(wanted, 300))
            return f"{bound}, but is {show_json(value)}"
        case "False" | "None":
            return f"must not be there, but is {show_json(value)}"
        case _:
            return f"does not meet '{keyword}': {show_json(error.message, 160)}"


def _nearest(error: "ValidationError | SchemaError", depth: int) -> str:
    """Describe the alternative that came closest: the one whose error lies deepest."""
    alternatives: Any = error.validator_value
    nearest = max(error.context or (), key=lambda inner: len(inner.absolute_path))
    return f"fits none of {len(alternatives)} alternatives; nearest: {describe_error(nearest, depth + 1)}"


def _show(value: Json) -> str:
    if value is None or isinstance(value, bool):
        return show_json(value)
    return f"{kind_of(value)}: {show_json(value)}"


# Shorthand such as {score: number}: JSON schema ignores words that it does not know, so shorthand
# would accept every answer in silence.

_LONGEST_HINT = 300
_OTHER_TYPES = {
    "str": "string", "text": "string", "int": "integer", "float": "number", "double": "number",
    "decimal": "number", "bool": "boolean", "list": "array", "dict": "object", "map": "object",
    "date": "string", "url": "string", "email": "string", "any": "",
}  # fmt: skip
_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_KEYWORDS = frozenset(
    [
        "additionalItems",
        "additionalProperties",
        "allOf",
        "anyOf",
        "const",
        "contains",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
        "default",
        "definitions",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "deprecated",
        "description",
        "else",
        "enum",
        "example",
        "examples",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "id",
        "if",
        "items",
        "maxContains",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minContains",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "not",
        "nullable",
        "oneOf",
        "pattern",
        "patternProperties",
        "prefixItems",
        "properties",
        "propertyNames",
        "readOnly",
        "required",
        "then",
        "title",
        "type",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
        "writeOnly",
    ]
)
_NOTES = ("title", "description", "id", "format", "default", "example")
_PLAIN = re.compile(r"[A-Za-z_][\w-]*")


def json_type_of(word: Json) -> str:
    """The JSON type that a word of another language stands for; empty if there is none."""
    if not isinstance(word, str):
        return ""
    bare = word.strip().rstrip("?").lower()
    if bare.endswith("[]"):
        return "array"
    return bare if bare in _TYPES else _OTHER_TYPES.get(bare, "")


def shorthand_in(part: dict[str, Json]) -> tuple[str, str] | None:
    """The first word of a schema that names a field and no keyword, and the schema written out."""
    unknown = [word for word in part if word not in _KEYWORDS and not word.startswith(("$", "x-"))]
    # {title: string} would be an odd title.
    notes = [word for word in part if word in _NOTES and json_type_of(part[word])]
    if len(unknown) + len(notes) < len(part):
        unknown, notes = [word for word in unknown if _is_like_a_field(part[word])], []
    unknown += notes
    if not unknown:
        return None
    return unknown[0], _write_out(part, unknown)


def _is_like_a_field(value: Json) -> bool:
    return bool(json_type_of(value)) or (
        isinstance(value, dict) and bool(json_type_of(value.get("type")))
    )


def _write_out(part: dict[str, Json], names: list[str]) -> str:
    kept = {word: value for word, value in part.items() if word not in names}
    there = kept.pop("properties", None)
    properties: dict[str, Json] = dict(there) if isinstance(there, dict) else {}
    properties |= {name: _field(part[name]) for name in names}
    required: list[Json] = list(properties)
    whole = {**kept, "type": "object", "properties": properties, "required": required}
    written = f"write {_flow(whole)}"
    return written if len(written) <= _LONGEST_HINT else ""


def _field(value: Json) -> Json:
    if isinstance(value, dict):
        shorthand = shorthand_in(value)
        if shorthand is None:
            return value
        return {
            "type": "object",
            "properties": {name: _field(each) for name, each in value.items()},
        }
    if isinstance(value, list):
        # [string] means a list of texts; [hot, cold] means one of these.
        if len(value) == 1:
            return {"type": "array", "items": _field(value[0])}
        return {"enum": value}
    kind = json_type_of(value)
    return {"type": kind} if kind else {}


def _flow(value: Json) -> str:
    """As YAML in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    is_plain = isinstance(value, str) and _PLAIN.fullmatch(value)
    is_word = is_plain and value not in ("true", "false", "null")
    return str(value) if is_word else json.dumps(value, ensure_ascii=False)
