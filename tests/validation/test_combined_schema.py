"""What two schemas ask for holds together."""

from typing import Any

import pytest

from stretto.validation.combined_schema import combine_schemas
from stretto.validation.schema import schema_errors, schema_faults

TITLE: dict[str, Any] = {
    "type": "object",
    "properties": {"title": {"type": "string"}},
    "required": ["title"],
}
SCORE: dict[str, Any] = {
    "type": "object",
    "properties": {"score": {"type": "number"}},
    "required": ["score"],
}
CLOSED: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"score": {}},
}
NAMED: dict[str, Any] = {
    "type": "object",
    "$defs": {"name": {"type": "string"}},
    "properties": {"title": {"$ref": "#/$defs/name"}},
    "required": ["title"],
}
OTHER_NAMED: dict[str, Any] = {
    "type": "object",
    "$defs": {"name": {"type": "integer"}},
    "properties": {"count": {"$ref": "#/$defs/name"}},
    "required": ["count"],
}


def fits(value: object, *schemas: dict[str, Any]) -> bool:
    combined = combine_schemas(*schemas)
    assert combined is not None
    assert schema_faults(combined) == ()
    return schema_errors(value, combined) == ()  # type: ignore[arg-type]


def test_one_schema_stays_as_it_is() -> None:
    assert combine_schemas(TITLE, None) is TITLE
    assert combine_schemas(None, TITLE) is TITLE
    assert combine_schemas(TITLE, dict(TITLE)) == TITLE
    assert combine_schemas(None, None) is None


def test_two_plain_objects_are_one_plain_object() -> None:
    assert combine_schemas(TITLE, SCORE) == {
        "type": "object",
        "properties": {"title": {"type": "string"}, "score": {"type": "number"}},
        "required": ["title", "score"],
    }


@pytest.mark.parametrize(
    ("first", "second", "good", "bad"),
    [
        (TITLE, SCORE, {"title": "x", "score": 1}, ({"title": "x"}, {"score": 1})),
        (SCORE, CLOSED, {"score": 1}, ({"score": 1, "title": "x"}, {})),
        (
            {"type": "object", "properties": {"n": {"minimum": 3}}},
            {"type": "object", "properties": {"n": {"maximum": 5}}},
            {"n": 4},
            ({"n": 2}, {"n": 6}),
        ),
        (
            NAMED,
            OTHER_NAMED,
            {"title": "x", "count": 1},
            ({"title": 1, "count": 1}, {"title": "x"}),
        ),
        ({"type": "array", "maxItems": 2}, {"type": "array", "minItems": 1}, [1], ([], [1, 2, 3])),
        ({"enum": ["a", "b"]}, {"enum": ["b", "c"]}, "b", ("a", "c")),
        (
            {"type": "object", "properties": {"n": {"minimum": 3}}},
            {"type": "object", "properties": {"n": False}},
            {},
            ({"n": 4},),
        ),
    ],
)
def test_both_hold(
    first: dict[str, Any], second: dict[str, Any], good: object, bad: tuple[object, ...]
) -> None:
    for pair in ((first, second), (second, first)):
        assert fits(good, *pair)
        assert not any(fits(value, *pair) for value in bad)


def test_references_begin_where_a_schema_says_that_it_has_an_identity() -> None:
    text = {"$defs": {"t": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/t"}}}
    named = {"$id": "https://example.com/a", "type": "object", **text}
    within = {"type": "object", "properties": {"inner": {"$id": "https://example.com/b", **text}}}
    least = {"type": "object", "minProperties": 1}
    assert fits({"x": "s"}, named, least)
    assert not fits({"x": 1}, named, least)
    assert fits({"inner": {"x": "s"}}, within, least)
    assert not fits({"inner": {"x": 1}}, within, least)


@pytest.mark.parametrize("keyword", ["const", "default", "enum", "$id"])
def test_a_reference_in_a_value_is_no_reference_but_one_in_a_field_is(keyword: str) -> None:
    value = {"$ref": "#/$defs/t"}
    field = {"$defs": {"t": {"type": "string"}}, "properties": {keyword: value}}
    least = {"type": "object", "minProperties": 1}
    assert fits({"c": value, keyword: "s"}, {**field, "anyOf": [{"required": ["c"]}]}, least)
    assert not fits({keyword: 1}, field, least)
    assert fits(value, {"enum": [value]}, {"const": value, "minProperties": 1})
