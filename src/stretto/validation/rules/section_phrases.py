"""Sections that a rule asks for. In: "a Summary section". Out: checks, or None."""

import re

from stretto.validation.rules.checks import Checks, HasSections
from stretto.validation.rules.lexicon import CALLED, NOT_NAMES, NOUN_MODIFIERS
from stretto.validation.rules.nouns import name, take_determiner
from stretto.validation.rules.reader import Reader

_SECTIONS = ("section", "sections", "heading", "headings")
_TITLE_WORD = re.compile(r"[A-Z][\w'-]*")


def sections(reader: Reader) -> Checks | None:
    """a Summary section; sections called Scope, Timeline and Next Steps"""
    before = reader.attempt(_sections_after_titles)
    if before is not None:
        return before
    take_determiner(reader)
    reader.take("following")
    if not reader.take(*_SECTIONS) or not reader.take(*CALLED):
        return None
    titles = reader.listed(_title)
    return (HasSections(tuple(titles)),) if titles else None


def _sections_after_titles(reader: Reader) -> Checks | None:
    titles = reader.listed(_title)
    return (HasSections(tuple(titles)),) if titles and reader.take(*_SECTIONS) else None


def _title(reader: Reader) -> str | None:
    """Quoted, Capitalised Words, or one plain noun: "a detailed summary section" is none."""
    take_determiner(reader)
    token = reader.peek()
    if token.kind in ("quoted", "ticked"):
        return reader.next().text
    words = list[str]()
    while _TITLE_WORD.fullmatch(reader.peek().text) or (
        words
        and reader.peek().low in ("and", "of", "to", "the", "for")
        and _TITLE_WORD.fullmatch(reader.peek(1).text)
    ):
        # A title may hold "and", but "Scope and Timeline sections" are two of them.
        if reader.peek().low == "and":
            break
        words.append(reader.next().text)
    if words:
        return " ".join(words)
    found = name(reader)
    if found is None or found.text.lower() in NOT_NAMES:
        return None
    *modifiers, _ = found.text.lower().split(" ")
    return found.text if all(word in NOUN_MODIFIERS for word in modifiers) else None
