import copy

import pytest

from stretto.templates.json_text import kind_of
from stretto.templates.scope import MISSING, Missing


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "null"),
        (True, "true or false"),
        (1, "a number"),
        (1.5, "a number"),
        ("", "text"),
        ([], "a list"),
        ({}, "an object"),
    ],
)
def test_values_are_called_what_authors_call_them(value, kind):
    assert kind_of(value) == kind


def test_there_is_one_missing():
    assert isinstance(MISSING, Missing)
    assert copy.deepcopy(MISSING) is MISSING
    assert repr(MISSING) == "MISSING"
