import pytest

from stretto.documents.yaml_text import plain_scalar


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("NULL", None),
        ("true", True),
        ("True", True),
        ("FALSE", False),
        ("0", 0),
        ("-12", -12),
        ("+3", 3),
        ("007", 7),
        ("0o17", 15),
        ("0xfF", 255),
        ("1.5", 1.5),
        ("-.5", -0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
    ],
)
def test_plain_words_become_what_yaml_1_2_says(text, value):
    read = plain_scalar(text)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    "text",
    ["yes", "no", "on", "off", "Y", "NO", "nULL", "tRUE", "12:30", "1_000", "0b1", "0x", "1.2.3",
     "2024-05-01", ".inf", "-.INF", ".nan", "1e999", "9" * 400, "-", ".", "+", "1e", "٣", "a"],
)  # fmt: skip
def test_everything_else_stays_text(text):
    assert plain_scalar(text) == text
