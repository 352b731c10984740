"""Checks of a single value: its kind, its bounds, its choices, whether it is empty."""

import math
import re

from stretto.templates.value import kind_of
from stretto.text.short import show_json
from stretto.validation.rules.checks import Amount, IsKind, Kind
from stretto.validation.rules.fields import is_empty
from stretto.validation.rules.subject import Subject
from stretto.validation.rules.verdict import Failed, Passed, Unsure, Verdict
from stretto.validation.rules.wording import bounds
from stretto.vocabulary.values import Json

_SAID: dict[Kind, str] = {
    "boolean": "true or false",
    "array": "an array",
    "number": "a number",
    "integer": "a whole number",
    "string": "text",
    "object": "an object",
}


def is_kind(check: IsKind, subject: Subject) -> Verdict:
    value = subject.value if check.kind != "string" or subject.text is None else subject.text
    if not _is(value, check.kind):
        wanted = _SAID[check.kind]
        return _failed(subject, f"must be {wanted}, but is {_shown(subject)}")
    if check.of is not None and isinstance(value, list):
        for index, element in enumerate(value):
            if not _is(element, check.of):
                place = subject.element(index, element)
                return _failed(place, f"must be {_SAID[check.of]}, but is {_shown(place)}")
    return Passed()


def _is(value: Json, kind: Kind) -> bool:
    match kind:
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case "string":
            return isinstance(value, str)
        case "number":
            return is_number(value)
        case "integer":
            return is_number(value) and (isinstance(value, int) or _is_whole(value))


def is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Json) -> bool:
    return isinstance(value, float) and math.isfinite(value) and value.is_integer()


def is_json(subject: Subject) -> Verdict:
    if subject.is_prose and subject.is_root and subject.text is not None:
        return _failed(subject, "must be JSON, but holds none")
    return Passed()


def is_one_of(values: tuple[str | bool, ...], subject: Subject) -> Verdict:
    value = subject.value
    if any(value is choice or (isinstance(value, str) and value == choice) for choice in values):
        return Passed()
    choices = ", ".join(show_json(choice) for choice in values)
    if isinstance(value, list | dict) or (subject.is_root and subject.is_prose):
        return _one_of_in_text(values, subject)
    return _failed(subject, f"must be one of {choices}, but is {_shown(subject)}")


def _one_of_in_text(values: tuple[str | bool, ...], subject: Subject) -> Verdict:
    said = (subject.text or "").strip()
    if said in values:
        return Passed()
    words = set(re.findall(r"\w+", said.lower()))
    is_hinted = any(set(re.findall(r"\w+", str(value).lower())) <= words for value in values)
    if is_hinted or subject.text is None:
        return Unsure()
    choices = ", ".join(show_json(choice) for choice in values)
    return _failed(subject, f"must be one of {choices}")


def between(amount: Amount, subject: Subject) -> Verdict:
    value = subject.value
    if isinstance(value, list):
        if not value or not all(map(is_number, value)):
            return Unsure()
        outside = [number for number in value if _is_outside(amount, number)]
        wanted = f"must hold numbers {bounds(amount)}, but holds {show_json(outside)}"
        return _failed(subject, wanted) if outside else Passed()
    if isinstance(value, dict) or (subject.is_prose and subject.is_root):
        return Unsure()
    if isinstance(value, str) and _is_quantity(value):
        return Unsure()
    if not is_number(value) or _is_outside(amount, value):
        return _failed(subject, f"must be a number {bounds(amount)}, but is {_shown(subject)}")
    return Passed()


def _is_quantity(text: str) -> bool:
    """2024-05-01, 85% and $15 have digits and mean something; "85" is a number in quotes."""
    return any(map(str.isdecimal, text)) and not re.fullmatch(r"\s*[-+]?\d+(?:\.\d+)?\s*", text)


def _is_outside(amount: Amount, number: Json) -> bool:
    assert isinstance(number, int | float)
    return math.isnan(number) or amount.is_below(number) or amount.is_above(number)


def not_empty(subject: Subject) -> Verdict:
    value = subject.value
    return _failed(subject, "must not be empty") if is_empty(value) else Passed()


def _failed(subject: Subject, wanted: str) -> Failed:
    return Failed((f"{subject.called} {wanted}",))


def _shown(subject: Subject) -> str:
    if isinstance(subject.value, list | dict) or (subject.is_root and subject.is_prose):
        return kind_of(subject.value)
    if subject.value is None or isinstance(subject.value, bool):
        return show_json(subject.value)
    return f"{kind_of(subject.value)}, {show_json(subject.value)}"
