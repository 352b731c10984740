"""Every way in which a server can fail: a precise error, in time, without the key."""

import asyncio
import json
import logging
import time
import traceback
from typing import Any

import pytest

from stretto.adapters.models.endpoint import Endpoint
from stretto.ports.model import ModelFailed, ModelFault, TokenCounts
from stretto.problems.errors import InvalidConfig
from stretto.testing.openai_script import (
    Cut,
    ErrorInStream,
    Hang,
    Malformed,
    Said,
    ServerScript,
    Status,
    WrongType,
    rate_limited,
    rate_limited_until,
)
from stretto.testing.openai_server import OpenAIServer
from support.model_questions import KEY, ask, asked_once, model_at


def failure(script: ServerScript, **how: Any) -> ModelFault:
    with pytest.raises(ModelFailed) as caught:
        asked_once(script, **how)
    return caught.value.fault


@pytest.mark.parametrize(
    ("script", "kind", "says"),
    [
        (rate_limited(3), "unavailable", "HTTP 429, too many requests: rate limited"),
        (Status(500, "boom"), "unavailable", "HTTP 500, the provider failed: boom"),
        (Status(503, "later"), "unavailable", "HTTP 503, the provider failed: later"),
        (Status(529, "busy"), "unavailable", "HTTP 529, the provider failed: busy"),
        (Status(401, "bad"), "permanent", "HTTP 401, the key was refused: bad"),
        (Status(501, "so"), "permanent", "HTTP 501, the server cannot do this: so (check the base"),
        (Status(402, "pay"), "permanent", "HTTP 402, the account's quota is used up: pay"),
        (Status(404, "gone"), "permanent", "HTTP 404, no such model: gone"),
        (Status(307), "permanent", "redirects"),
        (Status(400, "what?"), "refused", "HTTP 400: what?"),
        (Status(418, "tea"), "error", "HTTP 418: tea"),
        (Status(408, "slow"), "unavailable", "HTTP 408: slow"),
        (Cut(), "unavailable", "broke"),
        (Cut(cleanly=True), "unavailable", "in the middle"),
        (Malformed(), "unavailable", 'not JSON: {"choices": [{'),
        (WrongType("application/json", '{"choices": []}'), "unavailable", "sent no choices"),
        (
            WrongType("text/event-stream", 'data: {"choices": []}\n\ndata: [DONE]\n\n'),
            "unavailable",
            "sent no choices",
        ),
        (WrongType("text/event-stream", "data: [DONE]\n\n"), "unavailable", "sent no choices"),
        (WrongType("text/event-stream", ": ping\n\n: ping\n\n"), "unavailable", "in the middle"),
        (WrongType(), "error", "answered with text/html"),
        (ErrorInStream("upstream", 502), "unavailable", "upstream"),
    ],
)
def test_what_a_server_does_has_a_kind_and_words(
    script: ServerScript, kind: str, says: str
) -> None:
    fault = failure(script)
    assert fault.kind == kind
    assert says in fault.message


def _events(*chunks: str, name: str = "") -> WrongType:
    head = f"event: {name}\n" if name else ""
    told = "".join(f"data: {chunk}\n\n" for chunk in chunks[:-1])
    return WrongType("text/event-stream", f"{told}{head}data: {chunks[-1]}\n\n")


HALF = '{"choices": [{"index": 0, "delta": {"content": "half"}}]}'
STOP = '{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}'
WHOLE = '{"choices": [{"message": {"content": "half"}, "finish_reason": "stop"}]}'
DOWN = '{"message": "upstream is down", "code": 502}'
PLACES = {
    "in a choice": _events(HALF, f'{{"choices": [{{"delta": {{}}, "error": {DOWN}}}]}}', STOP),
    "in a piece of a choice": _events(
        HALF, f'{{"choices": [{{"delta": {{"error": {DOWN}}}}}]}}', STOP
    ),
    "in the choice of a whole answer": WrongType(
        "application/json", WHOLE.replace('"finish_reason"', f'"error": {DOWN}, "finish_reason"')
    ),
    "in an event of that name": _events(HALF, DOWN, name="error"),
    "as a chunk of its own": _events(HALF, DOWN.replace("{", '{"object": "error", ')),
    "as a whole answer": WrongType("application/json", DOWN.replace("{", '{"object": "error", ')),
    "as a detail": _events(HALF, '{"detail": "upstream is down"}'),
    "in one piece where events were announced": WrongType(
        "text/event-stream", f'{{"error": {DOWN}}}'
    ),
}


@pytest.mark.parametrize("script", PLACES.values(), ids=PLACES)
def test_an_error_is_found_wherever_it_stands_in_an_answer(script: ServerScript) -> None:
    fault = failure(script)
    assert fault.kind == "unavailable"
    assert "upstream is down" in fault.message


@pytest.mark.parametrize(
    "script",
    [
        WrongType("text/event-stream", f"data: {HALF}\n\ndata: {STOP[:-9]}"),
        WrongType("text/event-stream", ""),
        WrongType("application/json", WHOLE[:-9]),
        WrongType("application/json", ""),
    ],
)
def test_an_answer_that_ends_in_the_middle_of_a_chunk_was_cut_off(script: ServerScript) -> None:
    fault = failure(script)
    assert (fault.kind, "in the middle" in fault.message) == ("unavailable", True)


def test_an_answer_that_is_compressed_unasked_is_told_as_that() -> None:
    compressed = Status(200, headers={"Content-Encoding": "gzip"}, body="\x1f\x8b\x08")
    fault = failure(compressed)
    assert (fault.kind, "compressed its answer (gzip)" in fault.message) == ("error", True)


def test_a_code_says_more_than_a_status() -> None:
    body = '{"error": {"message": "too long", "code": "context_length_exceeded"}}'
    assert failure(Status(400, body=body)).kind == "refused"
    body = '{"error": {"message": "pay first", "code": "insufficient_quota"}}'
    fault = failure(Status(429, body=body))
    assert fault.kind == "permanent"
    assert "quota is used up: pay first (add credit" in fault.message
    body = '{"error": {"message": "no such model", "code": "model_not_found"}}'
    assert failure(Status(400, body=body)).kind == "permanent"


def test_the_error_of_a_list_is_read() -> None:
    body = (
        '[{"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}}]'
    )
    fault = failure(Status(400, body=body))
    assert fault.kind == "permanent"
    assert fault.message.startswith("HTTP 400, the key was refused: API key not valid. (set a ")


QUOTA = "add credit to the account"
SET_KEY = "set a valid key"
OTHER_KEY = "use a key that may use this model"
NAME = "check the model's name"
LONG = "shorten what the step is told"
BODIES: dict[str, tuple[int, dict[str, object], str, str]] = {
    "a code that is the status": (429, {"code": 429, "type": "insufficient_quota"}, "permanent", QUOTA),
    "Moonshot": (429, {"type": "exceeded_current_quota_error"}, "permanent", QUOTA),
    "an account that is closed": (429, {"code": "billing_not_active"}, "permanent", QUOTA),
    "a key, as 400": (400, {"code": "invalid_api_key"}, "permanent", SET_KEY),
    "a key, in words": (400, {"message": "API key not valid. Please pass a valid API key."}, "permanent", SET_KEY),
    "xAI": (400, {"message": "Incorrect API key provided: x***y."}, "permanent", SET_KEY),
    "a model, as 400": (400, {"code": "model_not_found"}, "permanent", NAME),
    "a model, in words": (400, {"message": "model 'm' not found, try pulling it first"}, "permanent", NAME),
    "LiteLLM": (400, {"message": "Invalid model name passed in model=m. Call `/v1/models` to view available models"}, "permanent", NAME),
    "Anthropic's credit": (400, {"message": "Your credit balance is too low to access the Anthropic API."}, "permanent", QUOTA),
    "Anthropic's limit of spending": (400, {"message": "You have reached your specified API usage limits."}, "permanent", QUOTA),
    "Google's billing": (400, {"message": "Please enable billing on your project in Google AI Studio."}, "permanent", QUOTA),
    "a closed organization": (400, {"message": "This organization has been disabled."}, "permanent", OTHER_KEY),
    "a place": (400, {"message": "User location is not supported for the API use."}, "permanent", OTHER_KEY),
    "OpenAI's places": (403, {"code": "unsupported_country_region_territory"}, "permanent", OTHER_KEY),
    "another parameter": (400, {"message": "The model does not support images: file not given"}, "refused", ""),
    "something else that is not there": (400, {"message": "the model m says: tool x was not found"}, "refused", ""),
    "too long": (400, {"code": "context_length_exceeded"}, "refused", LONG),
    "too long, in words": (400, {"message": "This model's maximum context length is 8192 tokens."}, "refused", LONG),
    "too long for Anthropic": (400, {"message": "prompt is too long: 250000 tokens > 200000 maximum"}, "refused", LONG),
    "too long for Google": (400, {"message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}, "refused", LONG),
    "too long for a minute": (429, {"message": "Request too large for gpt-5 on tokens per min (TPM): Limit 30000, Requested 41000.", "code": "rate_limit_exceeded"}, "refused", LONG),
    "OpenRouter's moderation": (403, {"message": "Your input was flagged", "code": 403}, "refused", ""),
    "LM Studio": (400, {"message": "No models loaded. Please load a model in the developer page."}, "permanent", NAME),
    "too much to write": (400, {"message": "max_tokens: 300000 > 128000, which is the maximum allowed number of output tokens"}, "refused", ""),
    "too long for llama.cpp": (400, {"type": "exceed_context_size_error"}, "refused", LONG),
    "a request that is too large": (413, {"message": "Request Entity Too Large"}, "refused", LONG),
    "too many requests": (429, {"type": "tokens", "code": "rate_limit_exceeded"}, "unavailable", ""),
    "a parameter": (400, {"message": "Unsupported parameter: 'max_tokens'"}, "refused", ""),
}  # fmt: skip


@pytest.mark.parametrize(("status", "error", "kind", "todo"), BODIES.values(), ids=BODIES)
def test_what_a_provider_says_decides_the_kind_and_what_to_do(
    status: int, error: dict[str, object], kind: str, todo: str
) -> None:
    fault = failure(Status(status, body=json.dumps({"error": {"message": "so", **error}})))
    assert fault.kind == kind
    assert todo in fault.message
    assert todo or not any(
        each in fault.message for each in (QUOTA, SET_KEY, OTHER_KEY, NAME, LONG)
    )


@pytest.mark.parametrize("written", ["9" * 400, "inf", "1e300"])
def test_a_wait_for_ever_is_a_number(written: str) -> None:
    waits = failure(Status(429, headers={"Retry-After": written})).retry_after_seconds
    assert waits is not None
    assert 10_000_000 < waits < 1e10
    assert failure(Status(429, headers={"Retry-After": "nan"})).retry_after_seconds is None


def test_retry_after_is_read_as_seconds_and_as_a_date() -> None:
    assert failure(rate_limited(7)).retry_after_seconds == 7
    assert failure(rate_limited_until(30)).retry_after_seconds == pytest.approx(29, abs=3)
    assert failure(Status(503)).retry_after_seconds is None
    assert failure(Status(429, headers={"retry-after-ms": "250"})).retry_after_seconds == 0.25
    assert failure(Status(429, headers={"Retry-After": "soon"})).retry_after_seconds is None


@pytest.mark.parametrize("script", [Hang(), Hang(Said("some words", chunks=2), after_chunks=2)])
def test_silence_ends_in_a_timeout(script: ServerScript) -> None:
    began = time.monotonic()
    fault = failure(script, idle_seconds=0.2)
    assert fault.kind == "timeout"
    assert "went silent: nothing came for 0.2 s" in fault.message
    assert time.monotonic() - began < 60


def test_a_slow_drip_is_not_silence() -> None:
    said = Said("abcdef", chunks=6, chunk_delay_seconds=0.5)  # 3 s in all
    response, _ = asked_once(said, idle_seconds=2.5)
    assert response.text == "abcdef"


def test_a_stream_without_done_is_whole_once_it_has_a_finish_reason() -> None:
    response, _ = asked_once(Cut(Said("all of it", chunks=1), after_chunks=3, cleanly=True))
    assert response.text == "all of it"


@pytest.mark.parametrize("body", ["[]", "{}", '{"choices": "none"}', "null", "[" * 5000])
def test_a_whole_answer_of_another_shape_is_an_error(body: str) -> None:
    assert failure(WrongType("application/json", body)).kind == "error"


@pytest.mark.parametrize(
    "chunk",
    [
        '{"choices": [{"delta": 7}]}',
        '{"choices": [{"delta": {"content": {"a": 1}, "tool_calls": [1, {"function": 2}]}}]}',
        '{"choices": [{}], "usage": {"prompt_tokens": "many", "completion_tokens": -4}, "id": []}',
    ],
)
def test_chunks_of_any_shape_break_nothing(chunk: str) -> None:
    # It has no finish reason but [DONE].
    response, _ = asked_once(Malformed(chunk))
    assert (response.text, response.calls) == ("", ())
    assert response.tokens in (None, TokenCounts())


def test_nobody_there_is_said_at_once() -> None:
    async def story() -> None:
        async with OpenAIServer() as server:
            model = model_at(server)
        with pytest.raises(ModelFailed, match="cannot connect to http://127") as caught:
            await ask(model)
        assert caught.value.fault.kind == "unavailable"

    asyncio.run(story())


def test_a_redirect_is_not_followed() -> None:
    async def story() -> None:
        async with (
            OpenAIServer() as elsewhere,
            OpenAIServer(Status(307, headers={"Location": elsewhere.url})) as server,
        ):
            with pytest.raises(ModelFailed, match="redirects, which is not followed"):
                await ask(model_at(server))
            assert elsewhere.requests == []

    asyncio.run(story())


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
    script: ServerScript, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(ModelFailed) as caught:
        asked_once(script, idle_seconds=0.2)
    error = caught.value
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


def test_a_caller_who_waits_no_longer_is_not_held_up() -> None:
    async def story() -> None:
        async with OpenAIServer(Hang()) as server:
            began = time.monotonic()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await ask(model_at(server))
            assert time.monotonic() - began < 60  # and not for ever

    asyncio.run(story())
