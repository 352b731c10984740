"""Checks of fields: are they there, are they filled, what holds of them."""

from collections.abc import Callable

from stretto.templates.value import kind_of
from stretto.text.short import list_names
from stretto.validation.rules.checks import Name
from stretto.validation.rules.lookup import find_key, is_hinted, is_sure, near_key
from stretto.validation.rules.subject import Subject
from stretto.validation.rules.verdict import Failed, Passed, Unsure, Verdict, all_of
from stretto.vocabulary.values import Json

_MOST_ELEMENTS = 20_000


def has_fields(names: tuple[Name, ...], subject: Subject) -> Verdict:
    return all_of(on_field(name, subject, lambda field: Passed()) for name in names)


def on_field(name: Name, subject: Subject, holds: Callable[[Subject], Verdict]) -> Verdict:
    """The field is there, and this holds of it."""
    if isinstance(subject.value, dict):
        key = find_key(subject.value, name)
        return _missing(name, subject) if key is None else holds(subject.field(key))
    if isinstance(subject.value, list):
        return _in_list(name, subject, subject.value, holds)
    return _without_fields(name, subject)


def _in_list(
    name: Name, subject: Subject, elements: list[Json], holds: Callable[[Subject], Verdict]
) -> Verdict:
    """ "findings must have a title field" is said of a list, and means its elements."""
    are_without = not any(isinstance(element, dict) for element in elements)
    if subject.is_root and (name.is_exact or are_without):
        return _without_fields(name, subject)
    if len(elements) > _MOST_ELEMENTS or not elements:
        return Unsure()
    found = list[Verdict]()
    for index, element in enumerate(elements):
        key = find_key(element, name) if isinstance(element, dict) else None
        if key is None:
            return Unsure()
        found.append(holds(subject.element(index, element).field(key)))
    verdict = all_of(found)
    # The author may have meant a field of the answer itself, which a list does not have.
    return (
        Unsure() if subject.is_root and isinstance(verdict, Passed) and name.is_field else verdict
    )


def _missing(name: Name, subject: Subject) -> Verdict:
    assert isinstance(subject.value, dict)
    if not name.is_exact:
        if not is_sure(name):
            return Unsure()
        if not name.is_field and is_hinted(subject.value, name):
            return Unsure()
    near = near_key(subject.value, name)
    if near is not None:
        return Failed((f"{subject.called} has '{near}' where the field '{name.text}' must be",))
    has = list_names(list(subject.value)) if subject.value else "no fields"
    return Failed((f"the field '{name.text}' is missing in {subject.called}, which has {has}",))


def _without_fields(name: Name, subject: Subject) -> Verdict:
    if not (name.is_field and is_sure(name)):
        return Unsure()
    if subject.is_prose and subject.is_root:
        said = f"the answer is text without JSON: it must be a JSON object with '{name.text}'"
    else:
        kind = kind_of(subject.value)
        said = f"{subject.called} is {kind}: it must be an object with the field '{name.text}'"
    return Failed((said,))


def lacks_fields(names: tuple[Name, ...], subject: Subject) -> Verdict:
    if not isinstance(subject.value, dict):
        return Unsure()
    found = [key for name in names if (key := near_key(subject.value, name)) is not None]
    if not found:
        # Deeper down it may be forbidden as well; only the author knows.
        return Unsure() if any(is_hinted(subject.value, name) for name in names) else Passed()
    exact = [name.text for name in names if name.text in found]
    if not exact:
        return Unsure()
    return Failed((f"{subject.called} has the field {list_names(exact)}, which must not be there",))


def mentions(names: tuple[Name, ...], subject: Subject) -> Verdict:
    if not isinstance(subject.value, dict):
        return Unsure()
    fields = subject.value
    keys = [find_key(fields, name) for name in names]
    is_settled = all(key is not None and not is_empty(fields[key]) for key in keys)
    return Passed() if is_settled else Unsure()


def is_empty(value: Json) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return value is None or value == [] or value == {}
