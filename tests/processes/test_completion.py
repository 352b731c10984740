"""What must not be cut short is waited for, whoever is cancelled meanwhile."""

import asyncio
import threading

import pytest

from stretto.processes.completion import complete, start_thread


def test_a_cancellation_is_raised_when_the_work_has_ended() -> None:
    async def story() -> None:
        may_end = threading.Event()
        thread = start_thread(may_end.wait)
        waiting = asyncio.create_task(complete(thread))
        for _ in range(3):  # also if it is cancelled again and again
            await asyncio.sleep(0)
            waiting.cancel()
        await asyncio.sleep(0)
        assert not waiting.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert thread.done()

    asyncio.run(story())


def test_a_cancellation_counts_for_more_than_an_error_of_the_work() -> None:
    async def story() -> None:
        may_end = asyncio.Event()

        async def fail() -> None:
            await may_end.wait()
            raise OSError("the disk is full")

        with pytest.raises(TimeoutError):  # which only a cancellation can become
            async with asyncio.timeout(0):
                await complete(fail(), may_end.set)

    asyncio.run(story())


def test_an_error_and_an_answer_are_those_of_the_work() -> None:
    async def story() -> None:
        assert await complete(start_thread(lambda: 7)) == 7
        with pytest.raises(ZeroDivisionError):
            await complete(start_thread(lambda: 1 // 0))

    asyncio.run(story())
