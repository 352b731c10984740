"""Which fields a JSON schema admits. In: a schema and a path. Out: None, or where it ends and why.

Lenient where a schema is silent, strict where it names its fields: `properties` without the
field closes the object unless it says that others may come. What we do not understand admits
everything, since a false alarm stops a good recipe.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from stretto.templates.reference import PathPart


class Closed(NamedTuple):
    """No such field."""

    kind: str  # what stands there: 'an object', 'text', …
    names: tuple[str, ...] = ()  # the fields there are
    depth: int = 0  # which part of the path it refuses


class _Found(NamedTuple):
    schema: object


# What a schema says of one field: the schema of it, Closed, or None: nothing at all.
_Verdict: TypeAlias = _Found | Closed | None
_ANYTHING = _Found(True)

_KINDS = {
    "object": "an object",
    "array": "a list",
    "string": "text",
    "number": "a number",
    "integer": "a number",
    "boolean": "true or false",
    "null": "null",
}
# Each of these can add fields by rules that only the value decides.
_OPENING = ("if", "dependentSchemas", "dependencies", "$dynamicRef", "$recursiveRef")
_DEEPEST = 64


def closed_at(schema: object, path: Sequence[PathPart]) -> Closed | None:
    """The first part of the path that the schema refuses."""
    current = schema
    for depth, part in enumerate(path):
        verdict = _Walk(schema, part).verdict(current, 0)
        if isinstance(verdict, Closed):
            return Closed(verdict.kind, verdict.names, depth)
        if verdict is None:
            return None
        current = verdict.schema
    return None


class _Walk:
    """One step down a schema, to `part`. A $ref is followed once: a cycle ends, and a schema that
    doubles at every $ref costs no more than its text."""

    def __init__(self, root: object, part: PathPart) -> None:
        self.root = root
        self.part = part
        self.followed: dict[str, _Verdict] = {}

    def verdict(self, schema: object, depth: int) -> _Verdict:
        if schema is False:
            return Closed("nothing")
        if not isinstance(schema, Mapping) or depth > _DEEPEST:
            return None
        if any(word in schema for word in _OPENING):
            return _ANYTHING
        said = [self.own(schema), self.follow(schema.get("$ref"), depth)]
        said += [self.verdict(member, depth + 1) for member in _schemas(schema.get("allOf"))]
        for word in ("anyOf", "oneOf"):
            members = _schemas(schema.get(word))
            said.append(_either([self.verdict(member, depth + 1) for member in members]))
        return _all(said)

    def follow(self, ref: object, depth: int) -> _Verdict:
        if not isinstance(ref, str):
            return None
        if ref not in self.followed:
            self.followed[ref] = None
            self.followed[ref] = self.verdict(_target(self.root, ref), depth + 1)
        return self.followed[ref]

    def own(self, schema: Mapping[str, object]) -> _Verdict:
        if isinstance(self.part, str):
            return _closed_by_type(schema, "object") or _field(schema, self.part)
        return _closed_by_type(schema, "array") or _element(schema, self.part)


def _closed_by_type(schema: Mapping[str, object], wanted: str) -> Closed | None:
    kinds = schema.get("type")
    if kinds is None:
        kinds = _implied_type(schema)
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(kinds, list) or not kinds or not all(kind in _KINDS for kind in kinds):
        return None
    if wanted in kinds:
        return None
    names = schema.get("properties")
    said = next((kind for kind in kinds if kind != "null"), "null")
    return Closed(_KINDS[said], tuple(names) if isinstance(names, Mapping) else ())


def _implied_type(schema: Mapping[str, object]) -> str | None:
    has_fields, has_elements = "properties" in schema, "items" in schema or "prefixItems" in schema
    if has_fields == has_elements:
        return None
    return "object" if has_fields else "array"


def _field(schema: Mapping[str, object], name: str) -> _Verdict:
    named = schema.get("properties")
    others = schema.get("additionalProperties")
    if isinstance(named, Mapping) and name in named:
        return _Found(named[name])
    if "patternProperties" in schema or schema.get("unevaluatedProperties"):
        return _ANYTHING
    if others is True or isinstance(others, Mapping):
        return _Found(others)
    if isinstance(named, Mapping) or others is False:
        return Closed("an object", tuple(named) if isinstance(named, Mapping) else ())
    return None


def _element(schema: Mapping[str, object], index: int) -> _Verdict:
    rest = schema.get("items")
    first = schema.get("prefixItems", rest)
    if isinstance(first, list):
        if index < len(first):
            return _Found(first[index])
        rest = schema.get("additionalItems") if first is rest else rest
    return None if rest is None else _Found(rest)


def _all(said: Iterable[_Verdict]) -> _Verdict:
    """All of them hold: one that knows the field outweighs those that do not name it."""
    said = list(said)
    found = [verdict.schema for verdict in said if isinstance(verdict, _Found)]
    return _Found(_joined("allOf", found)) if found else _merged(said)


def _either(said: Sequence[_Verdict]) -> _Verdict:
    """Any of them may hold."""
    found = [verdict.schema for verdict in said if isinstance(verdict, _Found)]
    if None in said:
        return _ANYTHING if found else None
    return _Found(_joined("anyOf", found)) if found else _merged(said)


def _merged(said: Iterable[_Verdict]) -> Closed | None:
    closed = [verdict for verdict in said if isinstance(verdict, Closed)]
    if not closed:
        return None
    names = dict.fromkeys(name for verdict in closed for name in verdict.names)
    kind = next((verdict.kind for verdict in closed if verdict.names), closed[0].kind)
    return Closed(kind, tuple(names))


def _joined(word: str, schemas: Sequence[object]) -> object:
    distinct = list({id(schema): schema for schema in schemas}.values())
    return distinct[0] if len(distinct) == 1 else {word: distinct}


def _schemas(written: object) -> Sequence[object]:
    return written if isinstance(written, list | tuple) else ()


def _target(root: object, ref: str) -> object:
    """What `#/$defs/name` points at. What cannot be found here admits everything."""
    if not ref.startswith("#"):
        return True
    target = root
    for step in ref[1:].split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(target, Mapping) or key not in target:
            return True
        target = target[key]
    return target if ref == "#" or ref.startswith("#/") else True
