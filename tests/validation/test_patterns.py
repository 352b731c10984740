import re
import time
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.validation.patterns import MOST_WORK, TooMuch, Unmatchable, Work, occurs

# A machine with much to do is slow now and then; that is no fault of an example.
unhurried = settings(deadline=None)

PATTERNS = [
    "",
    "abc",
    "^a*$",
    r"^\d{3}-\d{4}$",
    r"^[a-z]+(-[a-z]+)*$",
    r"^[^@\s]+@[^@\s]+\.[^@\s]+$",
    "a|b|^$",
    r"(?i)AbC",
    r"(?i:a)B",
    r"\bfoo\b",
    r"\Bo",
    r"a{2,4}b?c+?",
    r"(a|ab)(c|bcd)$",
    r"^(?=.*\d)(?=.*[a-z]).{2,}$",
    r"(?<!a)b",
    r"(?<=ab)c",
    r"(?!x)[^y]",
    r"^.$",
    r"(?s)^.$",
    r"(?m)^b$",
    r"\Aa\Z",
    r"[\w.-]+\s\S\D\W",
    r"(a*)*b",
    r"((a?){3}){2}b",
    r"(?a)\w",
    r"(?:)",
    r"[^\n]$",
    r"(?i)[^a-c]",
]


@unhurried
@given(st.sampled_from(PATTERNS), st.text("abcdxyABC01-@. \n_éß", max_size=12))
def test_it_finds_what_the_standard_matcher_finds(pattern, text):
    assert occurs(pattern, text) == (re.search(pattern, text) is not None)


pieces = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "a|b", "^", "$", r"\b", "(a)", ""])
grown = st.recursive(
    pieces,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "*?"])).map(
            lambda made: f"(?:{made[0]}){made[1]}"
        ),
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda made: f"(?:{made[0]}|{made[1]})"),
        inner.map(lambda made: f"(?={made})"),
        inner.map(lambda made: f"(?!{made})"),
    ),
    max_leaves=6,
)


@unhurried
@given(grown, st.text("ab\n", max_size=6))
def test_it_agrees_on_patterns_that_nobody_thought_of(pattern, text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = re.search(pattern, text) is not None
    assert occurs(pattern, text) == expected


@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(.*)*=", "^(([a-z])+.)+$"]
)
def test_a_pattern_that_hangs_the_standard_matcher_is_answered(pattern):
    began = time.process_time()
    assert not occurs(pattern, "a" * 500 + "\n!")
    assert time.process_time() - began < 2


def test_what_would_take_too_much_work_is_refused():
    began = time.process_time()
    with pytest.raises(TooMuch):
        occurs("^(a|b|c|d)*$", "abcd" * (MOST_WORK // 4))
    assert time.process_time() - began < 10


def test_work_is_shared_between_texts():
    work = Work(1000)
    assert not occurs("^b", "a" * 900, work)
    with pytest.raises(TooMuch):
        occurs("^b", "a" * 300, work)


@pytest.mark.parametrize(
    "pattern",
    [r"(a)\1", "(?>a)b", "a*+", "(a)?(?(1)b|c)", "a{1,100000}", "((a{100}){100}){100}", "(", "["],
)
def test_a_pattern_outside_what_can_be_bounded_is_refused(pattern):
    with pytest.raises(Unmatchable):
        occurs(pattern, "aa")


def test_a_pattern_that_is_nested_without_end_is_refused():
    with pytest.raises(Unmatchable):
        occurs("(" * 999 + ")" * 999, "a")
