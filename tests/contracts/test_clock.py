"""What every clock must do, whoever turns it."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import pytest

from stretto.adapters.clock import SystemClock
from stretto.execution.clock import RunClock
from stretto.ports.clock import Clock
from stretto.testing.clock import VirtualClock

PORTS = (Clock,)

MOMENT = 0.02  # seconds: long enough to be told from nothing, on whatever machine


@dataclass(frozen=True)
class Timepiece:
    """A clock under test, and how what sleeps by it is run."""

    clock: Clock
    run: Callable[[Coroutine[Any, Any, None]], None]


def _virtual() -> Timepiece:
    clock = VirtualClock()
    return Timepiece(clock, clock.run)


def _ahead() -> Timepiece:
    clock = VirtualClock()
    return Timepiece(RunClock(clock, clock.now() + 3600), clock.run)


CLOCKS = {
    "system": lambda: Timepiece(SystemClock(), asyncio.run),
    "virtual": _virtual,
    "of a run whose journal ends in the future": _ahead,
}


@pytest.fixture(params=CLOCKS)
def timepiece(request: pytest.FixtureRequest) -> Timepiece:
    return CLOCKS[request.param]()


def test_it_shows_a_date_and_never_goes_back(timepiece: Timepiece) -> None:
    seen = [timepiece.clock.now() for _ in range(1_000)]
    assert seen == sorted(seen)
    assert seen[0] > 900_000_000, "seconds since the epoch, and not since the boot"


def test_whoever_sleeps_wakes_when_the_clock_has_reached_that_time(timepiece: Timepiece) -> None:
    async def story() -> None:
        until = timepiece.clock.now() + MOMENT
        await timepiece.clock.sleep_until(until)
        assert timepiece.clock.now() >= until

    timepiece.run(story())


def test_a_time_that_is_past_is_not_waited_for(timepiece: Timepiece) -> None:
    async def story() -> None:
        for ago in (0.0, 1.0, 1e9):
            begun = timepiece.clock.now()
            await asyncio.wait_for(timepiece.clock.sleep_until(begun - ago), 5)

    timepiece.run(story())


def test_sleepers_wake_in_the_order_of_their_times(timepiece: Timepiece) -> None:
    woken: list[int] = []

    async def sleep(number: int, until: float) -> None:
        await timepiece.clock.sleep_until(until)
        woken.append(number)

    async def story() -> None:
        now = timepiece.clock.now()
        await asyncio.gather(*(sleep(n, now + n * MOMENT) for n in (3, 1, 2)))

    timepiece.run(story())
    assert woken == [1, 2, 3]


def test_a_sleeper_that_is_cancelled_keeps_nobody_waiting(timepiece: Timepiece) -> None:
    async def story() -> None:
        sleeper = asyncio.ensure_future(timepiece.clock.sleep_until(timepiece.clock.now() + 3600))
        await asyncio.sleep(0)
        begun = timepiece.clock.now()
        sleeper.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sleeper
        assert timepiece.clock.now() < begun + 3600

    timepiece.run(story())
