"""What a server does unasked: go on with the runs that servers drove, and keep deadlines at gates.

A run whose server died, or was ended, goes on with the next server. A run that waits for a person is
driven by nobody; when its deadline comes, the server goes on with it, so that nothing lapses silently.
"""

import asyncio
import logging
from typing import TYPE_CHECKING

from stretto.problems.errors import StrettoError
from stretto.schedule.status import run_word

if TYPE_CHECKING:
    from stretto.execution.history import History
    from stretto.ports.journal import RunRow
    from stretto.server.service import Service

_LOOK_SECONDS = 2.0
_AT_ONCE = 16  # runs that are taken up side by side
# What starts runs that servers drive; those of a goal, a chat or a draft are gone on with by these.
_SERVED = ("http", "schedule", "webhook", "folder", "watch")
_log = logging.getLogger("stretto.server")


class Upkeep:
    def __init__(self, service: "Service") -> None:
        self._service = service
        self._given_up: set[str] = set()  # runs that could not be taken up, and why was logged
        self._dues: dict[str, float] = {}  # when the next deadline of a waiting run is

    async def keep(self) -> None:
        """Until it is cancelled."""
        while True:
            try:
                await self.look()
            except StrettoError as error:  # a store that cannot be read now is read again later
                _log.warning("stretto: %s", error.with_hint)
            await asyncio.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """Take up what a server drove and nobody drives now, and what is overdue."""
        runs = await self._service.stretto.engine.runs_of()
        adopted, now = self._service.ledger.adopted(), self._service.stretto.engine.now()
        rows = [row for row in await self._service.unended() if runs.is_interrupted(row)]
        self._dues = {
            row.run_id: self._dues[row.run_id] for row in rows if row.run_id in self._dues
        }
        left = [row for row in rows if self._may_be_due(row, now)]
        places = asyncio.Semaphore(_AT_ONCE)

        async def take(row: "RunRow") -> None:
            async with places:
                await self._take_up(row, adopted, now)

        await asyncio.gather(*map(take, left))

    def _may_be_due(self, row: "RunRow", now: float) -> bool:
        return row.run_id not in self._given_up and self._dues.get(row.run_id, 0.0) <= now

    async def _take_up(self, row: "RunRow", adopted: set[str], now: float) -> None:
        try:
            history = await self._service.history(row.run_id)
            if not is_served(history, adopted):
                self._given_up.add(row.run_id)
                return
            word = run_word(history.state, is_driven=False, now=now)
            if word == "waiting":
                dues = history.state.timers.values()
                self._dues[row.run_id] = min(dues, default=float("inf"))
            elif not self._service.closing.is_set():
                await self._service.resume(row.run_id)
                _log.info("stretto: goes on with run %s", row.run_id)
        except StrettoError as error:
            self._given_up.add(row.run_id)
            _log.warning("stretto: run %s is not resumed: %s", row.run_id, error.with_hint)


def is_served(history: "History", adopted: set[str]) -> bool:
    """Whether a server drove it: one that a person drives at a terminal is theirs to resume."""
    trigger = history.started.trigger
    is_unattended = trigger.split(" ")[0] in _SERVED or trigger == "mcp http"
    return history.started.run_id in adopted or is_unattended
