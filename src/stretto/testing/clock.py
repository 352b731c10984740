"""A virtual clock: under it, coroutines sleep without waiting.

    clock = VirtualClock()
    clock.run(main())  # as asyncio.run(main()), and an hour of `asyncio.sleep` takes milliseconds

The clock brings its own event loop. Where a usual loop would wait for its next timer, this one moves
the clock to that timer. So time passes only when nothing else can happen, and two drives of one run
see the same times. All timers of the loop obey the clock: `asyncio.sleep` and `asyncio.timeout`, not
only `sleep_until`. While a thread of `run_in_executor` or `asyncio.to_thread` is at work, the clock
stands still for up to five real seconds. The loop cannot know that any other thread, or another
process, is being waited for, so time goes on meanwhile: use a MemoryJournal with this clock.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple, Unpack

START = 946_684_800.0  # 1 January 2000
# Not far beyond this, adding a nanosecond no longer changes a float, which the loop's timers need.
# No recipe lasts so long.
_LONGEST_SECONDS = 180 * 86_400.0
# In real time. A thread that takes longer may hang: time goes on then, so that timeouts can end it.
_PATIENCE_SECONDS = 5.0
_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")


class VirtualClock:
    def __init__(self, start: float = START) -> None:
        self._loop_began_at = start
        self.loop_seconds = 0.0  # kept small: the loop compares times to a nanosecond

    def now(self) -> float:
        return self._loop_began_at + self.loop_seconds

    async def sleep_until(self, at: float) -> None:
        if at <= self.now():
            return
        loop = asyncio.get_running_loop()
        if not isinstance(loop, _Loop) or loop.clock is not self:
            raise RuntimeError("this clock stands still here: use clock.run(…)")
        woken = loop.create_future()
        timer = loop.call_at(at - self._loop_began_at, woken.set_result, None)
        try:
            await woken
        finally:
            timer.cancel()

    def run(self, main: Coroutine[Any, Any, _T]) -> _T:
        """As `asyncio.run`, on this clock. The next `run` goes on at the time this one left."""
        self._loop_began_at, self.loop_seconds = self.now(), 0.0
        with asyncio.Runner(loop_factory=lambda: _Loop(self)) as runner:
            return runner.run(main)

    def skip(self, seconds: float) -> None:
        """Only the loop calls this, and only when it is idle."""
        self.loop_seconds += seconds
        if self.loop_seconds > _LONGEST_SECONDS:
            raise RuntimeError("half a year has passed, and what is waited for did not happen")


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.threads: set[asyncio.Future[Any]] = set()
        super().__init__(_Idleness(self))

    def time(self) -> float:
        return self.clock.loop_seconds

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[_Ts]], _T], *args: *_Ts
    ) -> asyncio.Future[_T]:
        thread = super().run_in_executor(executor, func, *args)
        self.threads.add(thread)
        thread.add_done_callback(self.threads.discard)
        return thread

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        # Threads live in real time, so no limit on this clock may cut them off.
        await super().shutdown_default_executor()


class _Idleness(selectors.DefaultSelector):
    """Moves the clock. A loop asks its selector to wait until the next timer, and for 0 s while
    anything can run: so a wait for longer means that the loop is idle."""

    def __init__(self, loop: _Loop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(None if timeout is None else 0)
        if ready or timeout is None or timeout <= 0:
            return ready
        if self._loop.threads:
            ready = super().select(_PATIENCE_SECONDS)  # a thread that ends wakes the loop
            if ready:
                return ready
            self._loop.threads.clear()
        self._loop.clock.skip(timeout)
        return []
