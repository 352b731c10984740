"""Where accepted runs wait to begin."""

import asyncio

import pytest

from stretto.execution.start_line import StartLine


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
