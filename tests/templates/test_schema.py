import pytest

from stretto.templates.check import closed_at

NEWS = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "score": {"type": ["integer", "null"]},
        "items": {"type": "array", "items": {"$ref": "#/$defs/item"}},
        "free": {"type": "object"},
        "map": {"properties": {}, "additionalProperties": {"properties": {"x": {}}}},
        "open": {"properties": {"a": {}}, "additionalProperties": True},
        "patterned": {"properties": {"a": {}}, "patternProperties": {"^x": {}}},
        "tuple": {"prefixItems": [{"type": "string"}, {"properties": {"a": {}}}], "items": False},
        "old_tuple": {"items": [{"type": "string"}]},
        "either": {
            "anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}, {"type": "null"}]
        },
        "perhaps": {"oneOf": [{"properties": {"a": {}}}, {"type": "object"}]},
        "both": {"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]},
        "required": {"properties": {"a": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        "when": {"properties": {"a": {}}, "if": {}, "then": {"properties": {"b": {}}}},
        "far": {"$ref": "https://example.org/schema.json"},
        "lost": {"$ref": "#/$defs/nowhere"},
        "sealed": {"type": "object", "additionalProperties": False},
        "anything": True,
        "constant": {"const": {"a": 1}},
    },
    "$defs": {
        "item": {
            "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/item"}},
        },
        "a/b": {"properties": {"x": {}}},
    },
}


@pytest.mark.parametrize(
    "path",
    [
        ("title",),
        ("items", 0, "name"),
        ("items", 3, "next", "next", "next", "name"),
        ("free", "whatever", 0),
        ("map", "key", "x"),
        ("open", "b", "c"),
        ("patterned", "b"),
        ("tuple", 1, "a"),
        ("old_tuple", 5, "x"),
        ("either", "a"),
        ("either", "b"),
        ("perhaps", "c", "d"),
        ("both", "a"),
        ("both", "b"),
        ("required", "a"),
        ("when", "b"),
        ("far", "x"),
        ("lost", "x"),
        ("anything", 0, "x"),
        ("constant", "b"),
    ],
)
def test_what_a_schema_names_or_leaves_open_is_admitted(path):
    assert closed_at(NEWS, path) is None


@pytest.mark.parametrize(
    ("path", "depth", "kind", "names"),
    [
        (("titel",), 0, "an object", tuple(NEWS["properties"])),
        ((0,), 0, "an object", tuple(NEWS["properties"])),
        (("title", "x"), 1, "text", ()),
        (("title", 0), 1, "text", ()),
        (("score", "x"), 1, "a number", ()),
        (("items", "name"), 1, "a list", ()),
        (("items", 0, "nam"), 2, "an object", ("name", "next")),
        (("items", 0, "next", "nam"), 3, "an object", ("name", "next")),
        (("map", "key", "y"), 2, "an object", ("x",)),
        (("tuple", 1, "b"), 2, "an object", ("a",)),
        (("tuple", 2, "b"), 2, "nothing", ()),
        (("either", "c"), 1, "an object", ("a", "b")),
        (("both", "c"), 1, "an object", ("a", "b")),
        (("required", "b"), 1, "an object", ("a",)),
        (("sealed", "x"), 1, "an object", ()),
    ],
)
def test_what_a_schema_does_not_name_is_closed(path, depth, kind, names):
    closed = closed_at(NEWS, path)
    assert closed is not None
    assert (closed.depth, closed.kind, closed.names) == (depth, kind, names)


def test_no_schema_admits_everything():
    assert closed_at(None, ("a", 0)) is None


def test_a_pointer_may_hold_escaped_slashes():
    schema = {"$ref": "#/$defs/a~1b", "$defs": NEWS["$defs"]}
    assert closed_at(schema, ("x",)) is None
    assert closed_at(schema, ("y",)) is not None


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}},
    ],
)
def test_a_schema_that_refers_to_itself_ends(schema):
    assert closed_at(schema, ("a", "b", 0)) is None


def test_a_schema_that_doubles_at_every_step_costs_no_more_than_its_text():
    twice = {
        f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
        for n in range(25)
    }
    leaf = {"properties": {"a": {"$ref": "#/$defs/d0"}}}
    schema = {"$ref": "#/$defs/d0", "$defs": {**twice, "d25": leaf}}
    assert closed_at(schema, ("a",) * 20) is None
    assert closed_at(schema, ("a", "b")) is not None
