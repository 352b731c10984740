import json

import pytest

from stretto.documents.document import read_text
from stretto.documents.node import MapNode, plain
from stretto.problems import Place


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "b": [true, false, null], "c": {"d": "x"}}',
        "[]",
        "{}",
        "[-1, 0, 1.5, -0.25, 1e3, 2E-2, 12345678901234567890]",
        '["\\"\\\\\\/\\n\\r\\t\\u00e9\\ud83c\\udf89"]',
        ' \t\r\n[ 1 , { "a" : [ ] } ]\n',
        '{"' + "k" * 2000 + '": 1}',
        '["' + "日本" * 100 + '"]',
    ],
)
def test_json_is_read_as_the_standard_library_reads_it(text):
    document = read_text(text, "a.json")
    assert document.problems == ()
    assert document.root is not None
    assert plain(document.root) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("[1,]", 1, 4),
        ("[1 2]", 1, 4),
        ("[1,\n 2", 2, 3),
        ('{"a" 1}', 1, 6),
        ('{"a": 1,}', 1, 9),
        ("{a: 1}", 1, 2),
        ("[NaN]", 1, 2),
        ("[Infinity]", 1, 2),
        ("[-Infinity]", 1, 2),
        ("[01]", 1, 3),
        ("[.5]", 1, 2),
        ("[+1]", 1, 2),
        ("[tru]", 1, 2),
        ("[nullx]", 1, 6),
        ("[1] x", 1, 5),
        ("[// no\n1]", 1, 2),
        ("['a']", 1, 2),
        ('["\\x"]', 1, 3),
        ('["a\tb"]', 1, 4),
        ('["a', 1, 2),
        ("[", 1, 2),
        ("]", 1, 1),
    ],
)
def test_what_is_not_json_is_pointed_at(text, line, column):
    document = read_text(text, "a.json")
    assert document.root is None
    (problem,) = document.problems
    assert problem.code == "RCP007"
    assert (problem.place.line, problem.place.column) == (line, column)


def test_a_key_that_is_written_twice_is_told_where():
    document = read_text('{"a": 1,\r\n "b": 2,\r\n "a": 3}', "a.json")
    (problem,) = document.problems
    assert (problem.code, problem.place.line, problem.place.column) == ("RCP012", 3, 2)
    assert problem.hint == "it stands on line 1 already"


def test_half_a_surrogate_pair_is_told():
    document = read_text('{"a": "x\\ud800"}', "a.json")
    (problem,) = document.problems
    assert (problem.code, problem.place.column) == ("RCP004", 7)


def test_a_number_past_every_double_is_refused():
    assert [p.code for p in read_text("[1e400]", "a.json").problems] == ["RCP007"]
    assert [p.code for p in read_text("[" + "9" * 400 + "]", "a.json").problems] == ["RCP007"]


def test_nodes_know_where_they_stand():
    document = read_text('{\r\n  "é": "x",\r\n  "b": []}', "a.json")
    root, place_of = document.root, document.source.place_of
    assert isinstance(root, MapNode)
    places = {name: place_of(node) for name, node in root.entries.items()}
    assert places == {"é": Place(2, 8, 3), "b": Place(3, 8, 2)}
    assert place_of(root.keys["b"]) == Place(3, 3, 3)
