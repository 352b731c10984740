import pytest

from stretto.documents.document import read_text
from stretto.documents.node import MapNode, ScalarNode, Source, describe, find, find_key, spell
from stretto.problems import Place


@pytest.mark.parametrize(
    ("path", "spelt"),
    [
        ((), ""),
        (("steps",), "steps"),
        (("steps", 2, "depends_on", 0), "steps[2].depends_on[0]"),
        (("workflow", "agents", "a-b", "retry"), "workflow.agents.a-b.retry"),
        ((0, 1), "[0][1]"),
    ],
)
def test_a_path_is_spelt_as_one_would_write_it(path, spelt):
    assert spell(path) == spelt


@pytest.mark.parametrize(
    ("written", "called"),
    [
        ("[1]", "a list"),
        ("{a: 1}", "a mapping"),
        ("", "nothing"),
        ("true", "the boolean true"),
        ("0x10", "the number 0x10"),
        ("2.50", "the number 2.50"),
        ("hello", "the text 'hello'"),
        ("'5'", "the text '5'"),
        ("x" * 50, f"the text '{'x' * 37}…'"),
    ],
)
def test_a_value_is_called_what_an_author_would_call_it(written, called):
    root = read_text(f"a: {written}").root
    assert isinstance(root, MapNode)
    assert describe(root.entries["a"]) == called


@pytest.mark.parametrize("text", ["a\nb\nc", "a\r\nb\r\nc", "a\rb\rc"])
def test_lines_end_as_yaml_says(text):
    source = Source(text)
    assert source.lines == ["a", "b", "c"]
    assert [source.line(number) for number in (0, 1, 3, 4)] == ["", "a", "c", ""]


@pytest.mark.parametrize(
    ("index", "place"), [(0, (1, 1)), (2, (1, 3)), (4, (2, 1)), (6, (2, 3)), (8, (3, 1))]
)
def test_an_index_has_a_line_and_a_column(index, place):
    found = Source("ab\r\ncd\r\né").place_of_index(index, 2)
    assert found == Place(*place, 2)


def test_a_problem_carries_its_line():
    problem = Source("a\nb c\n", "f.yaml").problem("X1", Place(2, 3), "no", None, ("a", 0))
    assert (problem.file, problem.source_line, problem.hint, problem.path) == (
        "f.yaml",
        "b c",
        "",
        "a[0]",
    )


def test_the_nearest_written_node_stands_for_one_that_is_not():
    document = read_text("a:\n  - b: x\n")
    root = document.root
    assert root is not None
    found = find(root, ("a", 0, "b"))
    assert isinstance(found, ScalarNode)
    assert found.value == "x"
    assert find(root, ("a", 0, "c")) is find(root, ("a", 0))
    assert find(root, ("a", 7)) is find(root, ("a",))
    assert find(root, ("z", "y")) is root
    key = find_key(root, ("a", 0, "b"))
    assert key is not None
    assert (key.written, document.source.place_of(key)) == ("b", Place(2, 5, 1))
    assert find_key(root, ("a", 0, "c")) is None


def test_a_piece_is_found_inside_a_scalar_by_its_count():
    document = read_text("a: 'x y x y'\nb: y\n")
    assert document.root is not None
    node = find(document.root, ("a",))
    assert document.source.place_inside(node, "x y x y", 6, 1) == Place(1, 11, 1)
    # What an escape hides is at least inside the scalar.
    assert document.source.place_inside(node, "z y x y", 0, 1) == Place(1, 4, 9)
    assert document.source.place_inside(node, "y y y y", 6, 1) == Place(1, 4, 9)
