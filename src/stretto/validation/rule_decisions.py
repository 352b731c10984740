"""Decide whether an answer meets a rule, wherever code cannot be wrong about it.

A near miss is never a failure: another letter case, a plural, a field that lies deeper, a list of
another name, a number in quotes. Those are undecided, and a judge reads them.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import islice
from typing import Literal, assert_never
from unicodedata import category

from stretto.templates.json_text import kind_of, read_json
from stretto.templates.likeness import spelled_number, spelled_truth
from stretto.text.short import list_names, show_json
from stretto.validation import rules as r
from stretto.vocabulary.json_value import Json

_BRACKETED = re.compile(r"(?s)\s*[\[{].*[\]}]\s*")
_MOST_VALUES = 20_000  # of an answer that are looked at


@dataclass(frozen=True, slots=True)
class RuleDecision:
    status: Literal["passed", "failed", "undecided"]
    reasons: tuple[str, ...] = ()  # of a failure


PASSED, UNDECIDED = RuleDecision("passed"), RuleDecision("undecided")


def decide(rule: str, answer: Json) -> RuleDecision:
    rules, value = r.understand(rule), _read_text(answer)
    is_small = sum(1 for _ in islice(_values(value), _MOST_VALUES)) < _MOST_VALUES
    return _decide_all(rules, _Place(value, "")) if rules and is_small else UNDECIDED


@dataclass(frozen=True, slots=True)
class _Place:
    value: Json
    path: str  # empty: the answer itself

    @property
    def name(self) -> str:
        return f"`{self.path[:200]}`" if self.path else "the answer"

    def fails(self, wanted: str) -> RuleDecision:
        return RuleDecision("failed", (f"{self.name} {wanted}",))


def _read_text(answer: Json) -> Json:
    """The JSON of a text, if it is all of the text or its only fence; else it may be an example."""
    if isinstance(answer, str) and (_BRACKETED.fullmatch(answer) or answer.count("```") == 2):
        found = read_json(answer)
        return found if isinstance(found, dict | list) else answer
    return answer


def _decide_all(rules: r.Rules, place: _Place) -> RuleDecision:
    return _all_of(_decide(rule, place) for rule in rules)


def _all_of(decisions: Iterable[RuleDecision]) -> RuleDecision:
    """One failure is a failure of the whole, even where other parts are undecided."""
    made = list(decisions)
    reasons = [reason for decision in made for reason in decision.reasons]
    if reasons:
        return RuleDecision("failed", tuple(dict.fromkeys(reasons))[:5])
    return UNDECIDED if UNDECIDED in made else PASSED


def _decide(rule: r.Rule, place: _Place) -> RuleDecision:
    match rule:
        case r.KindRule(kind):
            return _is_kind(kind, place)
        case r.RangeRule(range, ""):
            return _is_in_range(range, place)
        case r.RangeRule(range, unit):
            return _has_length(range, unit, place)
        case r.CountRule():
            return _has_count(rule, place)
        case r.NotEmptyRule():
            return _is_filled(place)
        case r.FieldRule():
            return _field_meets(rule, place)
        case r.EachRule():
            return _each_meets(rule, place)
        case _:
            assert_never(rule)


def _field_meets(rule: r.FieldRule, place: _Place) -> RuleDecision:
    value = place.value
    whole = _decide_all(rule.rules, place) if rule.about == "answer or field" else UNDECIDED
    key = _find_key(value, rule.name) if isinstance(value, dict) else None
    if key is None or not isinstance(value, dict):
        return _missing(rule, place) if rule.about == "required field" else whole
    field = _Place(value[key], f"{place.path}.{key[:60]}".removeprefix("."))
    decision = _decide_all(rule.rules, field)
    if whole != UNDECIDED and whole.status != decision.status:
        return UNDECIDED
    is_measured = any(isinstance(each, r.RangeRule) for each in rule.rules)
    # "score must be …" may mean the scores further down as well.
    is_elsewhere = sum(are_alike(each, rule.name.text) for each, _ in _pairs(value)) > 1
    return UNDECIDED if decision == PASSED and is_measured and is_elsewhere else decision


def _missing(rule: r.FieldRule, place: _Place) -> RuleDecision:
    name, value = rule.name, place.value
    kinds = [each.kind for each in rule.rules if isinstance(each, r.KindRule)]
    # "a sorted array" may have any name; an answer without arrays has none of any name.
    is_vague = not name.is_exact and (" " in name.text or name.text.endswith(_ADJECTIVES))
    is_possible = not kinds or any(_fits(kinds[0], each) for each in _values(value))
    # A list may be what the rule calls by that name; a text may say it under a heading.
    may_be = isinstance(value, list) or (not place.path and not isinstance(value, dict))
    # A text such as "high: fire" may hold what the rule asks for.
    may_be = may_be or (isinstance(value, str) and not value.strip().isalnum())
    is_otherwise = may_be and not name.is_exact
    if (is_vague and is_possible) or is_otherwise or _is_hinted(value, name):
        return UNDECIDED
    if isinstance(value, dict):
        has = list_names(list(value)) if value else "no fields"
        reason = f"the field '{name.text}' is missing in {place.name}, which has {has}"
        return RuleDecision("failed", (reason,))
    return place.fails(f"is {kind_of(value)}: it must be an object with the field '{name.text}'")


def _each_meets(rule: r.EachRule, place: _Place) -> RuleDecision:
    elements = _find_list(rule.noun, place, is_answer=True)
    if elements is None or elements == place.value == []:
        return UNDECIDED
    called = "_".join(_words(rule.noun.text)) if rule.noun else "element"
    places = (_Place(each, f"{called}[{index}]") for index, each in enumerate(elements))
    made = [_decide_all(rule.rules, each) for each in places]
    decision = _all_of(made)
    # A summary among the elements is none of the things that the rule speaks of.
    is_mixed = PASSED in made and not _are_alike_in_kind(elements)
    return UNDECIDED if decision.status == "failed" and is_mixed else decision


_ADJECTIVES = ("ful", "ous", "ive", "able", "ible", "less", "ish", "al", "ic", "ly", "ed", "ing")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD = re.compile(r"[^\W_]+")
# Words that may stand before a boolean's name.
_ASKING = ("is", "are", "was", "has", "have", "can", "should", "did", "does")
_PLURALS = (("s", ""), ("es", ""), ("es", "is"), ("ies", "y"))
_IRREGULAR = {"people": "person", "children": "child", "criteria": "criterion"}


def _find_key(fields: dict[str, Json], name: r.FieldName) -> str | None:
    if name.text in fields:
        return name.text
    # A plain lower-case word is a name as good as any, and Problem is not problem.
    if name.is_exact or (name.text.islower() and " " not in name.text):
        return None
    alike = [key for key in fields if _words(key) == _words(name.text)]
    return alike[0] if len(alike) == 1 else None


def _is_hinted(value: Json, name: r.FieldName) -> bool:
    """Whether something in the answer may be what the rule means, spelt or placed differently:
    `{overall: {score: 7}}`, `{name: score, value: 7}`, `scores`, `scroe`."""
    keys = [key for key, _ in _pairs(value)]
    texts = [each for each in _values(value) if isinstance(each, str)]
    if any(_has_words(text, name.text) for text in (" ".join(keys), *texts)):
        return True
    words = _words(name.text)
    if words[:1] and words[0] in _ASKING and any(_words(key) == words[1:] for key in keys):
        return True
    wanted = "".join(words)
    return any(_is_close("".join(_words(k)), wanted) or _is_short(k, name.text) for k in keys)


def _is_close(one: str, other: str) -> bool:
    """A slip of the pen, or another form of the same word."""
    shorter = min(len(one), len(other))
    if shorter < 4 or abs(len(one) - len(other)) > 3:
        return False
    likeness = SequenceMatcher(None, one, other)
    return one[:4] == other[:4] or (likeness.quick_ratio() > 0.8 and likeness.ratio() > 0.8)


def _is_short(one: str, other: str) -> bool:
    """Whether one is a short form of the other: ok, okay; info, information."""
    a, b = _words(one), _words(other)
    shorter, longer = sorted((a[0], b[0]), key=len) if len(a) == len(b) == 1 else ("", "")
    return len(shorter) > 1 and longer.startswith(shorter)


def _has_words(text: str, wanted: str) -> bool:
    words = frozenset[str]().union(*map(_variants, _words(text)))
    return all(words & _variants(word) for word in _words(wanted))


def _is_compound(text: str, noun: str) -> bool:
    """Whether the text ends in a word that ends in the noun: nicknames are names."""
    tails = tuple(_variants(noun.lower())) if noun.isalpha() else ()
    return any(word.endswith(tails) for word in _words(text)[-1:])


def are_alike(one: str, other: str) -> bool:
    """The same words, the last of them in singular or plural."""
    a, b = _words(one), _words(other)
    return bool(a and b and a[:-1] == b[:-1] and _variants(a[-1]) & _variants(b[-1]))


def _words(text: str) -> tuple[str, ...]:
    """companyOverview, company_overview and "Company Overview" are the same words."""
    # A cache of whole answers would keep them in memory.
    return _known_words(text) if len(text) <= 200 else _split_words(text[:20_000])


def _split_words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(_CAMEL.sub(" ", text).lower()))


_known_words = lru_cache(maxsize=4096)(_split_words)


@lru_cache(maxsize=4096)
def _variants(word: str) -> frozenset[str]:
    """What its singular may be: responses may come from response or respons, and one will fit."""
    ends = [(end, new) for end, new in _PLURALS if word.endswith(end) and not word.endswith("ss")]
    singulars = (word.removesuffix(end) + new for end, new in ends)
    return frozenset({word, _IRREGULAR.get(word, word), *singulars})


def _values(value: Json) -> Iterator[Json]:
    """The value and all that is in it."""
    waiting = [value]
    for each in waiting:  # which grows meanwhile
        yield each
        inside = each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
        waiting += inside


def _pairs(value: Json) -> list[tuple[str, Json]]:
    """Every field of every object in it."""
    objects = (each for each in _values(value) if isinstance(each, dict))
    return [pair for each in objects for pair in each.items()]


def _find_list(noun: r.FieldName | None, place: _Place, *, is_answer: bool) -> list[Json] | None:
    """The list that a noun names, if there is no doubt which one that is."""
    value = place.value
    if noun is None and place.path:
        return value if isinstance(value, list) else None
    noun = noun or r.FieldName("items")
    pairs = _pairs(value)
    # {"risks": […], "other_risks": […], "subrisks": […]} leaves open which are meant.
    lists = [(k, v) for k, v in pairs if isinstance(v, dict | list)]
    related = [(k, v) for k, v in lists if _has_words(k, noun.text) or _is_compound(k, noun.text)]
    if isinstance(value, list):
        # Its elements may be groups of what is counted.
        groups = (inner for _, inner in pairs if isinstance(inner, list))
        is_flat = not any(isinstance(each, dict) for group in groups for each in group)
        return value if is_answer and is_flat and not related else None
    key, found = related[0] if len(related) == 1 else ("", None)
    return found if isinstance(found, list) and are_alike(key, noun.text) else None


def _are_alike_in_kind(elements: list[Json]) -> bool:
    objects = [each for each in elements if isinstance(each, dict)]
    if objects:
        return len(objects) == len(elements) and bool(set(objects[0]).intersection(*objects))
    return len({isinstance(each, str) for each in elements}) <= 1


_KINDS: dict[r.JsonKind, tuple[str, tuple[type, ...]]] = {
    "boolean": ("true or false", (bool,)), "array": ("an array", (list,)),
    "number": ("a number", (int, float)), "integer": ("a whole number", (int, float)),
    "string": ("text", (str,)), "object": ("an object", (dict,)),
}  # fmt: skip
_PLACEHOLDERS = (
    "n/a", "na", "none", "null", "nil", "tbd", "todo", "empty", "undefined", "nothing", "unknown",
    "not available", "not applicable", "keine", "kein", "nichts", "aucun", "rien",
    "ninguno", "nada", "nessuno", "niente", "нет", "无", "なし",
)  # fmt: skip
_NONE = re.compile(r"(?i)(?:no|none|nothing|not|keine?|aucune?|ningun[ao]?|nessun[ao]?)\b")
_INVISIBLE = dict.fromkeys(
    map(ord, "\ufeff\u200b\u200c\u200d\u2060\u00ad\x00\u3164\u115f\u1160\uffa0\u2800")
)
# Between the things that one element of a list may name.
_SEPARATOR = re.compile(r"[,;/|&•·→\n]|(?i:\s(?:and|und|et|y|e|plus)\s)|\d[.)]\s")
# What such a list may begin or end with, and which is none of its elements.
_ASIDE = re.compile(
    r"(?i)(?:intro\w*|summary|overview|note|total|conclusion|here (?:is|are))\b|.*:\s*$"
)
# Scripts that put no blanks between words.
_UNSPACED = re.compile(
    "[぀-ヿ㐀-鿿豈-﫿\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\U00020000-\U0003ffff]"
)
_JOINT = re.compile(r"(?<=\w)[^\w\s](?=\w)")
_NUMERAL = re.compile(rf"(?i)\d|\b(?:zero|{'|'.join(r.NUMBER_WORDS)}|eleven|twelve|\w+teen|\w+ty|hundred|thousand|million|billion|half|dozen)\b")  # fmt: skip
# Marks of HTML and the targets of links, which a reader does not see.
_UNSEEN = re.compile(r"<[^<>]{1,200}>|(?<=\])\([^()\s]{1,500}\)")


def _is_kind(kind: r.JsonKind, place: _Place) -> RuleDecision:
    if _fits(kind, place.value):
        return PASSED
    # JSON may stand somewhere in an answer, and "85" or "true" means the value that it spells.
    if isinstance(place.value, str) and (not place.path or _spells(kind, place.value)):
        return UNDECIDED
    is_now = f"{kind_of(place.value)}: {show_json(place.value)}"
    return place.fails(f"must be {_KINDS[kind][0]}, but is {is_now}")


def _fits(kind: r.JsonKind, value: Json) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    is_part = kind == "integer" and isinstance(value, float) and not value.is_integer()
    return isinstance(value, _KINDS[kind][1]) and not is_part


def _spells(kind: r.JsonKind, text: str) -> bool:
    # "3,5", "50%" and "three" are numbers to a reader.
    if kind in ("number", "integer") and _NUMERAL.search(text):
        return True
    value = _read_text(text) if kind in ("array", "object") else spelled_truth(text)
    return _fits(kind, spelled_number(text) if value is None else value)


def _is_in_range(range: r.RuleRange, place: _Place) -> RuleDecision:
    value = place.value
    if isinstance(value, str | list | dict | bool):
        return UNDECIDED  # "85", "85%", true, a list whose length or elements may be meant
    if value is not None and range.holds(value):
        return PASSED
    return place.fails(f"must be {range}, but is {show_json(value)}")


def _is_filled(place: _Place) -> RuleDecision:
    value = place.value
    if isinstance(value, str):
        value = value.translate(_INVISIBLE).strip()
    if value in (None, "", [], {}):
        return place.fails("must not be empty")
    # {"findings": []} is an object with a field, and may still be what the rule calls empty.
    # Whether 0 or false says anything depends on the question.
    return PASSED if value not in (0,) and _is_telling(value) else UNDECIDED


def _is_telling(value: Json) -> bool:
    """Whether anything in it says something."""
    said = (
        _UNSEEN.sub("", str(each)).translate(_INVISIBLE).strip().lower().rstrip(".!")
        for each in _values(value)
        if not isinstance(each, dict | list) and each is not None
    )
    return any(any(map(str.isalnum, each)) and each not in _PLACEHOLDERS for each in said)


def _has_length(range: r.RuleRange, unit: str, place: _Place) -> RuleDecision:
    text = place.value
    if not isinstance(text, str) or "<think" in text or _UNSPACED.search(text):
        return UNDECIDED
    fewest, most = _count(text, unit)
    if range.holds(fewest) and range.holds(most):
        return PASSED
    if any(map(range.holds, (fewest, most))) or fewest < range.least <= most:
        return UNDECIDED
    counted = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    return place.fails(f"must have {range} {unit}, but has {counted}")


def _count(text: str, unit: str) -> tuple[int, int]:
    """The fewest and the most that a person may count. Well-known is one word or two, a number or
    a link may be none; an emoji or a line end may be one character or several."""
    least = _UNSEEN.sub("", text)
    if unit == "characters":
        shown = (category(char) for char in least.strip().replace("\r\n", "\n"))
        fewest = sum(each not in ("Mn", "Me", "Cf", "Sk", "Cs") for each in shown)
        # Whether the marks of Markdown count depends on who looks.
        fewest -= sum(least.count(mark) for mark in "*_`#~[]")
        return fewest, len(text.encode("utf-16-le", "surrogatepass")) // 2
    words = [word for word in text.split() if any(map(str.isalnum, word))]
    fewest = sum(any(map(str.isalpha, word)) and "://" not in word for word in least.split())
    return fewest, len(words) + sum(len(_JOINT.findall(word)) for word in words)


def _may_be_another_number(element: Json) -> bool:
    """An empty element, or "none found", may be none of the things that are counted; a list, lines or
    a group, several."""
    if isinstance(element, str):
        is_none = _NONE.match(_without_marks(element)) and len(element.split()) <= 4
        is_several = any(mark in element.strip() for mark in ("\n", "\r", ";"))
        return bool(is_none) or is_several or _is_placeholder(element)
    if isinstance(element, dict) and element:
        is_group = any(
            isinstance(element.get(name), list) for name in ("items", "entries", "elements")
        )
        return is_group or all(_is_placeholder(each) for each in element.values())
    return element in (None, {}) or isinstance(element, list)


def _is_placeholder(value: Json) -> bool:
    if isinstance(value, str):
        return _without_marks(value).lower() in ("", *_PLACEHOLDERS)
    return value in (None, [], {})


def _without_marks(text: str) -> str:
    """`(none)`, `*n/a*` and `—` say as little as the words alone."""
    return text.translate(_INVISIBLE).strip(" \t\r\n\"'`.!()[]{}<>*_~-–—")


def _has_count(rule: r.CountRule, place: _Place) -> RuleDecision:
    elements = _find_list(rule.noun, place, is_answer=rule.is_answer)
    is_doubtful = any(map(_may_be_another_number, elements or ()))
    if elements is None or is_doubtful or not _are_alike_in_kind(elements):
        return UNDECIDED
    texts = [each.strip().lower() for each in elements if isinstance(each, str)]
    distinct = len(elements) - len(texts) + len(set(texts))  # the same one twice may be one
    if rule.range.holds(len(elements)):
        return PASSED if rule.range.holds(distinct) else UNDECIDED
    is_few = len(elements) < rule.range.least
    if rule.range.holds(distinct) or any(map((_SEPARATOR if is_few else _ASIDE).search, texts)):
        return UNDECIDED
    noun = rule.noun.text if rule.noun else "elements"
    # {"options": ["a", "b"], "recommended_option": "c"} may be three options.
    if any(isinstance(each, str) and _has_words(key, noun) for key, each in _pairs(place.value)):
        return UNDECIDED
    return place.fails(f"must have {rule.range} {noun}, but has {len(elements)}")
