"""Ask servers of the web over HTTP, by httpcore2; pages only at public addresses.

The name is resolved once, and the connection goes to an address that was checked. TLS and the Host
header still use the name.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

import httpcore2

from stretto.adapters.tools.outcomes import CallFailed, CallRefused
from stretto.adapters.tools.web_addresses import Url, why_closed

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]

_HEADERS = [
    ("User-Agent", "stretto"),
    ("Accept", "text/html, text/plain, application/json, text/*;q=0.9, */*;q=0.1"),
    # A compressed body could be a thousand times as large as what was received.
    ("Accept-Encoding", "identity"),
]
_ONE_OF_MANY_SECONDS = 5.0  # for an address while there are more to try


@dataclass(frozen=True, slots=True)
class Page:
    status: int
    headers: dict[str, str]  # names in lower case
    body: bytes
    is_whole: bool


class ExchangeFailed(Exception):
    """There was no answer. The text says why."""


async def exchange(
    pool: httpcore2.AsyncConnectionPool,
    method: str,
    url: httpcore2.URL,
    headers: list[tuple[str, str]],
    content: bytes | None = None,
    *,
    most_bytes: int,
) -> Page:
    """Ask once. Follows no redirect, and reads no more of the body than it may. Raises
    ExchangeFailed."""
    try:
        async with pool.stream(method, url, headers=headers, content=content) as response:
            body, is_whole = await _read(response, most_bytes)
    except (
        httpcore2.NetworkError,
        httpcore2.ProtocolError,
        httpcore2.TimeoutException,
        httpcore2.UnsupportedProtocol,
    ) as error:
        raise ExchangeFailed(str(error) or type(error).__name__) from None
    named = {name.decode().lower(): v.decode("latin-1") for name, v in response.headers}
    return Page(response.status, named, body, is_whole)


async def resolve(host: str, port: int) -> Sequence[str]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


@dataclass(frozen=True, slots=True)
class WebClient:
    resolve: Resolve = resolve
    allow_private: frozenset[str] = frozenset()  # host:port
    trust: ssl.SSLContext | None = None  # None: the authorities that this machine trusts

    async def fetch(self, url: Url, most_bytes: int) -> Page:
        """Raises CallRefused, CallFailed. Follows no redirect."""
        backend = _PinnedBackend(await self._resolve_checked(url))
        target = httpcore2.URL(scheme=url.scheme, host=url.host, port=url.port, target=url.target)
        headers = [("Host", _host_header(url)), *_HEADERS]
        try:
            async with httpcore2.AsyncConnectionPool(self.trust, network_backend=backend) as pool:
                return await exchange(pool, "GET", target, headers, most_bytes=most_bytes)
        except ExchangeFailed as failed:
            raise CallFailed(f"{url} could not be fetched: {failed}") from None

    async def _resolve_checked(self, url: Url) -> Sequence[str]:
        try:
            addresses = await self.resolve(url.host, url.port)
        except (OSError, UnicodeError):
            raise CallFailed(f"the name {url.host} has no address") from None
        if not addresses:
            raise CallFailed(f"the name {url.host} has no address")
        if url.place not in self.allow_private:
            # All of them: a name that also has a private address is likely an attack.
            for address in addresses:
                if why := why_closed(address):
                    raise CallRefused(
                        f"{url.host} is {address}, which is {why}; only public addresses can be"
                        f" fetched (the user may list {url.place} under web.allow_private)"
                    )
        return addresses


class _PinnedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to the addresses that were checked, whatever name it is given."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses
        self._real = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        *first, last = self._addresses
        for address in first:
            with suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                return await self._real.connect_tcp(address, port, _ONE_OF_MANY_SECONDS)
        return await self._real.connect_tcp(last, port, timeout)


def _host_header(url: Url) -> str:
    default = {"http": 80, "https": 443}[url.scheme]
    return url.place.removesuffix(f":{default}")


async def _read(response: httpcore2.Response, most_bytes: int) -> tuple[bytes, bool]:
    body = bytearray()
    async for piece in response.aiter_stream():
        body += piece
        if len(body) > most_bytes:
            return bytes(body[:most_bytes]), False
    return bytes(body), True
