"""Check an answer: not empty, then its format, its schema, its rules.

The first of these that fails ends the check. Of the rules, all that fail are listed at once, so that
one more attempt can fix them all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from stretto.templates.json_text import NoJson, read_json
from stretto.validation.blank import is_blank
from stretto.validation.rule_decisions import decide
from stretto.validation.schema import BadSchema, schema_errors
from stretto.vocabulary.json_value import Json


@dataclass(frozen=True, slots=True)
class Accepted:
    output: Json  # parsed where `format: json` or a schema asks for it, else the text
    undecided: tuple[str, ...] = ()  # the rules that code cannot decide: for a judge


@dataclass(frozen=True, slots=True)
class NotAccepted:
    kind: Literal["empty", "validation"]
    reason: str  # tells the model what to change
    # False when no answer could pass, because the schema cannot be used.
    can_retry: bool = True


AnswerCheck: TypeAlias = Accepted | NotAccepted


def check_answer(
    text: str,
    format: str | None,
    schema: Mapping[str, Json] | None,
    rules: Sequence[str],
) -> AnswerCheck:
    if is_blank(text):
        return NotAccepted("empty", "the answer is empty")
    output = _read(text, format, schema)
    if isinstance(output, NoJson):
        return NotAccepted("validation", f"the answer must be JSON, but {output.reason}")
    return check_value(output, schema, rules)


def check_value(
    output: Json, schema: Mapping[str, Json] | None, rules: Sequence[str]
) -> AnswerCheck:
    """Check a value that is parsed already. Null is an answer only where a schema admits it; an
    empty list or object is an answer, unless a rule says that it must not be."""
    if (output is None and schema is None) or (isinstance(output, str) and is_blank(output)):
        return NotAccepted("empty", "the answer is empty")
    if schema is not None:
        errors = schema_errors(output, schema)
        if isinstance(errors, BadSchema):
            return NotAccepted("validation", errors.reason, can_retry=False)
        if errors:
            reason = "\n".join(f"- {error}" for error in errors)
            return NotAccepted("validation", f"the answer does not fit its schema:\n{reason}")
    return _check_rules(output, rules)


def _check_rules(output: Json, rules: Sequence[str]) -> AnswerCheck:
    failures, undecided = list[str](), list[str]()
    for rule in rules:
        decision = decide(rule, output)
        if decision.status == "failed":
            failures.append(f'- "{rule}": {"; ".join(decision.reasons)}')
        elif decision.status == "undecided":
            undecided.append(rule)
    if failures:
        reasons = "\n".join(failures)
        return NotAccepted("validation", f"the answer does not meet these rules:\n{reasons}")
    return Accepted(output, tuple(undecided))


def _read(text: str, format: str | None, schema: Mapping[str, Json] | None) -> Json | NoJson:
    if format == "json":
        return read_json(text)
    if schema is None:
        return text
    found = read_json(text)
    if _asks_for_text(schema):
        return found if isinstance(found, str) and format is None else text.strip()
    return text if isinstance(found, NoJson) and _admits_text(schema) else found


def _asks_for_text(schema: Mapping[str, Json]) -> bool:
    """A schema of texts alone: hot is an answer to {enum: [hot, cold]}, with or without quotes."""
    choices = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(choices, list) and choices and "type" not in schema:
        return all(isinstance(choice, str) for choice in choices)
    return schema.get("type") == "string"


def _admits_text(schema: Mapping[str, Json]) -> bool:
    kinds = schema.get("type")
    return isinstance(kinds, list) and "string" in kinds
