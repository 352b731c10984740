"""Wait for work that must not be left behind, also where whoever waits is cancelled meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

_Done = TypeVar("_Done")


def start_thread(work: Callable[[], _Done]) -> asyncio.Future[_Done]:
    # Not as a task: those are all cancelled where a loop ends, and the thread would go on unnoticed.
    return asyncio.get_running_loop().run_in_executor(None, work)


async def complete(work: Awaitable[_Done], stop: Callable[[], object] | None = None) -> _Done:
    """How the work ends. A cancellation is raised once it has ended, and counts for more than an error
    of the work: a timeout around it must see it. `stop` is called first, to make the end come sooner."""
    ending = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not ending.done():
        try:
            await asyncio.wait([ending])
        except asyncio.CancelledError as error:
            cancelled = error
            if stop is not None:
                stop()
    if cancelled is None:
        return ending.result()
    raise cancelled from (None if ending.cancelled() else ending.exception())
