"""The HTTP client of all models. In: a base URL. Out: its client, shared by who asks in one loop.

httpcore2 does the protocol. Its pool looks at every connection for every request, so with a hundred
calls at once it costs more than all the rest; here the idle ones lie on a stack.

Redirects are not followed: a key must not travel to where a server points.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

import httpcore2

from stretto.adapters.models.http_wire import Wire, Wires

Headers = list[tuple[bytes, bytes]]
_IDLE_MOST = 100
_IDLE_SECONDS = 30.0  # servers close idle connections after about a minute
# What a dying connection says when it is used again. Nothing of an answer had come.
_STALE = (httpcore2.RemoteProtocolError, httpcore2.ReadError, httpcore2.WriteError)

# At DEBUG it logs the headers of every answer, and a server may send our key back in one.
logging.getLogger("httpcore2.http11").setLevel(logging.INFO)


class Client:
    """The connections to one origin, in one event loop. Get it from `client_of`."""

    def __init__(self, origin: httpcore2.Origin, proxy: str | None = None) -> None:
        self._origin = origin
        self._idle: list[tuple[httpcore2.AsyncHTTPConnection, Wire]] = []
        self._wires = Wires()
        self._tls = httpcore2.default_ssl_context() if origin.scheme == b"https" else None
        self._proxy = _proxy(proxy, self._tls, self._wires) if proxy else None

    @asynccontextmanager
    async def send(
        self,
        method: str,
        target: str,
        headers: Headers,
        body: bytes = b"",
        *,
        idle_seconds: float,
        connect_seconds: float,
    ) -> AsyncGenerator[httpcore2.Response]:
        """Sends, and gives the answer once its head is here. Leaving early ends the connection.

        Raises httpcore2's exceptions.
        """
        limits = {"connect": connect_seconds, "read": idle_seconds, "write": idle_seconds}
        origin = self._origin
        url = httpcore2.URL(
            scheme=origin.scheme, host=origin.host, port=origin.port, target=target.encode("ascii")
        )
        request = httpcore2.Request(
            method, url, headers=headers, content=body, extensions={"timeout": limits}
        )
        if self._proxy is not None:
            response = await self._proxy.handle_async_request(request)
            connection = None
        else:
            connection, response = await self._sent(request)
        try:
            yield response
        finally:
            await self._put_back(connection, response)

    async def _sent(
        self, request: httpcore2.Request
    ) -> tuple[httpcore2.AsyncHTTPConnection, httpcore2.Response]:
        while (idle := self._idle_connection()) is not None:
            try:
                return idle, await idle.handle_async_request(request)
            except _STALE:
                continue  # the server closed it just as we took it: asking again does no harm
        connection = httpcore2.AsyncHTTPConnection(
            self._origin, self._tls, _IDLE_SECONDS, network_backend=self._wires
        )
        return connection, await connection.handle_async_request(request)

    def _idle_connection(self) -> httpcore2.AsyncHTTPConnection | None:
        while self._idle:
            # The last one in, so that those which a burst has left behind expire.
            connection, wire = self._idle.pop()
            if connection.is_available() and not connection.has_expired():
                return connection
            wire.abort()
        return None

    async def _put_back(
        self, connection: httpcore2.AsyncHTTPConnection | None, response: httpcore2.Response
    ) -> None:
        wire = response.extensions["network_stream"]
        is_reusable = False
        try:
            await response.aclose()
            is_reusable = connection is None or connection.is_available()
        finally:
            if connection is not None and is_reusable and len(self._idle) < _IDLE_MOST:
                self._idle.append((connection, wire))
            elif not is_reusable and isinstance(wire, Wire):
                wire.abort()

    @property
    def idle_connections(self) -> int:
        return len(self._idle)

    async def close(self) -> None:
        """Closes what is idle. What is under way goes on."""
        idle, self._idle = self._idle, []
        for _, wire in idle:
            wire.abort()
        if self._proxy is not None:
            await self._proxy.aclose()
        await asyncio.sleep(0)  # asyncio closes a socket one turn later


class _Clients:
    """Those of one event loop."""

    def __init__(self) -> None:
        self._by_origin: dict[tuple[str, str, int], Client] = {}
        self._end: AsyncGenerator[None] | None = None

    async def of(self, parts: SplitResult) -> Client:
        key = (parts.scheme, parts.hostname or "", _port(parts))
        client = self._by_origin.get(key)
        if client is None:
            origin = httpcore2.Origin(key[0].encode(), key[1].encode("idna"), key[2])
            client = self._by_origin[key] = Client(origin, proxy_for(parts))
        if self._end is None:
            # A loop ends the async generators that it knows when it ends itself. So the sockets
            # are closed in time, whoever runs the loop, and nobody needs to remember to.
            self._end = self._at_the_end()
            await anext(self._end)
        return client

    async def _at_the_end(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            await self.close()
            _CLIENTS.pop(asyncio.get_running_loop(), None)

    async def close(self) -> None:
        for client in self._by_origin.values():
            await client.close()


_CLIENTS: WeakKeyDictionary[asyncio.AbstractEventLoop, _Clients] = WeakKeyDictionary()


async def client_of(url: str) -> Client:
    """The one client for this URL's scheme, host and port in the running loop."""
    loop = asyncio.get_running_loop()
    if loop not in _CLIENTS:
        _CLIENTS[loop] = _Clients()
    return await _CLIENTS[loop].of(urlsplit(url))


async def close_clients() -> None:
    """All of the running loop. Those who ask later get new connections."""
    if (clients := _CLIENTS.get(asyncio.get_running_loop())) is not None:
        await clients.close()


def proxy_for(parts: SplitResult) -> str | None:
    """What HTTPS_PROXY, HTTP_PROXY and NO_PROXY say. Loopback is never asked of a proxy."""
    host = parts.hostname or ""
    if is_loopback(host) or proxy_bypass(host):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _port(parts: SplitResult) -> int:
    return parts.port or (443 if parts.scheme == "https" else 80)


def _proxy(url: str, tls: ssl.SSLContext | None, wires: Wires) -> httpcore2.AsyncHTTPProxy:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in ("http", "https"):
        raise httpcore2.ProxyError(f"a {parts.scheme} proxy is not supported; use an HTTP proxy")
    auth = (parts.username, parts.password or "") if parts.username else None
    address = f"{parts.scheme}://{parts.hostname}:{_port(parts)}"
    return httpcore2.AsyncHTTPProxy(
        address, auth, ssl_context=tls, max_connections=None, network_backend=wires
    )
