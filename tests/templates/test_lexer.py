import pytest

from stretto.templates.expression import END, NotAnExpression, tokens_of


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
