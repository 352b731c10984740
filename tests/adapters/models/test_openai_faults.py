"""Every way in which a server can fail: a precise error, in time, without the key."""

import asyncio
import logging
import time
import traceback
from typing import Any

import pytest
from pydantic_ai import exceptions as errors
from pydantic_ai.settings import ModelSettings

from stretto.adapters.models.openai_endpoint import Endpoint
from stretto.problems.errors import InvalidConfig
from stretto.testing.openai_script import (
    Cut,
    ErrorInStream,
    Hang,
    Malformed,
    Said,
    Script,
    Status,
    WrongType,
    rate_limited,
    rate_limited_until,
)
from stretto.testing.openai_server import OpenAIServer
from support.model_questions import BOTH, HELLO, KEY, PLAIN, ask, asked_once, model_at


def failure(script: Script, stream: bool = True, **how: Any) -> BaseException:
    with pytest.raises(errors.AgentRunError) as caught:
        asked_once(script, stream=stream, **how)
    return caught.value


@pytest.mark.parametrize("stream", BOTH)
@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, errors.ModelRequestRejectedError),
        (401, errors.ModelAuthenticationError),
        (402, errors.ModelQuotaExceededError),
        (404, errors.ModelNotFoundError),
        (418, errors.ModelHTTPError),
        (500, errors.ModelServerError),
        (503, errors.ModelUnavailableError),
        (529, errors.ModelOverloadedError),
    ],
)
def test_a_status_is_an_error_of_its_kind(code: int, kind: type, stream: bool) -> None:
    error = failure(Status(code, "so it is"), stream)
    assert isinstance(error, kind)
    assert isinstance(error, errors.ModelHTTPError)
    assert (error.status_code, error.body) == (code, "so it is")


def test_a_code_says_more_than_a_status() -> None:
    body = '{"error": {"message": "too long", "code": "context_length_exceeded"}}'
    assert isinstance(failure(Status(400, body=body)), errors.ModelContextWindowExceededError)
    body = '{"error": {"message": "pay first", "code": "insufficient_quota"}}'
    assert isinstance(failure(Status(429, body=body)), errors.ModelQuotaExceededError)


def test_retry_after_is_read_as_seconds_and_as_a_date() -> None:
    error = failure(rate_limited(7))
    assert isinstance(error, errors.ModelRateLimitError)
    assert error.retry_after == 7
    error = failure(rate_limited_until(30))
    assert isinstance(error, errors.ModelRateLimitError)
    assert error.retry_after == pytest.approx(29, abs=3)


@pytest.mark.parametrize("stream", BOTH)
@pytest.mark.parametrize("script", [Hang(), Hang(Said("some words", chunks=2), after_chunks=2)])
def test_silence_ends_in_a_timeout(script: Script, stream: bool) -> None:
    began = time.monotonic()
    error = failure(script, stream, settings=ModelSettings(timeout=0.2))
    assert isinstance(error, errors.ModelTimeoutError)
    assert "nothing came for 0.2 s" in str(error)
    assert time.monotonic() - began < 60


def test_a_slow_drip_is_not_silence() -> None:
    said = Said("abcdef", chunks=6, chunk_delay_seconds=0.5)  # 3 s in all
    response, _ = asked_once(said, settings=ModelSettings(timeout=2.5))
    assert response.text == "abcdef"


@pytest.mark.parametrize("stream", BOTH)
def test_a_cut_answer_is_not_taken_for_a_whole_one(stream: bool) -> None:
    error = failure(Cut(Said("the first half of it"), after_chunks=3), stream)
    assert isinstance(error, errors.ModelConnectionError)
    assert error.phase == "read"


def test_a_stream_that_ends_well_but_too_early_is_cut_too() -> None:
    error = failure(Cut(Said("the first half of it"), after_chunks=3, cleanly=True))
    assert isinstance(error, errors.ModelConnectionError)
    assert "ended its answer in the middle" in str(error)


def test_a_stream_without_done_is_whole_once_it_has_a_finish_reason() -> None:
    response, _ = asked_once(Cut(Said("all of it", chunks=1), after_chunks=3, cleanly=True))
    assert response.text == "all of it"


@pytest.mark.parametrize("stream", BOTH)
def test_json_that_is_none_is_named_and_shown(stream: bool) -> None:
    error = failure(Malformed('{"choices": [{'), stream)
    assert isinstance(error, errors.UnexpectedModelBehavior)
    assert "not JSON" in error.message
    assert '{"choices": [{' in (error.body or "")


@pytest.mark.parametrize("stream", BOTH)
def test_another_content_type_is_named_and_shown(stream: bool) -> None:
    error = failure(WrongType(), stream)
    assert isinstance(error, errors.UnexpectedModelBehavior)
    assert "answered with text/html" in error.message
    assert "Sign in" in (error.body or "")


@pytest.mark.parametrize("stream", BOTH)
def test_an_error_among_the_chunks_is_one(stream: bool) -> None:
    error = failure(ErrorInStream("upstream is down", 503), stream)
    assert isinstance(error, errors.ModelUnavailableError)
    assert "upstream is down" in str(error)


@pytest.mark.parametrize(
    "body", ["[]", '{"choices": []}', '{"choices": "none"}', "null", "[" * 5000]
)
def test_an_answer_of_another_shape_is_unexpected(body: str) -> None:
    assert isinstance(failure(Malformed(body), stream=False), errors.UnexpectedModelBehavior)


@pytest.mark.parametrize(
    "chunk",
    [
        '{"choices": [{"delta": 7}]}',
        '{"choices": [{"delta": {"content": {"a": 1}, "tool_calls": [1, {"function": 2}]}}]}',
        '{"choices": 1, "usage": {"prompt_tokens": "many", "completion_tokens": -4}, "id": []}',
    ],
)
def test_chunks_of_any_shape_break_nothing(chunk: str) -> None:
    # It has no finish reason but [DONE].
    response, _ = asked_once(Malformed(chunk))
    assert response.parts == []
    assert response.usage.total_tokens == 0


def test_nobody_there_is_said_at_once() -> None:
    async def story() -> None:
        async with OpenAIServer() as server:
            model = model_at(server)
        with pytest.raises(
            errors.ModelConnectionError, match="cannot connect to http://127"
        ) as caught:
            await ask(model)
        assert caught.value.phase == "connect"

    asyncio.run(story())


def test_a_redirect_is_not_followed() -> None:
    async def story() -> None:
        async with (
            OpenAIServer() as elsewhere,
            OpenAIServer(Status(307, headers={"Location": elsewhere.url})) as server,
        ):
            with pytest.raises(errors.ModelHTTPError, match="redirects, which is not followed"):
                await ask(model_at(server))
            assert elsewhere.requests == []

    asyncio.run(story())


@pytest.mark.parametrize("stream", BOTH)
@pytest.mark.parametrize(
    "script",
    [
        Status(401, f"wrong key {KEY}"),
        Status(500, body=f"<pre>Authorization: Bearer {KEY}</pre>"),
        Status(307, headers={"Location": f"http://x/?key={KEY}", "X-Echo": KEY}),
        Malformed(f"{{{KEY}"),
        WrongType(text=f"you sent {KEY}"),
        ErrorInStream(f"bad key {KEY}"),
        Hang(),
        Cut(),
    ],
)
def test_the_key_is_in_no_error_and_in_no_log(
    script: Script, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    error = failure(script, stream, settings=ModelSettings(timeout=0.2))
    shown = "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))
    assert KEY not in shown
    assert KEY not in caplog.text


def test_the_key_is_in_no_repr() -> None:
    endpoint = Endpoint("openai", "https://api.example.org/v1", KEY)
    model = model_at(OpenAIServer())
    assert KEY not in repr(endpoint) + repr(model) + str(model)


@pytest.mark.parametrize(
    ("url", "key", "says"),
    [
        ("ftp://example.org", None, "must begin with"),
        ("example.org/v1", None, "must begin with"),
        ("https://user:pass@example.org/v1", None, "holds a password"),
        ("http://example.org:port/v1", None, "no valid host or port"),
        ("http://example.org/a b", None, "need escaping"),
        ("http://example.org/v1", "sk-with\r\nInjected: yes", "characters that no key has"),
    ],
)
def test_a_bad_address_or_key_is_refused_before_it_is_used(
    url: str, key: str | None, says: str
) -> None:
    with pytest.raises(InvalidConfig, match=says) as caught:
        Endpoint("openai", url, key)
    assert "pass@" not in str(caught.value)
    assert "sk-with" not in str(caught.value)


def test_cancelling_closes_the_connection_at_once() -> None:
    async def story() -> None:
        async with OpenAIServer(Hang(Said("some words"), after_chunks=2)) as server:
            heard = asyncio.Event()
            asking = asyncio.create_task(ask(model_at(server), hear=lambda _: heard.set()))
            await heard.wait()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            for _ in range(100):
                if server.dropped:
                    break
                await asyncio.sleep(0.01)
            assert server.dropped == 1
            assert server.in_flight == 0

    asyncio.run(story())


def test_a_stream_can_be_cancelled_from_within() -> None:
    async def story() -> None:
        async with OpenAIServer(Said("abcdef", chunks=6, chunk_delay_seconds=0.1)) as server:
            model = model_at(server)
            async with model.request_stream(HELLO, None, PLAIN) as stream:
                async for _ in stream:
                    await stream.cancel()
            assert stream.get().state == "interrupted"

    asyncio.run(story())


def test_a_caller_who_waits_no_longer_is_not_held_up() -> None:
    async def story() -> None:
        async with OpenAIServer(Hang()) as server:
            began = time.monotonic()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await ask(model_at(server), stream=False)
            assert time.monotonic() - began < 60  # and not for ever

    asyncio.run(story())


def test_a_bad_timeout_is_refused() -> None:
    with pytest.raises(errors.UserError, match="timeout"):
        asked_once(Said(), settings=ModelSettings(timeout=0))
