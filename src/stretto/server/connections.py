"""Connections of HTTP. In: the protocol of uvicorn. Out: one that closes a connection whose request
has no whole head in time, and that sends a small answer in one piece."""

import asyncio
from typing import Any

HEAD_SECONDS = 10.0  # a head takes at most twice as long
_MOST_JOINED = 16_384  # bytes
_ANSWERING = object()


class JoinedWrites:
    """A transport that sends what is written in one turn of the loop as one piece. uvicorn writes the
    head of an answer and its body, and to wake the other side twice takes longer than to make both."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._written: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        if not self._written:
            asyncio.get_running_loop().call_soon(self._send)
        self._written.append(data)
        self._size += len(data)
        if self._size > _MOST_JOINED:
            self._send()  # what is large waits for nothing, so that its sender can be slowed down

    def close(self) -> None:
        self._send()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def _send(self) -> None:
        if self._written:
            written, self._written, self._size = self._written, [], 0
            if not self._transport.is_closing():
                self._transport.write(b"".join(written))


def with_patience(
    protocol: type[Any], head_seconds: float = HEAD_SECONDS
) -> type[asyncio.Protocol]:
    """The protocol, closing connections that have had no whole head for `head_seconds`."""

    class PatientProtocol(protocol):  # type: ignore[misc]
        _look_at: asyncio.TimerHandle | None = None
        # The last answered request, as of the last look at the connection.
        _seen: object = _ANSWERING

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(JoinedWrites(transport))
            self._look()

        def connection_lost(self, error: Exception | None) -> None:
            if self._look_at is not None:
                self._look_at.cancel()
            super().connection_lost(error)

        def _look(self) -> None:
            cycle = self.cycle
            is_waiting = cycle is None or cycle.response_complete
            if is_waiting and self._seen is cycle:
                self.transport.close()
                return
            self._seen = cycle if is_waiting else _ANSWERING
            self._look_at = asyncio.get_running_loop().call_later(head_seconds, self._look)

    return PatientProtocol
