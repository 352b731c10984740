"""Clients are shared, connections are kept and given up, and nothing is left when a loop ends."""

import asyncio
import gc
from base64 import b64encode
from contextlib import suppress
from urllib.parse import urlsplit

import httpcore2
import pytest

from stretto.adapters.models import http_client
from stretto.adapters.models.http_client import client_of, close_clients, proxy_for
from stretto.testing.openai_script import Cut, Said, Status
from stretto.testing.openai_server import OpenAIServer
from support.model_questions import ask, model_at


def test_models_of_one_address_share_one_client_and_its_connections() -> None:
    async def story() -> None:
        async with OpenAIServer() as server:
            for _ in range(3):
                await ask(model_at(server))
            assert server.connections == 1
            assert await client_of(server.url) is await client_of(server.root + "/other")
            async with OpenAIServer() as another:
                assert await client_of(server.url) is not await client_of(another.url)

    asyncio.run(story())


def test_a_failed_call_does_not_cost_the_connection() -> None:
    async def story() -> None:
        async with OpenAIServer([Status(500), Said(), Said()]) as server:
            with pytest.raises(Exception, match="500"):
                await ask(model_at(server))
            await ask(model_at(server))
            assert server.connections == 1

    asyncio.run(story())


def test_many_at_once_each_have_their_own_connection_and_leave_it_to_the_next() -> None:
    async def story() -> None:
        async with OpenAIServer(Said(delay_seconds=0.2)) as server:
            model = model_at(server)
            for _ in range(2):
                answers = await asyncio.gather(*(ask(model) for _ in range(50)))
                assert {answer.text for answer in answers} == {"ok"}
            assert server.connections == 50
            assert (await client_of(server.url)).idle_connections == 50

    asyncio.run(story())


def test_of_more_connections_than_are_kept_the_others_are_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_client, "_IDLE_MOST", 2)

    async def story() -> None:
        open_now: set[asyncio.StreamWriter] = set()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            open_now.add(writer)
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                while await reader.readuntil(b"\r\n\r\n"):
                    await asyncio.sleep(0.05)
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            open_now.discard(writer)

        async def ask_once(url: str) -> None:
            client = await client_of(url)
            head = [(b"Host", b"x")]
            async with client.send("GET", "/", head, idle_seconds=9, connect_seconds=9) as said:
                async for _ in said.aiter_stream():
                    pass

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            await asyncio.gather(*(ask_once(url) for _ in range(8)))
            for left in (2, 0):
                for _ in range(500):
                    if len(open_now) == left:
                        break
                    await asyncio.sleep(0.02)
                assert len(open_now) == left
                await close_clients()
            await asyncio.sleep(0.1)  # what was closed ends

    asyncio.run(story())


@pytest.mark.parametrize(
    ("url", "auth"),
    [
        ("http://user:p%40ss@proxy:3128", b"user:p@ss"),
        ("http://us%3Aer@proxy", b"us:er:"),
        ("http://proxy", None),
    ],
)
def test_a_proxy_is_told_its_name_and_password_as_they_are_meant(
    url: str, auth: bytes | None
) -> None:
    proxy = http_client._proxy(url, None, http_client.ConnectionMaker())
    told = [value for _, value in proxy._proxy_headers]
    assert told == ([] if auth is None else [b"Basic " + b64encode(auth)])


def test_a_proxy_with_a_port_that_is_no_number_is_a_fault_of_the_proxy() -> None:
    with pytest.raises(httpcore2.ProxyError, match="proxy is wrong"):
        http_client._proxy("http://proxy:notaport", None, http_client.ConnectionMaker())


def test_a_connection_that_the_server_has_closed_is_not_used_again() -> None:
    async def story() -> None:
        async with OpenAIServer() as first:
            model = model_at(first)
            await ask(model)
            port = urlsplit(first.url).port or 0
        async with OpenAIServer(Said("again"), port=port):
            assert (await ask(model)).text == "again"

    asyncio.run(story())


def test_a_server_that_closes_as_it_is_asked_is_asked_once_more() -> None:
    async def story() -> None:
        asked = 0
        body = b'{"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}'
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"

        async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal asked
            try:
                await reader.readuntil(b"\r\n\r\n")
                asked += 1
                writer.write(head % len(body) + body)
                await reader.readuntil(b"\r\n\r\n")  # of the next request, which it never answers
                asked += 1
            finally:
                writer.close()

        server = await asyncio.start_server(meet, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            model = model_at(OpenAIServer(port=port))
            assert (await ask(model)).text == "ok"
            assert (await ask(model)).text == "ok"
            assert asked == 3

    asyncio.run(story())


def test_a_fresh_connection_that_breaks_is_not_tried_again() -> None:
    async def story() -> None:
        async with OpenAIServer(Cut()) as server:
            with pytest.raises(Exception, match="broke"):
                await ask(model_at(server))
            assert server.asked_times == 1

    asyncio.run(story())


def test_one_model_serves_one_loop_after_another() -> None:
    async def answered(text: str) -> None:
        async with OpenAIServer(Said(text), port=port):
            assert (await ask(model)).text == text

    async def free_port() -> int:
        async with OpenAIServer() as server:
            return urlsplit(server.url).port or 0

    port = asyncio.run(free_port())
    model = model_at(OpenAIServer(port=port))
    for text in ("one", "two", "three"):
        asyncio.run(answered(text))
        gc.collect()  # an unclosed socket would warn, and warnings are errors


def test_clients_can_be_closed_and_used_again() -> None:
    async def story() -> None:
        async with OpenAIServer() as server:
            await ask(model_at(server))
            await close_clients()
            assert (await client_of(server.url)).idle_connections == 0
            await ask(model_at(server))
            assert server.connections == 2

    asyncio.run(story())


def test_a_proxy_is_taken_from_the_environment_but_never_for_loopback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "internal.example")
    assert proxy_for(urlsplit("https://api.example.org/v1")) == "http://proxy.example:3128"
    assert proxy_for(urlsplit("https://internal.example/v1")) is None
    assert proxy_for(urlsplit("http://127.0.0.1:1/v1")) is None
    assert proxy_for(urlsplit("http://localhost:1/v1")) is None


def test_a_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with OpenAIServer(Said("through the proxy")) as proxy:
            monkeypatch.setenv("http_proxy", proxy.root)
            model = model_at(proxy, base_url="http://models.example/v1")
            # A plain server that is asked for http://models.example/v1/… answers 404: it was asked.
            with pytest.raises(Exception, match="404"):
                await ask(model)
            (asked,) = proxy.requests
            assert asked.path == "http://models.example:80/v1/chat/completions"
            assert asked.headers["host"] == "models.example"

    asyncio.run(story())
