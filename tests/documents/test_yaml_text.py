import pytest

from stretto.documents.document import read_text
from stretto.documents.node import ListNode, MapNode, plain
from stretto.documents.yaml_text import plain_scalar
from stretto.problems import Place


def value(text: str) -> object:
    document = read_text(text, "a.yaml")
    assert document.problems == ()
    assert document.root is not None
    return plain(document.root)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a: 1\nb: [x, 2.5, ~]\nc: {d: true}", {"a": 1, "b": ["x", 2.5, None], "c": {"d": True}}),
        ("a: |\n  x\n  y\n", {"a": "x\ny\n"}),
        ("a: |-\n  x\n\n", {"a": "x"}),
        ("a: >\n  x\n  y\n\n  z\n", {"a": "x y\nz\n"}),
        ("a: 'it''s'", {"a": "it's"}),
        ('a: "x\\ny\\u00e9"', {"a": "x\nyé"}),
        ("- - 1\n  - 2\n- 3", [[1, 2], 3]),
        ("a:\n- 1\nb:", {"a": [1], "b": None}),
        ("---\na: 1\n...\n", {"a": 1}),
        ("# c\na: 1 # d", {"a": 1}),
        ('a: "1"\nb: "true"\nc: "null"', {"a": "1", "b": "true", "c": "null"}),
        ("a: 日本", {"a": "日本"}),
    ],
)
def test_yaml_is_read(text, read):
    assert value(text) == read


def test_a_key_is_the_word_that_is_written_however_yaml_would_type_it():
    assert value("true: a\nfalse: b\n1: c\nnull: d\n~: e\n") == {
        "true": "a",
        "false": "b",
        "1": "c",
        "null": "d",
        "~": "e",
    }


def test_keys_that_look_alike_when_typed_are_different_words():
    assert value("1: a\n1.0: b\ntrue: c\nTrue: d\n") == {
        "1": "a",
        "1.0": "b",
        "true": "c",
        "True": "d",
    }


def test_of_two_equal_keys_the_first_is_kept_and_the_second_is_told():
    document = read_text("a: 1\nb: 2\na: 3\n")
    (problem,) = document.problems
    assert (problem.code, problem.place.line, problem.place.column) == ("RCP012", 3, 1)
    assert problem.hint == "it stands on line 1 already"
    assert document.root is not None
    assert plain(document.root) == {"a": 1, "b": 2}


@pytest.mark.parametrize("text", ["{a: 1, 'a': 2}", '{a: 1, "a": 2}', "a: 1\n? a\n: 2"])
def test_quotes_do_not_make_another_key(text):
    assert [problem.code for problem in read_text(text, "a.yaml").problems] == ["RCP012"]


@pytest.mark.parametrize("tag", ["!!python/object:os.system", "!x", "!!int", "!<tag:x>"])
def test_tags_are_refused(tag):
    assert [problem.code for problem in read_text(f"a: {tag} x").problems] == ["RCP014"]


def test_a_second_document_is_refused():
    (problem,) = read_text("a: 1\n---\nb: 2\n").problems
    assert (problem.code, problem.place.line) == ("RCP013", 2)


def test_nodes_know_where_they_stand():
    document = read_text("a:\n  - é: [x]\n")
    root, place_of = document.root, document.source.place_of
    assert isinstance(root, MapNode)
    assert place_of(root.keys["a"]) == Place(1, 1, 1)
    items = root.entries["a"]
    assert isinstance(items, ListNode)
    assert place_of(items) == Place(2, 3, 8)
    first = items.items[0]
    assert isinstance(first, MapNode)
    flow = first.entries["é"]
    assert isinstance(flow, ListNode)
    assert place_of(flow) == Place(2, 8, 3)
    assert (flow.start, flow.end) == (10, 13)
    assert place_of(flow.items[0]) == Place(2, 9, 1)


@pytest.mark.parametrize(
    "text",
    ["a: [1\n", "a: {b\n", "a: 'x\n", 'a: "\\x"', "%", "%YAML 9.9\n---\na", "&", "a: *", "? ", ": ", "- -", "a: b: c", "@", "`", "|", ">9", "!", "a: |\n\tb", "\t", "[]]", "{}}", "a\nb: c"],
)  # fmt: skip
def test_broken_yaml_is_told_and_never_raised(text):
    document = read_text(text, "a.yaml")
    assert document.problems or document.root is not None
    for problem in document.problems:
        assert problem.code.startswith("RCP")
        assert problem.message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("NULL", None),
        ("true", True),
        ("True", True),
        ("FALSE", False),
        ("0", 0),
        ("-12", -12),
        ("+3", 3),
        ("007", 7),
        ("0o17", 15),
        ("0xfF", 255),
        ("1.5", 1.5),
        ("-.5", -0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
    ],
)
def test_plain_words_become_what_yaml_1_2_says(text, value):
    read = plain_scalar(text)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    "text",
    ["yes", "no", "on", "off", "Y", "NO", "nULL", "tRUE", "12:30", "1_000", "0b1", "0x", "1.2.3",
     "2024-05-01", ".inf", "-.INF", ".nan", "1e999", "9" * 400, "-", ".", "+", "1e", "٣", "a"],
)  # fmt: skip
def test_everything_else_stays_text(text):
    assert plain_scalar(text) == text
