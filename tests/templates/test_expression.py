import pytest

from stretto.templates.expression import (
    DEEPEST_EXPRESSION,
    END,
    Binary,
    Constant,
    Expression,
    ListLiteral,
    Logic,
    NotAnExpression,
    Unary,
    height,
    parse_expression,
    tokens_of,
    written,
)
from stretto.templates.template import Fault, Reference


def parsed(text: str) -> Expression:
    expression = parse_expression(text)
    assert isinstance(expression, Expression), expression
    return expression


def fault_of(text: str) -> Fault:
    fault = parse_expression(text)
    assert isinstance(fault, Fault)
    return fault


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("a or b and c", "a or (b and c)"),
        ("not a == b", "not (a == b)"),
        ("!a && b", "(not a) and b"),
        ("a || b || c", "a or b or c"),
        ("a not in b", "not (a in b)"),
        ("1 - 2 - 3", "(1 - 2) - 3"),
        ("1 + 2 * 3 % 4", "1 + ((2 * 3) % 4)"),
        ("-a * b", "(-a) * b"),
        ("a + 1 >= b", "(a + 1) >= b"),
        ("(a or b) and c", "(a or b) and c"),
        ("a contains 'x' and b", "(a contains 'x') and b"),
        ("{{steps.a.output.n}} > 3", "steps.a.output.n > 3"),
    ],
)
def test_operators_bind_as_in_python(text, grouped):
    assert written(parsed(text).tree) == grouped


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("True", True),
        ("False", False),
        ("null", None),
        ("None", None),
        ("none", None),
        ("12", 12),
        ("1.5", 1.5),
        ("2e3", 2000.0),
        (r"'a\'b\\\n\t\"'", "a'b\\\n\t\""),
        ('"it\'s"', "it's"),
    ],
)
def test_literals_are_their_values(text, value):
    constant = parsed(text).tree
    assert isinstance(constant, Constant)
    assert constant.value == value
    assert type(constant.value) is type(value)


def test_lists_and_size_are_read():
    assert parsed("[]").tree == ListLiteral(())
    tree = parsed("size(a) in [1, 2]").tree
    assert tree == Binary(
        "in",
        Unary("size", Reference("a", ("a",), 5)),
        ListLiteral((Constant(1), Constant(2))),
    )


def test_size_is_a_name_unless_it_is_called():
    assert parsed("size > 3").references[0].path == ("size",)


def test_references_are_listed_in_order_with_their_places():
    references = parsed("steps.a-b.output > {{ inputs.n }}").references
    assert [(r.text, r.offset) for r in references] == [("steps.a-b.output", 0), ("inputs.n", 22)]


def test_many_alternatives_are_not_deep():
    tree = parsed(" or ".join(f"x == {n}" for n in range(300))).tree
    assert isinstance(tree, Logic)
    assert len(tree.operands) == 300


@pytest.mark.parametrize(
    ("text", "offset", "says"),
    [
        ("", 0, "empty"),
        ("   ", 0, "empty"),
        ("a >", 3, "expected a value, found the end"),
        ("(a", 2, "expected ')', found the end"),
        ("a)", 1, "expected an operator, found ')'"),
        ("a b", 2, "expected an operator, found 'b'"),
        ("[1 2]", 3, "expected ',' or ']', found '2'"),
        ("[1,]", 3, "expected a value, found ']'"),
        ("size()", 5, "expected a value, found ')'"),
        ("size(a, b)", 6, "expected ')', found ','"),
        ("* 3", 0, "expected a value, found '*'"),
        ("upper(a)", 0, "only size() can be called"),
        ("a.b(c)", 0, "only size() can be called"),
        ("a == b == c", 7, "comparisons do not chain"),
    ],
)
def test_an_expression_that_does_not_parse_says_what_was_expected(text, offset, says):
    fault = fault_of(text)
    assert (fault.code, fault.offset) == ("RCP209", offset)
    assert says in fault.message


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("40 <= x < 80", "write 40 <= x and x < 80"),
        ("a and 1 < size(x) <= 2 + 3", "write 1 < size(x) and size(x) <= 2 + 3"),
        ("a AND b", "write 'and' in small letters"),
        ("NOT a", "write 'not' in small letters"),
        ("a is null", "use '=='"),
        ("x" * 200 + " < 1 < 2", "join two comparisons with 'and'"),
    ],
)
def test_common_slips_are_answered_with_what_to_write(text, hint):
    assert fault_of(text).hint == hint


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000,
        "a or " * 900,
        "(" * 65 + "a" + ")" * 65,
        "not " * 70 + "a",
        "-" * 4_000,
        "[" * 100,
        "size(" * 100,
        "1" + " + 1" * DEEPEST_EXPRESSION,
        "(" * 40 + "1" + "+1+1)" * 40,
    ],
    ids=lambda text: f"{text[:8]}x{len(text)}",
)
def test_what_is_too_long_or_too_deep_is_refused(text):
    assert fault_of(text).code == "RCP210"


def test_depth_just_within_the_bound_is_read():
    assert parsed("(" * 60 + "a" + ")" * 60).tree == Reference("a", ("a",), 60)
    parsed("1" + " + 1" * (DEEPEST_EXPRESSION - 1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("steps.a-b.output", ["steps.a-b.output"]),
        ("steps.1st-try.output", ["steps.1st-try.output"]),
        ("index-1", ["index", "-", "1"]),
        ("item-index", ["item", "-", "index"]),
        ("item.a-b", ["item.a-b"]),
        ("items-1", ["items-1"]),
        ("a -1", ["a", "-", "1"]),
        ("a- 1", ["a", "-", "1"]),
        ("a[0]-1", ["a[0]", "-", "1"]),
        ("3-1", ["3", "-", "1"]),
        ("1.5e-3", ["1.5e-3"]),
        ("x in[1]", ["x", "in", "[", "1", "]"]),
        ("in-depth", ["in-depth"]),
        ("a&&!b", ["a", "&&", "!", "b"]),
        (" {{ a.b }} ", ["{{ a.b }}"]),
        (r"'it\'s' == \"x\"".replace(r"\"", '"'), [r"'it\'s'", "==", '"x"']),
    ],
)
def test_tokens_are_what_an_author_sees(text, expected):
    tokens = tokens_of(text)
    assert [token.text for token in tokens[:-1]] == expected
    assert tokens[-1].mark == END
    assert all(text[token.offset : token.end] == token.text for token in tokens)


@pytest.mark.parametrize(
    ("text", "offset", "hint"),
    [
        ("x = 3", 2, "use '=='"),
        ("x === 3", 2, "use '=='"),
        ("x !== 3", 2, "use '!='"),
        ("x <> 3", 2, "use '!='"),
        ("a & b", 2, "use 'and'"),
        ("a | b", 2, "use 'or'"),
        ("'open", 0, "close it with '"),
        ('x == "open', 5, 'close it with "'),
        ("{{a", 0, "close it with '}}'"),
        (r"'\d'", 1, "escapes are"),
        ("'{{a}}' == 'x'", 0, "remove the quotes around the reference"),
        ("{{ a > 3 }}", 5, "write operators outside"),
        ("a ? b", 2, ""),
        ("9" * 400, 0, ""),
        ("1e400", 0, ""),
    ],
)
def test_what_cannot_be_read_is_refused_where_it_stands(text, offset, hint):
    with pytest.raises(NotAnExpression) as refused:
        tokens_of(text)
    fault = refused.value.fault
    assert (fault.code, fault.offset) == ("RCP209", offset)
    assert hint in fault.hint


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
