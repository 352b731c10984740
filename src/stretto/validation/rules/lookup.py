"""Find what a rule names. In: JSON and a Name. Out: the key, the list, or nothing."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from stretto.validation.rules.checks import ANY_ITEM, Name
from stretto.validation.rules.lexicon import ADJECTIVE_ENDINGS, NOUN_MODIFIERS
from stretto.vocabulary.values import Json

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD = re.compile(r"[^\W_]+")
_DEEPEST = 8
_MOST_KEYS = 10_000
_IRREGULAR = {"people": "person", "children": "child", "criteria": "criterion", "men": "man",
              "women": "woman", "phenomena": "phenomenon"}  # fmt: skip


@lru_cache(maxsize=4096)
def words_of(text: str) -> tuple[str, ...]:
    """companyOverview, company_overview and "Company Overview" are the same words."""
    return tuple(_WORD.findall(_CAMEL.sub(" ", text[:200]).lower()))


def find_key(fields: Mapping[str, Json], name: Name) -> str | None:
    if name.text in fields:
        return name.text
    # A plain lower-case word is a name as good as any: Problem is not problem.
    if name.is_exact or (name.text.islower() and " " not in name.text):
        return None
    alike = [key for key in fields if words_of(key) == words_of(name.text)]
    return alike[0] if len(alike) == 1 else None


def near_key(fields: Mapping[str, Json], name: Name) -> str | None:
    """A key that was probably meant to be this one."""
    return next((key for key in fields if are_alike(key, name.text)), None)


def is_sure(name: Name) -> bool:
    """Whether these words can only be a name: "descriptive field" may be a field of any name."""
    if name.is_exact:
        return True
    *modifiers, head = name.text.lower().split(" ")
    is_adjective = head.endswith(ADJECTIVE_ENDINGS) and not modifiers
    return not is_adjective and all(word in NOUN_MODIFIERS for word in modifiers)


def is_hinted(value: Json, name: Name) -> bool:
    """Whether some key, however deep, has all of these words in it."""
    wanted = [_variants(word) for word in words_of(name.text)]
    return any(
        all(any(form & _variants(word) for word in words_of(key)) for form in wanted)
        for key in _keys(value)
    )


def has_list(value: Json) -> bool:
    return any(isinstance(inner, list) for inner in _values(value))


def find_list(value: Json, noun: Name) -> list[Json] | None:
    """The list that the noun names, if there is no doubt which one that is."""
    if isinstance(value, list):
        return None if _is_inside_elements(value, noun) else value
    if not isinstance(value, dict):
        return None
    if noun == ANY_ITEM:
        lists = [inner for inner in value.values() if isinstance(inner, list)]
        return lists[0] if len(lists) == 1 else None
    level = [value]
    for _ in range(3):
        found = [
            inner
            for fields in level
            for key, inner in fields.items()
            if are_alike(key, noun.text) and isinstance(inner, list)
        ]
        if found:
            return found[0] if len(found) == 1 else None
        level = [inner for fields in level for inner in fields.values() if isinstance(inner, dict)]
    return None


def _is_inside_elements(elements: list[Json], noun: Name) -> bool:
    # "at least 3 sources" of a list of claims that each have sources.
    return any(
        are_alike(key, noun.text)
        for element in elements
        if isinstance(element, dict)
        for key, inner in element.items()
        if isinstance(inner, list)
    )


def are_alike(one: str, other: str) -> bool:
    """The same words, the last of them in singular or plural."""
    a, b = words_of(one), words_of(other)
    if not a or not b or a[:-1] != b[:-1]:
        return False
    return bool(_variants(a[-1]) & _variants(b[-1]))


@lru_cache(maxsize=4096)
def _variants(word: str) -> frozenset[str]:
    """What its singular may be: responses may come from response or respons, and one will fit."""
    forms = {word, _IRREGULAR.get(word, word)}
    if word.endswith("ies"):
        forms.add(word[:-3] + "y")
    if word.endswith("es"):
        forms |= {word[:-2], word[:-2] + "is"}
    if word.endswith("s") and not word.endswith("ss"):
        forms.add(word[:-1])
    return frozenset(forms)


def _keys(value: Json) -> Iterator[str]:
    for inner in _values(value):
        if isinstance(inner, dict):
            yield from inner


def _values(value: Json) -> Iterator[Json]:
    """It and all that is in it, as far as is worth looking."""
    level, seen = [value], 0
    for _ in range(_DEEPEST):
        following = list[Json]()
        for inner in level:
            seen += 1
            if seen > _MOST_KEYS:
                return
            yield inner
            if isinstance(inner, dict):
                following += inner.values()
            elif isinstance(inner, list):
                following += inner
        level = following
