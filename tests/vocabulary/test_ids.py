import re

import pytest

from stretto.vocabulary.names import ID_PATTERN, is_id


@pytest.mark.parametrize("text", ["a", "7", "A-b_c9", "step-1", "a" * 300, "9-_"])
def test_an_id_is_letters_digits_dashes_and_underscores(text):
    assert is_id(text)
    assert re.search(ID_PATTERN, text)


@pytest.mark.parametrize(
    "text", ["", "-a", "_a", "a b", "a.b", "a\n", "é", "a/b", "{{a}}", "٣", "a:b", "#0"]
)
def test_anything_else_is_not(text):
    assert not is_id(text)
