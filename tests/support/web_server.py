"""A web server on this machine that answers as it is told, for the tests of WebFetch and WebSearch."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from stretto.adapters.tools.web_client import Resolve


@dataclass
class Asked:
    target: str
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass
class Site:
    port: int = 0
    asked: list[Asked] = field(default_factory=list)

    def place(self, host: str = "127.0.0.1") -> str:
        return f"{host}:{self.port}"


Answer = Callable[[Asked], bytes | AsyncIterator[bytes]]


def page(body: bytes | str, kind: str = "text/plain", status: int = 200, **headers: str) -> bytes:
    content = body.encode() if isinstance(body, str) else body
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = (
        f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n{more}"
    )
    return f"{head}Connection: close\r\n\r\n".encode() + content


def redirect(location: str, status: int = 302) -> bytes:
    return page("", status=status, Location=location)


@asynccontextmanager
async def serving(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[Site]:
    site = Site()

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = await _read(reader)
            site.asked.append(asked)
            answered = answer(asked)
            if isinstance(answered, bytes):
                writer.write(answered)
            else:
                async for piece in answered:
                    writer.write(piece)
                    await writer.drain()
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0, ssl=tls)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(head[0].split(" ")[1], headers, body)


def names(**addresses: str | Sequence[str]) -> Resolve:
    """A resolver that knows these names (dots as underscores) and no others."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        found = addresses.get(host.replace(".", "_"))
        if found is None:
            raise OSError("no such name")
        return [found] if isinstance(found, str) else list(found)

    return resolve
