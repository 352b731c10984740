"""A loopback server that answers OpenAI's chat completions from a script, over real HTTP.

    async with OpenAIServer([Said("Hello."), rate_limited(2)]) as server:
        …  # server.url is http://127.0.0.1:PORT/v1; server.requests holds what was asked

`with serving(script) as server:` is the same in a thread of its own, for tests of subprocesses and
of code that blocks. `python -m stretto.testing.openai_server --latency 0.05` is a process of its own.
"""

import argparse
import asyncio
import json
import signal
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Self

from stretto.testing import http_wire, openai_wire
from stretto.testing.http_wire import BadRequest, HttpRequest, read_request
from stretto.testing.openai_script import OK, Asked, Said, ServerScript, Status, answer_of
from stretto.testing.openai_wire import JSON, Gone, ServedConnection, fail, perform
from stretto.vocabulary.json_value import Json

_NO_KEY = Status(401, "the API key is missing or wrong")


class OpenAIServer:
    """Belongs to the loop that it is entered in. Only loopback: it answers whatever it is asked."""

    def __init__(
        self,
        script: ServerScript = OK,
        *,
        api_key: str | None = None,  # None: no key is asked for
        models: tuple[str, ...] = ("scripted",),
        port: int = 0,  # 0: a free one
        is_recording: bool = True,  # False: for benchmarks, which would fill the memory
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._script = script
        self._api_key = api_key
        self._models = models
        self._port = port
        self._is_recording = is_recording
        self._tls = tls
        self._talks: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self.requests: list[Asked] = []
        self.asked_times = 0  # chat completions
        self.connections = 0  # that were ever opened
        self.dropped = 0  # answers that the client did not wait for
        self.in_flight = 0
        self.most_in_flight = 0

    @property
    def url(self) -> str:
        return f"{self.root}/v1"

    @property
    def root(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        limit = http_wire.MOST_HEAD_BYTES
        self._server = await asyncio.start_server(
            self._meet, "127.0.0.1", self._port, limit=limit, backlog=1024, ssl=self._tls
        )
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        talks = dict(self._talks)
        for talk, writer in talks.items():
            # Aborted here: a task that has not begun is cancelled before its `finally` could close.
            writer.transport.abort()
            talk.cancel()
        await asyncio.gather(*talks, return_exceptions=True)
        await self._server.wait_closed()

    # A plain function: asyncio would make its own task of a coroutine, and log what it raises.
    def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        talk = asyncio.ensure_future(self._talk(reader, writer))
        self._talks[talk] = writer
        talk.add_done_callback(self._talks.pop)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await read_request(reader, writer)) is not None:
                is_open = await self._answer(request, ServedConnection(reader, writer))
                if not (is_open and request.keeps_alive):
                    return
        except BadRequest as error:
            body = openai_wire.error_body(str(error), error.status)
            writer.write(http_wire.whole(error.status, body, {**JSON, "Connection": "close"}))
        except Gone:
            self.dropped += 1
        except ConnectionError:
            pass  # the client went away between two requests
        finally:
            writer.close()
            with suppress(ConnectionError, TimeoutError):
                await writer.wait_closed()

    async def _answer(self, request: HttpRequest, connection: ServedConnection) -> bool:
        """Whether the connection may be used again."""
        is_chat = (request.method, request.path) == ("POST", "/v1/chat/completions")
        self.asked_times += is_chat
        asked = Asked(
            request.method, request.path, request.headers, _object(request.body), self.asked_times
        )
        if self._is_recording:
            self.requests.append(asked)
        if self._api_key is not None and asked.authorization != f"Bearer {self._api_key}":
            return await fail(_NO_KEY, connection)
        if not is_chat:
            return await self._answer_other(asked, connection)
        if not asked.messages:
            return await fail(
                Status(400, "'messages' must be a list that is not empty"), connection
            )
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await perform(answer_of(self._script, asked), asked, connection)
        finally:
            self.in_flight -= 1

    async def _answer_other(self, asked: Asked, connection: ServedConnection) -> bool:
        listings: Mapping[str, Callable[[tuple[str, ...]], bytes]] = {
            "/v1/models": openai_wire.models,
            "/api/tags": openai_wire.tags,
        }
        if asked.path not in listings:
            return await fail(Status(404, f"there is no {asked.path} here"), connection)
        if asked.method != "GET":
            return await fail(Status(405, f"{asked.method} does not fit {asked.path}"), connection)
        return await connection.write(
            http_wire.whole(200, listings[asked.path](self._models), JSON)
        )


def _object(body: bytes) -> Mapping[str, Json]:
    if not body:
        return {}
    try:
        parsed: Json = json.loads(body)
    except (ValueError, RecursionError):
        raise BadRequest(400, "the body is not JSON") from None
    if not isinstance(parsed, dict):
        raise BadRequest(400, "the body is not a JSON object")
    return parsed


@contextmanager
def serving(
    script: ServerScript = OK,
    *,
    api_key: str | None = None,
    models: tuple[str, ...] = ("scripted",),
) -> Iterator[OpenAIServer]:
    """The server in a thread of its own. What it counts is read from here as it stands."""
    server = OpenAIServer(script, api_key=api_key, models=models)
    is_ready = threading.Event()
    trouble: list[BaseException] = []
    stop: list[Callable[[], object]] = []

    async def serve() -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        async with server:
            stop.append(lambda: loop.call_soon_threadsafe(ended.set))
            is_ready.set()
            await ended.wait()

    def live() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            trouble.append(error)
        finally:
            is_ready.set()

    thread = threading.Thread(target=live, name="openai-server", daemon=True)
    thread.start()
    is_ready.wait()
    if trouble:
        raise trouble[0]
    try:
        yield server
    finally:
        stop[0]()
        thread.join()


async def _serve_until_signal(server: OpenAIServer) -> None:
    is_stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, is_stopped.set)
    async with server:
        print(server.url, flush=True)
        await is_stopped.wait()


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m stretto.testing.openai_server",
        description="Serves scripted chat completions on 127.0.0.1 until it is interrupted. "
        "The first line that it prints is its URL.",
    )
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--text", default="The answer of the script.")
    parser.add_argument("--chunks", type=int, default=3, help="pieces of a streamed text")
    chosen = parser.parse_args(argv)
    said = Said(chosen.text, delay_seconds=chosen.latency, chunks=chosen.chunks)
    asyncio.run(_serve_until_signal(OpenAIServer(said, port=chosen.port, is_recording=False)))


if __name__ == "__main__":
    main()
