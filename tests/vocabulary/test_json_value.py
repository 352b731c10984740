"""How deep a value is nested."""

import pytest

from stretto.vocabulary.json_value import is_deeper


@pytest.mark.parametrize(
    ("value", "levels"),
    [(1, 0), ("x", 0), ([], 1), ({}, 1), ([1], 1), ([[]], 2), ({"a": [1, {"b": 2}]}, 3)],
)
def test_levels_are_lists_and_objects(value: object, levels: int) -> None:
    assert not is_deeper(value, levels)
    assert levels == 0 or is_deeper(value, levels - 1)


def test_a_value_that_is_very_deep_is_found_without_walking_down_to_its_end() -> None:
    value: object = 1
    for _ in range(100_000):
        value = [value]
    assert is_deeper(value)
    while isinstance(value, list):
        value = value.pop()
