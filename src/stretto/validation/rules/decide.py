"""Decide a rule about an answer. In: the rule and the output. Out: Passed, Failed or Unsure."""

from typing import assert_never

from stretto.validation.rules.checks import (
    Between,
    Check,
    CountOf,
    Each,
    HasFields,
    HasSections,
    IsJson,
    IsKind,
    IsOneOf,
    IsThere,
    LacksFields,
    LengthOf,
    Mentions,
    NotEmpty,
    On,
    Whole,
)
from stretto.validation.rules.fields import has_fields, lacks_fields, mentions, on_field
from stretto.validation.rules.kinds import between, is_json, is_kind, is_one_of, not_empty
from stretto.validation.rules.lookup import find_key, find_list, near_key
from stretto.validation.rules.quantities import count_of, has_sections, length_of
from stretto.validation.rules.subject import Subject, subject_of
from stretto.validation.rules.understand import understand
from stretto.validation.rules.verdict import Failed, Passed, Unsure, Verdict, all_of, either_reading
from stretto.vocabulary.values import Json

# Beyond this an answer is not looked at element by element.
_MOST_ELEMENTS = 20_000


def decide(rule: str, output: Json) -> Verdict:
    checks = understand(rule)
    if not checks:
        return Unsure()
    subject = subject_of(output)
    return all_of(_holds(check, subject) for check in checks)


def _holds(check: Check, subject: Subject) -> Verdict:
    match check:
        case HasFields(names):
            return has_fields(names, subject)
        case LacksFields(names):
            return lacks_fields(names, subject)
        case Mentions(names):
            return mentions(names, subject)
        case HasSections(titles):
            return has_sections(titles, subject)
        case IsKind():
            return is_kind(check, subject)
        case IsThere():
            return Passed()
        case IsJson():
            return is_json(subject)
        case IsOneOf(values):
            return is_one_of(values, subject)
        case Between(amount):
            return between(amount, subject)
        case NotEmpty():
            return not_empty(subject)
        case CountOf(noun, amount):
            return count_of(noun, amount, subject)
        case LengthOf(unit, amount):
            return length_of(unit, amount, subject)
        case Whole():
            return _whole(check, subject)
        case On():
            return _on(check, subject)
        case Each():
            return _each(check, subject)
        case _:
            assert_never(check)


def _all(checks: tuple[Check, ...], subject: Subject) -> Verdict:
    return all_of(_holds(check, subject) for check in checks)


def _on(check: On, subject: Subject) -> Verdict:
    if _may_be_itself(check, subject):
        return Unsure()
    verdict = on_field(check.name, subject, lambda field: _all(check.checks, field))
    if isinstance(verdict, Failed) and _may_be_no_field(check, subject):
        return Unsure()
    return verdict


def _may_be_no_field(check: On, subject: Subject) -> bool:
    """ "Reviewers must include a score field", "the pitch must have 3 sections": who or what is
    meant need not be a field. What is measured, though, must be somewhere."""
    if check.name.is_exact or check.name.is_field:
        return False
    key = find_key(subject.value, check.name) if isinstance(subject.value, dict) else None
    if key is not None:
        is_text = isinstance(subject.field(key).value, str)
        return is_text and any(isinstance(inner, HasFields) for inner in check.checks)
    measured = (Between, IsKind, IsOneOf, IsThere)
    return not all(isinstance(inner, measured) for inner in check.checks)


def _may_be_itself(check: On, subject: Subject) -> bool:
    """ "must include a findings array": an answer that is a list may be that array."""
    is_list = subject.is_root and isinstance(subject.value, list) and not check.name.is_exact
    return is_list and any(isinstance(inner, IsKind | NotEmpty) for inner in check.checks)


def _whole(check: Whole, subject: Subject) -> Verdict:
    as_output = _all(check.checks, subject)
    if not isinstance(subject.value, dict) or check.noun not in subject.value:
        return as_output
    # {"answer": …}: "the answer must …" may mean the field as well.
    as_field = _all(check.checks, subject.field(check.noun))
    return as_field if isinstance(as_output, Unsure) else either_reading(as_output, as_field)


def _each(check: Each, subject: Subject) -> Verdict:
    elements = find_list(subject.value, check.noun)
    if elements is None or len(elements) > _MOST_ELEMENTS:
        return Unsure()
    # "each score" of [{"score": 7}]: the fields are meant, or they are not.
    if any(isinstance(element, dict) and _names(check, element) for element in elements):
        return Unsure()
    each = (subject.element(index, element) for index, element in enumerate(elements))
    return all_of(_all(check.checks, element) for element in each)


def _names(check: Each, element: dict[str, Json]) -> bool:
    asks_for_value = any(isinstance(inner, Between | IsOneOf | LengthOf) for inner in check.checks)
    return asks_for_value and near_key(element, check.noun) is not None
