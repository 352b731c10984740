"""Where runs wait that have been accepted and have yet to begin; and how what comes before is shared.

A run is accepted once its first event is durable. What follows costs more than accepting it, so while
whoever asks for runs is being answered, those that were accepted wait, in their order and not for long:
a burst is accepted first and driven afterwards.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from stretto.events.model import Event
from stretto.ports.clock import Clock
from stretto.problems.errors import StrettoError

PATIENCE_SECONDS = 1.0
_BURST_SECONDS = 0.005  # after a request, within which the next one of many comes
_HOP_SECONDS = 0.02  # after which whoever waits for the thread is given another one
_MOST_THREADS = 4
# The outcomes of so much work are told together: waking the loop costs as much as small work does.
_TELL_SECONDS = 0.001
_T = TypeVar("_T")


class Successor(Protocol):
    """The driver that takes a place over."""

    def queue(self, event: Event, durable: asyncio.Future[None]) -> None: ...
    def follow(self, seconds: float) -> None: ...
    def stop(self) -> None: ...
    def on_lease_lost(self, error: StrettoError) -> None: ...


class StartLine:
    """For one event loop."""

    def __init__(
        self,
        patience_seconds: float = PATIENCE_SECONDS,
        burst_seconds: float = _BURST_SECONDS,
    ) -> None:
        self._patience_seconds = patience_seconds
        self._burst_seconds = burst_seconds
        self._waiting: deque[tuple[float, asyncio.Future[None]]] = deque()
        self._accepting = 0
        self._burst_until = 0.0
        self._is_burst = False  # the last request came soon after the one before
        self._is_open = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def accepting(self) -> Iterator[None]:
        """While a run is being accepted, others may wait."""
        loop = asyncio.get_running_loop()
        self._is_burst = loop.time() < self._burst_until
        self._accepting += 1
        self._is_open.clear()
        try:
            yield
        finally:
            self._accepting -= 1
            self._burst_until = loop.time() + self._burst_seconds
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
        with suppress(TimeoutError):
            async with asyncio.timeout_at(at_latest):
                while self._accepting or self._is_burst:
                    await self._is_open.wait()
                    await self._until_burst_ends()

    async def _until_burst_ends(self) -> None:
        """Whoever asks for many runs asks for the next one when one was answered. A run that was asked for
        alone waits for nobody."""
        left = self._burst_until - asyncio.get_running_loop().time()
        if self._is_burst and left > 0:
            await asyncio.sleep(left)
        elif not self._accepting:
            self._is_burst = False


def _tell(turn: asyncio.Future[None]) -> None:
    if not turn.done():  # it was cancelled meanwhile
        turn.set_result(None)


class PlaceInLine:
    """Stands for the driver of an accepted run until the run begins, so that a run that waits is small
    and has cost nothing yet. What it is told is handed to the driver."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._inbox: list[tuple[Event, asyncio.Future[None]]] = []
        self._calls: list[Callable[[Successor], None]] = []

    def now(self) -> float:
        return self._clock.now()

    def queue(self, event: Event, durable: asyncio.Future[None]) -> None:
        self._inbox.append((event, durable))

    def follow(self, seconds: float) -> None:
        self._calls.append(lambda driver: driver.follow(seconds))

    def stop(self) -> None:
        self._calls.append(lambda driver: driver.stop())

    def on_lease_lost(self, error: StrettoError) -> None:
        self._calls.append(lambda driver: driver.on_lease_lost(error))

    def hand_over(self, driver: Successor) -> None:
        for event, durable in self._inbox:
            driver.queue(event, durable)
        for call in self._calls:
            call(driver)


class ThreadHop:
    """Work for a thread that many ask for at once: they share the way there and back, which costs
    more than most of what they ask. What takes long holds nobody up: others get another thread.

    For one event loop. `together`: what is asked by the time that a thread is free is done in one of
    these, so that what all of it needs can be found out once.
    """

    def __init__(self, together: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self._together = together
        self._asked: deque[tuple[Callable[[], Any], asyncio.Future[Any]]] = deque()
        self._count = 0  # of all that was ever asked
        self._threads = 0
        self._watch: asyncio.TimerHandle | None = None

    async def run(self, work: Callable[[], _T]) -> _T:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[_T] = loop.create_future()
        self._asked.append((work, done))
        self._count += 1
        if not self._threads:
            self._begin(loop)
        if self._watch is None:
            self._watch = loop.call_later(_HOP_SECONDS, self._look, loop, self._count)
        return await done

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._threads += 1
        loop.run_in_executor(None, self._work, loop)

    def _look(self, loop: asyncio.AbstractEventLoop, asked: int) -> None:
        """`asked`: how much there was, all that time ago."""
        self._watch = None
        if not self._threads:
            return
        if self._count - len(self._asked) < asked and self._threads < _MOST_THREADS:
            self._begin(loop)  # some of that still waits: what is being done takes long
        self._watch = loop.call_later(_HOP_SECONDS, self._look, loop, self._count)

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        outcomes: list[tuple[asyncio.Future[Any], object]] = []
        tell_at = time.perf_counter() + _TELL_SECONDS
        with suppress(IndexError, RuntimeError):  # nothing is asked any more; or the loop is closed
            while asked := len(self._asked):
                with self._together():
                    for _ in range(asked):
                        work, done = self._asked.popleft()
                        outcomes.append((done, _outcome(work)))
                        if time.perf_counter() > tell_at:
                            loop.call_soon_threadsafe(_settle, outcomes)
                            outcomes, tell_at = [], time.perf_counter() + _TELL_SECONDS
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._end, loop, outcomes)

    def _end(
        self, loop: asyncio.AbstractEventLoop, outcomes: list[tuple[asyncio.Future[Any], object]]
    ) -> None:
        self._threads -= 1
        _settle(outcomes)
        if self._asked and not self._threads:  # it was asked while the thread ended
            self._begin(loop)


@dataclass(frozen=True, slots=True)
class _Raised:
    error: BaseException


def _outcome(work: Callable[[], object]) -> object:
    try:
        return work()
    except StopIteration as error:  # a future cannot raise it, and those after it would hang
        ended = RuntimeError("the work raised StopIteration")
        ended.__cause__ = error
        return _Raised(ended)
    except BaseException as error:  # whoever asked is told, and nobody else
        return _Raised(error)


def _settle(outcomes: list[tuple[asyncio.Future[Any], object]]) -> None:
    for done, outcome in outcomes:
        if done.done():  # cancelled while it waited
            continue
        if isinstance(outcome, _Raised):
            done.set_exception(outcome.error)
        else:
            done.set_result(outcome)
