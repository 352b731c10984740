"""What exceptions of models mean to retries and to people."""

import asyncio

import pytest
from pydantic_ai import exceptions as theirs
from pydantic_ai.settings import ModelSettings

from stretto.adapters.models.failures import fault_of
from stretto.ports.model import ModelFault
from stretto.problems.errors import InvalidConfig
from stretto.testing.openai_script import (
    Cut,
    ErrorInStream,
    Hang,
    Malformed,
    Script,
    Status,
    WrongType,
    rate_limited,
)
from stretto.text.redaction import Redactor
from support.model_questions import asked_once


def met(script: Script) -> ModelFault:
    with pytest.raises(theirs.AgentRunError) as caught:
        asked_once(script, settings=ModelSettings(timeout=0.2 if script == Hang() else 20))
    fault = fault_of(caught.value)
    assert fault is not None
    return fault


@pytest.mark.parametrize(
    ("script", "kind", "says"),
    [
        (rate_limited(3), "unavailable", "HTTP 429, too many requests: rate limited"),
        (Status(500, "boom"), "unavailable", "HTTP 500, the provider failed: boom"),
        (Status(503, "later"), "unavailable", "HTTP 503, the provider failed: later"),
        (Status(401, "bad"), "permanent", "HTTP 401, the key was refused: bad"),
        (Status(404, "gone"), "permanent", "HTTP 404, no such model: gone"),
        (Status(307), "permanent", "redirects"),
        (Status(400, "what?"), "refused", "HTTP 400: what?"),
        (Status(408, "slow"), "unavailable", "HTTP 408: slow"),
        (Hang(), "timeout", "went silent: nothing came for 0.2 s"),
        (Cut(), "unavailable", "broke"),
        (Cut(cleanly=True), "unavailable", "in the middle"),
        (Malformed(), "error", 'not JSON: {"choices": [{'),
        (WrongType(), "error", "answered with text/html"),
        (ErrorInStream("upstream", 502), "unavailable", "upstream"),
    ],
)
def test_what_a_server_does_has_a_kind_and_words(script: Script, kind: str, says: str) -> None:
    fault = met(script)
    assert fault.kind == kind
    assert says in fault.message


def test_a_providers_wait_is_kept() -> None:
    assert met(rate_limited(3)).retry_after_seconds == 3
    assert met(Status(503)).retry_after_seconds is None


def test_a_used_up_quota_is_told_from_haste() -> None:
    body = '{"error": {"message": "add credit", "code": "insufficient_quota"}}'
    assert "quota is used up" in met(Status(429, body=body)).message


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (theirs.ContentFilterError("filtered"), "refused"),
        (theirs.ModelRequestTimeout("m", 3.0), "timeout"),
        (theirs.ModelTimeoutError("m", "slow", phase="connect"), "unavailable"),
        (theirs.UnexpectedModelBehavior("odd"), "error"),
        (theirs.UsageLimitExceeded("enough"), "error"),
        (theirs.UserError("no such setting"), "error"),
        (InvalidConfig("no key", hint="set one"), "error"),
        (ConnectionResetError("reset"), "unavailable"),
        (TimeoutError(), "timeout"),
    ],
)
def test_other_exceptions_have_a_kind_too(error: Exception, kind: str) -> None:
    fault = fault_of(error)
    assert fault is not None
    assert (fault.kind, bool(fault.message)) == (kind, True)


@pytest.mark.parametrize("error", [KeyError("bug"), asyncio.CancelledError(), ZeroDivisionError()])
def test_bugs_and_cancellations_are_nobodys_fault(error: BaseException) -> None:
    assert fault_of(error) is None


def test_when_all_fall_back_in_vain_the_best_hope_decides() -> None:
    rejected = theirs.ModelHTTPError(400, "a", "bad request")
    limited = theirs.ModelHTTPError.for_category(
        theirs.ModelRateLimitError,
        status_code=429, model_name="b", body="slow down", headers={"Retry-After": "9"},
    )  # fmt: skip
    fault = fault_of(theirs.FallbackExceptionGroup("all failed", [rejected, limited]))
    assert fault is not None
    assert (fault.kind, fault.retry_after_seconds) == ("unavailable", 9)
    assert "bad request" in fault.message
    assert "slow down" in fault.message


def test_secrets_and_long_words_are_kept_out() -> None:
    redactor = Redactor({"MY_API_KEY": "very-secret-words"})
    fault = fault_of(theirs.UserError("very-secret-words " * 500), redactor)
    assert fault is not None
    assert "very-secret" not in fault.message
    assert len(fault.message) < 1_100
