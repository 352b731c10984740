import pytest

from stretto.templates.evaluate import Undecided, decide, evaluate
from stretto.templates.expression import Expression, parse_expression
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
