"""TCP and TLS for httpcore2, on asyncio alone. In: a host and a port. Out: a stream of bytes.

httpcore2 comes with a stream of its own, which goes through anyio. This one halves what a call
costs, closes at once when a call is cancelled, and knows whether an idle connection still is one.
"""

import asyncio
import ssl
from collections.abc import Iterable
from typing import Any

import httpcore2

_PAUSE_BYTES = 256 * 1024  # a server that sends faster than we read is made to wait


class Wire(asyncio.Protocol, httpcore2.AsyncNetworkStream):
    """One connection. Who reads from it is one task at a time."""

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


class Wires(httpcore2.AsyncNetworkBackend):
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
                _, wire = await loop.create_connection(Wire, host, port, happy_eyeballs_delay=0.25)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout("connecting took too long") from error
        except OSError as error:
            raise httpcore2.ConnectError(error.strerror or str(error)) from error
        return wire

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
