import pytest

from stretto.documents.document import read_text
from stretto.documents.node import ScalarNode, Source, find, find_key
from stretto.problems import Place


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
    root = read_text("a:\n  - b: x\n").root
    assert root is not None
    found = find(root, ("a", 0, "b"))
    assert isinstance(found, ScalarNode)
    assert found.value == "x"
    assert find(root, ("a", 0, "c")) is find(root, ("a", 0))
    assert find(root, ("a", 7)) is find(root, ("a",))
    assert find(root, ("z", "y")) is root
    key = find_key(root, ("a", 0, "b"))
    assert key is not None
    assert (key.written, key.line, key.column) == ("b", 2, 5)
    assert find_key(root, ("a", 0, "c")) is None


def test_a_piece_is_found_inside_a_scalar_by_its_count():
    document = read_text("a: 'x y x y'\nb: y\n")
    assert document.root is not None
    node = find(document.root, ("a",))
    assert document.source.place_inside(node, "x y x y", 6, 1) == Place(1, 11, 1)
    # What an escape hides is at least inside the scalar.
    assert document.source.place_inside(node, "z y x y", 0, 1) == Place(1, 4, 9)
    assert document.source.place_inside(node, "y y y y", 6, 1) == Place(1, 4, 9)
