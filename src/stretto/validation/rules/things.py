"""What an answer must include. In: "a score field and at least 3 findings". Out: checks, or None.

Each form either reads its words to the end or leaves them: what follows a thing and belongs to no
form ("a severity that is justified") makes the whole rule one that code does not understand.
"""

from stretto.validation.rules.amounts import amount
from stretto.validation.rules.checks import (
    ANY_ITEM,
    Amount,
    Checks,
    CountOf,
    Each,
    IsJson,
    Mentions,
    Name,
)
from stretto.validation.rules.field_phrases import (
    begins_clause,
    fields,
    kinded,
    listed_fields,
    ranged,
)
from stretto.validation.rules.lexicon import ITEMS, NOUN_MODIFIERS, UNITS
from stretto.validation.rules.nouns import name, noun, take_determiner, take_filled
from stretto.validation.rules.qualities import length
from stretto.validation.rules.reader import Reader
from stretto.validation.rules.section_phrases import sections


def things(reader: Reader) -> Checks | None:
    found = reader.listed(thing)
    return tuple(check for checks in found for check in checks) or None


def thing(reader: Reader) -> Checks | None:
    return plain_thing(reader) or reader.attempt(bare)


def plain_thing(reader: Reader) -> Checks | None:
    """What is understood even where no verb says "include"."""
    return reader.first(
        json_itself, counted, listed_fields, fields, sections, kinded, listing, ranged
    )


def json_itself(reader: Reader) -> Checks | None:
    reader.take("valid", "well-formed", "only", "only valid")
    if not reader.take("json"):
        return None
    reader.take("only")
    return (IsJson(),)


def counted(reader: Reader) -> Checks | None:
    """at least 3 findings; exactly five bullet points; 2 sources, each with a `url` field"""
    how_many = amount(reader)
    if how_many is None:
        return None
    unit = reader.take(*UNITS)
    if unit:
        return length(reader, UNITS[unit], how_many)
    if reader.take(*ITEMS):
        counts = ANY_ITEM
    else:
        found = noun(reader, is_plural=how_many.most != 1 and how_many.least != 1)
        if found is None:
            return None
        counts = found
    reader.take("in total", "in the list", "in the array")
    return CountOf(counts, how_many), *_of_each(reader, counts)


def _of_each(reader: Reader, counts: Name) -> Checks:
    inner = reader.attempt(_each_with)
    return (Each(counts, inner),) if inner else ()


def _each_with(reader: Reader) -> Checks | None:
    reader.take(",")
    return things(reader) if reader.take("each with", "each having", "each containing") else None


def listing(reader: Reader) -> Checks | None:
    """an array of findings; a list of at least 3 findings"""
    is_filled = take_filled(reader)
    take_determiner(reader)
    if not reader.take("array of", "list of"):
        return None
    exact = reader.attempt(counted)
    if exact is not None:
        return exact
    found = noun(reader, is_plural=True)
    if found is None:
        return None
    return (CountOf(found, Amount(least=1 if is_filled else 0)),)


def bare(reader: Reader) -> Checks | None:
    """a summary: nothing says that it is a field, so only a field of that name settles it"""
    take_determiner(reader)
    whose = name(reader)
    if whose is None:
        return None
    *modifiers, _ = whose.text.lower().split(" ")
    if not whose.is_exact and not all(word in NOUN_MODIFIERS for word in modifiers):
        return None
    return None if begins_clause(reader) else (Mentions((whose,)),)
