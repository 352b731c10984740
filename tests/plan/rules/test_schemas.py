"""Whether a schema can be used is decided once: `validate`, agent files and the runner agree."""

import json
from pathlib import Path

import pytest

from stretto.agents.agent_files import read_agent_file
from stretto.validation.schema import BadSchema, schema_errors
from support.recipes import problems_of, under_caret

RECIPE = """\
name: r
steps:
  - id: a
    subagent: writer
    prompt: hi
    output:
      schema: SCHEMA
"""

DRAFT_4, DRAFT_7 = (f"http://json-schema.org/draft-0{n}/schema#" for n in (4, 7))
UNUSABLE = [
    ({"type": "float"}, "'float' is not a JSON type"),
    ({"items": {"type": ["string", "list"]}}, "'list' is not a JSON type"),
    ({"pattern": r"^(a)\1$"}, "back-references are not supported"),
    ({"properties": {"a": {"pattern": "^(?=a)b"}}}, "look-ahead and look-behind are not supported"),
    ({"pattern": "("}, "missing )"),
    ({"patternProperties": {"(": {}}}, "missing )"),
    ({"propertyNames": {"pattern": "a{2000}"}}, "limit a text with maxLength"),
    ({"$ref": "#/$defs/none"}, "'#/$defs/none', which is not in it"),
    ({"anyOf": [{"type": "null"}, {"items": {"$ref": "other.json"}}]}, "nothing is fetched"),
    ({"properties": {"a": {"$ref": "#/required"}}, "required": ["a"]}, "which is no schema"),
    ({"$ref": "#/parts/a", "parts": {"a": {"type": "objekt"}}}, "'objekt' is not a JSON type"),
    ({"$ref": "#/parts/a", "parts": {"a": {"$ref": "#/parts/b"}}}, "which is not in it"),
    ({"$ref": "#"}, "refers to itself"),
    ({"anyOf": [{"type": "string"}, {"$ref": "#"}]}, "refers to itself"),
    (
        {"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}},
        "refers to itself",
    ),
    ({"minimum": 5, "maximum": 3}, "nothing fits"),
    ({"properties": {"a": {"minItems": 2, "maxItems": 1}}}, "nothing fits"),
    ({"enum": []}, "at least one"),
    ({"required": "a"}, "must be an array"),
    ({"properties": ["a"]}, "must be an object"),
    ({"minimum": "low"}, "must be a number"),
    ({"$schema": "https://example.com/mine"}, "a draft that is not known"),
    ({"patternProperties": {"a": {}}, "unevaluatedProperties": False}, "cannot be used together"),
    (
        {"unevaluatedProperties": False, "allOf": [{"patternProperties": {"a": {}}}]},
        "cannot be used together",
    ),
    (
        {"$schema": DRAFT_7, "allOf": [{"$schema": DRAFT_4, "if": {"pattern": "("}}]},
        "missing )",
    ),
    ({"items": [{"type": "string"}]}, "must be an object or true or false"),
    ({"properties": {f"p{n}": {} for n in range(5000)}}, "more than"),
]

USABLE = [
    {},
    {"type": ["string", "null"], "enum": ["a", None]},
    {"properties": {"type": {"type": "string"}, "pattern": {"type": "string"}, "$ref": {}}},
    {"properties": {"next": {"$ref": "#"}}},
    {"$defs": {"n": {"type": "number"}}, "items": {"$ref": "#/$defs/n"}},
    {"$id": "http://x/y", "$defs": {"n": {"$anchor": "n"}}, "items": {"$ref": "#n"}},
    {"$id": "http://x/y", "$defs": {"n": {"$id": "z"}}, "items": {"$ref": "http://x/z"}},
    {"$ref": "https://json-schema.org/draft/2020-12/schema"},
    {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]},
    {"default": {"$ref": "#/none", "pattern": "("}, "examples": [{"type": "objekt"}]},
    {"pattern": r"^\p{L}+\u00e9\d{3}$", "format": "no-such-format"},
    {"minimum": 3, "maximum": 3},
]


@pytest.mark.parametrize(("schema", "said"), UNUSABLE)
def test_a_schema_that_cannot_be_used_is_refused_everywhere_before_the_run(
    schema: dict, said: str, tmp_path: Path
) -> None:
    problems = problems_of(RECIPE.replace("SCHEMA", json.dumps(schema)))
    assert [problem.code for problem in problems] == ["RCP124"]
    assert said in problems[0].message
    at_run_time = schema_errors({"a": 1}, schema)
    assert isinstance(at_run_time, BadSchema)
    assert problems[0].message in at_run_time.reason
    file = tmp_path / "scorer.yaml"
    file.write_text(f"prompt: Score.\nvalidation:\n  schema: {json.dumps(schema)}\n")
    read = read_agent_file(file)
    assert [problem.message for problem in read.problems] == [problems[0].message]
    assert read.agent is None


@pytest.mark.parametrize("schema", USABLE)
def test_a_schema_that_can_be_used_is_refused_nowhere(schema: dict, tmp_path: Path) -> None:
    assert problems_of(RECIPE.replace("SCHEMA", json.dumps(schema))) == ()
    assert not isinstance(schema_errors({"a": [1]}, schema), BadSchema)
    file = tmp_path / "scorer.yaml"
    file.write_text(f"prompt: Score.\nvalidation:\n  schema: {json.dumps(schema)}\n")
    assert read_agent_file(file).problems == ()


def test_every_fault_is_told_where_it_is() -> None:
    schema = {
        "properties": {"a": {"type": "int"}, "b": {"$ref": "#/nope"}, "c": {"pattern": "(?=x)"}}
    }
    text = RECIPE.replace("SCHEMA", json.dumps(schema))
    problems = problems_of(text)
    assert [problem.code for problem in problems] == ["RCP124"] * 3
    assert [under_caret(problem) for problem in problems] == ['"int"', '"#/nope"', '"(?=x)"']
