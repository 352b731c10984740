"""Turn an error of jsonschema into a line that tells a model or an author what to change."""

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
