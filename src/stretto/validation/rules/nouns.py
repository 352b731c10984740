"""Names and kinds. In: "a `score` field", "pain points", "an array of strings". Out: Name, IsKind."""

import re
from dataclasses import replace

from stretto.validation.rules.checks import IsKind, Name
from stretto.validation.rules.lexicon import (
    FIELD_WORDS,
    ITEMS,
    KINDS,
    NOT_NAMES,
    NOUN_MODIFIERS,
    UNITS,
)
from stretto.validation.rules.reader import Reader

_MOST_WORDS = 4
_FIELD_NAME = re.compile(r"[\w$@][\w$@ .-]{0,79}")
_PLAIN_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_PLURALS = {"people", "children", "criteria", "men", "women", "phenomena"}


def take_determiner(reader: Reader) -> bool:
    if _is_letter(reader):
        return False
    return bool(reader.take("a", "an", "the", "its", "their", "both", "both the", "both a"))


def take_filled(reader: Reader) -> bool:
    return bool(
        reader.take(*(f"{word}non-empty" for word in ("a ", "an ", "the ", "")), "nonempty")
    )


def _is_letter(reader: Reader) -> bool:
    """The "a" of "a, b and c fields" is a name."""
    following = reader.peek(1)
    ends = following.kind == "sign" or following.low == "and"
    return reader.peek().low == "a" and ends and len(following.text) > 0


def name(reader: Reader) -> Name | None:
    """A field's name, quoted or not, of up to four words."""
    token = reader.peek()
    if token.kind in ("ticked", "quoted") or token.is_identifier:
        reader.next()
        if not _FIELD_NAME.fullmatch(token.text):
            return None
        return Name(token.text, is_exact=True, is_field=token.is_identifier)
    words = list[str]()
    while len(words) < _MOST_WORDS and _is_name_word(reader):
        words.append(reader.next().text)
    return Name(" ".join(words)) if words else None


def _is_name_word(reader: Reader) -> bool:
    token = reader.peek()
    if token.kind != "word" or token.is_identifier or not _PLAIN_WORD.fullmatch(token.text):
        return False
    # "a key field" is no field called key, but key findings are called so.
    if token.low == "key":
        following = reader.peek(1)
        return following.kind == "word" and following.low not in {*FIELD_WORDS, *KINDS, "and"}
    return _is_letter(reader) or (token.low not in NOT_NAMES and token.low not in KINDS)


def names(reader: Reader) -> tuple[Name, ...] | None:
    return tuple(reader.listed(_name_with_article)) or None


def _name_with_article(reader: Reader) -> Name | None:
    take_determiner(reader)
    return name(reader)


def as_field(name: Name) -> Name:
    return replace(name, is_field=True)


def noun(reader: Reader, is_plural: bool) -> Name | None:
    """What is counted: a name, or a noun with nothing before it that makes a claim."""
    found = name(reader)
    if found is None or found.is_exact:
        return found
    *modifiers, head = found.text.lower().split(" ")
    if head in UNITS or head in ITEMS or not all(word in NOUN_MODIFIERS for word in modifiers):
        return None
    if is_plural and not (head.endswith("s") or head in _PLURALS):
        return None
    return Name(found.text)


def kind(reader: Reader) -> IsKind | None:
    """A kind, and of an array what its elements are."""
    if reader.take("whole number"):
        return IsKind("integer")
    if reader.take("true or false", "true or false value", "boolean value", "boolean flag"):
        return IsKind("boolean")
    word = reader.peek().low
    if word not in KINDS:
        return None
    reader.next()
    found = KINDS[word]
    if found == "array" and reader.peek().low == "of" and reader.peek(1).low in KINDS:
        plural = reader.peek(1).low
        if plural.endswith("s"):
            reader.next(), reader.next()
            return IsKind("array", KINDS[plural])
    return IsKind(found)
