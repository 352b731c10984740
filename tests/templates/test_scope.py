import pytest

from stretto.templates.scope import MISSING, Scope, StepValue, resolve
from stretto.templates.template import Reference, parse_reference

SCOPE = Scope(
    inputs={"topic": "tides", "lead": {"name": "Ada"}, "raw": '{"a": [1]}', "both": "input"},
    steps={
        "gather": StepValue({"items": [{"title": "one"}], "none": None, "text": '{"deep": 1}'}),
        "say": StepValue(
            'Here you are:\n```json\n{"score": 7}\n```', validation='{"feedback": "x"}'
        ),
        "fan": StepValue({"a": '{"score": 1}'}, outputs={"a": '{"score": 1}'}),
        "each": StepValue(['{"n": 1}', "plain"]),
        "lost": StepValue(None, status="failed", error="timeout"),
    },
    stored={"found": "gather", "both": "say", "later": "not-yet"},
    local={"item": {"id": 3}, "index": 0, "topic": "shadowed"},
    run_id="r1",
)


def value(text: str, scope: Scope = SCOPE):
    reference = parse_reference(text)
    assert isinstance(reference, Reference)
    return resolve(reference, scope)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("inputs.topic", "tides"),
        ("inputs.lead.name", "Ada"),
        ("inputs.raw.a[0]", 1),
        ("steps.gather.output.items[0].title", "one"),
        ("steps.gather.output.none", None),
        ("steps.say.output.score", 7),
        ("steps.say.validation.feedback", "x"),
        ("steps.fan.outputs.a.score", 1),
        ("steps.fan.output.a.score", 1),
        ("steps.fan.outputs", {"a": '{"score": 1}'}),
        ("steps.each.output[0].n", 1),
        ("steps.lost.status", "failed"),
        ("steps.lost.error", "timeout"),
        ("steps.gather.error", None),
        ("steps.lost.output", None),
        ("item.id", 3),
        ("index", 0),
        ("run.id", "r1"),
        ("found.items[0].title", "one"),
        ("lead.name", "Ada"),
    ],
)
def test_a_path_is_followed_to_its_value(text, expected):
    assert value(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "inputs",
        "inputs.other",
        "inputs[0]",
        "steps",
        "steps.gather",
        "steps.other.output",
        "steps.gather.outputs.a",
        "steps.gather.nothing",
        "steps.gather.output.items[1]",
        "steps.gather.output.items.title",
        "steps.gather.output[0]",
        "steps.gather.output.text.deep.er",
        "steps.gather.status.x",
        "steps.gather.error.x",
        "steps.lost.output.field",
        "steps.each.output[1].n",
        "steps.each.output[99999999999999999999999]",
        "run",
        "run.other",
        "later",
        "nobody",
        "index.x",
    ],
)
def test_what_is_not_there_is_missing(text):
    assert value(text) is MISSING


def test_a_bare_name_is_local_first_then_stored_then_an_input():
    assert value("topic") == "shadowed"
    assert str(value("both")).startswith("Here you are")
    assert value("lead") == {"name": "Ada"}


def test_the_output_itself_is_the_raw_text():
    assert str(value("steps.say.output")).startswith("Here you are")


def test_only_one_text_on_the_way_is_opened():
    scope = Scope(inputs={"outer": '{"inner": "{\\"deep\\": 1}"}'})
    assert value("outer.inner", scope) == '{"deep": 1}'
    assert value("outer.inner.deep", scope) is MISSING


def test_a_scope_without_a_run_does_not_know_its_id():
    assert value("run.id", Scope()) is MISSING
