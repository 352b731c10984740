import pytest

from stretto.text.short import closest, did_you_mean, listed

KEYS = ("depends_on", "max_turns", "timeout", "timeout_ms", "prompt", "on_failure")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("depend_on", "depends_on"),
        ("dependsOn", "depends_on"),
        ("depends-on", "depends_on"),
        ("DEPENDS_ON", "depends_on"),
        ("maxTurns", "max_turns"),
        ("promt", "prompt"),
        ("onfailure", "on_failure"),
    ],
)
def test_a_slip_is_told_from_what_was_meant(name, meant):
    assert closest(name, KEYS) == meant
    assert did_you_mean(name, KEYS) == f"did you mean '{meant}'?"


@pytest.mark.parametrize("name", ["", "zzz", "qwertyuiop", "p" * 10_000])
def test_what_is_near_nothing_gets_no_guess(name):
    assert closest(name, KEYS) is None
    assert did_you_mean(name, KEYS) is None


def test_nothing_is_near_when_there_is_nothing():
    assert closest("a", ()) is None


def test_a_name_is_never_its_own_guess():
    assert closest("prompt", ["prompt"]) is None


def test_very_long_known_names_are_no_guesses_either():
    assert closest("a" * 60, ["a" * 70]) is None


def test_a_long_listing_ends_in_how_many_more_there_are():
    assert listed([]) == ""
    assert listed(["a"]) == "a"
    assert listed("abcdefgh") == "a, b, c, d, e, f, g, h"
    assert listed("abcdefghij") == "a, b, c, d, e, f, g, h and 2 more"
    assert listed("abc", most=2) == "a, b and 1 more"
