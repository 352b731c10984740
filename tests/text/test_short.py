from pathlib import Path

import pytest

from stretto.text.short import (
    columns,
    counted,
    fit_name,
    list_names,
    name_line,
    relative_path,
    shorten,
    shorten_arguments,
    show_json,
    wrap,
    wrap_prose,
)
from stretto.vocabulary.json_value import Json


def test_one_thing_and_many_things_are_counted():
    assert [counted(n, "retry") for n in (0, 1, 2_000)] == ["0 retries", "1 retry", "2,000 retries"]
    assert counted(2, "model call") == "2 model calls"


def test_anything_becomes_one_printable_line():
    assert name_line(" a\n\tb\x00 \u202e c\ud800 ") == "a b␀ \ufffd c\ufffd"
    assert name_line("\x1b") == "␛"
    assert name_line(" ") == "?"


@pytest.mark.parametrize(
    ("text", "wide"), [("abc", 3), ("翻訳", 4), ("e\N{COMBINING ACUTE ACCENT}", 1), ("", 0)]
)
def test_width_is_counted_in_columns(text: str, wide: int):
    assert columns(text) == wide


@pytest.mark.parametrize(
    ("most", "short"),
    [(9, "collector"), (8, "coll…tor"), (5, "co…or"), (2, "c…"), (1, "…"), (0, "")],
)
def test_the_middle_goes_first(most: int, short: str):
    assert fit_name("collector", most) == short


def test_wide_characters_are_never_cut_in_half():
    assert fit_name("翻訳翻訳", 6) == "翻…訳"


def test_a_shortened_text_says_how_much_is_left_out():
    assert shorten("abcdef", 6) == "abcdef"
    assert shorten("abcdef", 4) == "abcd … (2 characters more)"


def test_arguments_are_bounded_in_every_direction():
    deep: Json = "x"
    for _ in range(50):
        deep = [deep]
    kept = shorten_arguments({"text": "x" * 9_000, "list": [0] * 500, "deep": deep, "k" * 900: 1})
    assert len(str(kept["text"])) < 2_100
    assert kept["list"] == [0] * 100
    assert kept["deep"] == [[[[[[["…"]]]]]]]
    assert max(map(len, kept)) < 300


def test_a_value_in_a_message_is_one_short_line():
    assert show_json({"a": [1, True, None]}) == '{"a": [1, true, null]}'
    assert len(show_json(["x" * 100_000] * 1_000, 60)) == 60
    assert show_json("a\nb\ud800") == '"a\\nb?"'


def test_many_names_are_counted():
    assert list_names(["a", "b"]) == "'a', 'b'"
    assert list_names([str(n) for n in range(10)], 2) == "'0', '1' and 8 more"


def test_a_path_is_told_from_the_project_on():
    assert relative_path(Path("/p/agents/a.md"), Path("/p")) == "agents/a.md"
    assert relative_path(Path("/home/a.md"), Path("/p")) == "/home/a.md"


def test_prose_is_broken_between_words_and_keeps_its_margin():
    assert wrap_prose("one two three", 0) == "one two three"
    assert wrap_prose("one two three", 8) == "one two\nthree"
    assert wrap_prose("  - one two three", 9) == "  - one\n    two\n    three"
    assert wrap_prose("    | one two three", 14) == "    | one two\n    | three"
    assert wrap_prose("a\n\nb", 3) == "a\n\nb"
    assert wrap_prose("漢字漢字", 4) == "漢字\n漢字"
    assert wrap_prose("see /a/long/path now", 6) == "see\n/a/long/path\nnow"
    assert wrap("/a/long/path", 6, breaks_words=True) == ["/a/lon", "g/path"]
    assert wrap_prose(" " * 30 + "deep words", 20).replace("\n", " ").split() == ["deep", "words"]
