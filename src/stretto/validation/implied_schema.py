"""The JSON schema that rules imply, for models whose decoding can be constrained by a schema.

A small model then cannot miss a field that a rule asks for. The schema is a help and no check: the
rules still decide.
"""

from collections.abc import Mapping, Sequence
from math import isfinite

from stretto.validation.rule_decisions import are_alike
from stretto.validation.rules import (
    CountRule,
    EachRule,
    FieldName,
    FieldRule,
    KindRule,
    NotEmptyRule,
    RangeRule,
    Rule,
    RuleRange,
    understand,
)
from stretto.vocabulary.json_value import Json

_NUMBERS = frozenset({"score", "rating", "count", "total", "percent", "confidence", "probability"})
_TEXT: Mapping[str, Json] = {"type": "string", "minLength": 1}


def implied_schema(rules: Sequence[str]) -> dict[str, Json] | None:
    wanted = _Wanted()
    understood = [part for rule in rules for part in understand(rule)]
    # Rules about elements come last: other rules say which field holds the list.
    for part in sorted(understood, key=lambda part: isinstance(part, EachRule)):
        wanted.add(part)
    return wanted.schema()


class _Wanted:
    """What one value should be, gathered from all the rules about it."""

    def __init__(self) -> None:
        self._kind: Mapping[str, Json] | None = None
        self._fields: dict[str, _Wanted] = {}
        self._element: _Wanted | None = None
        self._bounds: dict[str, Json] = {}

    def add(self, rule: Rule) -> None:
        match rule:
            case FieldRule(name, rules, about):
                wanted = self if about == "answer or field" else self._field(name)
                for each in rules:
                    wanted.add(each)
            case EachRule(noun, rules):
                for each in rules:
                    self._holder(noun)._list().add(each)
            case CountRule(noun, range, is_answer):
                counted = self._field(noun) if noun and not is_answer else self
                counted._list()
                counted._bounds |= _bounds_of(range, "minItems", "maxItems")
            case KindRule(kind):
                self._kind = {"type": kind}
            case RangeRule(range, ""):
                self._kind = {"type": "number", **_bounds_of(range, "minimum", "maximum")}
            case RangeRule() | NotEmptyRule():
                pass  # no grammar counts words

    def schema(self) -> dict[str, Json] | None:
        if self._element is not None:
            items = self._element.schema() or dict(_TEXT)
            return {"type": "array", "items": items, **self._bounds}
        if self._fields:
            properties: dict[str, Json] = {
                name: field.schema() or _guess(name) for name, field in self._fields.items()
            }
            required: list[Json] = list(self._fields)
            return {"type": "object", "properties": properties, "required": required}
        return dict(self._kind) if self._kind is not None else None

    def _field(self, name: FieldName) -> "_Wanted":
        return self._fields.setdefault(name.text.replace(" ", "_"), _Wanted())

    def _holder(self, noun: FieldName | None) -> "_Wanted":
        """What holds the list of these: a field of that name if a rule speaks of one."""
        alike = (key for key in self._fields if noun and are_alike(key, noun.text))
        return self._fields.get(next(alike, ""), self)

    def _list(self) -> "_Wanted":
        self._element = self._element or _Wanted()
        return self._element


def _guess(name: str) -> dict[str, Json]:
    """For a rule that names a field and not its kind: what is called a score is a number."""
    return {"type": "number"} if name.rpartition("_")[2] in _NUMBERS else dict(_TEXT)


def _bounds_of(range: RuleRange, least: str, most: str) -> dict[str, Json]:
    ends = {least: range.least, most: range.most}
    # As an author would write it: 3, not 3.0.
    return {n: int(end) if end.is_integer() else end for n, end in ends.items() if isfinite(end)}
