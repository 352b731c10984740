"""What a value must be. In: "between 0 and 100", "a non-empty array of strings". Out: checks, or None."""

from stretto.validation.rules.amounts import amount
from stretto.validation.rules.checks import (
    ANY_ITEM,
    Amount,
    Between,
    Checks,
    CountOf,
    IsJson,
    IsKind,
    IsOneOf,
    LengthOf,
    NotEmpty,
    Unit,
)
from stretto.validation.rules.lexicon import ITEMS, UNITS
from stretto.validation.rules.nouns import kind, take_determiner
from stretto.validation.rules.reader import Reader

EMPTY = ("empty", "blank", "empty or null", "null or empty", "left empty", "left blank",
         "an empty array", "an empty list", "an empty string", "an empty object")  # fmt: skip
_SIGNED = {
    "positive": Amount(least=0, is_open_below=True),
    "negative": Amount(most=0, is_open_above=True),
    "non-negative": Amount(least=0),
}


def is_quality(reader: Reader) -> Checks | None:
    return reader.first(_json, _filled, _truth, _one_of, _kind, _signed, _bounds)


def _json(reader: Reader) -> Checks | None:
    take_determiner(reader)
    reader.take("in", "formatted as", "returned as", "parseable as", "parsable as")
    reader.take("valid", "well-formed")
    if not reader.take("json"):
        return None
    if reader.take("format", "only"):
        return (IsJson(),)
    which = kind(reader)
    return (which or IsJson(),)


def _filled(reader: Reader) -> Checks | None:
    return (NotEmpty(),) if reader.take("non-empty", "nonempty", "filled in", "filled") else None


def _truth(reader: Reader) -> Checks | None:
    reader.take("set to")
    word = reader.take("true or false", "either true or false", "true", "false")
    if not word:
        return None
    return (IsKind("boolean"),) if " " in word else (IsOneOf((word == "true",)),)


def _one_of(reader: Reader) -> Checks | None:
    """one of hot, warm or cold; either "yes" or "no" """
    is_said = bool(reader.take("one of", "one of the following", "either", "exactly one of"))
    reader.take("the following", "the values", "these values")
    reader.take(":", "values :")
    values = list[str]()
    while True:
        token = reader.peek()
        is_value = token.kind in ("quoted", "ticked") or (is_said and token.kind == "word")
        if not is_value or token.low in ("and", "or", "the"):
            break
        values.append(reader.next().text)
        if not reader.take(", or", ", and", ",", "or"):
            break
    return (IsOneOf(tuple(values)),) if len(values) > 1 else None


def _kind(reader: Reader) -> Checks | None:
    """a number; a non-empty array of strings; an integer from 1 to 10"""
    take_determiner(reader)
    is_filled = bool(reader.take("non-empty", "nonempty"))
    reader.take("json")
    sign = _SIGNED.get(reader.take(*_SIGNED))
    found = kind(reader)
    if found is None:
        return None
    reader.take("value")
    bounds = None
    if found.kind in ("number", "integer"):
        bounds = reader.attempt(_number_bounds)
    filled: Checks = (NotEmpty(),) if is_filled else ()
    signed: Checks = (Between(sign),) if sign else ()
    return found, *filled, *signed, *(bounds or ())


def _number_bounds(reader: Reader) -> Checks | None:
    found = amount(reader)
    return None if found is None or found.is_bare else (Between(found),)


def _signed(reader: Reader) -> Checks | None:
    sign = _SIGNED.get(reader.take(*_SIGNED))
    return (Between(sign),) if sign else None


def _bounds(reader: Reader) -> Checks | None:
    """at least 7; between 0 and 1; no longer than 200 words; 3 sentences long"""
    found = amount(reader)
    if found is None:
        return None
    unit = reader.take(*UNITS)
    if unit:
        return length(reader, UNITS[unit], found)
    if reader.take(*ITEMS):
        reader.take("long")
        return (CountOf(ANY_ITEM, found),)
    return (Between(found),)


def length(reader: Reader, unit: Unit, how_many: Amount) -> Checks | None:
    reader.take("long", "in length", "in total", "total")
    # "200 words" is never meant to the word.
    is_loose = how_many.is_bare and unit in ("words", "characters")
    return None if is_loose else (LengthOf(unit, how_many),)


def said_after_name(reader: Reader) -> Checks | None:
    """What is said of a field right after its name: "between 0 and 1", "that is a number"."""
    if reader.take("("):
        inner = is_quality(reader)
        return inner if inner and reader.take(")") else None
    if reader.take("that is", "which is", "that must be", "which must be", "of type"):
        return is_quality(reader)
    reader.take("with a value", "with value", "with values")
    bounds = amount(reader)
    return None if bounds is None or bounds.is_bare else (Between(bounds),)
