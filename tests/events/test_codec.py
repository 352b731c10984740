"""Events as rows: how they look, and what becomes of rows that nobody can read."""

import json

import pytest

from stretto.events.attempts import AttemptId, BranchPart
from stretto.events.codec import UnknownEvent, decode, encode, encode_ascii
from stretto.events.model import (
    AttemptFailed,
    AttemptSucceeded,
)
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.names import StepId

SUCCEEDED = AttemptSucceeded(
    5.5, AttemptId(StepId("a"), 1), "fine", Usage(1, 2, 0.5, 3), ("odd",), "m"
)


def test_a_row_is_compact_json_with_its_fields_in_order() -> None:
    assert encode(SUCCEEDED) == (
        '{"type":"attempt_succeeded","at":5.5,"attempt":{"step":"a","number":1},'
        '"output":"fine","usage":{"input_tokens":1,"output_tokens":2,"usd":0.5,"model_calls":3},'
        '"warnings":["odd"],"model":"m","reused_from":null}'
    )


def test_a_row_is_one_line_of_utf_8() -> None:
    event = AttemptSucceeded(
        1.0, AttemptId(StepId("a"), 1, BranchPart("x\n")), {"ü\n\x00": "% %s \u2028"}
    )
    row = encode(event)
    assert "ü" in row
    assert "\n" not in row
    assert "\x00" not in row
    assert decode(row) == decode(row.encode()) == event


def test_half_of_a_surrogate_pair_comes_back_as_it_was() -> None:
    event = AttemptSucceeded(1.0, AttemptId(StepId("a"), 1), {"a\ud800": "\udfff %", "ü": 2.5})
    row = encode(event)
    assert row.isascii()
    assert decode(row) == event


def test_for_a_terminal_a_row_is_ascii_whatever_it_holds() -> None:
    event = AttemptSucceeded(
        1.0, AttemptId(StepId("a"), 1, BranchPart("x\n")), {"ü\n\x00\x9b": "\ud800 \u2028"}
    )
    row = encode_ascii(event)
    assert row.isascii()
    assert row.isprintable()
    assert decode(row) == event
    assert json.loads(row) == json.loads(encode(event))


def test_the_fields_of_an_output_keep_their_order() -> None:
    event = AttemptSucceeded(1.0, AttemptId(StepId("a"), 1), {"b": 1, "a": 2})
    read = decode(encode(event))
    assert isinstance(read, AttemptSucceeded)
    assert isinstance(read.output, dict)
    assert list(read.output) == ["b", "a"]


def test_missing_optional_fields_take_their_defaults() -> None:
    row = '{"type":"attempt_succeeded","at":1,"attempt":{"step":"a","number":1},"output":0}'
    assert decode(row) == AttemptSucceeded(1.0, AttemptId(StepId("a"), 1), 0)
    bare = (
        '{"type":"attempt_failed","at":1,"attempt":{"step":"a","number":1},"kind":"error",'
        '"error":"e","usage":{"usd":2}}'
    )
    assert decode(bare) == AttemptFailed(
        1.0, AttemptId(StepId("a"), 1), "error", "e", Usage(usd=2.0)
    )


def test_unknown_fields_are_passed_over() -> None:
    row = json.loads(encode(SUCCEEDED)) | {"colour": "red"}
    row["usage"]["watts"] = 3
    assert decode(json.dumps(row)) == SUCCEEDED


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("", "is not JSON"),
        ('{"type":"timer_fi', "is not JSON"),
        ("\x00\x00", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        ("[1]", "Expected `object`, got `array`"),
        ("null", "Expected `object`, got `null`"),
        ("{}", "missing required field `type`"),
        ('{"type":"run_paused","at":1}', "is no event that this Stretto knows: Invalid value"),
        ('{"type":["x"],"at":1}', "Expected `str` - at `$.type`"),
        ('{"type":"run_resumed"}', "missing required field `at`"),
        ('{"type":"run_resumed","at":"now"}', "Expected `float`, got `str` - at `$.at`"),
        ('{"type":"run_resumed","at":true}', "Expected `float`, got `bool` - at `$.at`"),
        ('{"type":"run_resumed","at":NaN}', "is not JSON"),
        ('{"type":"run_resumed","at":-1}', "at `$.at`"),
        ('{"type":"run_resumed","at":1e300}', "at `$.at`"),
        ('{"type":"run_resumed","at":1e999}', "out of range - at `$.at`"),
        ('{"type":"run_resumed","at":1' + "0" * 400 + "}", "out of range - at `$.at`"),
        ('{"type":"run_resumed","at":' + "1" * 5000 + "}", "out of range"),
        ('{"type":"run_resumed","x":' + "[" * 100_000, "nested too deeply"),
        (
            '{"type":"timer_fired","at":1,"timer":null}',
            "Expected `object`, got `null` - at `$.timer`",
        ),
    ],
)
def test_what_cannot_be_read_is_kept_with_the_reason(row: str | bytes, reason: str) -> None:
    unknown = decode(row)
    assert isinstance(unknown, UnknownEvent)
    assert unknown.raw == (row if isinstance(row, str) else "\ufffd\ufffd")
    assert reason in unknown.reason


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        (
            "attempt",
            {"step": "a", "number": 1.5},
            "Expected `int`, got `float` - at `$.attempt.number`",
        ),
        ("usage", None, "Expected `object`, got `null` - at `$.usage`"),
        ("usage", {"usd": "1"}, "Expected `float`, got `str` - at `$.usage.usd`"),
        ("warnings", "odd", "Expected `array`, got `str` - at `$.warnings`"),
        ("warnings", [1], "Expected `str`, got `int` - at `$.warnings[0]`"),
        ("reused_from", 3, "Expected `str | null`, got `int` - at `$.reused_from`"),
    ],
)
def test_a_field_of_the_wrong_kind_is_named(field: str, value: object, reason: str) -> None:
    row = json.loads(encode(SUCCEEDED)) | {field: value}
    unknown = decode(json.dumps(row))
    assert isinstance(unknown, UnknownEvent)
    assert unknown.reason == f"is no event that this Stretto knows: {reason}"


def test_a_kind_of_failure_that_is_not_known_makes_the_event_unknown() -> None:
    row = encode(AttemptFailed(1.0, AttemptId(StepId("a"), 1), "timeout", "late"))
    for kind in ('"melted"', "[]", "{}"):
        unknown = decode(row.replace('"timeout"', kind))
        assert isinstance(unknown, UnknownEvent)
        assert "at `$.kind`" in unknown.reason


def test_every_torn_row_is_unknown() -> None:
    row = encode(SUCCEEDED)
    for length in range(len(row)):
        assert isinstance(decode(row[:length]), UnknownEvent)


def test_what_is_not_json_is_not_written() -> None:
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    for output in (nested, 10**5000, object()):
        with pytest.raises(ValueError, match=r"JSON|digits"):
            encode(AttemptSucceeded(1.0, AttemptId(StepId("a"), 1), output))  # type: ignore[arg-type]
