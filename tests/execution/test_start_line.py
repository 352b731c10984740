"""Where accepted runs wait to begin, and the shared way to a thread."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event
from typing import Any

import pytest

from stretto.execution.start_line import StartLine, ThreadHop


async def begin(line: StartLine, begun: list[int], number: int) -> None:
    await line.wait()
    begun.append(number)


def test_a_run_begins_at_once_while_nobody_asks_for_another() -> None:
    async def main() -> None:
        begun: list[int] = []
        await asyncio.wait_for(begin(StartLine(), begun, 1), 10)
        assert begun == [1]

    asyncio.run(main())


def test_accepted_runs_begin_in_order_once_no_request_is_under_way() -> None:
    async def main() -> None:
        line, begun = StartLine(patience_seconds=60), list[int]()
        with line.accepting():
            tasks = [asyncio.create_task(begin(line, begun, n)) for n in range(5)]
            with line.accepting():
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.01)
            assert begun == []
        await asyncio.wait_for(asyncio.gather(*tasks), 10)
        assert begun == [0, 1, 2, 3, 4]

    asyncio.run(main())


def test_runs_that_were_asked_for_one_after_the_other_begin_when_no_more_come() -> None:
    async def main() -> None:
        line, begun = StartLine(60, burst_seconds=1.0), list[int]()
        loop, tasks, seen = asyncio.get_running_loop(), [], 0
        for number in range(20):
            with line.accepting():
                tasks.append(asyncio.create_task(begin(line, begun, number)))
                await asyncio.sleep(0)
            await asyncio.sleep(0)  # the answer is on its way, and then comes the next request
            seen = len(begun)
        assert seen <= 1  # the first one, which was alone
        since = loop.time()
        await asyncio.wait_for(asyncio.gather(*tasks), 10)
        assert begun == list(range(20))
        assert loop.time() - since < 5

    asyncio.run(main())


def test_requests_without_end_hold_no_run_up_for_long() -> None:
    async def main() -> None:
        line, begun = StartLine(patience_seconds=0.05), list[int]()
        with line.accepting():
            await asyncio.wait_for(begin(line, begun, 1), 10)
        assert begun == [1]

    asyncio.run(main())


@pytest.mark.parametrize("ends", ["cancelled", "opened"])
def test_who_is_cancelled_or_stopped_holds_nobody_up(ends: str) -> None:
    async def main() -> None:
        line, begun = StartLine(patience_seconds=60), list[int]()
        with line.accepting():
            first, second = (asyncio.create_task(begin(line, begun, n)) for n in (1, 2))
            await asyncio.sleep(0.01)
            if ends == "opened":
                line.open()
            else:
                first.cancel()
        await asyncio.wait_for(asyncio.gather(first, second, return_exceptions=True), 10)
        assert begun == ([1, 2] if ends == "opened" else [2])

    asyncio.run(main())


def test_what_is_asked_together_takes_one_way_to_a_thread() -> None:
    async def main() -> None:
        hop, threads = ThreadHop(), list[int]()
        loop = asyncio.get_running_loop()
        begin = loop.run_in_executor

        def counted(*given: Any) -> Any:
            threads.append(1)
            return begin(*given)

        loop.run_in_executor = counted  # type: ignore[method-assign]
        found = await asyncio.gather(*(hop.run(partial(pow, n, 2)) for n in range(100)))
        assert found == [n * n for n in range(100)]
        assert len(threads) <= 8  # one, as a rule; more where the machine is slow
        assert await hop.run(lambda: "later") == "later"

    asyncio.run(main())


def test_what_takes_long_in_the_thread_holds_nobody_up() -> None:
    async def main() -> None:
        hop, end = ThreadHop(), Event()
        slow = asyncio.create_task(hop.run(lambda: end.wait(60)))
        others = [asyncio.create_task(hop.run(partial(int, n))) for n in range(20)]
        assert await asyncio.wait_for(asyncio.gather(*others), 30) == list(range(20))
        assert not slow.done()
        late = asyncio.create_task(hop.run(lambda: "late"))
        assert await asyncio.wait_for(late, 30) == "late"
        end.set()
        assert await slow

    asyncio.run(main())


def test_an_error_in_the_thread_reaches_whoever_asked_and_nobody_else() -> None:
    async def main() -> None:
        hop = ThreadHop()
        found = await asyncio.gather(
            hop.run(lambda: 1), hop.run(lambda: 1 // 0), hop.run(lambda: 3), return_exceptions=True
        )
        assert [found[0], type(found[1]), found[2]] == [1, ZeroDivisionError, 3]
        gone = asyncio.create_task(hop.run(lambda: 4))
        await asyncio.sleep(0)
        gone.cancel()
        assert await hop.run(lambda: 5) == 5

    asyncio.run(main())


def test_work_that_runs_out_of_values_fails_alone() -> None:
    async def story() -> None:
        hop = ThreadHop()
        asked = hop.run(lambda: next(iter(()))), hop.run(lambda: 1), hop.run(lambda: 2)
        async with asyncio.timeout(5):
            failed, *others = await asyncio.gather(*asked, return_exceptions=True)
        assert isinstance(failed, RuntimeError), "a StopIteration can be told to nobody who awaits"
        assert isinstance(failed.__cause__, StopIteration)
        assert others == [1, 2]

    asyncio.run(story())


def test_what_is_asked_by_the_time_a_thread_is_free_is_done_together() -> None:
    async def main() -> None:
        opened, groups, begun, go_on = [0], dict[int, int](), Event(), Event()

        @contextmanager
        def together() -> Iterator[None]:
            opened[0] += 1
            yield

        def first() -> None:
            begun.set()
            go_on.wait(60)

        hop = ThreadHop(together)
        slow = asyncio.create_task(hop.run(first))
        await asyncio.to_thread(begun.wait, 60)
        tasks = [
            asyncio.create_task(hop.run(lambda n=n: groups.update({n: opened[0]})))
            for n in range(5)
        ]  # type: ignore[misc]
        await asyncio.sleep(0)
        assert opened == [1]
        go_on.set()
        await asyncio.wait_for(asyncio.gather(slow, *tasks), 60)
        assert len(set(groups.values())) == 1
        assert 1 not in groups.values()  # what was asked later is not told what was seen before

    asyncio.run(main())
