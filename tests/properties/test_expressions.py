"""What holds for every expression: it parses or says why, and it always comes to something."""

import json
import sys
from collections.abc import Callable

from hypothesis import given, strategies as st

from stretto.templates.evaluate import Undecided, decide, evaluate
from stretto.templates.expression import (
    DEEPEST_EXPRESSION,
    Binary,
    Constant,
    Expression,
    ExpressionNode,
    ListLiteral,
    Logic,
    Unary,
    children,
    height,
    parse_expression,
    written,
)
from stretto.templates.scope import Scope, StepValue
from stretto.templates.template import Fault, Reference

NAMES = ("inputs.a", "steps.x.output", "steps.a-b.output.n[0]", "item", "nobody", "index")
OPERATORS = ("==", "!=", "<", "<=", ">", ">=", "in", "contains", "+", "-", "*", "/", "%")

finite = st.floats(min_value=0, max_value=1e299, allow_nan=False)
constants = (
    st.none()
    | st.booleans()
    | st.integers(0, 10**20)
    | finite
    | st.text(max_size=8).filter(lambda text: "{{" not in text)
).map(Constant)
references = st.sampled_from(NAMES).map(lambda name: Reference(name, (name,), 0))


def branches(inner: st.SearchStrategy[ExpressionNode]) -> st.SearchStrategy[ExpressionNode]:
    return (
        st.builds(Binary, st.sampled_from(OPERATORS), inner, inner)
        | st.builds(Unary, st.sampled_from(("not", "-", "size")), inner)
        | st.builds(
            Logic,
            st.sampled_from(("and", "or")),
            st.lists(inner, min_size=2, max_size=3).map(tuple),
        )
        | st.builds(ListLiteral, st.lists(inner, max_size=3).map(tuple))
    )


trees = st.recursive(constants | references, branches, max_leaves=12)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**4000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["true", " False", "7", "1e999", '{"n": [1]}', ""])
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
# Pieces that make text which almost parses.
BRACKETS = ["(", ")", "[", "]", ",", "size(", "{{", "}}", "'", '"']
WORDS = ["and", "or", "not", "&&", "||", "!", "1", "2.5", "1e9", "null", "true", "=", "é", "@"]
pieces = st.lists(st.sampled_from([*NAMES, *OPERATORS, *BRACKETS, *WORDS, "\\", "\n"]), max_size=30)


@given(st.text() | pieces.map("".join) | pieces.map(" ".join))
def test_every_text_is_an_expression_or_a_fault_inside_it(text):
    parsed = parse_expression(text)
    if isinstance(parsed, Fault):
        assert parsed.code in ("RCP209", "RCP210")
        assert 0 <= parsed.offset <= len(text)
    else:
        assert height(parsed.tree) <= DEEPEST_EXPRESSION


def without_places(node: ExpressionNode) -> object:
    if isinstance(node, Reference):
        return node.text
    if isinstance(node, Constant):
        return json.dumps(node.value)
    operator = getattr(node, "operator", getattr(node, "word", ""))
    return (type(node).__name__, operator, *map(without_places, children(node)))


@given(trees)
def test_a_tree_written_out_reads_back_as_itself(tree):
    expression = parse_expression(written(tree))
    assert isinstance(expression, Expression)
    assert without_places(expression.tree) == without_places(tree)


@given(trees, values, values, values)
def test_evaluation_always_comes_to_json_or_undecided(tree, one, two, three):
    expression = parse_expression(written(tree))
    assert isinstance(expression, Expression)
    scope = Scope(
        inputs={"a": one},
        steps={"x": StepValue(two), "a-b": StepValue(three)},
        local={"item": three, "index": 1},
    )
    value = evaluate(expression, scope)
    assert isinstance(value, Undecided | None | bool | int | float | str | list | dict)
    assert isinstance(decide(expression, scope), bool | Undecided)
    # The same question has the same answer.
    assert repr(evaluate(expression, scope)) == repr(value)


def calls_made(action: Callable[[], object]) -> int:
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(before)
    return calls


@given(
    st.sampled_from(["(", "not ", "-", "[", "size(", "1 + ", "a or ", "'"]),
    st.integers(5_000, 100_000),
)
def test_a_hostile_expression_is_refused_before_any_work(piece, times):
    text = piece * times
    fault = parse_expression(text)
    assert isinstance(fault, Fault)
    assert fault.code == "RCP210"
    # Calls rather than seconds: no machine is slow enough to fail this, and no work hides in it.
    assert calls_made(lambda: parse_expression(text)) < 50


@given(st.sampled_from(["(", "not ", "-", "[", "size(", "{{a}}+", "a."]), st.integers(65, 700))
def test_what_is_short_enough_never_recurses_past_its_depth(piece, times):
    text = (piece * times)[:4096]
    assert isinstance(parse_expression(text), Fault)
