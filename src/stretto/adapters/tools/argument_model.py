"""Describe and check the arguments of a tool by a pydantic model.

The JSON schema that a language model is shown and the check of what it sends come from the same
model. pydantic takes a quarter of a second to import, so whoever makes no tool must not import
this module.
"""

import warnings
from collections.abc import Mapping
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails

from stretto.templates.value import kind_of
from stretto.vocabulary.names import closest, listed
from stretto.vocabulary.values import Json

_MOST_FAULTS = 8
_MOST_VALUE = 60


class Arguments(BaseModel):
    """The base of every model of arguments: a name that is not declared is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class InvalidArguments(Exception):
    """The arguments do not fit. The text lists every mistake, one in a line, for the model."""


class _Schema(GenerateJsonSchema):
    """pydantic's schema without the titles that repeat each name."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def generate(self, schema: CoreSchema, mode: Any = "validation") -> JsonSchemaValue:
        generated = super().generate(schema, mode)
        generated.pop("title", None)
        return generated


def schema_of(model: type[BaseModel]) -> dict[str, Json]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.model_json_schema(schema_generator=_Schema)


def without_nulls(model: type[BaseModel], values: Mapping[str, Json]) -> dict[str, Json]:
    """Models write null for an argument that they leave out, also where null is not allowed."""
    optional = {
        field.alias or name
        for name, field in model.model_fields.items()
        if not _allows_null(field.annotation)
    }
    return {
        name: value for name, value in values.items() if value is not None or name not in optional
    }


def faults_of(model: type[BaseModel], error: ValidationError) -> InvalidArguments:
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    faults = [_fault(each, fields) for each in error.errors(include_url=False)]
    # A slip in a name is also a missing argument: the name comes first.
    shown = [
        f"- {fault}" for fault in sorted(faults, key=lambda f: not f.startswith("there is no"))
    ]
    more = len(shown) - _MOST_FAULTS
    return InvalidArguments(
        "\n".join([*shown[:_MOST_FAULTS], *([f"- and {more} more"] if more > 0 else [])])
    )


def _fault(error: ErrorDetails, fields: Mapping[str, FieldInfo]) -> str:
    name, place = _place(error["loc"])
    match error["type"]:
        case "extra_forbidden" if len(error["loc"]) == 1:
            guess = closest(name, fields)
            hint = f"did you mean '{guess}'?" if guess else f"there are {listed(fields)}"
            return f"there is no argument '{name[:80]}'; {hint}"
        case "missing" if len(error["loc"]) == 1:
            says = fields[name].description if name in fields else None
            return f"the argument '{name}' is missing" + (f": {says}" if says else "")
        case "missing" | "extra_forbidden" as kind:
            said = "is missing" if kind == "missing" else "is not expected there"
            return f"the argument '{name}'{place} {said}"
        case _:
            said = error["msg"].removeprefix("Input ").removeprefix("Value error, ")
            if _is_wrong_type(error):
                # What follows the comma is how pydantic tried to read it.
                said = f"{said.partition(', ')[0]}, not {kind_of(error.get('input'))}"
            elif (value := _short_value(error)) is not None:
                said = f"{said}, not {value}"
            return f"the argument '{name}'{place} {said}"


def _place(loc: tuple[int | str, ...]) -> tuple[str, str]:
    """The argument's name, and where in it the mistake is; elements are counted from 1."""
    name, *inside = loc or ("",)
    words = [f"element {each + 1}" if isinstance(each, int) else f"'{each}'" for each in inside]
    return str(name), f" ({', '.join(words)})" if words else ""


def _is_wrong_type(error: ErrorDetails) -> bool:
    return error["type"].endswith(("_type", "_parsing"))


def _short_value(error: ErrorDetails) -> str | None:
    """Never a long value: it is in the model's own call."""
    value = error.get("input")
    is_short = isinstance(value, str | int | float) and 0 < len(str(value)) <= _MOST_VALUE
    return repr(value) if is_short else None


def _allows_null(annotation: Any) -> bool:
    return annotation in (None, Any, object) or type(None) in get_args(annotation)
