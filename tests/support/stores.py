"""Every store that is shipped, for the contracts that all of them must keep."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from stretto.adapters.stores.memory import MemoryJournal
from stretto.adapters.stores.sqlite import SqliteJournal
from stretto.execution.leases import Store as Everything

KINDS = ("memory", "sqlite")


class HandClock:
    def __init__(self) -> None:
        self.at = 1000.0

    def now(self) -> float:
        return self.at


class Store:
    """An adapter under test, and the clock it looks at."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.clock = HandClock()
        self.kind = kind
        self.path = directory / "state" / "journal.db"

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Everything]:
        journal: Everything
        if self.kind == "memory":
            journal = MemoryJournal(now=self.clock.now)
        else:
            journal = await SqliteJournal.open(self.path, lease_time=self.clock.now)
        try:
            yield journal
        finally:
            await journal.close()

    def run(self, story: Callable[[Everything], Awaitable[None]]) -> None:
        async def told() -> None:
            async with self.opened() as journal:
                await story(journal)

        asyncio.run(told())
