"""Does a value fit a JSON schema? In: the value, the schema. Out: what does not fit, up to five.

Draft 2020-12, or the one that `$schema` names. Nothing is ever fetched, patterns are matched by a
matcher that cannot hang, and the work on one value is bounded.
`format` is a note, as the standard has it, since what checks it would depend on what is installed.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from stretto.validation.patterns import TooMuch, Unmatchable, check_pattern
from stretto.validation.schema_keywords import Budget, bounded, budget
from stretto.validation.schema_wording import worded
from stretto.vocabulary.values import Json

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

MOST_TOLD = 5
_MOST_GATHERED = 200

_PAYLOADS = ("enum", "const", "default", "examples")


@dataclass(frozen=True, slots=True)
class BadSchema:
    """No answer can be held against it: the author must mend it."""

    reason: str


def schema_fault(schema: Mapping[str, Json]) -> str | None:
    """Why the schema cannot be used, for whoever can still tell its author."""
    validator = _validator(schema)
    return validator.reason if isinstance(validator, BadSchema) else None


def schema_errors(value: Json, schema: Mapping[str, Json]) -> tuple[str, ...] | BadSchema:
    from referencing.exceptions import Unresolvable

    validator = _validator(schema)
    if isinstance(validator, BadSchema):
        return validator
    token = budget.set(Budget())
    try:
        # Sorted, for one keyword goes through a set; gathered, so that the sorting is whole.
        found = list(islice(validator.iter_errors(value), _MOST_GATHERED))
        found.sort(key=lambda error: [str(part).rjust(9) for part in error.absolute_path])
        return tuple(dict.fromkeys(map(worded, found)))[:MOST_TOLD]
    except Unresolvable as error:
        return _bad(f"it refers to {error.ref!r}, which is not in it; nothing is fetched")
    except RecursionError:
        return _bad("it refers to itself without end, or the answer is nested too deeply")
    except TooMuch:
        return ("it takes too much work to check against its schema: answer with less",)
    except (ValueError, OverflowError, ArithmeticError):
        return ("it holds a number that cannot be checked",)
    finally:
        budget.reset(token)


def _bad(why: str) -> BadSchema:
    return BadSchema(f"the JSON schema of this step cannot be used: {why}")


def _validator(schema: Mapping[str, Json]) -> "Validator | BadSchema":
    try:
        written = json.dumps(schema, default=dict)
    except (TypeError, ValueError, RecursionError):
        return _bad("it is not JSON")
    return _compiled(written)


@lru_cache(maxsize=256)
def _compiled(written: str) -> "Validator | BadSchema":
    # Imported here: it takes longer to import than most commands take to run.
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry

    schema: dict[str, Json] = json.loads(written)
    named = schema.get("$schema")
    standard: Any = Draft202012Validator
    if named is not None:
        drafts: Any = validator_for
        standard = drafts({"$schema": named}, default=None) if isinstance(named, str) else None
        if standard is None:
            return _bad(f"$schema names {str(named)[:80]!r}, a draft that is not known")
    try:
        standard.check_schema(schema)
        _check_patterns(schema)
    except SchemaError as error:
        return _bad(f"{worded(error)} (in the schema itself)")
    except Unmatchable as error:
        return _bad(f"one of its patterns cannot be checked: {error}")
    except RecursionError:
        return _bad("it is nested too deeply")
    # An empty registry knows the drafts themselves and nothing else, and has no way to fetch.
    validator: Validator = bounded(standard)(_without_drafts(schema), registry=Registry())
    return validator


def _check_patterns(schema: Json) -> None:
    has_named_patterns, has_unevaluated = False, False
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            pattern, named = part.get("pattern"), part.get("patternProperties")
            for text in (*([pattern] if isinstance(pattern, str) else ()), *_keys(named)):
                check_pattern(text)
            has_named_patterns |= bool(_keys(named))
            has_unevaluated |= "unevaluatedProperties" in part
            waiting += (inner for key, inner in part.items() if key not in _PAYLOADS)
    if has_named_patterns and has_unevaluated:
        # That keyword looks for the patterns by itself, with a matcher that can hang.
        raise Unmatchable("patternProperties and unevaluatedProperties cannot be used together")


def _keys(mapping: Json | None) -> tuple[str, ...]:
    return tuple(mapping) if isinstance(mapping, dict) else ()


def _without_drafts(schema: Json) -> Any:
    """A `$schema` below the root, or met again through a reference, would bring back the standard
    keywords, unbounded."""
    if isinstance(schema, list):
        return [_without_drafts(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value if key in _PAYLOADS else _without_drafts(value)
        for key, value in schema.items()
        if not (key == "$schema" and isinstance(value, str))
    }
