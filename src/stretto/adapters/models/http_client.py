"""The HTTP client of all models: one for each address, shared by all that ask in one event loop.

httpcore2 does the protocol; connections and bytes are our own, because that takes a quarter of the
CPU (docs/decisions/0021). Its pool looks at every connection for every request; here the idle ones lie
on a stack. Its streams go through anyio; this one uses asyncio alone, closes at once when a call is
cancelled, and knows whether an idle connection is still open.

Redirects are not followed: a key must not travel to where a server points.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

import httpcore2

Headers = list[tuple[bytes, bytes]]
_PAUSE_BYTES = 256 * 1024  # a server that sends faster than we read is made to wait
_IDLE_MOST = 100
_IDLE_SECONDS = 30.0  # servers close idle connections after about a minute
# What a dying connection says when it is used again. Nothing of an answer had come.
_STALE = (httpcore2.RemoteProtocolError, httpcore2.ReadError, httpcore2.WriteError)

# At DEBUG it logs the headers of every answer, and a server may send our key back in one.
logging.getLogger("httpcore2.http11").setLevel(logging.INFO)


class HttpConnection(asyncio.Protocol, httpcore2.AsyncNetworkStream):
    """One connection. Only one task at a time may read from it."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._unsent: list[bytes] = []
        self._received = bytearray()
        self._has_ended = False
        self._failure: Exception | None = None
        self._waiting: asyncio.Future[None] | None = None
        self._is_paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) > _PAUSE_BYTES and not self._is_paused and self._transport:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        self._has_ended = True
        self._wake()
        return False  # close our half too: nothing is left to be said

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_ended = True
        self._failure = exc
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._unsent:
            self._flush()
        if not self._received and not self._has_ended:
            await self._wait(timeout)
        if not self._received and self._failure is not None:
            raise httpcore2.ReadError(str(self._failure)) from self._failure
        part = bytes(self._received[:max_bytes])
        del self._received[:max_bytes]
        if self._is_paused and len(self._received) <= _PAUSE_BYTES and self._transport:
            self._is_paused = False
            self._transport.resume_reading()
        return part

    async def _wait(self, seconds: float | None) -> None:
        loop = asyncio.get_running_loop()
        self._waiting = waiting = loop.create_future()
        # A bare timer: asyncio.timeout costs four times as much, and a stream has many reads.
        timer = loop.call_later(seconds, _expire, waiting, seconds) if seconds else None
        try:
            await waiting
        finally:
            self._waiting = None
            if timer is not None:
                timer.cancel()

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # Kept until we want to read: the head and the body in one packet are a third of a call's
        # cost. What does not fit the socket is sent while we wait for the answer, and that wait
        # has a limit.
        if self._transport is None or self._transport.is_closing():
            raise httpcore2.WriteError("the connection is closed")
        self._unsent.append(buffer)

    def _flush(self) -> None:
        assert self._transport is not None
        self._transport.write(b"".join(self._unsent))
        self._unsent.clear()

    async def aclose(self) -> None:
        self.abort()

    def abort(self) -> None:
        """At once. A polite end of TLS may take as long as the server likes."""
        if self._transport is not None:
            self._transport.abort()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        assert self._transport is not None
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout):
                secured = await loop.start_tls(
                    self._transport, self, ssl_context, server_hostname=server_hostname
                )
        except TimeoutError as error:
            self.abort()
            raise httpcore2.ConnectTimeout("TLS took too long") from error
        except OSError as error:  # an ssl.SSLError is one
            self.abort()
            raise httpcore2.ConnectError(str(error)) from error
        except BaseException:
            self.abort()
            raise
        self._transport = secured
        return self

    def get_extra_info(self, info: str) -> Any:
        # httpcore2 asks an idle connection: whatever it sent unasked, it is of no more use.
        if info == "is_readable":
            return bool(self._received) or self._has_ended
        return self._transport.get_extra_info(info) if self._transport else None


def _expire(waiting: "asyncio.Future[None]", seconds: float) -> None:
    if not waiting.done():
        waiting.set_exception(httpcore2.ReadTimeout(f"nothing came for {seconds:g} s"))


class ConnectionMaker(httpcore2.AsyncNetworkBackend):
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout):
                _, wire = await loop.create_connection(
                    HttpConnection, host, port, happy_eyeballs_delay=0.25
                )
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout("connecting took too long") from error
        except OSError as error:
            raise httpcore2.ConnectError(error.strerror or str(error)) from error
        return wire

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class HttpClient:
    """The connections to one origin, in one event loop. Get it from `client_of`."""

    def __init__(self, origin: httpcore2.Origin, proxy: str | None = None) -> None:
        self._origin = origin
        self._idle: list[tuple[httpcore2.AsyncHTTPConnection, HttpConnection]] = []
        self._wires = ConnectionMaker()
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
            connection, response = await self._send_over(request)
        try:
            yield response
        finally:
            await self._put_back(connection, response)

    async def _send_over(
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
            elif isinstance(wire, HttpConnection) and not (connection is None and is_reusable):
                wire.abort()  # nobody keeps it: only a proxy keeps its connections itself

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
    """The connections of one event loop."""

    def __init__(self) -> None:
        self._by_origin: dict[tuple[str, str, int], HttpClient] = {}
        self._end: AsyncGenerator[None] | None = None

    async def of(self, parts: SplitResult) -> HttpClient:
        key = (parts.scheme, parts.hostname or "", _port(parts))
        client = self._by_origin.get(key)
        if client is None:
            origin = httpcore2.Origin(key[0].encode(), key[1].encode("idna"), key[2])
            client = self._by_origin[key] = HttpClient(origin, proxy_for(parts))
        if self._end is None:
            # A loop closes its async generators when it ends. So the sockets are closed in time
            # without a call by those who run the loop.
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


async def client_of(url: str) -> HttpClient:
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


def _proxy(
    url: str, tls: ssl.SSLContext | None, wires: ConnectionMaker
) -> httpcore2.AsyncHTTPProxy:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in ("http", "https"):
        raise httpcore2.ProxyError(f"a {parts.scheme} proxy is not supported; use an HTTP proxy")
    auth = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    try:
        address = f"{parts.scheme}://{parts.hostname}:{_port(parts)}"
    except ValueError as error:  # its port is no number
        raise httpcore2.ProxyError(f"the address of the proxy is wrong: {error}") from None
    return httpcore2.AsyncHTTPProxy(
        address, auth, ssl_context=tls, max_connections=None, network_backend=wires
    )
