"""Ends connections that hold a place and send nothing. In: uvicorn's own protocol. Out: one with patience.

uvicorn waits without end for the first line of a request, and for the rest of a head. Whoever opens
connections and leaves them so would take all that the process may have, without a token.
"""

import asyncio
import resource
from contextlib import suppress
from typing import Any

HEAD_SECONDS = 10.0  # a head takes at most twice as long
_MOST_FILES = 65_536
_ANSWERING = object()


def with_patience(
    protocol: type[Any], head_seconds: float = HEAD_SECONDS
) -> type[asyncio.Protocol]:
    """The protocol, closing connections that have had no whole head for `head_seconds`."""

    class PatientProtocol(protocol):  # type: ignore[misc]
        _look_at: asyncio.TimerHandle | None = None
        _seen: object = (
            _ANSWERING  # the last answered request when the connection was looked at last
        )

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
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


def allow_many_files() -> None:
    """As many open files as the system allows this process: each connection is one."""
    with suppress(OSError, ValueError):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
        if soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
