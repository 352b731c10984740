import pytest

from stretto.vocabulary.amounts import LONGEST_SECONDS, format_duration, parse_duration


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("500ms", 0.5),
        ("90s", 90),
        ("3m", 180),
        ("2h", 7200),
        ("1h30m", 5400),
        ("1d2h3m4s5ms", 93784.005),
        ("1.5h", 5400),
        ("0.5s", 0.5),
        ("  3m ", 180),
        ("45", 45),
        ("2.5", 2.5),
        (45, 45),
        (2.5, 2.5),
        (1, 1),
        ("366d", LONGEST_SECONDS),
        (LONGEST_SECONDS, LONGEST_SECONDS),
    ],
)
def test_a_duration_is_written_with_units_or_as_a_number_of_seconds(written, seconds):
    assert parse_duration(written) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "written",
    [
        "",
        " ",
        "s",
        "m3",
        "3 m",
        "3mm",
        "90sec",
        "1w",
        "-3m",
        "+3m",
        "1,5h",
        ".5s",
        "1e3",
        "30m1h",
        "1s1s",
        "1h 30m",
        "0",
        "0s",
        0,
        0.0,
        -1,
        "367d",
        LONGEST_SECONDS + 1,
        "9" * 400,
        float("inf"),
        float("nan"),
        True,
        False,
        "3m\n4",
    ],
)
def test_what_is_no_duration_is_none(written):
    assert parse_duration(written) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0ms"),
        (0.25, "250ms"),
        (1, "1s"),
        (45, "45s"),
        (2.5, "2.5s"),
        (60, "1m"),
        (90, "1m30s"),
        (5400, "1h30m"),
        (3600, "1h"),
        (3601, "1h1s"),
        (90000, "25h"),
    ],
)
def test_a_duration_is_shown_in_its_shortest_form(seconds, text):
    assert format_duration(seconds) == text


@pytest.mark.parametrize("seconds", [0.001, 0.25, 1, 59, 60, 61, 3599, 3600, 5400, 86400])
def test_what_is_shown_can_be_read_again(seconds):
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds)
