"""What a check found, as text: short, plain, and the same where nothing has changed."""

import pytest

from stretto.goals.evidence import (
    MOST_EVIDENCE,
    check_result,
    cut,
    decide_data,
    fingerprint,
    is_pending,
    judge_result,
    read_checks,
    read_expression,
    read_junit,
)
from stretto.goals.prompts import declared_reason
from stretto.goals.verifier import CiTarget, read_ci, read_data, read_verifier
from stretto.problems.errors import InvalidUsage
from stretto.text.redaction import MASK, Redactor
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2 failed in 0.12s", "2 failed in 13.4s"),
        ("at 2026-11-18T11:52:03Z: no", "at 2027-01-02T01:02:03.123+01:00: no"),
        ("[11:52:03] broken", "[09:00:59] broken"),
        ("<object at 0x7f00aa>", "<object at 0x7f99bb>"),
        ("/tmp/pytest-of-me-12/x failed", "/tmp/tmpab3_9/x failed"),
        ("pid 123 died", "pid 99881 died"),
        ("id 3f2b8c1e-0000-4a4a-9b9b-0123456789ab", "id ffffffff-1111-4a4a-9b9b-ba9876543210"),
        ("stamp 1795002716", "stamp 1795002999"),
        ("a  b\n\nc", "a b\nc"),
    ],
)  # fmt: skip
def test_what_differs_without_meaning_anything_is_left_out(one: str, other: str) -> None:
    assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3 failed", "2 failed"),
        ("FAILED test_a", "FAILED test_b"),
        ("line 12: wrong", "line 13: wrong"),
        ("a.py:12:34: error", "a.py:12:35: error"),
        ("count is 41", "count is 42"),
    ],
)
def test_what_means_something_is_kept(one: str, other: str) -> None:
    assert fingerprint(one) != fingerprint(other)


def test_long_text_keeps_its_beginning_and_its_end() -> None:
    text = "a" * 5_000 + "b" * 1_000_000 + "c" * 5_000
    short = cut(text)
    assert len(short) < MOST_EVIDENCE + 60
    assert short.startswith("aaa")
    assert short.endswith("ccc")
    assert "1,002,400 characters left out" in short
    assert check_result(False, text).fingerprint != check_result(False, f"{text}d").fingerprint


def test_a_secret_is_taken_out_before_the_text_is_cut_in_two() -> None:
    secret = "s3cr3t-0123456789"
    text = "x" * 1_990 + secret + "y" * 20_000
    found = check_result(False, text, lambda said: said.replace(secret, "[redacted]"))
    assert "s3cr3t" not in found.evidence


def test_half_characters_and_control_sequences_are_no_evidence() -> None:
    found = check_result(False, "a\x1b[31mb\x1b[0m\x1b]8;;http://x\x07c\ud800d\x00e\x9b31m")
    found.evidence.encode()
    assert not set(found.evidence) & {"\x1b", "\x00", "\x07", "\x9b"}


def test_a_junit_report_is_read_and_nothing_else_is() -> None:
    text = """<testsuites><testsuite><testcase classname="a.B" name="one"/>
    <testcase classname="a.B" name="two"><failure message="1 != 2">long</failure></testcase>
    <testcase name="three"><error>broke</error></testcase>
    <testcase name="four"><skipped/></testcase></testsuite></testsuites>"""
    counts = read_junit(text)
    assert counts is not None
    assert (counts.run, counts.skipped) == (4, 1)
    assert counts.failed == (("a.B::two", "1 != 2"), ("three", "broke"))
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>'
    for other in ("", "<", bomb, "no xml", "\x00"):
        assert read_junit(other) is None


def test_checks_are_green_only_where_each_is_clearly_so() -> None:
    assert read_checks(
        '[{"name": "a", "bucket": "pass"}, {"name": "b", "bucket": "skipping"}]', "x"
    )[0]
    for text in ("[]", "{}", "x", '[{"name": "a"}]', '[{"name": "a", "bucket": "cancel"}]'):
        assert not read_checks(text, "x")[0]
    is_met, said = read_checks('[{"name": "a", "bucket": "skipping"}]', "PR 1")
    assert (is_met, said) == (False, "PR 1: its only check was skipped, so nothing is verified")
    assert is_pending('[{"status": "in_progress", "conclusion": ""}]')
    assert not is_pending('[{"status": "completed", "conclusion": "failure"}]')


@pytest.mark.parametrize(
    ("status", "output", "is_met"),
    [
        ("complete", {"passed": True, "reason": "it is"}, True),
        ("complete", {"passed": False, "reason": "it is not"}, False),
        ("complete", {"passed": 1, "reason": "x"}, False),
        ("complete", {"passed": True}, False),
        ("complete", {"passed": True, "reason": " "}, False),
        ("complete", "passed", False),
        ("complete", None, False),
        ("partial", {"passed": True, "reason": "it is"}, False),
        ("cancelled", None, False),
    ],
)
def test_any_doubt_of_a_judge_is_not_met(status: str, output: Json, is_met: bool) -> None:
    found = judge_result(status, output, Usage(), (), str)
    assert found.is_met is is_met
    assert found.evidence


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("Done.", ""),
        ("I tried.\nGOAL UNACHIEVABLE: no key\n", "no key"),
        ("> **GOAL UNACHIEVABLE: no key**", "no key"),
        ("it is not a GOAL UNACHIEVABLE: case", ""),
        ("GOAL UNACHIEVABLE:", ""),
        ({"said": "GOAL UNACHIEVABLE: a field"}, "a field"),
        ([["GOAL UNACHIEVABLE: deep"]], "deep"),
        (None, ""),
        (7, ""),
    ],
)
def test_a_give_up_is_a_line_of_its_own(output: Json, reason: str) -> None:
    assert declared_reason(output) == reason


def test_a_verifier_is_read_or_told_what_is_wrong_with_it() -> None:
    assert str(read_verifier(" Command : make check ")) == "command:make check"
    assert read_verifier("test:").spec == ""
    for written in (
        "",
        "make",
        "llm:",
        "data:x",
        "data:#a",
        "data:x#",
        "data:x#a ==",
        "command:\0",
    ):
        with pytest.raises(InvalidUsage):
            read_verifier(written)
    with pytest.raises(InvalidUsage) as caught:
        read_verifier("comand:make")
    assert "did you mean 'command'" in caught.value.hint
    asked = read_data("a.db#SELECT n AS x FROM t#x == 1")
    assert (asked.source, asked.sql, asked.expression) == ("a.db", "SELECT n AS x FROM t", "x == 1")


@pytest.mark.parametrize(
    ("spec", "target"),
    [
        ("#12", CiTarget(pull_request="12")),
        ("12", CiTarget(pull_request="12")),
        ("pr 12", CiTarget(pull_request="12")),
        ("https://github.com/a/b/pull/9", CiTarget(pull_request="https://github.com/a/b/pull/9")),
        ("branch main", CiTarget(branch="main")),
        ("main", CiTarget(branch="main")),
        ("test", CiTarget(branch="test")),
        ("feature/x", CiTarget(branch="feature/x")),
        ("make ci", CiTarget()),
        ("make", CiTarget()),
        ("./ci.sh", CiTarget()),
        ("--repo=evil", CiTarget()),
    ],
)
def test_ci_is_a_pull_request_a_branch_or_a_command(spec: str, target: CiTarget) -> None:
    is_program = spec.split()[0] in ("make", "test")
    assert read_ci(spec, frozenset({"main", "test"}), is_program) == target


@pytest.mark.parametrize("between", ["\x1b[m\x1b[K", "\x00", "\u200b", "\x1b[01;31m"])
def test_what_stands_invisibly_in_a_secret_does_not_show_it(between: str) -> None:
    """`grep --color=always` prints colours around what it has found."""
    secret = "sk-abcdef0123456789ABCDEF"
    hide = Redactor({"OPENAI_API_KEY": secret}).text
    found = check_result(False, f"key {secret[:3]}{between}{secret[3:]}", hide)
    assert secret not in found.evidence
    assert MASK in found.evidence


@pytest.mark.parametrize("text", ["{{in}} == 3", "{{not}} == 3", "{{a--}} == 3"])
def test_a_path_in_braces_may_be_any_word(text: str) -> None:
    found = decide_data(read_expression(text), {}, str)
    assert not found.is_met
    assert "missing" in found.evidence
