"""What is written as YAML reads back as the same value, whatever it holds."""

import pytest
from hypothesis import given, strategies as st

from stretto.documents.document import read_text
from stretto.documents.node import FORBIDDEN, plain
from stretto.documents.yaml_form import yaml_form
from stretto.vocabulary.json_value import Json


def read(text: str) -> Json:
    document = read_text(text)
    assert not document.problems, (text, document.problems)
    assert document.root is not None
    return plain(document.root)


TEXT = st.text(
    st.one_of(
        st.sampled_from("\n \t:#-?!'\"{}[]|>&*%@`,\\~=yn01.e"),
        st.characters(exclude_categories=("Cs",)),
    )
).filter(lambda text: text != "<<" and not FORBIDDEN.search(text))  # a recipe may hold neither
SCALAR = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXT,
)
VALUE = st.recursive(
    SCALAR,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=4)),
    max_leaves=12,
)


@given(st.dictionaries(TEXT, VALUE, min_size=1, max_size=4))
def test_whatever_is_written_reads_back_as_the_same(value: dict[str, Json]) -> None:
    assert read(yaml_form(value)) == value


@pytest.mark.parametrize(
    "text", ["1e3", "0o7", "0x1F", "1_000", "yes", "12:30:00", "~", "=", "2026-01-01", ".5", "- a"]
)
def test_a_text_that_looks_like_something_else_stays_a_text(text: str) -> None:
    assert read(yaml_form({"key": text, text: [text]})) == {"key": text, text: [text]}


def test_a_recipe_looks_as_a_person_would_write_it() -> None:
    step = {"id": "a", "subagent": "writer", "depends_on": ["b", "c"], "prompt": "Write:\n\n{{x}}"}
    assert yaml_form({"name": "brief", "version": 1, "inputs": {}, "steps": [step]}) == (
        "name: brief\nversion: 1\ninputs: {}\nsteps:\n  - id: a\n    subagent: writer\n"
        "    depends_on: [b, c]\n    prompt: |-\n      Write:\n\n      {{x}}\n"
    )
