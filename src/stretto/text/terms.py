"""The words of a text, as search and comparison see them. In: text. Out: terms, in its order.

Words are compared without case, accents, endings and words that say nothing: `Migrating the databases`
→ migr, databas. Text without blanks between its words (Chinese, Japanese) is taken in pairs of
characters.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from unicodedata import combining, normalize

_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_VOWEL = re.compile("[aeiouy]")
_MOST_CHARACTERS = 40  # of a word: what is longer is no word
_COMMON = """
    a about after again all also am an and any are as at be because been before being between both
    but by can could did do does doing don done down each else every few for from further get gets
    give given gives had has have having he her here hers him his how i if in into is it its itself
    just let like make makes many may me might more most much must my need needs no nor not now of
    off on once one only or other our out over own please same she should so some such than that the
    their them then there these they this those through to too two under until up upon us use used
    uses using very want was way we well were what when where whether which while who whom whose why
    will with without would write you your
"""
_SAYS_NOTHING = frozenset(_COMMON.split())


def terms(text: str) -> list[str]:
    """In the order of the text, repetitions kept."""
    folded = normalize("NFKD", text.casefold())
    plain = folded if folded.isascii() else "".join(c for c in folded if not combining(c))
    return [term for word in _WORD.findall(plain) for term in _of_word(word)]


def _of_word(word: str) -> Iterator[str]:
    if not word.isascii():
        # Composed again: in the decomposed form a Korean syllable is three letters.
        composed = normalize("NFKC", word)
        for run in _UNSPACED.findall(composed):
            yield from (run[i : i + 2] for i in range(max(1, len(run) - 1)))
        word = _UNSPACED.sub("", composed)
    if word and word not in _SAYS_NOTHING and len(word) <= _MOST_CHARACTERS:
        yield _stem(word)


@lru_cache(maxsize=20_000)
def _stem(word: str) -> str:
    if len(word) < 4 or not word.isascii() or word.isdigit():
        return word
    return _without_derivation(_without_inflection(_without_plural(word)))


def _without_plural(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _without_inflection(word: str) -> str:
    for ending in ("ing", "ed"):
        root = word.removesuffix(ending)
        if root != word and len(root) >= 3 and _VOWEL.search(root):
            is_doubled = root[-1] == root[-2] and root[-1] not in "lsz"
            return root[:-1] if is_doubled else root
    return word


def _without_derivation(word: str) -> str:
    for ending, least in (("ment", 4), ("ly", 4)):
        root = word.removesuffix(ending)
        if root != word and len(root) >= least:
            word = root
    if word.endswith(("tion", "sion")) and len(word) > 5:
        word = word[:-3]
    if word.endswith("e") and len(word) > 4:
        word = word[:-1]
    if word.endswith("at") and len(word) > 5:
        word = word[:-2]
    return word


def likeness(one: str, other: str) -> float:
    """How many of their words two texts share: 1 for all, 0 for none."""
    ours, theirs = set(terms(one)), set(terms(other))
    if not ours and not theirs:
        return float(one.split() == other.split())
    return len(ours & theirs) / len(ours | theirs)
