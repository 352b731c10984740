import json
import os
import socket
import subprocess
import sys
import time

import pytest

from stretto.validation.schema import BadSchema, schema_errors, schema_faults

REVIEW = {
    "type": "object",
    "required": ["score", "findings"],
    "additionalProperties": False,
    "properties": {
        "score": {"type": "number", "minimum": 0, "maximum": 10},
        "passed": {"type": "boolean"},
        "findings": {
            "type": "array",
            "maxItems": 3,
            "items": {
                "type": "object",
                "required": ["severity"],
                "properties": {"severity": {"enum": ["low", "high"]}},
            },
        },
    },
}


def test_a_value_that_fits_has_no_errors():
    assert schema_errors({"score": 7, "findings": [{"severity": "low"}]}, REVIEW) == ()


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ([], "the answer must be an object, but is a list: []"),
        ({"score": 7}, "the answer must have the field 'findings', which is missing"),
        ({"score": "7", "findings": []}, 'at `score`: must be a number, but is text: "7"'),
        ({"score": True, "findings": []}, "at `score`: must be a number, but is true"),
        ({"score": 11, "findings": []}, "at `score`: must be at most 10, but is 11"),
        ({"score": 1, "findings": [{}] * 4}, "at `findings`: must have at most 3 elements"),
        (
            {"score": 1, "findings": [{"severity": "huge"}]},
            'at `findings[0].severity`: must be one of ["low", "high"], but is "huge"',
        ),
        (
            {"score": 1, "findings": [], "x": 1, "y": 2},
            "the answer must not have the field 'x', 'y'",
        ),
    ],
)
def test_an_error_says_where_what_was_expected_and_what_is_there(value, error):
    errors = schema_errors(value, REVIEW)
    assert any(error in said for said in errors), errors


def test_no_more_than_five_errors_are_told():
    errors = schema_errors([1] * 50, {"items": {"type": "string"}})
    assert len(errors) == 5
    assert errors[0].startswith("at `[0]`")


def test_a_long_value_is_shortened():
    (error,) = schema_errors("x" * 100_000, {"type": "number"})
    assert len(error) < 200


def test_the_nearest_alternative_is_told():
    schema = {"anyOf": [{"type": "string"}, {"properties": {"a": {"type": "string"}}}]}
    (error,) = schema_errors({"a": 5}, schema)
    assert "fits none of 2 alternatives" in error
    assert "at `a`: must be text, but is a number: 5" in error


def test_the_draft_that_a_schema_names_is_used():
    tuple_of_two = {"items": [{"type": "string"}, {"type": "number"}]}
    draft_7 = {"$schema": "http://json-schema.org/draft-07/schema#", **tuple_of_two}
    assert schema_errors(["a", 1], draft_7) == ()
    assert schema_errors(["a", "b"], draft_7)
    # In 2020-12 `items` is one schema, so this is none.
    assert isinstance(schema_errors(["a", 1], tuple_of_two), BadSchema)


def test_a_fault_of_a_schema_has_its_place():
    (fault,) = schema_faults({"properties": {"a": {"pattern": "("}}})
    assert fault.path == ("properties", "a", "pattern")
    found = schema_errors({}, {"properties": {"a": {"pattern": "("}}})
    assert isinstance(found, BadSchema)
    assert "at `properties.a.pattern`: this pattern cannot be used" in found.reason


def test_a_good_schema_has_no_fault():
    assert schema_faults(REVIEW) == ()


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://127.0.0.1:{port}/schema.json"},
        {"$ref": "other.json"},
        {"$ref": "file:///etc/hostname"},
        {"properties": {"a": {"$ref": "http://127.0.0.1:{port}/schema.json#/x"}}},
        {"$id": "http://127.0.0.1:{port}/root", "$ref": "elsewhere"},
    ],
)
def test_a_remote_reference_is_refused_and_never_fetched(schema):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        port = server.getsockname()[1]
        schema = json.loads(json.dumps(schema).replace("{port}", str(port)))
        found = schema_errors({"a": 1}, schema)
        assert isinstance(found, BadSchema)
        assert "nothing is fetched" in found.reason
        with pytest.raises(TimeoutError):
            server.accept()


def test_references_inside_the_schema_are_followed():
    schema = {"$defs": {"n": {"type": "number"}}, "items": {"$ref": "#/$defs/n"}}
    assert schema_errors([1], schema) == ()
    assert schema_errors(["x"], schema)
    node = {"properties": {"next": {"$ref": "#"}, "n": {"type": "number"}}}
    assert schema_errors({"next": {"next": {"n": 1}}}, node) == ()
    assert schema_errors({"next": {"next": {"n": "x"}}}, node)


def test_a_schema_that_refers_to_itself_alone_is_refused():
    assert isinstance(schema_errors({}, {"$ref": "#"}), BadSchema)


def test_a_schema_that_doubles_at_every_reference_is_given_up_on():
    levels = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)}
    schema = {"$defs": {**levels, "a40": {"type": "object"}}, "$ref": "#/$defs/a0"}
    began = time.process_time()
    (error,) = schema_errors({}, schema)
    assert "too much work" in error
    assert time.process_time() - began < 20


def test_a_hostile_pattern_does_not_hang_even_below_another_draft():
    # A draft named again below the root must not bring the unbounded keywords back.
    inner = {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "^(a+)+$"}
    schema = {
        "properties": {"a": inner},
        "patternProperties": {"^(x+)+$": {"type": "number"}},
        "additionalProperties": {"type": "number"},
    }
    began = time.process_time()
    errors = schema_errors({"a": "a" * 60 + "!", "x" * 60 + "!": "text"}, schema)
    assert time.process_time() - began < 5
    assert len(errors) == 2


@pytest.mark.parametrize("keyword", ["default", "const", "enum", "examples"])
def test_a_field_that_is_named_like_a_keyword_brings_no_unbounded_pattern_back(keyword):
    inner = {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "^(a+)+$"}
    began = time.process_time()
    (error,) = schema_errors({keyword: "a" * 26 + "!"}, {"properties": {keyword: inner}})
    assert "must match the pattern" in error
    assert time.process_time() - began < 1


def test_many_texts_share_the_work_that_patterns_may_take():
    began = time.process_time()
    (error,) = schema_errors(["ab" * 5000] * 500, {"items": {"pattern": "(a|b)*a(a|b){200}c"}})
    assert "too much work" in error
    assert time.process_time() - began < 10


def test_pattern_properties_and_the_rest_are_told_apart():
    schema = {
        "properties": {"id": {}},
        "patternProperties": {"^n_": {"type": "number"}},
        "additionalProperties": False,
    }
    assert schema_errors({"id": "x", "n_a": 1}, schema) == ()
    assert "`n_a`" in schema_errors({"n_a": "x"}, schema)[0]
    assert "'other'" in schema_errors({"other": 1}, schema)[0]


def test_unique_items_are_compared_as_json_compares_them():
    unique = {"uniqueItems": True}
    assert schema_errors([1, True, 0, False, "1", [1], {"a": 1}], unique) == ()
    assert schema_errors([1, 1.0], unique)
    assert schema_errors([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}], unique)


def test_many_unique_objects_are_compared_quickly():
    began = time.process_time()
    assert schema_errors([{"n": n} for n in range(20_000)], {"uniqueItems": True}) == ()
    assert time.process_time() - began < 5


def test_errors_come_in_the_same_order_in_every_process():
    code = (
        "from stretto.validation.schema import schema_errors\n"
        "value = {f'k{n}': 'x' for n in range(40)}\n"
        "print(schema_errors(value, {'additionalProperties': {'type': 'number'}}))\n"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1


def test_the_schema_package_is_imported_only_when_a_schema_is_checked():
    code = (
        "import sys; from stretto.validation.answer import check_answer\n"
        "check_answer('x', None, None, ('must not be empty',))\n"
        "assert 'jsonschema' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
