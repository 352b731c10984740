import pytest

from stretto.templates.render import TooLong, as_text, render, render_known, whole_value
from stretto.templates.scope import MISSING, Scope, StepValue
from stretto.templates.template import Template, parse_template

SCOPE = Scope(
    inputs={"topic": "tides", "list": [1, {"ä": None}], "evil": "{{inputs.topic}} \\{{x}}"},
    steps={"a": StepValue(None)},
)


def template(text: str) -> Template:
    parsed, faults = parse_template(text)
    assert not faults
    return parsed


def test_references_are_replaced_by_their_text():
    rendered = render(template("On {{inputs.topic}}: {{list}}"), SCOPE)
    assert rendered.text == 'On tides: [1,{"ä":null}]'
    assert rendered.missing == ()


def test_what_is_inserted_is_never_expanded():
    assert render(template("{{evil}}"), SCOPE).text == "{{inputs.topic}} \\{{x}}"


def test_braces_that_meet_after_insertion_are_not_expanded():
    scope = Scope(inputs={"open": "{", "name": "open"})
    assert render(template("{{open}}{ name }}"), scope).text == "{{ name }}"


def test_missing_and_null_insert_nothing_and_missing_ones_are_listed():
    rendered = render(template("<{{inputs.nobody}}{{steps.a.output}}>"), SCOPE)
    assert rendered.text == "<>"
    assert [reference.text for reference in rendered.missing] == ["inputs.nobody"]


def test_a_dry_run_keeps_what_it_cannot_know():
    text = render_known(template("{{topic}} {{ steps.b.output }}{{steps.a.output}}"), SCOPE)
    assert text == "tides {{steps.b.output}}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("verbatim\n", "verbatim\n"),
        (3, "3"),
        (2.5, "2.5"),
        (True, "true"),
        (None, "null"),
        ({"a": [1, "ü"]}, '{"a":[1,"ü"]}'),
        (float("nan"), "null"),
        ([float("inf")], "[null]"),
    ],
)
def test_text_is_verbatim_and_the_rest_is_compact_json(value, text):
    assert as_text(value) == text


def test_a_template_that_is_one_reference_gives_the_value_itself():
    assert whole_value(template(" {{ list }}\n"), SCOPE) == [1, {"ä": None}]
    assert whole_value(template("{{steps.a.output}}"), SCOPE) is None
    assert whole_value(template("{{nobody}}"), SCOPE) is MISSING


def test_any_other_template_gives_its_text():
    assert whole_value(template("{{list}}."), SCOPE) == '[1,{"ä":null}].'
    assert whole_value(template("{{topic}}{{topic}}"), SCOPE) == "tidestides"
    assert whole_value(template(" plain "), SCOPE) == " plain "


def test_what_is_told_before_a_run_is_no_longer_than_what_is_told_in_it():
    long, scope = template("{{inputs.x}}" * 100), Scope(inputs={"x": "y" * 1_000_000})
    for fill in (render, render_known):
        with pytest.raises(TooLong, match="comes to more than 10,000,000 characters"):
            fill(long, scope)
