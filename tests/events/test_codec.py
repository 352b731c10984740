"""Events as rows: how they look, and what becomes of rows that nobody can read."""

import json

import pytest

from stretto.events.codec import UnknownEvent, decode, encode
from stretto.events.model import (
    AttemptFailed,
    AttemptSucceeded,
    RunStarted,
    TimerFired,
)
from stretto.vocabulary.ids import StepId
from stretto.vocabulary.usage import Usage
from stretto.vocabulary.values import JsonText

SUCCEEDED = AttemptSucceeded(5.5, StepId("a"), "", 1, "fine", Usage(1, 2, 0.5, 3), ("odd",), "m")


def test_a_row_is_compact_json_with_its_fields_in_order() -> None:
    assert encode(SUCCEEDED) == (
        '{"type":"attempt_succeeded","v":1,"at":5.5,"step":"a","part":"","attempt":1,'
        '"output":"fine","usage":{"input_tokens":1,"output_tokens":2,"usd":0.5,"model_calls":3},'
        '"warnings":["odd"],"model":"m","reused_from":null}'
    )


def test_a_row_is_one_line_of_ascii_whatever_it_holds() -> None:
    event = AttemptSucceeded(1.0, StepId("a"), "x\n", 1, {"ü\n\x00": "\ud800 % %s \u2028"})
    row = encode(event)
    assert row.isascii()
    assert row.isprintable()
    assert decode(row) == event


def test_the_fields_of_an_output_keep_their_order() -> None:
    event = AttemptSucceeded(1.0, StepId("a"), "", 1, {"b": 1, "a": 2})
    read = decode(encode(event))
    assert isinstance(read, AttemptSucceeded)
    assert isinstance(read.output, dict)
    assert list(read.output) == ["b", "a"]


def test_missing_optional_fields_take_their_defaults() -> None:
    row = '{"type":"attempt_succeeded","v":1,"at":1,"step":"a","part":"","attempt":1,"output":0}'
    assert decode(row) == AttemptSucceeded(1.0, StepId("a"), "", 1, 0)
    bare = (
        '{"type":"attempt_failed","v":1,"at":1,"step":"a","part":"","attempt":1,"kind":"error",'
        '"error":"e","usage":{"usd":2}}'
    )
    assert decode(bare) == AttemptFailed(1.0, StepId("a"), "", 1, "error", "e", Usage(usd=2.0))


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
        ("[1]", "is not a JSON object"),
        ("null", "is not a JSON object"),
        ("{}", "has no version"),
        ('{"v":true,"type":"run_resumed","at":1}', "has no version"),
        ('{"v":3,"type":"run_resumed","at":1}', "has version 3"),
        ('{"v":1,"type":"run_paused","at":1}', "'run_paused', which this Stretto does not know"),
        ('{"v":1,"type":["x"],"at":1}', "does not know"),
        ('{"v":1,"type":"run_resumed"}', "lacks 'at'"),
        ('{"v":1,"type":"run_resumed","at":"now"}', "'at' is not a number"),
        ('{"v":1,"type":"run_resumed","at":true}', "'at' is not a number"),
        ('{"v":1,"type":"run_resumed","at":NaN}', "holds NaN"),
        ('{"v":1,"type":"run_resumed","at":1e999}', "'at' is too large"),
        ('{"v":1,"type":"run_resumed","at":1' + "0" * 400 + "}", "'at' is too large"),
        ('{"v":1,"type":"run_resumed","at":' + "1" * 5000 + "}", "digits"),
        ('{"v":1,"type":"run_resumed","at":' + "[" * 100_000, "nested too deeply"),
        ('{"v":1,"type":"timer_fired","at":1,"timer":null}', "'timer' is not text"),
    ],
)
def test_what_cannot_be_read_is_kept_with_the_reason(row: str, reason: str) -> None:
    unknown = decode(row)
    assert isinstance(unknown, UnknownEvent)
    assert unknown.raw == row
    assert reason in unknown.reason


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("attempt", 1.5, "'attempt' is not a whole number"),
        ("usage", None, "'usage' is not an object"),
        ("usage", {"usd": "1"}, "'usage' 'usd' is not a number"),
        ("warnings", "odd", "'warnings' is not a list"),
        ("warnings", [1], "'warnings' is not text"),
        ("reused_from", 3, "'reused_from' is not text"),
    ],
)
def test_a_field_of_the_wrong_kind_is_named(field: str, value: object, reason: str) -> None:
    row = json.loads(encode(SUCCEEDED)) | {field: value}
    unknown = decode(json.dumps(row))
    assert isinstance(unknown, UnknownEvent)
    assert unknown.reason == reason


def test_a_kind_of_failure_that_is_not_known_makes_the_event_unknown() -> None:
    row = encode(AttemptFailed(1.0, StepId("a"), "", 1, "timeout", "late"))
    for kind in ('"melted"', "[]", "{}"):
        unknown = decode(row.replace('"timeout"', kind))
        assert isinstance(unknown, UnknownEvent)
        assert "'kind' is" in unknown.reason


def test_every_torn_row_is_unknown() -> None:
    row = encode(SUCCEEDED)
    for length in range(len(row)):
        assert isinstance(decode(row[:length]), UnknownEvent)


def test_what_is_not_json_is_not_written() -> None:
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    for output in (float("nan"), float("inf"), nested, 10**5000):
        with pytest.raises(ValueError, match=r"JSON|digits"):
            encode(AttemptSucceeded(1.0, StepId("a"), "", 1, output))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="JSON"):
        encode(TimerFired(float("nan"), "t"))
    with pytest.raises(ValueError, match="JSON"):
        encode(RunStarted(1.0, "r", "w", "d", JsonText("{}"), {"x": float("nan")}, 1))
