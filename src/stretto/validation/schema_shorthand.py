"""Find schemas that are written as shorthand, such as {score: number}, and say how to write them out.

JSON schema ignores words that it does not know, so shorthand would accept every answer in silence.
"""

import json
import re

from stretto.vocabulary.json_value import Json

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


def meant_type(word: Json) -> str:
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
    notes = [word for word in part if word in _NOTES and meant_type(part[word])]
    if len(unknown) + len(notes) < len(part):
        unknown, notes = [word for word in unknown if _is_like_a_field(part[word])], []
    unknown += notes
    if not unknown:
        return None
    return unknown[0], _write_out(part, unknown)


def _is_like_a_field(value: Json) -> bool:
    return bool(meant_type(value)) or (
        isinstance(value, dict) and bool(meant_type(value.get("type")))
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
    kind = meant_type(value)
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
