"""Timers by name: each fires once, when it is due, in order."""

import asyncio

from stretto.events.attempts import StepTimer
from stretto.execution.clock import Timers
from stretto.testing.clock import VirtualClock


def fired(set_up: dict[str, float], clear: tuple[str, ...] = ()) -> list[tuple[str, float]]:
    clock = VirtualClock(1000.0)
    seen: list[tuple[str, float]] = []

    async def story() -> None:
        timers = Timers(clock, lambda timer: seen.append((timer.step, clock.now() - 1000.0)))
        for name, seconds in set_up.items():
            timers.set(StepTimer(name), 1000.0 + seconds)
        await asyncio.sleep(0)
        for name in clear:
            timers.clear(StepTimer(name))
        await clock.sleep_until(10_000.0)
        timers.close()

    clock.run(story())
    return seen


def test_timers_fire_in_the_order_they_are_due() -> None:
    assert fired({"late": 300.0, "soon": 1.5, "past": -5.0}) == [
        ("past", 0.0),
        ("soon", 1.5),
        ("late", 300.0),
    ]


def test_timers_that_are_due_together_fire_in_the_order_they_were_set() -> None:
    assert fired({"b": 2.0, "a": 2.0}) == [("b", 2.0), ("a", 2.0)]


def test_a_cleared_timer_does_not_fire() -> None:
    assert fired({"a": 1.0, "b": 2.0}, clear=("a",)) == [("b", 2.0)]
    assert fired({"a": 1.0}, clear=("a", "unknown")) == []


def test_a_timer_that_is_set_anew_fires_at_its_new_time_only() -> None:
    clock = VirtualClock(1000.0)
    seen: list[float] = []

    async def story() -> None:
        timers = Timers(clock, lambda name: seen.append(clock.now()))
        timers.set(StepTimer("a"), 1001.0)
        timers.set(StepTimer("a"), 1005.0)
        await clock.sleep_until(1010.0)
        timers.set(StepTimer("a"), 1012.0)
        timers.set(StepTimer("a"), 1011.0)
        await clock.sleep_until(1020.0)

    clock.run(story())
    assert seen == [1005.0, 1011.0]


def test_a_closed_set_of_timers_is_silent() -> None:
    clock = VirtualClock()
    seen: list[str] = []

    async def story() -> None:
        timers = Timers(clock, seen.append)
        timers.set(StepTimer("a"), clock.now() + 1)
        timers.close()
        await clock.sleep_until(clock.now() + 10)

    clock.run(story())
    assert seen == []
