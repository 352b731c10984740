import time

import pytest

from stretto.validation.rules.counting import Counted, count, titles


@pytest.mark.parametrize(
    ("unit", "text", "fewest", "most"),
    [
        ("words", "- one two\n- three", 3, 3),
        ("words", "well-known fact", 2, 3),
        ("words", "", 0, 0),
        ("characters", " abc\n", 3, 5),
        ("sentences", "One. Two! Three?", 3, 3),
        ("sentences", "It is 3.5 metres.", 1, 1),
        ("sentences", "Ask Dr. Smith. Then go.", 2, 3),
        ("sentences", "A heading\nOne. Two.", 2, 3),
        ("lines", "a\n\nb\n", 2, 3),
        ("paragraphs", "# Title\n\nOne.\n\nTwo.\n", 2, 3),
        ("bullets", "- a\n- b\n", 2, 2),
        ("bullets", "- a\n  - b\n", 1, 2),
        ("bullets", "1. a\n2. b\n", 0, 2),
        ("bullets", "```\n- a\n```\n* b", 1, 1),
        ("bullets", "-5 degrees", 0, 0),
        ("sections", "# Title\n## A\n## B\n", 2, 3),
        ("sections", "# A\n# B\n", 2, 2),
        ("sections", "A\n===\nB\n===\n", 2, 2),
        ("headings", "**Bold line**\ntext\n", 0, 1),
    ],
)
def test_things_are_counted_as_people_may_count_them(unit, text, fewest, most):
    assert count(text, unit) == Counted(fewest, most)


def test_words_of_a_script_without_blanks_are_not_counted():
    assert count("これは文章です", "words") is None


def test_headings_are_found_in_every_form():
    text = "# One #\n\nTwo\n---\n\n**Three:**\n\n```\n# not this\n```\n"
    assert titles(text) == ["One", "Two", "Three:"]


@pytest.mark.parametrize(
    "text",
    [
        "." * 300_000 + "x",
        ".'" * 200_000,
        "a. " * 200_000,
        "\n" * 500_000,
        " " * 500_000,
        "```\n" * 100_000 + "x",
        "# " + " " * 300_000,
        "**" * 200_000,
        "- " * 200_000,
        "x\n=" * 150_000,
        "1" * 500_000,
    ],
    ids=lambda text: text[:4],
)
def test_a_hostile_text_is_counted_quickly(text):
    units = ("words", "characters", "sentences", "lines", "paragraphs", "bullets", "headings")
    began = time.process_time()
    for unit in units:
        count(text, unit)
    # What it must not be is quadratic: that would be minutes.
    assert time.process_time() - began < 5
