import re
import time

import pytest
from hypothesis import given, settings, strategies as st

from stretto.text.patterns import PatternError, compile_pattern

# A busy machine is slow now and then; that does not make an example a failure.
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
    r"^.$",
    r"(?s)^.$",
    r"(?m)^b$",
    r"\Aa\Z",
    r"[\w.-]+\s\S\D\W",
    r"(a*)*b",
    r"((a?){3}){2}b",
    r"(?P<name>a)b",
    r"\u00e9|\u0061",
    r"\\u0061|\\Z",
    r"[^\n]$",
    r"(?i)[^a-c]",
]


@unhurried
@given(st.sampled_from(PATTERNS), st.text("abcdxyABC01-@. _\n", max_size=12))
def test_a_pattern_finds_what_pythons_own_matcher_finds(pattern, text):
    # Python's $ also matches before a last line end; that of JSON Schema and RE2 does not.
    python = pattern if "(?m)" in pattern else re.sub(r"(?<!\\)\$", r"\\Z", pattern)
    assert compile_pattern(pattern).occurs_in(text) == (re.search(python, text) is not None)


def test_classes_are_ascii_and_properties_are_known():
    assert not compile_pattern(r"^\w$").occurs_in("é")
    assert compile_pattern(r"^\p{L}$").occurs_in("é")
    assert compile_pattern("^.$").occurs_in("\ud800")  # a lone surrogate counts as one character


def test_case_and_lines_are_options():
    assert compile_pattern("B", ignore_case=True).occurs_in("abc")
    by_line = compile_pattern("^b.*$", by_line=True)
    assert by_line.search(b"a\nbc\nd") == (2, 4)
    assert by_line.search(b"a\nbc\nbd", 4) == (5, 7)
    assert compile_pattern(r"a\sb", by_line=True).search(b"a\nb") is None
    assert compile_pattern("a.b", dot_all=True).search(b"a\nb") == (0, 3)


@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(.*)*=", "^(([a-z])+.)+$"]
)
def test_a_pattern_that_hangs_pythons_matcher_is_answered(pattern):
    began = time.process_time()
    assert not compile_pattern(pattern).occurs_in("a" * 50_000 + "\n!")
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"(a)\1", "back-references are not supported"),
        ("(?P<x>a)(?P=x)", "back-references are not supported"),
        ("a(?=b)", "look-ahead and look-behind are not supported"),
        ("(?<!a)b", "look-ahead and look-behind are not supported"),
        ("(?>a)b", "invalid perl operator"),
        ("a*+", "bad repetition operator"),
        ("a{1,100000}", "a repetition may count to 1,000"),
        ("((a{100}){100}){100}", "invalid repetition size"),
        (r"\pL{1000}", "too large"),
        ("(", "missing )"),
        ("[", "missing ]"),
        ("(" * 900, "missing )"),
        ("a" * 2001, "longer than 2,000 characters"),
        ("\ud800", "surrogates"),
    ],
    ids=lambda pattern: pattern[:20].encode("ascii", "replace").decode(),
)
def test_a_pattern_that_re2_does_not_know_is_refused_with_a_hint(pattern, reason):
    with pytest.raises(PatternError, match=re.escape(reason)) as error:
        compile_pattern(pattern)
    assert len(str(error.value)) < 300
