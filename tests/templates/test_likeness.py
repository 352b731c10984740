"""One meaning of "85", "true" and "Yes" in expressions, switches, loops and rules."""

import pytest

from stretto.templates.evaluate import decide
from stretto.templates.expression import Expression, parse_expression
from stretto.templates.likeness import Undecided, same, same_text, truth
from stretto.templates.scope import Scope, StepValue
from stretto.validation.rule_decisions import decide as decide_rule
from support.scheduling import drive

SWITCH = """
name: t
steps:
  - {id: say, subagent: worker, prompt: go}
  - id: route
    switch: {value: steps.say.output, cases: {WANTED: chosen}, default: other}
  - {id: chosen, subagent: worker, prompt: go}
  - {id: other, subagent: worker, prompt: go}
"""
LOOP = """
name: t
steps:
  - {id: say, prompt: go, loop: {agent: worker, until: "steps.say.output == 'WANTED'", max_iterations: 1}}
"""


def expression(text: str) -> Expression:
    parsed = parse_expression(text)
    assert isinstance(parsed, Expression)
    return parsed


def by_expression(said: str, wanted: str) -> bool | Undecided:
    scope = Scope(steps={"say": StepValue(said)})
    return decide(expression(f"steps.say.output == '{wanted}'"), scope)


@pytest.mark.parametrize("said", ["yes", "yes\n", "  yes ", "\ufeffyes\r\n"])
def test_blanks_around_a_text_count_nowhere(said):
    assert by_expression(said, "yes") is True
    assert drive(SWITCH.replace("WANTED", "yes"), {"say": said}).started == ["say", "chosen"]
    assert drive(LOOP.replace("WANTED", "yes"), {"say": said}).warnings() == ""


@pytest.mark.parametrize("said", ["Yes", "yes.", "**yes**", '"yes"', "YES!", "- yes", "(Yes)"])
def test_other_capitals_or_punctuation_are_a_near_miss_everywhere(said):
    assert isinstance(by_expression(said, "yes"), Undecided)
    for recipe in (SWITCH, LOOP):
        run = drive(recipe.replace("WANTED", "yes"), {"say": said})
        assert "chosen" not in run.started
        assert "differ only in capitals or punctuation" in run.warnings()


@pytest.mark.parametrize("said", ["no", "yes and no", "yesterday", "", "oui"])
def test_another_text_is_another_text_without_a_warning(said):
    assert by_expression(said, "yes") is False
    assert drive(SWITCH.replace("WANTED", "yes"), {"say": said or "x"}).warnings() == ""


@pytest.mark.parametrize(
    ("said", "value"),
    [("85", 85), (" 85\n", 85), ("true", True), ("TRUE", True), ("False ", False)],
)
def test_text_that_spells_a_number_or_a_truth_value_means_it(said, value):
    assert same(said, value) is True
    kind = "boolean" if isinstance(value, bool) else "number"
    # A rule asks for JSON of a kind, so code neither passes nor fails what only spells it.
    assert decide_rule(f"x_y must be a {kind}", {"x_y": said}).status == "undecided"


@pytest.mark.parametrize("said", ["85%", "85/100", "yes", "1", "about 85"])
def test_text_that_only_suggests_a_value_does_not_spell_it(said):
    assert isinstance(truth(said), Undecided)
    assert isinstance(same(said, True), Undecided)


def test_signs_and_long_texts_are_not_punctuation():
    assert same_text("+1", "-1") is False
    assert same_text("C#", "C") is False
    assert same_text("...", "!!!") is False
    assert same_text("x" * 100_000, "x" * 100_001) is False


@pytest.mark.parametrize(
    ("one", "other"),
    [([1, "Yes"], [2, "yes"]), (["Yes", 1], ["yes", 2]), ({"a": "Yes", "b": [1]}, {"b": [2], "a": "yes"})],
)  # fmt: skip
def test_a_near_miss_beside_a_difference_is_a_difference_in_any_order(one, other):
    assert same(one, other) is False
    assert same(other, one) is False


def test_a_near_miss_beside_what_is_the_same_is_undecided_in_any_order():
    assert isinstance(same([1, "Yes"], [1, "yes"]), Undecided)
    assert isinstance(same(["Yes", 1], ["yes", 1]), Undecided)
