"""The time of one run: a clock that goes on where the run's journal ends, and the timers."""

import asyncio
import heapq
from collections.abc import Callable
from itertools import count

from stretto.events.attempts import Timer
from stretto.ports.clock import Clock


class RunClock:
    """The clock of a run that is resumed.

    The wall clock may have been set back since the last event of the journal, while nobody drove
    the run. Its timers would then wait for as long again, and what ended would have ended before
    it began. So a run's time goes on from where its journal ends.
    """

    def __init__(self, clock: Clock, not_before: float) -> None:
        self._clock = clock
        self._ahead_seconds = max(0.0, not_before - clock.now())

    def now(self) -> float:
        return self._clock.now() + self._ahead_seconds

    async def sleep_until(self, at: float) -> None:
        await self._clock.sleep_until(at - self._ahead_seconds)


class Timers:
    """Call `fire` for each timer that is due. One task waits for all of them."""

    def __init__(self, clock: Clock, fire: Callable[[Timer], None]) -> None:
        self._clock = clock
        self._fire = fire
        self._due: dict[Timer, float] = {}
        self._heap: list[tuple[float, int, Timer]] = []
        self._set = count()  # of timers that are due together, the first that was set comes first
        self._waiter: asyncio.Task[None] | None = None
        self._waits_until = 0.0

    def set(self, timer: Timer, due_at: float) -> None:
        self._due[timer] = due_at
        heapq.heappush(self._heap, (due_at, next(self._set), timer))
        self._wait()

    def clear(self, timer: Timer) -> None:
        # It stays in the heap and is passed over when it comes up.
        self._due.pop(timer, None)
        if not self._due:
            self.close()

    def close(self) -> None:
        self._due.clear()
        self._heap.clear()
        if self._waiter is not None:
            self._waiter.cancel()
            self._waiter = None

    def _wait(self) -> None:
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
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
            due_at, _, timer = heapq.heappop(self._heap)
            if self._due.get(timer) == due_at:
                del self._due[timer]
                self._fire(timer)
        self._wait()
