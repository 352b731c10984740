"""The machine's clock: it goes on, whoever sets the date."""

import asyncio
import time

import pytest

from stretto.adapters.clock import SystemClock, boot_name, elapsed


def test_it_tells_the_date_and_never_jumps(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SystemClock()
    assert abs(clock.now() - time.time()) < 60
    before = clock.now()
    real = time.time
    for seconds in (-86_400, 86_400):
        monkeypatch.setattr(time, "time", lambda seconds=seconds: real() + seconds)
        assert 0 <= clock.now() - before < 60
        assert abs(SystemClock().now() - clock.now()) < 60


def test_sleeping_does_not_follow_the_date(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SystemClock()
    real = time.time

    async def sleep() -> None:
        sleeping = asyncio.create_task(clock.sleep_until(clock.now() + 0.2))
        await asyncio.sleep(0)
        monkeypatch.setattr(time, "time", lambda: real() - 86_400)
        await asyncio.wait_for(sleeping, 30)

    began = elapsed()
    asyncio.run(sleep())
    assert elapsed() - began >= 0.2


def test_all_processes_of_a_boot_know_it_by_one_name() -> None:
    assert boot_name() == boot_name()
