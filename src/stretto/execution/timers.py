"""Timers by name. In: due times. Out: a call when one is due. One waiting task for all."""

import asyncio
import heapq
from collections.abc import Callable

from stretto.ports.clock import Clock


class Timers:
    def __init__(self, clock: Clock, fire: Callable[[str], None]) -> None:
        self._clock = clock
        self._fire = fire
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        self._waiter: asyncio.Task[None] | None = None
        self._waits_until = 0.0

    def set(self, name: str, due_at: float) -> None:
        self._due[name] = due_at
        heapq.heappush(self._heap, (due_at, name))
        self._wait()

    def clear(self, name: str) -> None:
        # It stays in the heap and is passed over when it comes up.
        self._due.pop(name, None)
        if not self._due:
            self.close()

    def close(self) -> None:
        self._due.clear()
        self._heap.clear()
        if self._waiter is not None:
            self._waiter.cancel()
            self._waiter = None

    def _wait(self) -> None:
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        if not self._heap:
            return
        soonest = self._heap[0][0]
        if self._waiter is not None and self._waits_until <= soonest:
            return
        if self._waiter is not None:
            self._waiter.cancel()
        self._waits_until = soonest
        self._waiter = asyncio.create_task(self._sleep(soonest))

    async def _sleep(self, until: float) -> None:
        await self._clock.sleep_until(until)
        self._waiter = None
        while self._heap and self._heap[0][0] <= until:
            due_at, name = heapq.heappop(self._heap)
            if self._due.get(name) == due_at:
                del self._due[name]
                self._fire(name)
        self._wait()
