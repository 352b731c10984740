import pytest

from stretto.templates.evaluate import (
    LONGEST_TEXT,
    Undecided,
    apply,
    decide,
    evaluate,
    size,
    truth,
)
from stretto.templates.expression import Expression, parse_expression
from stretto.templates.likeness import MOST_PAIRS
from stretto.templates.scope import Scope, StepValue

SCOPE = Scope(
    inputs={"n": 3, "text": "abc", "flag": "True\n", "nothing": None, "tags": ["a", 1]},
    steps={
        "classify": StepValue('Verdict: {"category": "hot", "score": "82"}'),
        "a-b": StepValue({"n": 1}),
        "skipped": StepValue(None, status="skipped"),
    },
    local={"index": 2},
)


def parsed(text: str) -> Expression:
    expression = parse_expression(text)
    assert isinstance(expression, Expression), expression
    return expression


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{steps.classify.output.category}} == 'hot'", True),
        ("steps.classify.output.score >= 80", True),
        ("steps.a-b.output.n + 1", 2),
        ("index-1", 1),
        ("-n", -3),
        ("not flag", False),
        ("flag and n == 3", True),
        ("size(tags) + size(text)", 5),
        ("'a' in tags and 1 in tags", True),
        ("'z' not in tags", True),
        ("text + '!'", "abc!"),
        ("[n, text]", [3, "abc"]),
        ("nothing", None),
        ("steps.skipped.status == 'skipped'", True),
        ("n / 2 > 1 && n % 2 == 1", True),
    ],
)
def test_expressions_come_to_values(text, value):
    assert evaluate(parsed(text), SCOPE) == value


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("nothing == null", True),
        ("nobody == null", True),
        ("null != nobody", False),
        ("n != null", True),
        ("null == null", True),
        ("steps.skipped.output == null", True),
        ("steps.skipped.output.field == none", True),
    ],
)
def test_asking_for_null_is_always_decided(text, answer):
    assert decide(parsed(text), SCOPE) is answer


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nobody", "nobody is missing"),
        ("nobody > 3", "nobody is missing"),
        ("nothing > 3", "nothing is null"),
        ("text > 3", "text > 3: text and a number have no order"),
        ("n", "n: a number is not true or false"),
        ("nothing", "nothing is null"),
        ("not nobody", "nobody is missing"),
        ("size(n) > 1", "size(n): a number has no size"),
        ("n / 0 == 1", "n / 0: division by zero"),
        ("n / 0 == null", "n / 0: division by zero"),
        ("n in [nobody]", "nobody is missing"),
        ("-text > 0", "-text: a number - text has no value"),
        ("nobody and true", "nobody is missing"),
        ("false or nothing", "nothing is null"),
    ],
)
def test_what_cannot_be_decided_says_why_and_names_the_reference(text, reason):
    assert decide(parsed(text), SCOPE) == Undecided(reason)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("false and nobody", False),
        ("nobody and false", False),
        ("true or nobody", True),
        ("nobody or true", True),
        ("nobody or n > 2 or text > 1", True),
        ("not (nobody and false)", True),
    ],
)
def test_one_side_can_decide_for_both(text, answer):
    assert decide(parsed(text), SCOPE) is answer


def test_a_reason_is_cut_where_it_would_fill_the_screen():
    undecided = decide(parsed(f"'{'x' * 1000}' > 1"), SCOPE)
    assert isinstance(undecided, Undecided)
    assert len(undecided.reason) < 300


@pytest.mark.parametrize(
    ("left", "operator", "right", "result"),
    [
        (1, "==", 1.0, True),
        (1, "!=", 2, True),
        ("a", "==", "a", True),
        ("7", "==", 7, True),
        (7.5, "==", " 7.5\n", True),
        ("TRUE ", "==", True, True),
        (False, "!=", "true", True),
        ([1, {"a": None}], "==", [1, {"a": None}], True),
        ([True], "==", [1], False),
        (["1"], "==", [1], False),
        ({"a": 1}, "==", {"b": 1}, False),
        ([1], "==", [1, 2], False),
        (1, "<", 2, True),
        (2, "<=", 2, True),
        ("10", ">", 9, True),
        ("b", ">", "a", True),
        (3, ">=", 4, False),
        ("ell", "in", "hello", True),
        ("hello", "contains", "x", False),
        (1, "in", ["a", 1], True),
        ("1", "in", [1], True),
        (True, "in", [1], False),
        ([1, 2], "contains", 3, False),
        ("a", "in", {"a": 1}, True),
        ({"a": 1}, "contains", "b", False),
        (1, "+", 2, 3),
        ("a", "+", "b", "ab"),
        (5, "-", 7.5, -2.5),
        (3, "*", 4, 12),
        (6, "/", 2, 3),
        (7, "/", 2, 3.5),
        (7, "%", 4, 3),
        ("7", "*", 2, 14),
        ("yes\n", "==", "yes", True),
        ("yes", "!=", " yes\ufeff", False),
        ("True", "==", "true", True),
        ("no", "==", "yes", False),
        ("-1", "==", "+1", False),
        ("C#", "==", "C", False),
        ("9", "<", "85", True),
        ("b\n", "<", "b a", True),
        (" hot\n", "in", ["hot", "cold"], True),
        ("no errors were found", "contains", "ERROR", False),
    ],
)
def test_operators_do_what_they_say(left, operator, right, result):
    outcome = apply(operator, left, right)
    assert outcome == result
    assert type(outcome) is type(result)


@pytest.mark.parametrize(
    ("left", "operator", "right"),
    [
        (1, "==", "one"),
        (1, "==", True),
        ("yes", "==", True),
        ([1], "==", {"a": 1}),
        ("[1]", "==", [1]),
        (1, "==", "9" * 500),
        (1, "==", "1e999"),
        (True, "<", False),
        ([1], "<", [2]),
        ("a", "<", 1),
        (1, "in", "1"),
        (1, "in", {"1": 1}),
        (1, "in", 2),
        ("a", "+", 1),
        ("7 apples", "*", 2),
        ("yes", "==", "Yes"),
        ("yes.", "!=", "yes"),
        ("hot", "in", ["Hot", "cold"]),
        ("It is a PASS.", "contains", "pass"),
        ("hot", "in", {"Hot": 1}),
        (True, "+", 1),
        (1, "/", 0),
        (1.5, "%", 0),
        (1e300, "*", 1e300),
        (10**200, "*", 10**200),
        (10**400, "/", 3),
        (10**400, "+", 0.5),
        ("a" * LONGEST_TEXT, "+", "b"),
        ([0] * (MOST_PAIRS + 1), "==", [0] * (MOST_PAIRS + 1)),
    ],
    ids=lambda value: str(value)[:12],
)
def test_what_has_no_answer_is_undecided_with_a_reason(left, operator, right):
    outcome = apply(operator, left, right)
    assert isinstance(outcome, Undecided)
    assert outcome.reason


def test_equality_of_deep_values_does_not_recurse():
    deep: list[object] = []
    for _ in range(50_000):
        deep = [deep]
    assert apply("==", deep, [[]]) is False  # type: ignore[arg-type]


@pytest.mark.parametrize(("value", "length"), [("abc", 3), ([1], 1), ({}, 0)])
def test_texts_lists_and_objects_have_a_size(value, length):
    assert size(value) == length


def test_numbers_have_no_size():
    assert isinstance(size(3), Undecided)


@pytest.mark.parametrize(("value", "said"), [(True, True), ("False", False), (" TRUE\n", True)])
def test_text_may_say_true_or_false(value, said):
    assert truth(value) is said


@pytest.mark.parametrize("value", [1, 0, "yes", "", [], {}])
def test_nothing_else_is_a_condition(value):
    assert isinstance(truth(value), Undecided)
