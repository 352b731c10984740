import pytest

from stretto.documents.document import read_text
from stretto.documents.node import MapNode, describe, spell


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
