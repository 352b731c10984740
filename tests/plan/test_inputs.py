"""A value is checked and converted before the run exists."""

import json

import pytest

from stretto.plan.inputs import Misfit, bind, convert, missing
from stretto.recipe.model import Input
from support.recipes import flat, plan_of, problem_of, problems_of

STEP = "{id: a, subagent: writer, prompt: x}"


def declared(text: str) -> tuple[Input, ...]:
    return plan_of(flat(STEP, head=f"inputs:\n{text}")).inputs


def bound(text: str, **given: object) -> object:
    values, problems = bind(declared(text), given)
    assert problems == ()
    return values


def refused(text: str, **given: object) -> tuple[str, str, str]:
    _, problems = bind(declared(text), given)
    (problem,) = problems
    return problem.code, problem.message, problem.hint


# --- declarations --------------------------------------------------------------------------


def test_inputs_are_a_list_or_a_mapping_of_name_to_the_rest():
    listed = declared(
        "  - {name: a, required: true}\n  - {name: b, type: number, default: 2}\n  - name: c"
    )
    mapped = declared("  a: {required: true}\n  b: {type: number, default: 2}\n  c:")
    for inputs in (listed, mapped):
        assert [(i.name, i.type, i.is_required, i.default) for i in inputs] == [
            ("a", "string", True, None),
            ("b", "number", False, 2),
            ("c", "string", False, None),
        ]


@pytest.mark.parametrize("kind", ["string", "number", "boolean", "json", "file_path"])
def test_a_type_is_one_of_five(kind):
    assert declared(f"  - {{name: a, type: {kind}}}")[0].type == kind


@pytest.mark.parametrize("kind", ["int", "text", "String", "7", "[string]"])
def test_anything_else_is_no_type(kind):
    text = flat(STEP, head=f"inputs:\n  - name: a\n    type: {kind}")
    problem = problem_of(text)
    assert problem.code in ("RCP103", "RCP109")
    assert problem.place.line == 4


def test_a_default_must_fit_its_type_and_its_enum():
    for line in (
        "{name: a, type: number, default: x}",
        "{name: a, type: boolean, default: 1}",
        "{name: a, default: [1]}",
        "{name: a, enum: [x, y], default: z}",
        "{name: a, type: json, default: '{'}",
        "{name: a, type: object, default: []}",
    ):
        problem = problem_of(flat(STEP, head=f"inputs:\n  - {line}"))
        assert (problem.code, problem.place.line) == ("RCP306", 3)
        assert problem.message.startswith("the default does not fit: input 'a'")


def test_a_default_of_nothing_is_no_default():
    (only,) = declared("  - {name: a, default: }")
    assert not only.has_default
    (only,) = declared("  - {name: a, default: ''}")
    assert only.has_default


def test_every_value_of_an_enum_must_fit_the_type():
    text = flat(STEP, head="inputs:\n  - name: a\n    type: number\n    enum: [1, two, 3, four]")
    assert [(each.code, each.path) for each in problems_of(text)] == [
        ("RCP306", "inputs[0].enum[1]"),
        ("RCP306", "inputs[0].enum[3]"),
    ]


# --- conversions ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        ("string", "x", "x"),
        ("string", " x ", " x "),
        ("string", 5, "5"),
        ("string", 1.5, "1.5"),
        ("string", True, "true"),
        ("number", 5, 5),
        ("number", 1.5, 1.5),
        ("number", "5", 5),
        ("number", " -2.5e1 ", -25.0),
        ("boolean", True, True),
        ("boolean", "true", True),
        ("boolean", " FALSE ", False),
        ("json", '{"a": [1, null]}', {"a": [1, None]}),
        ("json", "5", 5),
        ("json", '"x"', "x"),
        ("json", {"a": 1}, {"a": 1}),
        ("json", [1], [1]),
        ("json", 5, 5),
        ("json", True, True),
        ("object", '{"a": 1}', {"a": 1}),
        ("array", "[1]", [1]),
    ],
)
def test_a_value_is_converted_to_its_type(kind, given, value):
    read = bound(f"  - {{name: a, type: {kind}}}", a=given)
    assert read == {"a": value}
    assert type(read["a"]) is type(value)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("string", [1]),
        ("string", {"a": 1}),
        ("number", "five"),
        ("number", "5 apples"),
        ("number", "NaN"),
        ("number", "Infinity"),
        ("number", "1e999"),
        ("number", "0x10"),
        ("number", "9" * 5000),
        ("number", True),
        ("number", "true"),
        ("number", [5]),
        ("boolean", "yes"),
        ("boolean", 1),
        ("boolean", "1"),
        ("json", "{a: 1}"),
        ("json", "nope"),
        ("json", "[NaN]"),
        ("json", "[" * 100_000),
        ("object", "[1]"),
        ("array", '{"a": 1}'),
        ("file_path", 5),
    ],
)
def test_a_value_of_another_type_is_refused(kind, given):
    code, message, _ = refused(f"  - {{name: a, type: {kind}}}", a=given)
    assert code == "RCP303"
    assert message.startswith("input 'a' ")
    assert len(message) < 200


@pytest.mark.parametrize(
    ("given", "hint"), [("fsat", "did you mean 'fast'?"), ("zzz", 'one of "fast", "deep"')]
)
def test_a_value_outside_the_enum_is_refused_with_what_was_meant(given, hint):
    assert refused("  - {name: a, enum: [fast, deep]}", a=given) == (
        "RCP304",
        f"input 'a' cannot be \"{given}\"",
        hint,
    )


def test_true_is_not_one_in_an_enum():
    assert bound("  - {name: a, type: json, enum: [1, 2]}", a="1") == {"a": 1}
    assert refused("  - {name: a, type: json, enum: [1, 2]}", a="true")[0] == "RCP304"


# --- missing and undeclared ----------------------------------------------------------------


def test_what_is_not_given_has_its_default_or_nothing():
    text = "  - {name: a, default: 5, type: number}\n  - {name: b}"
    assert bound(text) == {"a": 5, "b": None}
    assert bound(text, a=None) == {"a": 5, "b": None}


def test_a_default_is_converted_like_a_value():
    assert bound("  - {name: a, type: number, default: '5'}") == {"a": 5}
    assert bound("  - {name: a, default: 5}") == {"a": "5"}


REQUIRED = (
    "  - {name: a, required: true}\n  - {name: b, required: true, type: number}\n  - {name: c}"
)


def test_all_missing_inputs_are_named_in_one_error():
    assert refused(REQUIRED, c="x") == ("RCP301", "missing inputs: a, b", "-i a=… -i b=…")
    assert refused(REQUIRED, b=1) == ("RCP301", "missing input: a", "-i a=…")


@pytest.mark.parametrize("blank", ["", "  ", "\n\t", None])
def test_a_blank_required_input_is_missing(blank):
    assert refused(REQUIRED, a=blank, b=1)[0] == "RCP301"
    assert [each.name for each in missing(declared(REQUIRED), {"a": blank, "b": 0})] == ["a"]


def test_nought_and_false_are_not_blank():
    assert bound("  - {name: a, required: true, type: number}", a=0) == {"a": 0}
    assert bound("  - {name: a, required: true, type: boolean}", a=False) == {"a": False}


def test_a_required_input_with_a_default_is_never_missing():
    assert bound("  - {name: a, required: true, default: x}") == {"a": "x"}


def test_an_undeclared_input_is_refused_with_what_was_meant():
    text = "  - {name: topic}\n  - {name: depth}"
    assert refused(text, topc="x") == (
        "RCP302",
        "there is no input 'topc'",
        "did you mean 'topic'?",
    )
    assert refused(text, zzz="x")[2] == "its inputs: topic, depth"
    _, problems = bind((), {"a": 1})
    assert problems[0].hint == "this recipe has no inputs"


def test_everything_that_is_wrong_is_told_at_once():
    _, problems = bind(declared(REQUIRED), {"b": "x", "zz": 1})
    assert [problem.code for problem in problems] == ["RCP302", "RCP301", "RCP303"]
    assert problems[2].path == "inputs.b"


# --- what is compared is what was converted ------------------------------------------------


@pytest.mark.parametrize(
    ("line", "given", "value"),
    [
        ("{name: a, enum: [1, 2]}", "1", "1"),
        ("{name: a, enum: [1, 2]}", 2, "2"),
        ("{name: a, enum: [2024]}", "2024", "2024"),
        ("{name: a, type: number, enum: ['1', '2']}", "1", 1),
        ("{name: a, type: boolean, enum: ['true']}", True, True),
    ],
)
def test_the_values_of_an_enum_are_converted_before_they_are_compared(line, given, value):
    assert bound(f"  - {line}", a=given) == {"a": value}


@pytest.mark.parametrize(
    "value", [float("nan"), {"a": [float("inf")]}, "half \ud800", {"\udfff": 1}]
)
def test_what_a_journal_cannot_hold_is_refused(value):
    kind = "string" if isinstance(value, str) else "json"
    misfit = convert(Input(name="a", at=(), type=kind), value)
    assert isinstance(misfit, Misfit)
    assert "JSON" in misfit.message


def test_a_value_is_nested_no_deeper_than_others_from_outside():
    deep = "[" * 101 + "]" * 101
    code, message, _ = refused("  - {name: a, type: json}", a=deep)
    assert (code, message) == ("RCP303", "input 'a' is nested more than 100 levels deep")
    assert bound("  - {name: a, type: json}", a=deep[1:-1]) == {"a": json.loads(deep[1:-1])}
