"""What models pass is checked, and what is wrong is said."""

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from stretto.adapters.tools.arguments import (
    Flag,
    Given,
    OneOf,
    Parameter,
    Parameters,
    Rows,
    Text,
    Whole,
)
from stretto.vocabulary.values import Json

TAKES = Parameters(
    Parameter("path", Text(1, 100), "the file", is_required=True),
    Parameter("limit", Whole(1, 10), "how many"),
    Parameter("all", Flag(), "everything"),
    Parameter("mode", OneOf(("a", "b")), "how"),
    Parameter(
        "edits", Rows(Parameters(Parameter("old", Text(1), "what", is_required=True)), 3), "."
    ),
)


def test_good_arguments_have_no_faults_and_are_read() -> None:
    values: dict[str, Json] = {"path": "a", "limit": 3, "all": True, "mode": "b"}
    assert TAKES.faults(values) == []
    given_ = Given(values)
    assert (given_.text("path"), given_.whole("limit", 1), given_.flag("all")) == ("a", 3, True)


def test_every_fault_is_said_at_once() -> None:
    assert TAKES.faults({"limit": "3", "mdoe": "a", "all": 1}) == [
        "there is no argument 'mdoe'; did you mean 'mode'?",
        "the argument 'path' is missing: the file",
        "the argument 'limit' must be a whole number, not text",
        "the argument 'all' must be true or false, not a number",
    ]


def test_null_is_an_argument_left_out() -> None:
    assert TAKES.faults({"path": "a", "limit": None}) == []
    assert Given({"limit": None}).whole("limit", 7) == 7


def test_numbers_have_bounds_and_booleans_are_no_numbers() -> None:
    for value, said in [(0, "must be from 1 to 10"), (True, "true or false"), (2.5, "a number")]:
        (fault,) = TAKES.faults({"path": "a", "limit": value})
        assert said in fault
    assert TAKES.faults({"path": "a", "limit": 3.0}) == []
    assert Given({"limit": 3.0}).whole("limit", 1) == 3


def test_a_wrong_row_is_named() -> None:
    (fault,) = TAKES.faults({"path": "a", "edits": [{"old": "x"}, {"old": ""}]})
    assert fault == (
        "the argument 'edits' has an element 2 that is wrong: the argument 'old' must not be empty"
    )


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda some: (
        st.lists(some, max_size=4) | st.dictionaries(st.text(max_size=5), some, max_size=3)
    ),
    max_leaves=6,
)


@given(
    st.dictionaries(
        st.sampled_from(["path", "limit", "all", "mode", "edits", "other"]),
        ANY_JSON | st.just([{"old": "x"}]) | st.sampled_from(["a", 3, True]),
    )
)
def test_what_is_accepted_is_what_the_shown_schema_accepts(values: dict[str, Json]) -> None:
    present = {name: value for name, value in values.items() if value is not None}
    is_valid = jsonschema.Draft202012Validator(TAKES.schema).is_valid(present)
    # The bound on text is ours alone: it is no part of what a model is shown.
    assert (TAKES.faults(values) == []) == (is_valid and "other" not in values)
