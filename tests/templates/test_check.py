import json
import time

import pytest

from stretto.templates.check import Known, KnownStep, check_reference, closed_at, schema_at
from stretto.templates.template import Fault, Reference, parse_reference

SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "count": {"type": "integer"},
        "rows": {"type": "array", "items": {"properties": {"name": {"type": "string"}}}},
    },
}
KNOWN = Known(
    inputs={"topic": "string", "lead": "json", "count": "number"},
    steps={
        "gather": KnownStep(schema=SCHEMA),
        "fan": KnownStep(output_keys=("first", "second")),
        "each": KnownStep(schema=SCHEMA, is_list=True),
        "note": KnownStep(is_text=True),
        "free": KnownStep(),
    },
    stored={"found": "gather", "scores": "fan"},
)


def check(text: str, known: Known = KNOWN) -> Fault | None:
    reference = parse_reference(text, offset=2)
    assert isinstance(reference, Reference)
    return check_reference(reference, known)


@pytest.mark.parametrize(
    "text",
    [
        "inputs.topic",
        "inputs.lead.name[0].x",
        "topic",
        "lead.name",
        "steps.gather.output",
        "steps.gather.output.rows[0].name",
        "steps.gather.status",
        "steps.gather.error",
        "steps.gather.validation.feedback",
        "steps.fan.output",
        "steps.fan.output.first.anything",
        "steps.fan.outputs",
        "steps.fan.outputs.second.anything",
        "steps.each.output[0].title",
        "steps.each.output",
        "steps.note.output.score",
        "steps.free.output.any[3]",
        "found.title",
        "scores.first",
        "run.id",
    ],
)
def test_what_is_known_is_not_a_fault(text):
    assert check(text) is None


@pytest.mark.parametrize(
    ("text", "code", "pointed_at", "hint"),
    [
        ("inputs.topics", "RCP202", "topics", "did you mean 'topic'?"),
        ("inputs.zzz", "RCP202", "zzz", "the inputs are topic, lead, count"),
        ("inputs.count-1", "RCP202", "count-1", "put blanks around the minus: count - 1"),
        ("steps.gathr.output", "RCP203", "gathr", "did you mean 'gather'?"),
        ("steps.zzz.output", "RCP203", "zzz", "the steps are gather, fan, each, note, free"),
        ("steps.fan.outputs.frist", "RCP204", "frist", "did you mean 'first'?"),
        ("steps.fan.output.zzz", "RCP204", "zzz", "its outputs are first, second"),
        ("steps.fan.outputs[0]", "RCP204", "[0]", "its outputs are first, second"),
        ("scores.frist", "RCP204", "frist", "did you mean 'first'?"),
        ("steps.gather.outputs.a", "RCP204", "outputs", "write steps.gather.output"),
        ("steps.gather.output.titel", "RCP205", "titel", "did you mean 'title'?"),
        ("steps.gather.output.zzz", "RCP205", "zzz", "its fields are title, count, rows"),
        ("steps.gather.output.title.x", "RCP205", "x", "write steps.gather.output.title"),
        (
            "steps.gather.output.rows.name",
            "RCP205",
            "name",
            "write steps.gather.output.rows[0].name",
        ),
        ("steps.gather.output[0]", "RCP205", "[0]", "its fields are title, count, rows"),
        ("steps.gather.output.count-1", "RCP205", "count-1", "put blanks around the minus"),
        ("steps.each.output.title", "RCP205", "title", "write steps.each.output[0].title"),
        ("steps.each.output[0].titel", "RCP205", "titel", "did you mean 'title'?"),
        ("found.titel", "RCP205", "titel", "did you mean 'title'?"),
        ("inputs.topic.x", "RCP205", "x", "type: json"),
        ("topic[0]", "RCP205", "[0]", "type: json"),
        ("item.x", "RCP206", "item", "inside a map step"),
        ("index", "RCP206", "index", "inside a map step"),
        ("feedback", "RCP206", "feedback", "inside a loop step"),
        ("iteration", "RCP206", "iteration", "inside a loop step"),
        ("topci", "RCP207", "topci", "did you mean 'topic'?"),
        ("zzz", "RCP207", "zzz", "the names are found, scores, topic, lead, count"),
        ("gather", "RCP207", "gather", "write steps.gather.output"),
        ("input.topic", "RCP207", "input", "did you mean 'inputs'?"),
        ("step.gather.output", "RCP207", "step", "did you mean 'steps'?"),
        ("count-1", "RCP207", "count-1", "put blanks around the minus: count - 1"),
        ("inputs", "RCP208", "inputs", "inputs.topic"),
        ("inputs[0]", "RCP208", "inputs", "inputs.topic"),
        ("steps", "RCP208", "steps", "steps.gather.output"),
        ("steps[0].output", "RCP208", "steps", "steps.gather.output"),
        ("steps.gather", "RCP208", "gather", "write steps.gather.output"),
        ("steps.gather.ouput", "RCP208", "ouput", "did you mean 'output'?"),
        ("steps.gather.zzz", "RCP208", "zzz", "output, outputs, status, error, validation"),
        ("steps.gather[0]", "RCP208", "[0]", "output, outputs, status, error, validation"),
        ("steps.gather.status.x", "RCP208", "x", "write steps.gather.status"),
        ("steps.gather.error[0]", "RCP208", "[0]", "write steps.gather.error"),
        ("run", "RCP208", "run", "run.id"),
        ("run.name", "RCP208", "name", "run.id"),
    ],
)
def test_what_is_unknown_is_a_fault_with_a_way_out(text, code, pointed_at, hint):
    fault = check(text)
    assert fault is not None
    assert fault.code == code
    assert text[fault.offset - 2 :][: fault.width] == pointed_at
    assert hint in fault.hint
    assert fault.message


def test_loop_variables_are_known_inside_their_loop():
    known = Known(local=frozenset({"item", "index"}))
    assert check("item.name[0]", known) is None
    assert check("index", known) is None
    fault = check("index.x", known)
    assert fault is not None
    assert fault.code == "RCP208"


def test_an_input_may_be_named_like_a_loop_variable():
    assert check("feedback", Known(inputs={"feedback": "string"})) is None


def test_a_recipe_without_inputs_says_so():
    fault = check("inputs.a", Known())
    assert fault is not None
    assert fault.hint == "this recipe declares no inputs"


def test_a_minus_is_not_suggested_for_step_ids():
    fault = check("steps.gather-2.output")
    assert fault is not None
    assert "minus" not in fault.hint


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


def test_only_a_condition_has_chosen_something() -> None:
    steps = {"route": KnownStep(is_condition=True), "draft": KnownStep()}
    for path, code in (
        ("steps.route.chosen", None),
        ("steps.route.chosen.name", "RCP208"),
        ("steps.draft.chosen", "RCP208"),
    ):
        reference = parse_reference(path)
        assert isinstance(reference, Reference)
        fault = check_reference(reference, Known(steps=steps))
        assert (fault.code if fault else None) == code


def test_schemas_that_name_each_other_cost_no_more_at_each_field_of_a_path() -> None:
    both = {"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#/$defs/b"}]}}}
    schema = json.loads(json.dumps({**both, "$defs": {"b": both}}))
    began = time.process_time()
    assert closed_at(schema, ("a",) * 240) is None
    assert schema_at(schema, ("a",) * 240) is None
    assert time.process_time() - began < 1.0
    assert closed_at(schema, ("a", "a", "b")) is not None


def test_what_takes_too_long_to_find_out_is_no_fault() -> None:
    many = [{"$ref": f"#/$defs/d{n}"} for n in range(80)]
    either = {"properties": {"a": {"anyOf": many}}}
    schema = json.loads(json.dumps({**either, "$defs": {f"d{n}": either for n in range(80)}}))
    assert closed_at(schema, ("a", "b")) is not None
    assert closed_at(schema, ("a", "a", "b")) is None
