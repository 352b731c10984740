"""JSON that others wrote, as hostile as it likes."""

import pytest

from stretto.adapters.models.cli.cli_spec import (
    count_at,
    json_line,
    number_at,
    text_at,
    words_of,
)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"words",
        b"[1]",
        b'"x"',
        b"{",
        b'{"a":' + b"[" * 100_000,
        b'{"n":' + b"9" * 9_000 + b"}",
    ],
)
def test_what_is_no_object_is_nothing(line: bytes) -> None:
    assert json_line(line) is None


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert json_line(b'{"a":"\xff"}') == {"a": "\N{REPLACEMENT CHARACTER}"}


def test_half_a_letter_is_replaced_and_a_whole_one_kept() -> None:
    read = json_line(rb'{"a":["\ud83d\ude00","\ud800"],"\udc00":1}')
    assert read == {"a": ["😀", "\N{REPLACEMENT CHARACTER}"], "\N{REPLACEMENT CHARACTER}": 1}


@pytest.mark.parametrize(
    "number", [b"NaN", b"-Infinity", b"1e999", b"-5", b"true", b'"7"', b"1e300"]
)
def test_what_is_no_count_counts_nothing(number: bytes) -> None:
    read = json_line(b'{"n":' + number + b"}")
    assert number_at(read, "n") == 0.0
    assert count_at(read, "n") == 0


def test_a_path_through_something_else_leads_nowhere() -> None:
    assert text_at({"a": [1]}, "a", "b", "c") == ""


def test_the_words_of_a_message_are_found_however_they_are_wrapped() -> None:
    assert words_of([{"type": "text", "text": "a"}, "b", {"type": "image"}]) == "a\nb"
