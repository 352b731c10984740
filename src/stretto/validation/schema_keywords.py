"""Keywords of JSON schemas with a limit on their work, for values and patterns of any size."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from stretto.text.patterns import compile_pattern
from stretto.vocabulary.json_value import Json

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

MOST_KEYWORDS = 100_000  # keywords applied to one value
# Instructions of a pattern times bytes of a text: in the worst case measured, 20 ns each.
MOST_PATTERN_WORK = 50_000_000


class TooMuchWork(Exception):
    """A value takes more work to check than an answer is worth."""


@dataclass(slots=True)
class _WorkLeft:
    keywords: int
    patterns: int


# Of the check that is going on: validators are shared between threads and tasks.
_left: ContextVar[_WorkLeft] = ContextVar("work_left")


@contextmanager
def limit_work() -> Iterator[None]:
    token = _left.set(_WorkLeft(MOST_KEYWORDS, MOST_PATTERN_WORK))
    try:
        yield
    finally:
        _left.reset(token)


@lru_cache(maxsize=16)
def bound_keywords(standard: Any) -> Any:
    """The same draft: those keywords replaced whose cost a value chooses, and every use counted."""
    from jsonschema import validators

    extend: Any = validators.extend
    own = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
    }
    keywords = {**standard.VALIDATORS, **own}
    return extend(standard, {name: _count(check) for name, check in keywords.items()})


def _count(check: Any) -> Any:
    def counted(validator: Any, argument: Any, value: Any, schema: Any) -> Any:
        left = _left.get()
        if left.keywords <= 0:
            raise TooMuchWork
        left.keywords -= 1
        return check(validator, argument, value, schema)

    return counted


def _occurs(pattern: str, text: str) -> bool:
    compiled, left = compile_pattern(pattern), _left.get()
    left.patterns -= compiled.size * 4 * len(text)  # a character has at most four bytes
    if left.patterns < 0:
        raise TooMuchWork
    return compiled.occurs_in(text)


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
        error.others = others  # type: ignore[attr-defined]  # for its message
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
        written = json.dumps(_comparable(item), sort_keys=True)
        if written in seen:
            yield ValidationError("has elements that are equal")
            return
        seen.add(written)


def _comparable(value: Json) -> Json:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_comparable(item) for item in value]
    if isinstance(value, dict):
        return {key: _comparable(inner) for key, inner in value.items()}
    return value
