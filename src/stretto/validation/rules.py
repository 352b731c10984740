"""Read rules in plain English: the forms that docs/models.md lists. Every other rule is the judge's.

Reading is strict: every word of a rule must belong to one of the forms below. A rule that says
anything more ("a score field that reflects the client's mood") is not understood, because a wrong
decision is worse than none. `decide` in rule_decisions.py applies what is returned here.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

LONGEST_RULE = 300
JsonKind: TypeAlias = Literal["boolean", "array", "number", "integer", "string", "object"]


@dataclass(frozen=True, slots=True)
class FieldName:
    text: str
    # `overall_score` and "score" are meant to the letter. Plain words may be written in several
    # ways (company overview, companyOverview), and may be no name at all (a descriptive field).
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class RuleRange:
    least: float = -math.inf
    most: float = math.inf

    def holds(self, number: float) -> bool:
        return self.least <= number <= self.most

    def __str__(self) -> str:
        if self.least == -math.inf or self.most == math.inf:
            return f"at most {self.most:g}" if self.most < math.inf else f"at least {self.least:g}"
        exactly = f"exactly {self.least:g}" if self.least == self.most else ""
        return exactly or f"between {self.least:g} and {self.most:g}"


@dataclass(frozen=True, slots=True)
class KindRule:
    kind: JsonKind


@dataclass(frozen=True, slots=True)
class RangeRule:
    """A number in this range, or a text of so many words or characters."""

    range: RuleRange
    unit: Literal["", "words", "characters"] = ""


@dataclass(frozen=True, slots=True)
class CountRule:
    noun: FieldName | None  # None: elements of the list itself
    range: RuleRange
    # "identify 3 risks" says that the answer is the list of them; "include 3 examples" does not.
    is_answer: bool


@dataclass(frozen=True, slots=True)
class NotEmptyRule:
    pass


@dataclass(frozen=True, slots=True)
class FieldRule:
    name: FieldName
    rules: "Rules" = ()
    # "must include a findings array" asks for the field; "findings must not be empty" does not;
    # "the report must not be empty" is about the answer, or about its field `report`.
    about: Literal["required field", "field", "answer or field"] = "required field"


@dataclass(frozen=True, slots=True)
class EachRule:
    noun: FieldName | None
    rules: "Rules"


Rule: TypeAlias = KindRule | RangeRule | CountRule | NotEmptyRule | FieldRule | EachRule
Rules: TypeAlias = tuple[Rule, ...]

_KINDS: dict[str, JsonKind] = {
    "boolean": "boolean", "bool": "boolean", "array": "array",
    "number": "number", "integer": "integer", "string": "string", "object": "object",
}  # fmt: skip
# "a phone number" is a compound: only a sure name comes before these kinds.
_COMPOUNDING = {"number", "string", "object"}
NUMBER_WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}  # fmt: skip
# Nouns that may stand before a noun without adding a claim. A pain point is one thing; whether a
# source is credible is a question that code cannot answer.
_NOUN_MODIFIERS = """
    action business case data follow-up key next pain price pricing product research risk sales
    search security selling success talking task team test use user work
"""
# No list is counted for these: they are measured in texts, times or sums.
_NOT_COUNTED = """
    bullet cent chapter column day decimal degree digit dollar euro field heading hour key letter
    level line minute month page paragraph part percent point second section sentence star time
    token unit week word year
"""
# Words that are no names of fields: "all required fields", "a valid array", "a number field".
_NOT_NAMES = """
    a additional all also an and another any appropriate array avoid basic be best better bool
    boolean both brief can clear common complete correct could date dates detailed different
    distinct each either empty etc every exact exactly extra few field fields following for free
    from full good high if in include integer its json key keys least list long low main major many
    may might mixed more most must nested never new no non-empty none nor not null number numeric
    object of omit on one only open optional or other our own plain properties property relevant
    required same short similar simple single small some specific string such text that the their
    these this those three two unique unknown unless useful valid what when which with without
"""

_MODAL = "(?:must|should|shall|has to|have to|needs? to|(?:is|are) required to)"
_HAVE = re.compile("(?:includes?|contains?|have|has|provide|offer|present) ", re.IGNORECASE)
# The object of these verbs is the answer itself.
_RETURN = re.compile("(?:identify|list|return|produce|output|give|propose|suggest) ", re.IGNORECASE)
_FIELD = "(?:fields?|keys?|propert(?:y|ies)|attributes?)"
_A = "(?:an? |the )?"
_KIND = f"(?:{'|'.join(_KINDS)})"
_ITEMS = "(?:items?|elements?|entries|entry)"
_WHOLE = "(?:(?:json |final )?(?:output|answer|response|reply|result)|it|json|report|document)"
_NUMBER = rf"(-?\d{{1,12}}(?:\.\d{{1,6}})?|\d{{1,3}}(?:,\d{{3}}){{1,3}}|{'|'.join(NUMBER_WORDS)})(?= |$)"  # fmt: skip
_NAME = r"(?:`[^`]{1,80}`|\"[^\"]{1,80}\"|'[^']{1,80}'|[^\W\d][\w-]*(?: [^\W\d][\w-]*){0,2})"
_IDENTIFIER = re.compile(r"\w*(?:_\w|[a-z][A-Z])\w*")
_Form: TypeAlias = tuple[str, Callable[[re.Match[str]], "Rules | None"]]
_RANGES: tuple[tuple[str, Callable[..., RuleRange]], ...] = (
    (rf"(?:between|from) {_NUMBER} (?:and|to) {_NUMBER}(?:,? \(?inclusive\)?)?", RuleRange),
    (rf"(?:exactly|precisely) {_NUMBER}", lambda n: RuleRange(n, n)),
    (rf"(?:at least|no fewer than|no less than|a minimum of|>=) {_NUMBER}", RuleRange),
    (rf"(?:at most|no more than|up to|a maximum of|<=) {_NUMBER}", lambda n: RuleRange(most=n)),
)


@lru_cache(maxsize=4096)
def understand(rule: str) -> Rules:
    """What a rule asks for; () if it says anything that is not one of the forms."""
    text = " ".join(rule.replace("’", "'").split()).removesuffix(".").strip()
    text = re.sub(" in (?:the|its) (?:output|answer|response)$", "", text)
    if not text or len(text) > LONGEST_RULE:
        return ()
    text = text[0].lower() + text[1:] if text[1:2].islower() else text
    return _read_as(_CLAUSES, text) or ()


def _read_as(forms: tuple[_Form, ...], text: str) -> Rules | None:
    for form, make in forms:
        if (found := re.fullmatch(form, text, re.IGNORECASE)) and (rules := make(found)):
            return rules
    return None


def _each(found: re.Match[str]) -> Rules | None:
    rules, written = _predicate(found["rest"]), found["noun"]
    noun = _noun(written) if written and not re.fullmatch(_WHOLE, written) else None
    return (EachRule(noun, rules),) if rules and (noun or not written) else None


def _about_answer(found: re.Match[str]) -> Rules | None:
    name, rules = FieldName(found["noun"].lower().split()[-1]), _predicate(found["rest"])
    return (FieldRule(name, rules, "answer or field"),) if rules else None


def _about_field(found: re.Match[str]) -> Rules | None:
    name, rules = _name(found["name"]), _predicate(found["rest"]) or ()
    array = (KindRule("array"),) if found.groupdict().get("array") else ()
    # Somebody who must include something ("reviewers must …") is no field.
    is_other = any(isinstance(rule, FieldRule) or getattr(rule, "noun", None) for rule in rules)
    is_field = rules and not is_other
    return (FieldRule(name, (*array, *rules), "field"),) if name and is_field else None


_CLAUSES: tuple[_Form, ...] = (
    (rf"(?:each|every) {_ITEMS}(?: (?:in|of) {_A}(?P<noun>\S+)(?: array| list)?)? {_MODAL} (?P<rest>.+)", _each),
    (rf"(?:each|every|all)(?: of)?(?: the)? (?P<noun>[\w -]+?) {_MODAL} (?P<rest>.+)", _each),
    (r"for (?:each|every) (?P<noun>[\w -]+?), (?P<rest>.+)", _each),
    (rf"(?:the |your )?(?P<noun>{_WHOLE}) (?:{_MODAL} )?(?P<rest>.+)", _about_answer),
    (rf"{_A}(?P<name>`[^`]+`|(?!you )[\w -]+?)(?: field| value|(?P<array> array))? {_MODAL} (?P<rest>.+)", _about_field),
    (rf"(?:(?:you )?{_MODAL} )?(?P<rest>.+)", lambda found: _predicate(found["rest"])),
    (rf"(?:there {_MODAL} be )?(?P<rest>.+)", lambda found: _thing(found["rest"], False)),
)  # fmt: skip


def _predicate(text: str) -> Rules | None:
    """What stands after "must"."""
    if re.fullmatch("not be (?:empty|blank)|be (?:non-empty|not empty)", text, re.IGNORECASE):
        return (NotEmptyRule(),)
    if verb := _HAVE.match(text):
        return _thing(text[verb.end() :], is_answer=False)
    if verb := _RETURN.match(text):
        return _thing(text[verb.end() :], is_answer=True)
    if kind := re.fullmatch(rf"be an? (non-empty )?({_KIND})", text, re.IGNORECASE):
        return (KindRule(_KINDS[kind[2].lower()]), *([NotEmptyRule()] if kind[1] else []))
    return _measure(re.sub("^(?:be )?(?:a number )?", "", text).removesuffix(" long"))


def _measure(text: str) -> Rules | None:
    range, rest = _range(text)
    unit = rest.lower().removesuffix("s") + "s" if rest else ""
    is_unit = unit in ("", "words", "characters")
    return (RangeRule(range, unit),) if range and is_unit else None  # type: ignore[arg-type]


def _thing(text: str, is_answer: bool) -> Rules | None:
    """What an answer must have."""
    range, rest = _range(text)
    if range is not None:
        if re.fullmatch(_ITEMS, rest, re.IGNORECASE):
            return (CountRule(None, range, True),)
        noun = _noun(rest)
        return _measure(text) or ((CountRule(noun, range, is_answer),) if noun else None)
    return _read_as(_THINGS, text)


def _fields(found: re.Match[str]) -> Rules | None:
    names, marks = _names(found["names"]) or (), found.groupdict()
    # A name that only code would write needs no "field" after it.
    if "code" in marks and not all(name.is_exact for name in names):
        return None
    filled = (NotEmptyRule(),) if marks.get("filled") else ()
    return tuple(FieldRule(name, filled) for name in names)


def _kind(found: re.Match[str]) -> Rules | None:
    name, kind = _name(found["name"]), found["kind"].lower()
    is_sure = "sure" in found.groupdict() or (name is not None and name.is_exact)
    if name is None or (kind in _COMPOUNDING and not is_sure):
        return None
    filled = (NotEmptyRule(),) if found["filled"] else ()
    return (FieldRule(name, (KindRule(_KINDS[kind]), *filled)),)


_THINGS: tuple[_Form, ...] = (
    (rf"{_A}(?P<filled>non-empty )?(?P<kind>{_KIND}) (?P<name>{_NAME})(?P<sure> {_FIELD})", _kind),
    (rf"(?:both )?{_A}(?P<filled>non-empty )?(?P<names>.+?) {_FIELD}", _fields),
    (rf"{_A}(?:following )?(?:fields|keys|properties)(?: called| named)?:? (?P<names>.+)", _fields),
    (rf"{_A}{_FIELD} (?:called |named )(?P<names>.+)", _fields),
    (rf"{_A}{_FIELD} (?P<names>[`\"'].+)", _fields),
    (rf"{_A}(?P<filled>non-empty )?(?P<kind>{_KIND})(?P<sure> called| named) (?P<name>{_NAME})", _kind),
    (rf"{_A}(?P<filled>non-empty )?(?P<name>{_NAME})(?P<sure> \()(?P<kind>{_KIND})\)", _kind),
    (rf"{_A}(?P<filled>non-empty )?(?P<name>{_NAME}) (?P<kind>{_KIND})", _kind),
    (rf"{_A}(?P<filled>non-empty )?(?P<kind>{_KIND}) (?P<name>{_NAME})", _kind),
    (rf"{_A}(?P<name>{_NAME}) (?P<rest>(?:between|from) .+)", _about_field),
    (r"(?P<names>[^\"']+)(?P<code>)", _fields),
)  # fmt: skip


def _range(text: str) -> tuple[RuleRange | None, str]:
    """The range that a text begins with, and the rest of it."""
    for form, make in _RANGES:
        if found := re.match(form, text, re.IGNORECASE):
            ends = [float(NUMBER_WORDS.get(n.lower(), n.replace(",", ""))) for n in found.groups()]
            range = make(*ends)
            # "between 10 and 1" holds for no number: who wrote that meant something else.
            return (range if range.least <= range.most else None), text[found.end() :].strip()
    return None, text


def _names(text: str) -> tuple[FieldName, ...] | None:
    parts = [re.sub(rf"^{_A}", "", part) for part in re.split(r",? and |, ", text)]
    # Among other names these are names, too: "text and line fields".
    also = ("a", "date", "key", "number", "text") if len(parts) > 1 else ()
    names = [FieldName(part) if part in also else _name(part) for part in parts]
    return tuple(name for name in names if name) if all(names) else None


def _name(text: str) -> FieldName | None:
    if not re.fullmatch(_NAME, text):
        return None
    if text[0] in "`\"'":
        return FieldName(text[1:-1], is_exact=True)
    if any(word.lower() in _NOT_NAMES.split() for word in text.split(" ")):
        return None
    return FieldName(text, is_exact=_IDENTIFIER.fullmatch(text) is not None)


def _noun(text: str) -> FieldName | None:
    """What is counted: one noun, perhaps after a noun that adds no claim."""
    *modifiers, head = text.lower().split(" ")
    is_counted = modifiers or head.removesuffix("s") not in _NOT_COUNTED.split()
    is_plain = all(word in _NOUN_MODIFIERS.split() for word in modifiers)
    return _name(text) if is_counted and is_plain else None
