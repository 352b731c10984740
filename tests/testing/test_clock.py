"""The virtual clock: time passes only when nothing else can happen."""

import asyncio
import threading
import time

import pytest

from stretto.testing.clock import START, VirtualClock


def test_an_hour_takes_no_time() -> None:
    clock = VirtualClock()
    before = time.monotonic()
    clock.run(clock.sleep_until(clock.now() + 3600))
    assert clock.now() == START + 3600
    assert time.monotonic() - before < 10


def test_a_time_that_is_past_is_not_waited_for() -> None:
    clock = VirtualClock()
    clock.run(clock.sleep_until(clock.now() - 5))
    assert clock.now() == START


def test_sleepers_wake_in_the_order_of_their_times_each_at_its_own() -> None:
    clock = VirtualClock()
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep_until(START + seconds)
        woken.append((name, clock.now() - START))

    async def story() -> None:
        await asyncio.gather(sleeper("c", 86_400.25), sleeper("a", 0.1), sleeper("b", 7.5))

    clock.run(story())
    assert [name for name, _ in woken] == ["a", "b", "c"]
    assert [at for _, at in woken] == [START + s - START for s in (0.1, 7.5, 86_400.25)]


def test_no_time_passes_while_anything_can_run() -> None:
    clock = VirtualClock()

    async def busy() -> float:
        for _ in range(10_000):
            await asyncio.sleep(0)
        return clock.now()

    async def story() -> float:
        sleeping = asyncio.ensure_future(clock.sleep_until(START + 0.001))
        worked_until = await busy()
        await sleeping
        return worked_until

    assert clock.run(story()) == START


def test_asyncios_own_sleeps_and_timeouts_obey_it() -> None:
    clock = VirtualClock()

    async def story() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(90):
                await clock.sleep_until(START + 3600)
        await asyncio.sleep(30)

    clock.run(story())
    assert clock.now() == START + 120


def test_a_cancelled_sleep_leaves_nothing_behind() -> None:
    clock = VirtualClock()

    async def story() -> None:
        sleeping = asyncio.ensure_future(clock.sleep_until(START + 3600))
        await asyncio.sleep(1)
        sleeping.cancel()
        await asyncio.sleep(1)

    clock.run(story())
    assert clock.now() == START + 2


def test_the_next_run_goes_on_where_the_last_one_left() -> None:
    clock = VirtualClock()
    for _ in range(3):
        clock.run(asyncio.sleep(10))
    assert clock.now() == START + 30


def test_outside_its_own_loop_it_stands_still_and_says_so() -> None:
    with pytest.raises(RuntimeError, match=r"use clock\.run"):
        asyncio.run(VirtualClock().sleep_until(START + 1))


def test_waiting_for_what_never_happens_is_an_error_and_not_a_hang() -> None:
    clock = VirtualClock()

    async def story() -> None:
        while True:
            await asyncio.sleep(86_400)

    with pytest.raises(RuntimeError, match="half a year"):
        clock.run(story())


def test_what_a_thread_does_can_be_waited_for() -> None:
    assert VirtualClock().run(asyncio.to_thread(lambda: 7)) == 7


def test_no_time_passes_while_a_thread_works() -> None:
    clock = VirtualClock()

    async def story() -> None:
        ticking = asyncio.ensure_future(asyncio.sleep(60))
        for _ in range(3):
            await asyncio.to_thread(time.sleep, 0.02)
        ticking.cancel()

    clock.run(story())
    assert clock.now() == START


def test_a_thread_that_hangs_does_not_stop_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stretto.testing.clock._PATIENCE_SECONDS", 0.05)
    clock = VirtualClock()
    woken = threading.Event()

    async def story() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(90):
                await asyncio.to_thread(woken.wait)
        woken.set()

    clock.run(story())
    assert clock.now() == START + 90
