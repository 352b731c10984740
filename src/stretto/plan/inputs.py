"""Bind what was given to the inputs that a recipe declares.

A value is checked and converted before the run exists. Text is converted too,
since a terminal and a form have nothing else to give.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct

from stretto.problems import Problem
from stretto.recipe.model import Input
from stretto.text.short import did_you_mean, listed, show_json
from stretto.vocabulary.json_value import DEEPEST, Json, is_deeper

_LARGEST = 10**300
_BOOLEANS = {"true": True, "false": False}
_CALLED = {
    "string": "text",
    "number": "a number",
    "boolean": "true or false",
    "json": "JSON",
    "file_path": "the path of a file in the workspace",
}
_EXAMPLES = {
    "string": "give one text",
    "number": "for example 3 or 0.5",
    "boolean": "write true or false",
    "json": 'for example {"name": "Ada"}',
    "file_path": "for example docs/notes.md",
}


class Misfit(Struct, frozen=True):
    """Why a value is not one of this input."""

    code: str
    message: str
    hint: str = ""


# Finds a file of the workspace by the path that was given for an input. Looking at files is not for
# this room, so whoever binds the inputs of a run says how it is done.
FindFile: TypeAlias = Callable[[Input, str], str | Misfit]


def convert(declared: Input, value: Json, find_file: FindFile | None = None) -> Json | Misfit:
    converted = _convert_type(declared, value)
    if isinstance(converted, Misfit):
        return converted
    if is_deeper(converted):
        message = f"input '{declared.name}' is nested more than {DEEPEST} levels deep"
        return Misfit("RCP303", message, "give it in fewer levels")
    if not _can_be_journaled(converted):
        message = f"input '{declared.name}' holds a number or a character that JSON does not have"
        return Misfit("RCP303", message, "use finite numbers, and text in UTF-8")
    # `enum: [1, 2]` of a string means the texts: its options are values of this type too.
    options = [_convert_type(declared, option) for option in declared.enum]
    if options and not any(_same(converted, option) for option in options):
        allowed = listed([show_json(option, 60) for option in declared.enum])
        hint = did_you_mean(str(value), [str(o) for o in declared.enum]) or f"one of {allowed}"
        return Misfit("RCP304", f"input '{declared.name}' cannot be {show_json(value, 60)}", hint)
    if declared.type == "file_path" and find_file is not None:
        return find_file(declared, str(converted))
    return converted


def _convert_type(declared: Input, value: Json) -> Json | Misfit:
    match declared.type, value:
        case "string" | "file_path", str():
            return value
        case "string", bool() | int() | float():
            return json.dumps(value)
        case "number", bool():
            pass
        case "number", int() | float():
            return value
        case "number", str():
            number = _number(value)
            if number is not None:
                return number
        case "boolean", bool():
            return value
        case "boolean", str() if value.strip().lower() in _BOOLEANS:
            return _BOOLEANS[value.strip().lower()]
        case "json", _:
            return _json(declared, value)
        case _:
            pass
    message = (
        f"input '{declared.name}' must be {_CALLED[declared.type]}, not {show_json(value, 60)}"
    )
    return Misfit("RCP303", message, _EXAMPLES[declared.type])


def _number(text: str) -> int | float | None:
    try:
        number = json.loads(text.strip(), parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    if isinstance(number, bool) or not isinstance(number, int | float):
        return None
    # Compared, not converted: an int may be too large to be a float at all.
    return number if -_LARGEST < number < _LARGEST else None


def _json(declared: Input, value: Json) -> Json | Misfit:
    if isinstance(value, str):
        try:
            value = json.loads(value, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            said = (
                str(error) if isinstance(error, json.JSONDecodeError) else "too deep or too large"
            )
            message = f"input '{declared.name}' is not JSON: {said}"
            return Misfit("RCP303", message, "text needs its own quotes inside JSON")
    is_shaped = {"object": isinstance(value, dict), "array": isinstance(value, list)}
    if not is_shaped.get(declared.shape or "", True):
        message = f"input '{declared.name}' must be a JSON {declared.shape}"
        return Misfit(
            "RCP303", message, "for example " + ("{}" if declared.shape == "object" else "[]")
        )
    return value


def _can_be_journaled(value: Json) -> bool:
    """Not NaN, nor half of a surrogate pair, which is what bytes that are no UTF-8 become."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return False
    return True


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _same(a: Json, b: Json | Misfit) -> bool:
    # In Python 1 == True; in a recipe they are different values.
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def missing(declared: tuple[Input, ...], given: Mapping[str, Json]) -> tuple[Input, ...]:
    """The required inputs that were not given: a terminal asks for these."""
    return tuple(
        each
        for each in declared
        if each.is_required and not each.has_default and _is_blank(given.get(each.name))
    )


def _is_blank(value: Json) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def bind(
    declared: tuple[Input, ...], given: Mapping[str, Json], find_file: FindFile | None = None
) -> tuple[dict[str, Json], tuple[Problem, ...]]:
    """Every declared input with its value, and a problem for each that does not fit."""
    problems = list(_unknown_names(declared, given))
    absent = {each.name for each in missing(declared, given)}
    if absent:
        names = ", ".join(each.name for each in declared if each.name in absent)
        noun = "input" if len(absent) == 1 else "inputs"
        hint = " ".join(f"-i {each.name}=…" for each in declared if each.name in absent)
        problems.append(Problem("RCP301", f"missing {noun}: {names}", hint=hint))
    values: dict[str, Json] = {}
    for each in declared:
        if each.name in absent:
            continue
        value = given.get(each.name)
        # `-i depth=` and an empty field of a form mean the default. No file has an empty name.
        if (each.has_default or each.type != "string") and _is_blank(value):
            value = each.default if each.has_default else None
        if value is None or (each.type == "file_path" and _is_blank(value)):
            values[each.name] = None
            continue
        converted = convert(each, value, find_file)
        if isinstance(converted, Misfit):
            path = f"inputs.{each.name}"
            problems.append(
                Problem(converted.code, converted.message, path=path, hint=converted.hint)
            )
        else:
            values[each.name] = converted
    return values, tuple(problems)


def _unknown_names(declared: tuple[Input, ...], given: Mapping[str, Json]) -> Iterator[Problem]:
    names = [each.name for each in declared]
    for name in given:
        if name not in names:
            hint = did_you_mean(name, names)
            if hint is None:
                hint = f"its inputs: {listed(names)}" if names else "this recipe has no inputs"
            message = f"there is no input '{name[:60]}'"
            yield Problem("RCP302", message, path=f"inputs.{name}", hint=hint)
