import pytest

from stretto.templates.evaluate import LONGEST_TEXT, MOST_PAIRS, Undecided, apply, size, truth


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
        ("7", "*", 2),
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
