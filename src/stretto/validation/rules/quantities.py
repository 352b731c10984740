"""Checks of how many: elements of a list, words of a text, sections of a document."""

import re

from stretto.templates.value import kind_of
from stretto.validation.rules.checks import ANY_ITEM, Amount, Name, Unit
from stretto.validation.rules.counting import Counted, count, titles
from stretto.validation.rules.fields import is_empty
from stretto.validation.rules.lookup import find_key, find_list, has_list, is_hinted, words_of
from stretto.validation.rules.subject import Subject
from stretto.validation.rules.verdict import Failed, Passed, Unsure, Verdict, all_of
from stretto.validation.rules.wording import quantity


def count_of(noun: Name, amount: Amount, subject: Subject) -> Verdict:
    found = find_list(subject.value, noun)
    if found is not None:
        return _measured(Counted(len(found), len(found)), amount, noun.text, subject)
    if (amount.least or 0) == 0 or noun == ANY_ITEM or not _has_none(noun, subject):
        return Unsure()
    said = f"{subject.called} has no list of {noun.text}: it must have {quantity(amount)}"
    return Failed((said,))


def _has_none(noun: Name, subject: Subject) -> bool:
    """Without any list, and without anything that sounds like it, there is nothing to count."""
    value = subject.value
    return isinstance(value, dict) and not has_list(value) and not is_hinted(value, noun)


def length_of(unit: Unit, amount: Amount, subject: Subject) -> Verdict:
    if isinstance(subject.value, dict | list):
        return _length_of_structure(unit, amount, subject)
    if subject.text is None:
        said = f"{subject.called} must be text of {quantity(amount)} {unit}"
        return Failed((f"{said}, but is {kind_of(subject.value)}",))
    counted = count(subject.text, unit)
    if counted is None:
        return Unsure()
    return _measured(counted, amount, unit, subject)


def _length_of_structure(unit: Unit, amount: Amount, subject: Subject) -> Verdict:
    """{"sections": […]} has its sections in a list; the words of an object nobody counts."""
    if isinstance(subject.value, list):
        is_counted = unit == "bullets" and all(isinstance(item, str) for item in subject.value)
        found = subject.value if is_counted else None
    else:
        found = find_list(subject.value, Name(unit))
    if found is None:
        return Unsure()
    return _measured(Counted(len(found), len(found)), amount, unit, subject)


def _measured(counted: Counted, amount: Amount, what: str, subject: Subject) -> Verdict:
    fewest, most = counted
    shown = str(fewest) if fewest == most else f"{fewest} to {most}"
    failed = Failed((f"{subject.called} must have {quantity(amount)} {what}, but has {shown}",))
    if amount.is_below(most):
        return failed
    if amount.is_above(fewest):
        return Unsure() if amount.is_bare else failed
    return Unsure() if amount.is_below(fewest) or amount.is_above(most) else Passed()


def has_sections(wanted: tuple[str, ...], subject: Subject) -> Verdict:
    return all_of(_has_section(title, subject) for title in wanted)


def _has_section(title: str, subject: Subject) -> Verdict:
    if isinstance(subject.value, dict):
        key = find_key(subject.value, Name(title.title()))
        is_there = key is not None and not is_empty(subject.value[key])
        return Passed() if is_there else Unsure()
    if not isinstance(subject.value, str):
        return Unsure()
    wanted = words_of(_unnumbered(title))
    headings = [words_of(_unnumbered(heading)) for heading in titles(subject.value)]
    if wanted in headings:
        return Passed()
    # "Summary and outlook" may do, and so may a paragraph that begins with "Summary:".
    if set(wanted) <= {word for heading in headings for word in heading}:
        return Unsure()
    if re.search(rf"(?mi)^(?:[^\w\n]|[\d_])*{re.escape(title)}\b", subject.value):
        return Unsure()
    if not headings:
        return Failed((f"{subject.called} has no headings: it must have a section '{title}'",))
    return Failed((f"{subject.called} has no section with the heading '{title}'",))


def _unnumbered(heading: str) -> str:
    return re.sub(r"^[\s*_]*(?:\d+(?:\.\d+)*[.):]?|[IVX]+\.)\s+", "", heading)
