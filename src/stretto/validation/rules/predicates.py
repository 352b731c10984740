"""What a rule says of its subject. In: "must be … and must not …". Out: checks, or None."""

from stretto.validation.rules.amounts import amount, number
from stretto.validation.rules.checks import (
    ANY_ITEM,
    Amount,
    Between,
    Check,
    Checks,
    CountOf,
    Each,
    HasFields,
    IsKind,
    IsThere,
    LacksFields,
    LengthOf,
    NotEmpty,
)
from stretto.validation.rules.field_phrases import fields, listed_fields, ranged
from stretto.validation.rules.lexicon import (
    HAVING,
    ITEMS,
    MODALS,
    NEGATIVES,
    UNITS,
)
from stretto.validation.rules.nouns import noun
from stretto.validation.rules.qualities import EMPTY, is_quality
from stretto.validation.rules.reader import Reader
from stretto.validation.rules.things import things

_SAYING = ("is", "are")
_TELLING = ("has", "have", "includes", "include", "contains", "contain")


def predicates(reader: Reader, needs_modal: bool = False) -> Checks | None:
    """must be … and contain … and must not …"""
    found, was_forbidden = list[Check](), False
    while True:
        at = reader.at
        if found and not reader.take(", and", "and", ",", ", but", "but"):
            return tuple(found)
        # "must not be empty and contain …" leaves open whether the "not" still holds.
        is_open = was_forbidden and not reader.stands(*MODALS, *NEGATIVES)
        was_forbidden = reader.stands(*NEGATIVES)
        one = None if is_open else _predicate(reader, needs_modal and not found)
        if one is None:
            reader.at = at
            return tuple(found) or None
        found += one


def _predicate(reader: Reader, needs_modal: bool) -> Checks | None:
    if reader.take(*NEGATIVES):
        return _forbidden(reader)
    if reader.take(*MODALS):
        reader.take("also", "always")
    elif reader.take("is not", "are not", "isn't", "aren't"):
        return (NotEmpty(),) if reader.take(*EMPTY) else None
    elif reader.take(*_SAYING):
        return _being(reader)
    elif needs_modal and not reader.stands(*_TELLING):
        return None
    if reader.take("be"):
        return _being(reader)
    if reader.take("range from", "range between"):
        reader.at -= 1
        return is_quality(reader)
    if reader.take("exist"):
        return (IsThere(),)
    verb = reader.take(*HAVING)
    found = things(reader) if verb else None
    # "use at most 200 words" is about the text, "use at least 3 tools" about who wrote it.
    is_off = verb == "use" and not all(isinstance(check, LengthOf) for check in found or ())
    return None if is_off else found


def _being(reader: Reader) -> Checks | None:
    """What the value is, and what it comes with: "an object with title and url fields"."""
    if reader.take("present", "provided", "included", "required", "there"):
        return (IsThere(),)
    found = is_quality(reader)
    if found is None:
        return None
    holder = next((check for check in found if isinstance(check, IsKind)), None)
    if holder is None or not reader.take("with", "containing", "that contains", "that has"):
        return found
    inner = things(reader)
    if inner is None:
        return None
    if holder.kind == "array" and holder.of == "object":
        return *found, Each(ANY_ITEM, inner)
    return *found, *inner


def _forbidden(reader: Reader) -> Checks | None:
    if reader.take("be"):
        return _not_being(reader)
    if reader.take("exceed", "go over"):
        most = number(reader)
        return None if most is None else (_bounded(reader, Amount(most=most)),)
    if not reader.take(*HAVING):
        return None
    return reader.first(_lacking, _not_so_many)


def _not_being(reader: Reader) -> Checks | None:
    if reader.take(*EMPTY):
        return (NotEmpty(),)
    if reader.take("negative"):
        return (Between(Amount(least=0)),)
    bounds = amount(reader)
    turned = _turned(bounds) if bounds else None
    return (_bounded(reader, turned),) if turned else None


def _not_so_many(reader: Reader) -> Checks | None:
    bounds = amount(reader)
    turned = _turned(bounds) if bounds else None
    if turned is None:
        return None
    if reader.peek().low in UNITS or reader.take(*ITEMS):
        unit = reader.take(*UNITS)
        return (LengthOf(UNITS[unit], turned) if unit else CountOf(ANY_ITEM, turned),)
    what = noun(reader, is_plural=False)
    return (CountOf(what, turned),) if what else None


def _lacking(reader: Reader) -> Checks | None:
    """Only fields that are said to be fields: "personal data" is nothing that code can see."""
    reader.take("any", "a", "an")
    found = reader.first(listed_fields, fields, ranged)
    if found is None or len(found) != 1 or not isinstance(found[0], HasFields):
        return None
    return (LacksFields(found[0].names),)


def _bounded(reader: Reader, bounds: Amount) -> Check:
    unit = reader.take(*UNITS)
    reader.take("long", "in length")
    return LengthOf(UNITS[unit], bounds) if unit else Between(bounds)


def _turned(bounds: Amount) -> Amount | None:
    """Not more than 3 is at most 3. Of bounds on both sides nothing simple is left."""
    if bounds.is_bare or (bounds.least is None) == (bounds.most is None):
        return None
    if bounds.least is not None:
        return Amount(most=bounds.least, is_open_above=not bounds.is_open_below)
    return Amount(least=bounds.most, is_open_below=not bounds.is_open_above)
