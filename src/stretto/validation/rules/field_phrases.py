"""Fields that a rule asks for. In: "a score field", "passed boolean". Out: checks, or None."""

from stretto.validation.rules.checks import Checks, HasFields, IsKind, Name, NotEmpty, On
from stretto.validation.rules.lexicon import (
    CALLED,
    COMPOUNDING,
    FIELD_WORDS,
    MODALS,
    NEGATIVES,
    NOT_BEFORE_A_NAME,
)
from stretto.validation.rules.nouns import as_field, kind, name, names, take_determiner, take_filled
from stretto.validation.rules.qualities import said_after_name
from stretto.validation.rules.reader import Reader


def listed_fields(reader: Reader) -> Checks | None:
    """the following fields: a, b and c; a field called x"""
    reader.take("all", "all of")
    take_determiner(reader)
    reader.take("following", "these")
    if reader.peek().low not in FIELD_WORDS:
        return None
    is_plain = reader.next().low == "fields" or bool(reader.take(*CALLED))
    reader.take(*CALLED)
    found = names(reader)
    # "key findings" and "property damage" are no fields called findings and damage.
    if found is None or not (is_plain or all(name.is_exact for name in found)):
        return None
    return (HasFields(tuple(map(as_field, found))),)


def fields(reader: Reader) -> Checks | None:
    """a score field; problem, impact and solution fields; a non-empty summary field"""
    is_filled = take_filled(reader)
    found = names(reader)
    if found is None or reader.peek().low not in FIELD_WORDS:
        return None
    reader.next()
    found = tuple(map(as_field, found))
    if is_filled:
        return tuple(On(name, (NotEmpty(),)) for name in found)
    if len(found) == 1:
        more = reader.attempt(said_after_name)
        return (On(found[0], more),) if more else (HasFields(found),)
    return (HasFields(found),)


def kinded(reader: Reader) -> Checks | None:
    """passed boolean; a boolean `passed` field; an array called findings; score (number)"""
    is_filled = take_filled(reader)
    found = reader.first(_name_then_kind, _kind_then_name, _name_in_brackets)
    if found is None:
        return None
    whose, which = found
    filled: Checks = (NotEmpty(),) if is_filled else ()
    more = reader.attempt(said_after_name) or ()
    return (On(as_field(whose), (which, *filled, *more)),)


def _name_then_kind(reader: Reader) -> tuple[Name, IsKind] | None:
    take_determiner(reader)
    whose = name(reader)
    word = reader.peek().low
    which = kind(reader)
    if whose is None or which is None:
        return None
    is_plural_list = word == "list" and whose.text.endswith("s")
    is_field = reader.peek().low in FIELD_WORDS
    if is_field:
        reader.next()
    if word in COMPOUNDING and not (whose.is_exact or is_plural_list or is_field):
        return None
    return whose, which


def _kind_then_name(reader: Reader) -> tuple[Name, IsKind] | None:
    take_determiner(reader)
    word = reader.peek().low
    which = kind(reader)
    if which is None:
        return None
    is_field = reader.peek().low in FIELD_WORDS
    if is_field:
        reader.next()
    is_called = bool(reader.take(*CALLED))
    whose = name(reader)
    if whose is None:
        return None
    if not is_field and reader.peek().low in FIELD_WORDS:
        reader.next()
        is_field = True
    if word in NOT_BEFORE_A_NAME and not (is_called or is_field or whose.is_exact):
        return None
    return whose, which


def _name_in_brackets(reader: Reader) -> tuple[Name, IsKind] | None:
    take_determiner(reader)
    whose = name(reader)
    if whose is None or not reader.take("(", "of type", "as", ":"):
        return None
    is_bracketed = reader.peek(-1).text == "("
    take_determiner(reader)
    which = kind(reader)
    if which is None or (is_bracketed and not reader.take(")")):
        return None
    return whose, which


def ranged(reader: Reader) -> Checks | None:
    """a score between 0 and 100; `overall_score` (1-10); the exact name of a field alone"""
    take_determiner(reader)
    token = reader.peek()
    whose = name(reader)
    if whose is None:
        return None
    more = reader.attempt(said_after_name)
    if more is not None:
        return (On(whose, more),)
    is_code = token.is_identifier or token.kind == "ticked"
    return (HasFields((whose,)),) if is_code and not begins_clause(reader) else None


def begins_clause(reader: Reader) -> bool:
    """Whether the name was the subject of what follows: "… and score must be a number"."""
    word = reader.peek().low
    return word in ("is", "are", "has", "value") or any(
        word == modal.partition(" ")[0] for modal in (*MODALS, *NEGATIVES)
    )
