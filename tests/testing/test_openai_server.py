"""The scripted OpenAI server, asked by real HTTP clients."""

import asyncio
import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from stretto.testing.openai_script import (
    Asked,
    Cut,
    ErrorInStream,
    Hang,
    Malformed,
    Said,
    ServerScript,
    Status,
    TokenUsage,
    ToolCall,
    WrongType,
    by_words,
    rate_limited,
    rate_limited_until,
)
from stretto.testing.openai_server import OpenAIServer, main, serving

HELLO = [{"role": "user", "content": "Hello?"}]


@contextmanager
def client(server: OpenAIServer) -> Iterator[http.client.HTTPConnection]:
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
    try:
        yield connection
    finally:
        connection.close()


def ask(connection: http.client.HTTPConnection, **more: Any) -> http.client.HTTPResponse:
    body = json.dumps({"model": "m", "messages": HELLO, **more})
    headers = {"Authorization": "Bearer the-key", "Content-Type": "application/json"}
    connection.request("POST", "/v1/chat/completions", body, headers)
    return connection.getresponse()


def asked_once(script: ServerScript, **more: Any) -> tuple[http.client.HTTPResponse, bytes]:
    with serving(script) as server, client(server) as connection:
        answer = ask(connection, **more)
        return answer, answer.read()


def events(body: bytes) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in body.decode().split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_an_answer_comes_as_one_json_body() -> None:
    answer, body = asked_once(Said("Hello.", usage=TokenUsage(7, 2, cached=5)))
    said = json.loads(body)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert said["choices"][0]["message"] == {"role": "assistant", "content": "Hello."}
    assert said["choices"][0]["finish_reason"] == "stop"
    assert said["usage"]["total_tokens"] == 9
    assert said["usage"]["prompt_tokens_details"] == {"cached_tokens": 5}


def test_a_stream_comes_in_the_pieces_that_were_asked_for() -> None:
    answer, body = asked_once(Said("abcdefgh", chunks=4), stream=True)
    deltas = [chunk["choices"][0]["delta"].get("content") for chunk in events(body)]
    assert answer.headers["content-type"] == "text/event-stream"
    assert deltas == ["", "ab", "cd", "ef", "gh", None]
    assert "usage" not in events(body)[-1]


def test_usage_ends_a_stream_when_it_is_asked_for() -> None:
    said = Said("Hi.", usage=TokenUsage(3, 1))
    _, body = asked_once(said, stream=True, stream_options={"include_usage": True})
    *others, last = events(body)
    assert (last["choices"], last["usage"]["prompt_tokens"]) == ([], 3)
    assert all(chunk["usage"] is None for chunk in others)


def test_tool_calls_come_whole_or_in_pieces() -> None:
    said = Said("", tool_calls=(ToolCall("read", {"path": "a.md"}), ToolCall("look", "{}", "id-2")))
    _, body = asked_once(said)
    choice = json.loads(body)["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert [call["function"]["name"] for call in choice["message"]["tool_calls"]] == [
        "read",
        "look",
    ]

    _, body = asked_once(said, stream=True)
    written = {0: "", 1: ""}
    for chunk in events(body):
        for call in chunk["choices"][0]["delta"].get("tool_calls", []):
            written[call["index"]] += call["function"]["arguments"]
    assert (json.loads(written[0]), written[1]) == ({"path": "a.md"}, "{}")


def test_a_list_is_used_up_in_order_and_its_end_is_an_error() -> None:
    with serving([Said("one"), Status(503), Said("three")]) as server, client(server) as connection:
        answers = []
        for _ in range(4):
            answer = ask(connection)
            answers.append((answer.status, answer.read()))
    assert [status for status, _ in answers] == [200, 503, 200, 400]
    assert b"3 answers and was asked 4 times" in answers[-1][1]


def test_a_function_sees_what_was_asked() -> None:
    def script(asked: Asked) -> Said:
        names = ",".join(asked.tool_names)
        return Said(f"{asked.times} {asked.model} {asked.prompt} {names} {asked.response_format}")

    tools = [{"type": "function", "function": {"name": "read", "parameters": {}}}]
    _, body = asked_once(script, tools=tools, response_format={"type": "json_object"})
    said = json.loads(body)["choices"][0]["message"]["content"]
    assert said == "1 m Hello? read {'type': 'json_object'}"


def test_rules_answer_by_the_words_of_the_last_message() -> None:
    script = by_words({"Hello": Said("first"), "lo?": Said("second")})
    _, body = asked_once(script)
    assert b'"first"' in body
    parts = [{"role": "user", "content": [{"type": "text", "text": "some lo? in parts"}]}]
    _, body = asked_once(script, messages=parts)
    assert b'"second"' in body


def test_every_request_is_kept_with_its_headers() -> None:
    with serving(Said()) as server, client(server) as connection:
        ask(connection, seed=3).read()
    (asked,) = server.requests
    assert asked.authorization == "Bearer the-key"
    assert asked.body["seed"] == 3


def test_a_connection_is_kept_alive() -> None:
    with serving(Said()) as server, client(server) as connection:
        for stream in (False, True, False):
            ask(connection, stream=stream).read()
        assert server.connections == 1


def test_a_body_in_chunks_is_read() -> None:
    async def story() -> str:
        async def parts() -> Any:
            body = json.dumps({"model": "m", "messages": HELLO}).encode()
            yield body[:10]
            yield body[10:]

        async with OpenAIServer(Said("read")) as server, httpx2.AsyncClient() as http:
            answer = await http.post(f"{server.url}/chat/completions", content=parts())
            assert server.requests[0].headers["transfer-encoding"] == "chunked"
            return str(answer.json()["choices"][0]["message"]["content"])

    assert asyncio.run(story()) == "read"


def test_retry_after_is_seconds_or_a_date() -> None:
    answer, _ = asked_once(rate_limited(7))
    assert (answer.status, answer.headers["retry-after"]) == (429, "7")
    answer, _ = asked_once(rate_limited_until(30))
    wait = parsedate_to_datetime(answer.headers["retry-after"]).timestamp() - time.time()
    assert 25 < wait < 31


def test_a_hang_never_answers_and_notices_who_goes_away() -> None:
    waits = httpx2.Timeout(10, read=0.2)

    async def story() -> None:
        async with OpenAIServer(Hang()) as server, httpx2.AsyncClient(timeout=waits) as http:
            with pytest.raises(httpx2.ReadTimeout):
                await http.post(f"{server.url}/chat/completions", json={"messages": HELLO})
            for _ in range(100):
                if server.dropped:
                    return
                await asyncio.sleep(0.02)
            raise AssertionError("the server did not notice")

    asyncio.run(story())


def test_a_hang_can_begin_to_answer() -> None:
    script = Hang(Said("abc"), after_chunks=2)
    with serving(script) as server, client(server) as connection:
        connection.connect()
        line = connection.sock
        answer = ask(connection, stream=True)
        assert b'"content":""' in answer.readline()
        line.settimeout(0.3)
        with pytest.raises(TimeoutError):
            answer.read()


def test_a_cut_stream_breaks_off_or_ends_as_if_all_were_well() -> None:
    with pytest.raises(http.client.IncompleteRead):
        asked_once(Cut(Said("abc"), after_chunks=2), stream=True)
    with pytest.raises(http.client.IncompleteRead):
        asked_once(Cut(Said("abc")))
    _, body = asked_once(Cut(Said("abc"), after_chunks=2, cleanly=True), stream=True)
    assert b'"finish_reason":null' in body
    assert b"DONE" not in body


@pytest.mark.parametrize("stream", [False, True])
def test_json_can_be_malformed(stream: bool) -> None:
    answer, body = asked_once(Malformed(), stream=stream)
    assert answer.status == 200
    first = body.split(b"\n")[0].removeprefix(b"data: ")
    with pytest.raises(json.JSONDecodeError):
        json.loads(first)


def test_an_error_can_come_within_a_stream() -> None:
    answer, body = asked_once(ErrorInStream("no luck", after_chunks=1), stream=True)
    assert answer.status == 200
    assert b'"no luck"' in body.split(b"\n\n")[1]


def test_an_empty_a_refused_and_a_foreign_answer() -> None:
    _, body = asked_once(Said(""))
    assert json.loads(body)["choices"][0]["message"]["content"] is None
    _, body = asked_once(Said("", finish_reason="content_filter"))
    assert json.loads(body)["choices"][0]["finish_reason"] == "content_filter"
    answer, body = asked_once(WrongType())
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html")


def test_a_slow_drip_takes_its_time() -> None:
    before = time.monotonic()
    asked_once(Said("abc", chunks=3, delay_seconds=0.1, chunk_delay_seconds=0.05), stream=True)
    assert time.monotonic() - before >= 0.1 + 4 * 0.05


def test_models_are_listed_as_openai_and_as_ollama_do() -> None:
    with serving(models=("a", "b")) as server, client(server) as connection:
        connection.request("GET", "/v1/models")
        assert [it["id"] for it in json.load(connection.getresponse())["data"]] == ["a", "b"]
        connection.request("GET", "/api/tags")
        assert [it["name"] for it in json.load(connection.getresponse())["models"]] == ["a", "b"]
        connection.request("DELETE", "/v1/models")
        answer = connection.getresponse()
        assert (answer.status, answer.read()[:8]) == (405, b'{"error"')
        connection.request("GET", "/v1/nothing")
        assert connection.getresponse().status == 404


def test_a_key_can_be_asked_for() -> None:
    with serving(api_key="the-key") as server, client(server) as connection:
        answer = ask(connection)
        assert answer.status == 200
        answer.read()
        connection.request("POST", "/v1/chat/completions", "{}", {"Authorization": "Bearer x"})
        assert connection.getresponse().status == 401


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"POST /v1/models HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"400"),
        (b"POST /v1/models HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", b"413"),
        (b"GET /v1/models HTTP/1.1\r\nContent-Length: " + b"0" * 5_000 + b"\r\n\r\n", b"200"),
        (
            b"POST /v1/models HTTP/1.1\r\nContent-Length: " + b"0" * 20 + b"9" * 12 + b"\r\n\r\n",
            b"413",
        ),
        (b"POST /v1/models HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"400"),
        (b"POST /v1/models HTTP/1.1\r\nContent-Length: 1\r\n\r\n{", b"400"),
        (b"GET / HTTP/1.1\r\n no: name\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nx: " + b"y" * 200_000, b"431"),
    ],
)
def test_what_is_not_http_is_told_so(sent: bytes, status: bytes) -> None:
    with serving() as server:
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname, address.port), timeout=60) as line:
            line.sendall(sent)
            assert line.recv(100).split(b" ")[1] == status


def test_it_serves_a_hundred_at_once() -> None:
    async def story() -> None:
        limits = httpx2.Limits(max_connections=100)
        async with (
            OpenAIServer(Said(delay_seconds=0.3)) as server,
            httpx2.AsyncClient(limits=limits, timeout=60) as http,
        ):
            url = f"{server.url}/chat/completions"
            answers = await asyncio.gather(
                *(http.post(url, json={"messages": HELLO}) for _ in range(100))
            )
            assert {answer.status_code for answer in answers} == {200}
            assert server.most_in_flight > 50

    asyncio.run(story())


def test_its_help_says_where_its_url_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "The first line that it prints is its URL." in said


def test_it_runs_as_a_process_of_its_own() -> None:
    command = [sys.executable, "-m", "stretto.testing.openai_server", "--latency", "0.01"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        answer = httpx2.post(f"{url}/chat/completions", json={"messages": HELLO})
        process.terminate()
        assert answer.json()["choices"][0]["message"]["content"] == "The answer of the script."
        assert process.wait(timeout=60) == 0
