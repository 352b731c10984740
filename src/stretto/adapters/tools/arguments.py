"""Describe and check the arguments of a tool by a pydantic model.

The JSON schema that a language model is shown and the check of what it sends come from the same
model. pydantic takes a tenth of a second to import, so whoever makes no tool must not import this
module.
"""

import json
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, TypeAlias, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict, ValidationError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails
from pydantic_core.core_schema import NullableSchema, StringSchema, WithDefaultSchema

from stretto.templates.json_text import kind_of
from stretto.text.short import closest, listed
from stretto.vocabulary.json_value import Json

_MOST_FAULTS = 8
_MOST_VALUE = 60


class Arguments(BaseModel):
    """The base of every model of arguments: a name that is not declared is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class InvalidArguments(Exception):
    """The arguments do not fit. The text lists every mistake, one a line, for the model."""


def _whole(value: object) -> object:
    # 3.0 is an integer to JSON Schema. True is an integer to Python, and is left to pydantic.
    return int(value) if isinstance(value, float) and value.is_integer() else value


WholeNumber: TypeAlias = Annotated[int, Strict(), BeforeValidator(_whole)]
LongText: TypeAlias = Annotated[str, Field(max_length=10_000_000)]
PathText: TypeAlias = Annotated[str, Field(min_length=1, max_length=4096)]

ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)


def check(model: type[ArgumentsT], values: Mapping[str, Json]) -> ArgumentsT:
    """Raises InvalidArguments."""
    try:
        return model.model_validate(_without_nulls(model, values))
    except ValidationError as error:
        raise _invalid(model, error) from None


def check_json(model: type[ArgumentsT], values: Mapping[str, Json]) -> ArgumentsT:
    """For types that JSON has not, such as dates and enums. Raises InvalidArguments."""
    try:
        return model.model_validate_json(json.dumps(_without_nulls(model, values)))
    except ValidationError as error:
        raise _invalid(model, error) from None


class _FunctionSchema(GenerateJsonSchema):
    """pydantic's schema without the titles that repeat each name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def generate(self, schema: CoreSchema, mode: JsonSchemaMode = "validation") -> JsonSchemaValue:
        generated = super().generate(schema, mode)
        generated.pop("title", None)
        generated.pop("description", None)  # that of the Python class
        return generated


class _StandardSchema(_FunctionSchema):
    """Also without defaults, which the descriptions name, without null, and without the greatest
    length of a text: a grammar that a local model is held to would be as long as the text."""

    def default_schema(self, schema: WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def nullable_schema(self, schema: NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def str_schema(self, schema: StringSchema) -> JsonSchemaValue:
        text = super().str_schema(schema)
        text.pop("maxLength", None)
        return text


def function_schema(model: type[BaseModel]) -> dict[str, Json]:
    """Raises whatever pydantic raises for a type that JSON cannot write."""
    with warnings.catch_warnings():
        # A default that JSON cannot write is only left out of the schema.
        warnings.simplefilter("ignore")
        return model.model_json_schema(schema_generator=_FunctionSchema)


@cache
def standard_schema(model: type[BaseModel]) -> dict[str, Json]:
    schema = model.model_json_schema(schema_generator=_StandardSchema)
    parts = schema.pop("$defs", {})
    inlined = _inline(schema, {f"#/$defs/{name}": part for name, part in parts.items()})
    assert isinstance(inlined, dict)
    return {**inlined, "required": inlined.get("required", [])}


def _inline(schema: Json, parts: Mapping[str, Json]) -> Json:
    """Not every provider follows references."""
    match schema:
        case {"$ref": str(reference)}:
            return _inline(parts[reference], parts)
        case dict():
            return {key: _inline(value, parts) for key, value in schema.items() if key != "title"}
        case list():
            return [_inline(each, parts) for each in schema]
        case _:
            return schema


def _without_nulls(model: type[BaseModel], values: Mapping[str, Json]) -> dict[str, Json]:
    """Models write null for an argument that they leave out, also where null is not allowed."""
    nullable = {
        field.alias or name
        for name, field in model.model_fields.items()
        if field.annotation in (None, Any, object) or type(None) in get_args(field.annotation)
    }
    return {name: each for name, each in values.items() if each is not None or name in nullable}


def _invalid(model: type[BaseModel], error: ValidationError) -> InvalidArguments:
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    faults = [_fault(each, fields) for each in error.errors(include_url=False)]
    # Unknown names first: a slip in a name is also the reason why an argument is missing.
    faults.sort(key=lambda fault: not fault.startswith("there is no"))
    shown = [f"- {fault}" for fault in faults[:_MOST_FAULTS]]
    more = len(faults) - _MOST_FAULTS
    return InvalidArguments("\n".join([*shown, f"- and {more} more"] if more > 0 else shown))


def _fault(error: ErrorDetails, fields: Mapping[str, FieldInfo]) -> str:
    name, *inside = map(str, error["loc"] or ("",))
    kind = error["type"]
    if kind == "extra_forbidden" and not inside:
        guess = closest(name, fields)
        hint = f"did you mean '{guess}'?" if guess else f"there are {listed(fields) or 'none'}"
        return f"there is no argument '{name[:80]}'; {hint}"
    mistake = _describe(error)
    if kind == "missing" and not inside and name in fields and fields[name].description:
        mistake = f"{mistake}: {fields[name].description}"
    return f"the argument '{name}'{_place(error['loc'][1:])} {mistake}"


def _place(inside: tuple[int | str, ...]) -> str:
    """Where in the argument the mistake is; elements are counted from 1."""
    words = [f"element {each + 1}" if isinstance(each, int) else f"'{each}'" for each in inside]
    return f" ({', '.join(words)})" if words else ""


def _describe(error: ErrorDetails) -> str:
    kind, message, value = error["type"], error["msg"], error.get("input")
    if kind in ("missing", "extra_forbidden"):
        return "is missing" if kind == "missing" else "is not expected there"
    if kind == "string_unicode":
        return "holds a lone surrogate, which cannot be written as UTF-8"
    _, should, rest = message.partition(" should ")
    if not should:
        return f"is wrong: {message.removeprefix('Value error, ')}"
    if kind.endswith(("_type", "_parsing", "_from_float")):
        # What follows the comma is how pydantic tried to read the value.
        return f"should {rest.partition(', ')[0]}, not {kind_of(value)}"
    # Never a long value: it is in the model's own call.
    is_short = isinstance(value, str | int | float) and 0 < len(str(value)) <= _MOST_VALUE
    return f"should {rest}, not {value!r}" if is_short else f"should {rest}"
