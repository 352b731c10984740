"""Keep the runs that this process drives: renew their leases, bring them what others posted.

One for all of them: ten thousand runs cost one look at the store each quarter of a second.
"""

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from weft.events.model import Event
from weft.ports.cache import Cache
from weft.ports.clock import Clock
from weft.ports.journal import Fenced, Journal
from weft.ports.post import Post
from weft.problems.errors import WeftError
from weft.vocabulary.ids import RunId

LEASE_SECONDS = 30.0
_LOOK_SECONDS = 0.25
_RENEW_SECONDS = LEASE_SECONDS / 3


class Driven(Protocol):
    def tell(self, event: Event) -> None: ...
    def lose(self, error: WeftError) -> None: ...


class Store(Journal, Post, Cache, Protocol):
    """All that one store offers."""


class Keeper:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._driven: dict[RunId, tuple[int, Driven]] = {}
        self._task: asyncio.Task[None] | None = None

    def add(self, run_id: RunId, fence: int, driven: Driven) -> None:
        self._driven[run_id] = (fence, driven)
        if self._task is None:
            self._task = asyncio.create_task(self._keep())

    def remove(self, run_id: RunId) -> None:
        self._driven.pop(run_id, None)
        if not self._driven and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        renew_at = loop.time() + _RENEW_SECONDS
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            await self.look()
            if loop.time() >= renew_at:
                await self._renew()
                renew_at = loop.time() + _RENEW_SECONDS

    async def look(self) -> None:
        """Bring what was posted. A store that cannot be read now is asked again later."""
        with suppress(WeftError):
            mine = [m for m in await self._store.posted() if m.run_id in self._driven]
            for message in mine:
                # The run learns of it now: its clock never runs backwards.
                event = replace(message.event, at=self._clock.now())
                self._driven[message.run_id][1].tell(event)
            if mine:
                await self._store.taken([message.number for message in mine])

    async def _renew(self) -> None:
        # Together: what is asked of a store at once costs it one commit.
        await asyncio.gather(*(self._renew_one(run_id, *it) for run_id, it in self._driven.items()))

    async def _renew_one(self, run_id: RunId, fence: int, driven: Driven) -> None:
        try:
            await self._store.renew(run_id, fence=fence, seconds=LEASE_SECONDS)
        except Fenced as error:
            driven.lose(error)
        except WeftError:
            pass  # a full disk: the next append says so, and louder
