"""What stands on the wire: requests that two programs could read differently, bodies that lie."""

import gzip
import socket
from urllib.parse import urlsplit

import pytest

from support.served import Served

BODY = b'{"recipe": "name: x"}'
CHUNKED = b"0\r\n\r\n"
LENGTH = f"Content-Length: {len(BODY)}\r\n"
# What is behind the first request would be a second one, of somebody else behind a proxy.
SMUGGLED = b"GET /api/session HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n"


def answers(server: Served, head: str, body: bytes) -> list[int]:
    """The status of each answer, until the server closes the connection or says no more."""
    port = urlsplit(server.url).port
    first = f"POST /api/validate HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
    sent = f"{first}Authorization: Bearer {server.token}\r\nContent-Type: application/json\r\n{head}\r\n"
    got = b""
    with socket.create_connection(("127.0.0.1", port), timeout=3) as connection:
        connection.sendall(sent.encode() + body.replace(b"{token}", server.token.encode()))
        try:
            while piece := connection.recv(65_536):
                got += piece
        except (TimeoutError, ConnectionResetError):
            pass
    return [int(each[:3]) for each in got.split(b"HTTP/1.1 ")[1:]]


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (f"{LENGTH}Transfer-Encoding: chunked\r\n", CHUNKED + SMUGGLED),
        (f"Transfer-Encoding: chunked\r\n{LENGTH}", CHUNKED + SMUGGLED),
        (f"transfer-encoding: CHUNKED\r\n{LENGTH}", CHUNKED + SMUGGLED),
        (f"{LENGTH}Content-Length: 5\r\n", BODY + SMUGGLED),
        ("Content-Length: +21\r\n", BODY + SMUGGLED),
        ("Content-Length: -1\r\n", BODY + SMUGGLED),
        ("Content-Length: 99999999999999999999999\r\n", BODY),
        ("Transfer-Encoding: xchunked\r\n", CHUNKED + SMUGGLED),
        ("Transfer-Encoding: chunked, identity\r\n", CHUNKED + SMUGGLED),
        ("Transfer-Encoding : chunked\r\n", CHUNKED + SMUGGLED),
        ("Transfer-Encoding: chunked\r\n", b"zz\r\nabc\r\n" + SMUGGLED),
        ("Host: evil.example\r\nContent-Length: 0\r\n", SMUGGLED),
    ],
)
def test_a_request_that_could_be_read_in_two_ways_is_refused_and_is_the_last(
    server: Served, head: str, body: bytes
) -> None:
    assert answers(server, head, body) in ([400], [])


@pytest.mark.parametrize("head", [LENGTH, f"{LENGTH}{LENGTH}", "Transfer-Encoding: chunked\r\n"])
def test_one_that_can_be_read_in_one_way_is_answered_and_so_is_the_next(
    server: Served, head: str
) -> None:
    body = BODY if "Content" in head else b"15\r\n" + BODY + b"\r\n" + CHUNKED
    assert answers(server, head, body + SMUGGLED) == [422, 200]


def test_a_compressed_body_is_not_unpacked(server: Served) -> None:
    bomb = gzip.compress(b'{"recipe": "' + b"a" * 50_000_000 + b'"}')
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    answer = server.client().post("/api/validate", content=bomb, headers=headers)
    assert (answer.status_code, answer.json()["error"]["kind"]) == (422, "usage")


@pytest.mark.parametrize(
    "path", ["/api/runs", "/api/events", "/mcp", "/metrics", "/", "/api/nothing"]
)
@pytest.mark.parametrize("name", ["token", "access_token", "code", "api_key", "Authorization"])
def test_no_token_counts_in_a_query_or_as_a_cookie(server: Served, path: str, name: str) -> None:
    stranger = server.stranger()
    assert stranger.get(path, params={name: server.token}).status_code == 401
    for cookie in (name, "stretto_session"):
        headers = {"Cookie": f"{cookie}={server.token}"}
        assert stranger.get(path, headers=headers).status_code == 401


@pytest.mark.parametrize("levels", [101, 300, 900, 5000])
@pytest.mark.parametrize("where", ["inputs", "recipe", "edit"])
def test_a_body_that_is_nested_deep_is_refused(server: Served, levels: int, where: str) -> None:
    client = server.client()
    deep = "[" * levels + "]" * levels
    path, body = {
        "inputs": ("/api/workflows/greet/run", f'{{"inputs": {{"whom": {deep}}}}}'),
        "recipe": ("/api/validate", f'{{"recipe": {{"name": "x", "steps": {deep}}}}}'),
        "edit": ("/api/batches", f'{{"tasks": {deep}}}'),
    }[where]
    refused = client.post(path, content=body, headers={"Content-Type": "application/json"})
    assert refused.status_code == 422, refused.text
    assert client.get("/healthz").status_code == 200
