"""The JSON schema that rules imply. In: rules in plain English. Out: a schema, or None.

A model that can be held to a schema is held to what the rules ask for, as far as code understands
them: a small one then cannot miss a field. It is a help and no check: the rules still decide.
"""

from collections.abc import Mapping, Sequence

from stretto.validation.rules.checks import (
    Amount,
    Between,
    Check,
    CountOf,
    Each,
    HasFields,
    IsKind,
    IsOneOf,
    Name,
    On,
    Whole,
)
from stretto.validation.rules.understand import understand
from stretto.vocabulary.values import Json

_NUMBERS = frozenset({"score", "rating", "count", "total", "percent", "confidence", "probability"})
_TEXT: Mapping[str, Json] = {"type": "string", "minLength": 1}


def implied_schema(rules: Sequence[str]) -> dict[str, Json] | None:
    wanted = _Wanted()
    for rule in rules:
        for check in understand(rule) or ():
            wanted.take(check)
    return wanted.schema()


class _Wanted:
    """What one value should be, gathered from all the rules about it."""

    def __init__(self) -> None:
        self._kind: Mapping[str, Json] | None = None
        self._fields: dict[str, _Wanted] = {}
        self._element: _Wanted | None = None
        self._bounds: dict[str, Json] = {}

    def take(self, check: Check) -> None:
        match check:
            case HasFields(names):
                for name in names:
                    self._field(name)
            case On(name, checks):
                for each in checks:
                    self._field(name).take(each)
            case Whole(_, checks):
                for each in checks:
                    self.take(each)
            case Each(_, checks):
                self._list()
                assert self._element is not None
                for each in checks:
                    self._element.take(each)
            case CountOf(_, amount):
                self._list()
                self._bounds |= _counted(amount)
            case IsKind(kind, of):
                self._kind = {"type": kind, **({"items": {"type": of}} if of else {})}
            case IsOneOf(values):
                self._kind = {"enum": list(values)}
            case Between(amount):
                self._kind = {"type": "number", **_between(amount)}
            case _:
                pass  # lengths, sections and the like are beyond a schema

    def schema(self) -> dict[str, Json] | None:
        if self._element is not None:
            items = self._element.schema() or dict(_TEXT)
            return {"type": "array", "items": items, **self._bounds}
        if self._fields:
            properties: dict[str, Json] = {
                name: field.schema() or _guessed(name) for name, field in self._fields.items()
            }
            required: list[Json] = list(self._fields)
            return {"type": "object", "properties": properties, "required": required}
        return dict(self._kind) if self._kind is not None else None

    def _field(self, name: Name) -> "_Wanted":
        return self._fields.setdefault(name.text.replace(" ", "_"), _Wanted())

    def _list(self) -> None:
        if self._element is None:
            self._element = _Wanted()


def _guessed(name: str) -> dict[str, Json]:
    """A rule that names a field and not its kind: what is called a score is one."""
    return {"type": "number"} if name.rpartition("_")[2] in _NUMBERS else dict(_TEXT)


def _counted(amount: Amount) -> dict[str, Json]:
    bounds: dict[str, Json] = {}
    if amount.least is not None:
        bounds["minItems"] = int(amount.least) + amount.is_open_below
    most = amount.most if amount.most is not None or not amount.is_bare else amount.least
    if most is not None:
        bounds["maxItems"] = int(most) - amount.is_open_above
    return bounds


def _between(amount: Amount) -> dict[str, Json]:
    bounds: dict[str, Json] = {}
    if amount.least is not None:
        bounds["exclusiveMinimum" if amount.is_open_below else "minimum"] = amount.least
    if amount.most is not None:
        bounds["exclusiveMaximum" if amount.is_open_above else "maximum"] = amount.most
    return bounds
