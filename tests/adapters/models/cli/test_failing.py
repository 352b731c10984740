"""Why an agent gave up."""

import pytest

from stretto.adapters.models.cli.failing import failure


@pytest.mark.parametrize(
    ("words", "status", "kind"),
    [
        ("slow down", 429, "unavailable"),
        ("overloaded_error", None, "unavailable"),
        ("usage limit reached", None, "unavailable"),
        ("stream disconnected before completion", None, "unavailable"),
        ("You wrote about rate limits", 400, "error"),
        ("file a.txt has 429 lines", None, "error"),
        ("syntax error", None, "error"),
    ],
)
def test_a_status_is_believed_before_words_are(words: str, status: int | None, kind: str) -> None:
    assert failure("x", words, "log in", status).kind == kind


@pytest.mark.parametrize("words", ["Not logged in", "401", "Invalid API key", "Unauthorized"])
def test_who_is_not_logged_in_is_told_how(words: str) -> None:
    failed = failure("x", words, "run x login", 401 if words == "401" else None)
    assert failed.error == f"x is not logged in: {words} (run x login)"


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("rate limit: try again in 20s", 20.0),
        ("rate limit: please retry after 1.5 seconds", 1.5),
        ("rate limit, retry in 250ms", 0.25),
        ("usage limit, try again in 3 minutes", 180.0),
        ("rate limit, 40 requests a minute", None),
    ],
)
def test_when_to_try_again_is_read_from_the_words(words: str, seconds: float | None) -> None:
    assert failure("x", words, "").retry_after_seconds == seconds


def test_a_long_complaint_is_cut() -> None:
    assert len(failure("x", "y" * 100_000, "").error) < 2_100
