"""Deliveries: only genuine ones count, and hostile bodies are refused, not suffered."""

import os
from pathlib import Path

import pytest

from stretto.problems.errors import InvalidUsage, PermissionDenied
from stretto.triggers.arrivals import (
    MOST_BODY_BYTES,
    WINDOW_SECONDS,
    check_delivery,
    check_folder,
    mapped_inputs,
    read_body,
    signature,
)
from stretto.triggers.trigger import Trigger

NOW, STAMP, BODY, SECRET = 1_763_460_000.0, "1763460000", b'{"a": 1}', "a secret"
GOOD = signature(SECRET, STAMP, BODY)
BAD = {
    "no signature": (STAMP, "", BODY, NOW),
    "no timestamp": ("", signature(SECRET, "", BODY), BODY, NOW),
    "another secret": (STAMP, signature("other", STAMP, BODY), BODY, NOW),
    "another body": (STAMP, GOOD, b'{"a": 2}', NOW),
    "another timestamp": ("1763460001", GOOD, BODY, NOW),
    "too old": (STAMP, GOOD, BODY, NOW + WINDOW_SECONDS + 1),
    "from the future": (STAMP, GOOD, BODY, NOW - WINDOW_SECONDS - 1),
    "cut off": (STAMP, GOOD[:-1], BODY, NOW),
    "without its prefix": (STAMP, GOOD.removeprefix("sha256="), BODY, NOW),
    "no ASCII": (STAMP, "sha256=é" + GOOD, BODY, NOW),
    "a timestamp in other digits": ("١٧٦٣٤٦٠٠٠٠", signature(SECRET, "١٧٦٣٤٦٠٠٠٠", BODY), BODY, NOW),
    "a huge timestamp": ("9" * 5000, signature(SECRET, "9" * 5000, BODY), BODY, NOW),
    "a negative timestamp": ("-1", signature(SECRET, "-1", BODY), BODY, NOW),
    "half a surrogate": (STAMP, "sha256=\udcff", BODY, NOW),
}


def test_a_delivery_that_is_signed_in_time_counts() -> None:
    assert check_delivery(SECRET, STAMP, GOOD, BODY, NOW) == GOOD
    assert check_delivery(SECRET, STAMP, GOOD, BODY, NOW + WINDOW_SECONDS) == GOOD


@pytest.mark.parametrize("delivery", BAD.values(), ids=BAD)
def test_any_other_is_refused_in_the_same_words(delivery: tuple[str, str, bytes, float]) -> None:
    stamp, signed, body, now = delivery
    with pytest.raises(PermissionDenied, match="the signature is not valid"):
        check_delivery(SECRET, stamp, signed, body, now)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no JSON",
        b"\xff\xfe",
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b"[" * 500_000,
        b'{"a":' * 100_000,
        b"[" * 101 + b"]" * 101,
        b"1" * 5_000,
        b'"' + b"x" * MOST_BODY_BYTES + b'"',
        b'{"a": 1} {"b": 2}',
    ],
)
def test_hostile_bodies_are_refused(body: bytes) -> None:
    with pytest.raises(InvalidUsage):
        read_body(body)


def test_a_mapping_takes_values_as_they_are_and_leaves_out_what_is_not_there() -> None:
    mapping = {
        "title": "Issue: {{body.issue.title}}",
        "labels": "{{body.issue.labels}}",
        "first": "{{body.issue.labels[0].name}}",
        "lost": "{{body.nothing.here}}",
        "null": "{{body.none}}",
    }
    trigger = Trigger("x", "webhook", "w", mapping=mapping)
    labels = [{"name": "bug"}]
    body = {"issue": {"title": "{{inputs.secret}}", "labels": labels}, "none": None}
    # What a stranger writes is never read as a template.
    assert mapped_inputs(trigger, (), body) == {
        "title": "Issue: {{inputs.secret}}",
        "labels": labels,
        "first": "bug",
    }
    with pytest.raises(InvalidUsage, match="must be a JSON object"):
        mapped_inputs(Trigger("x", "webhook", "w"), (), [1])


def test_a_folder_is_watched_under_a_name_that_can_be_kept(tmp_path: Path) -> None:
    fine = tmp_path / "in"
    fine.mkdir()
    assert check_folder(Trigger("w", "folder", "x", folder="in"), tmp_path) == fine
    (tmp_path / "link").symlink_to(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff"))
    (tmp_path / "link").resolve().mkdir()
    for folder, said in (("link", "is not UTF-8"), ("away", "there is no folder")):
        with pytest.raises(InvalidUsage, match=said):
            check_folder(Trigger("w", "folder", "x", folder=folder), tmp_path)
