"""Where runs wait that have been accepted and have yet to begin.

A run is accepted once its first event is durable. What follows costs more than accepting it, so while
whoever asks for runs is being answered, those that were accepted wait, in their order and not for long:
a burst is accepted first and driven afterwards.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE_SECONDS = 1.0


class StartLine:
    """For one event loop."""

    def __init__(self, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._patience_seconds = patience_seconds
        self._waiting: deque[tuple[float, asyncio.Future[None]]] = deque()
        self._accepting = 0
        self._is_open = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def accepting(self) -> Iterator[None]:
        """While a run is being accepted, others may wait."""
        self._accepting += 1
        self._is_open.clear()
        try:
            yield
        finally:
            self._accepting -= 1
            if not self._accepting:
                self._is_open.set()

    async def wait(self) -> None:
        """Until the run may begin."""
        if not (self._accepting or self._waiting):
            return
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append((loop.time() + self._patience_seconds, turn))
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._let_begin())
        await turn

    def open(self) -> None:
        """Release all that wait, because everything ends."""
        while self._waiting:
            _tell(self._waiting.popleft()[1])

    async def _let_begin(self) -> None:
        while self._waiting:
            await self._until_quiet(self._waiting[0][0])
            if self._waiting:
                _tell(self._waiting.popleft()[1])
                await asyncio.sleep(0)  # one a round, so that requests that come now are read

    async def _until_quiet(self, at_latest: float) -> None:
        if not self._accepting:
            return
        try:
            async with asyncio.timeout_at(at_latest):
                await self._is_open.wait()
        except TimeoutError:
            pass


def _tell(turn: asyncio.Future[None]) -> None:
    if not turn.done():  # it was cancelled meanwhile
        turn.set_result(None)
