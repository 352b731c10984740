"""Understand a rule, or leave it. In: a sentence. Out: the checks it stands for; () if code cannot
decide it.

Strict about meaning: every word must have been read. A rule with anything more in it ("a score
field that reflects the client's mood") is not understood, for a wrong decision is worse than none.
"""

from functools import lru_cache

from stretto.validation.rules.checks import (
    ANY_ITEM,
    Check,
    Checks,
    Each,
    Name,
    NotEmpty,
    On,
    Whole,
)
from stretto.validation.rules.lexicon import (
    FIELD_WORDS,
    ITEMS,
    MODALS,
    WHOLE,
)
from stretto.validation.rules.nouns import as_field, kind, name, names, noun, take_determiner
from stretto.validation.rules.predicates import predicates
from stretto.validation.rules.reader import Reader, take_separator
from stretto.validation.rules.things import plain_thing, things
from stretto.validation.rules.tokens import sentences, tokenize

_EACH = ("each", "every", "each of the", "every one of the", "all", "all of the", "all the",
         "each individual", "each one of the")  # fmt: skip
_TAIL = ("in the output", "in the answer", "in the response", "in the result", "in its output",
         "at the top level", "overall", "in total")  # fmt: skip


@lru_cache(maxsize=4096)
def understand(rule: str) -> Checks:
    tokens = tokenize(rule)
    if tokens is None:
        return ()
    found = list[Check]()
    for words in sentences(tokens):
        reader = Reader(words)
        checks = _sentence(reader)
        reader.take(*_TAIL)
        if checks is None or not reader.is_done:
            return ()
        found += checks
    return tuple(found)


def _sentence(reader: Reader) -> Checks | None:
    first = reader.first(_for_each, _there, _about_each, _about_whole, _about_fields, _order)
    if first is None:
        return None
    more = reader.attempt(_and_more)
    return (*first, *more) if more else first


def _and_more(reader: Reader) -> Checks | None:
    """A second clause with a verb of its own. Without one it would belong to the first: "must not
    include a password field and a token field" asks for no token."""
    if not take_separator(reader):
        return None
    first = reader.first(_for_each, _there, _about_each, _about_whole, _about_fields)
    more = reader.attempt(_and_more) if first else None
    return (*first, *more) if first and more else first


def _for_each(reader: Reader) -> Checks | None:
    if not reader.take("for each", "for every"):
        return None
    what = noun(reader, is_plural=False)
    reader.take(",")
    checks = predicates(reader) if what else None
    return (Each(what, checks),) if what and checks else None


def _there(reader: Reader) -> Checks | None:
    if not reader.take(*(f"there {modal} be" for modal in MODALS), "there is", "there are"):
        return None
    return things(reader)


def _about_each(reader: Reader) -> Checks | None:
    """Each pain point must have …; every item in `findings` must …"""
    if not reader.take(*_EACH):
        return None
    what = _each_of_what(reader)
    checks = predicates(reader, needs_modal=True) if what else None
    return (Each(what, checks),) if what and checks else None


def _each_of_what(reader: Reader) -> Name | None:
    if not reader.take(*ITEMS):
        return noun(reader, is_plural=False)
    if not reader.take("in", "of"):
        return ANY_ITEM
    if reader.take("the output", "the answer", "the response", "the array", "the list"):
        return ANY_ITEM
    take_determiner(reader)
    found = name(reader)
    if found is not None:
        reader.take("array", "list", "field")
    return found


def _about_whole(reader: Reader) -> Checks | None:
    reader.take("the", "your", "the final", "final")
    word = reader.take(*WHOLE)
    if not word:
        return None
    reader.take("json", "output", "object", "text", "document", "itself")
    checks = predicates(reader, needs_modal=True)
    return (Whole(word, checks),) if checks else None


def _about_fields(reader: Reader) -> Checks | None:
    """score must be …; the `findings` array must …; a and b must …"""
    reader.take("the value of", "the values of", "value of")
    found = names(reader)
    if found is None:
        return None
    said: Checks = ()
    if reader.peek().low in FIELD_WORDS:
        reader.next()
        found = tuple(map(as_field, found))
    elif reader.peek().low in ("array", "object", "list"):
        word = kind(reader)
        said = (word,) if word else ()
    reader.take("value", "values")
    checks = predicates(reader, needs_modal=True)
    return tuple(On(name, (*said, *checks)) for name in found) if checks else None


def _order(reader: Reader) -> Checks | None:
    """No subject: "Must include …", "Include …", "At most 200 words", "A boolean passed field"."""
    checks = reader.attempt(predicates)
    if checks is not None:
        return checks
    if reader.take("not empty", "non-empty"):
        return (NotEmpty(),)
    found = reader.listed(plain_thing)
    return tuple(check for checks in found for check in checks) or None
