import pytest

from stretto.report.diagrams.words import columns, plain, shorten


def test_anything_becomes_one_printable_line():
    assert plain(" a\n\tb\x00 \u202e c\ud800 ") == "a b␀ \ufffd c\ufffd"
    assert plain("\x1b") == "␛"
    assert plain(" ") == "?"


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
    assert shorten("collector", most) == short


def test_wide_characters_are_never_cut_in_half():
    assert shorten("翻訳翻訳", 6) == "翻…訳"
