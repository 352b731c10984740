"""The keywords of JSON schemas that could run away, bounded. In: a draft. Out: the same, bounded."""

import json
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from stretto.validation.patterns import TooMuch, Work, occurs
from stretto.vocabulary.values import Json

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

MOST_KEYWORDS = 100_000  # keywords applied to one value before it is given up on


@dataclass(slots=True)
class Budget:
    """What one check may spend. It counts down."""

    keywords: int = MOST_KEYWORDS
    patterns: Work = field(default_factory=Work)


# Of the check that is going on: validators are shared between threads and tasks.
budget: ContextVar[Budget] = ContextVar("budget")


@lru_cache(maxsize=16)
def bounded(standard: Any) -> Any:
    """The same draft, with the keywords that could run away replaced, and every one counted."""
    from jsonschema import validators

    extend: Any = validators.extend
    own = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
    }
    keywords = {**standard.VALIDATORS, **own}
    return extend(standard, {name: _counted(check) for name, check in keywords.items()})


def _counted(check: Any) -> Any:
    def counted(validator: Any, argument: Any, value: Any, schema: Any) -> Any:
        spent = budget.get()
        if spent.keywords <= 0:
            raise TooMuch
        spent.keywords -= 1
        return check(validator, argument, value, schema)

    return counted


def _occurs(pattern: str, text: str) -> bool:
    return occurs(pattern, text, budget.get().patterns)


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
        error.others = others  # type: ignore[attr-defined]  # for its wording
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
        written = json.dumps(_as_compared(item), sort_keys=True)
        if written in seen:
            yield ValidationError("has elements that are equal")
            return
        seen.add(written)


def _as_compared(value: Json) -> Json:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_as_compared(item) for item in value]
    if isinstance(value, dict):
        return {key: _as_compared(inner) for key, inner in value.items()}
    return value
