"""What tools say is cut in one place."""

import pytest

from stretto.adapters.tools.outcomes import MOST_CHARACTERS, outcome
from stretto.text.short import cut_middle


def test_a_short_text_stays_as_it_is() -> None:
    assert outcome("short").text == "short"
    assert outcome("short").result_bytes is None


def test_a_long_text_keeps_its_head_and_its_tail_and_says_how_much_is_gone() -> None:
    told = outcome("head" + "x" * 100_000 + "tail")
    assert told.text.startswith("head")
    assert told.text.endswith("tail")
    assert "[… 70,408 characters left out …]" in told.text
    assert len(told.text) < MOST_CHARACTERS + 100
    assert told.size == 100_008


def test_the_size_is_in_bytes_and_from_before_the_cut() -> None:
    assert outcome("é" * 40_000).size == 80_000
    assert outcome("é").size == 2


def test_what_cannot_be_encoded_is_replaced() -> None:
    assert outcome("a\ud800b").text == "a?b"
    assert outcome("a\ud800b").size == 3


def test_nothing_is_lost_at_the_limit_itself() -> None:
    assert cut_middle("x" * 10, 10) == "x" * 10
    assert cut_middle("a b c d e f", 10) == "a b c d\n[… 1 characters left out …]\ne f"


@pytest.mark.parametrize("most", range(200, 400, 7))
def test_no_part_of_a_word_is_left_at_a_cut(most: int) -> None:
    """Half of a secret would not be known for one."""
    words = " ".join(f"secret-{number:04}-{'k' * 20}" for number in range(50))
    head, _, tail = cut_middle(words, most).partition("\n[…")
    for word in (*head.split(), *tail.partition("…]\n")[2].split()):
        assert word in words.split()
    assert len(head) > most // 3
