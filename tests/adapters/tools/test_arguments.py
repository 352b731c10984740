"""What models pass is checked, and every mistake is told."""

from typing import Literal

import jsonschema
import pytest
from hypothesis import given, strategies as st
from pydantic import Field, StrictBool

from stretto.adapters.tools.arguments import (
    Arguments,
    InvalidArguments,
    LongText,
    WholeNumber,
    check,
    standard_schema,
)
from stretto.vocabulary.json_value import Json


class Edit(Arguments):
    old: str = Field(min_length=1, description="what")


class Example(Arguments):
    path: str = Field(min_length=1, max_length=100, description="the file")
    limit: WholeNumber = Field(7, ge=1, le=10, description="how many")
    all: StrictBool = Field(False, description="everything")
    mode: Literal["a", "b"] | None = Field(None, description="how")
    edits: list[Edit] = Field([], min_length=1, max_length=3, description="changes")


def faults(values: dict[str, Json]) -> list[str]:
    try:
        check(Example, values)
    except InvalidArguments as wrong:
        return str(wrong).split("\n")
    return []


def test_good_arguments_become_a_value() -> None:
    values: dict[str, Json] = {"path": "a", "limit": 3, "all": True, "mode": "b"}
    assert check(Example, values) == Example(path="a", limit=3, all=True, mode="b")


def test_every_mistake_is_told_at_once() -> None:
    assert faults({"limit": "3", "mdoe": "a", "all": 1, "mode": "c"}) == [
        "- there is no argument 'mdoe'; did you mean 'mode'?",
        "- the argument 'path' is missing: the file",
        "- the argument 'limit' should be a valid integer, not text",
        "- the argument 'all' should be a valid boolean, not a number",
        "- the argument 'mode' should be 'a' or 'b', not 'c'",
    ]


def test_many_mistakes_are_counted() -> None:
    told = faults({"path": "a", **{f"wrong{number}": 1 for number in range(20)}})
    assert len(told) == 9
    assert told[-1] == "- and 12 more"


def test_null_is_an_argument_left_out() -> None:
    assert check(Example, {"path": "a", "limit": None, "mode": None}) == Example(path="a")
    assert faults({"path": None}) == ["- the argument 'path' is missing: the file"]


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (0, "should be greater than or equal to 1, not 0"),
        (11, "should be less than or equal to 10, not 11"),
        (True, "should be a valid integer, not true or false"),
        (2.5, "should be a valid integer, not a number"),
        ("x" * 1000, "should be a valid integer, not text"),
    ],
)
def test_numbers_have_bounds_and_booleans_are_no_numbers(value: Json, fault: str) -> None:
    assert faults({"path": "a", "limit": value}) == [f"- the argument 'limit' {fault}"]


def test_a_whole_number_may_be_written_with_a_point() -> None:
    assert check(Example, {"path": "a", "limit": 3.0}).limit == 3


def test_texts_have_bounds_and_a_long_one_is_not_repeated() -> None:
    assert faults({"path": ""}) == ["- the argument 'path' should have at least 1 character"]
    assert faults({"path": "x" * 101}) == [
        "- the argument 'path' should have at most 100 characters"
    ]


def test_the_place_in_a_list_is_named() -> None:
    assert faults({"path": "a", "edits": [{"old": "x"}, {"old": ""}]}) == [
        "- the argument 'edits' (element 2, 'old') should have at least 1 character"
    ]
    assert faults({"path": "a", "edits": [{"od": "x"}]}) == [
        "- the argument 'edits' (element 1, 'old') is missing",
        "- the argument 'edits' (element 1, 'od') is not expected there",
    ]


def test_a_schema_says_nothing_of_defaults_null_titles_and_the_length_of_texts() -> None:
    class Small(Arguments):
        """Not for the model."""

        text: LongText | None = Field(None, description="some")
        edit: Edit

    assert standard_schema(Small) == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "some"},
            "edit": {
                "type": "object",
                "properties": {
                    "old": {"type": "string", "minLength": 1, "description": "what"},
                },
                "required": ["old"],
                "additionalProperties": False,
            },
        },
        "required": ["edit"],
        "additionalProperties": False,
    }


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
    schema = standard_schema(Example)
    is_valid = jsonschema.Draft202012Validator(schema).is_valid(present)
    # The greatest length of a text is not part of what a model is shown.
    assert (faults(values) == []) == is_valid
