"""One way of calling a model, in a process of its own. In: one JSON object a line. Out: one a line.

Only the standard library is imported here, so that any interpreter can be measured with it.
"""

import asyncio
import gc
import json
import resource
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

MODEL = "measured"
INSTRUCTIONS = "You are terse."
CHAIN = 3
FAN = 100


def prompt(step: str, before: str = "") -> str:
    told = f" Go on from this: {before}" if before else ""
    return f"Write {step} about bees, for people who have never seen one. Two sentences.{told}"


@dataclass(frozen=True)
class Way:
    """Both give how many answers they got."""

    chain: Callable[[], Awaitable[int]]
    fan: Callable[[], Awaitable[int]]


def of_calls(call: Callable[[str], Awaitable[str]]) -> Way:
    """Without any engine: a loop, and a gather."""

    async def chain() -> int:
        said = ""
        for n in range(CHAIN):
            said = await call(prompt(f"part {n}", said))
            assert said
        return CHAIN

    async def fan() -> int:
        answers = await asyncio.gather(*(call(prompt(f"part {n}")) for n in range(FAN)))
        return sum(map(bool, answers))

    return Way(chain, fan)


Ways = Mapping[str, Callable[[str], AbstractAsyncContextManager[Way]]]


def serve(ways: Ways) -> None:
    """argv: the way, and the server's URL."""
    asyncio.run(_serve(ways[sys.argv[1]], sys.argv[2]))


async def _serve(opened: Callable[[str], AbstractAsyncContextManager[Way]], url: str) -> None:
    async with opened(url) as way:
        async for asked in _asked():
            work = way.chain if asked["shape"] == "chain" else way.fan
            print(json.dumps(await _measure(work, asked["times"])), flush=True)


async def _asked() -> AsyncIterator[dict]:
    while line := await asyncio.to_thread(sys.stdin.readline):
        yield json.loads(line)


async def _measure(work: Callable[[], Awaitable[int]], times: int) -> dict[str, object]:
    gc.collect()
    walls, calls, spent = [], 0, time.process_time()
    for _ in range(times):
        began = time.perf_counter()
        calls += await work()
        walls.append(time.perf_counter() - began)
    cpu = (time.process_time() - spent) / calls
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"walls": walls, "cpu": cpu, "mb": peak_kb / 1024}
