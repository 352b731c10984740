import pytest

from stretto.templates.expression import (
    Constant,
    Expression,
    ListLiteral,
    Logic,
    Unary,
    height,
    parse_expression,
    written,
)


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("a and b or not c", "(a and b) or (not c)"),
        ("1 + 2*3 == x", "(1 + (2 * 3)) == x"),
        ("-x.y", "-x.y"),
        ("size(a) in [1, 'it\\'s', null, true]", "size(a) in [1, 'it\\'s', null, true]"),
    ],
)
def test_a_tree_can_be_written_out(text, again):
    expression = parse_expression(text)
    assert isinstance(expression, Expression)
    assert written(expression.tree) == again


def test_height_counts_the_longest_way_down():
    assert height(Constant(1)) == 1
    assert height(ListLiteral(())) == 1
    assert height(Logic("or", (Constant(1), Unary("not", Constant(2))))) == 3
