"""What a server does unasked: go on with the runs and goals that servers drove, and keep deadlines at
gates.

A run or a goal whose server died, or was ended, goes on with the next server. A run that waits for a
person has no driver; when its deadline comes, the server drives it again, so that the deadline takes
effect. A goal that waits for a person goes on once its run does not wait any more.
"""

import asyncio
import logging
from typing import TYPE_CHECKING

from stretto.goals.goal import GOAL_PREFIX, GoalState
from stretto.ports.journal import Leased
from stretto.problems.errors import StrettoError
from stretto.schedule.status import run_word

if TYPE_CHECKING:
    from stretto.execution.history import History
    from stretto.ports.journal import RunRow
    from stretto.server.service import Service

_LOOK_SECONDS = 2.0
_AT_ONCE = 16  # runs that are taken up side by side
# Triggers of runs that servers drive. A run of a goal, a chat or a draft is driven by that instead.
_SERVED = ("http", "schedule", "webhook", "folder", "watch")
_log = logging.getLogger("stretto.server")


class Upkeep:
    def __init__(self, service: "Service") -> None:
        self._service = service
        self._given_up: set[str] = set()  # runs that no server drove, or that could not be taken up
        self._dues: dict[str, float] = {}  # when the next deadline of a waiting run is
        self._goals: dict[str, asyncio.Task[object]] = {}  # that were taken up here

    async def keep(self) -> None:
        """Until it is cancelled."""
        while True:
            try:
                await self.look()
            except StrettoError as error:  # a store that cannot be read now is read again later
                _log.warning("stretto: %s", error.with_hint)
            await asyncio.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """Drive what a server drove and no process drives now, and what is overdue."""
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
        for id in adopted - self._service.done_goals:
            if id.startswith(GOAL_PREFIX):
                await self._take_up_goal(id, now)

    async def _take_up_goal(self, id: str, now: float) -> None:
        """One that has failed here is left alone: what kept it from going on would do so again."""
        try:
            if (task := self._goals.get(id)) is not None and task.done():
                del self._goals[id]
                task.result()
            if task is None and await self._is_left(id, now) and not self._service.closing.is_set():
                goal = await self._service.stretto.goals.drive(id)
                self._goals[id] = asyncio.create_task(goal.wait())
                _log.info("stretto: drives goal %s again", id)
        except Leased:
            pass  # somebody else was quicker
        except StrettoError as error:
            self._service.done_goals.add(id)
            _log.warning("stretto: goal %s is not resumed: %s", id, error.with_hint)

    async def _is_left(self, id: str, now: float) -> bool:
        """Whether the goal could go on, and nobody drives it."""
        goal = await self._service.stretto.goals.show(id)
        if goal.state != GoalState.ACTIVE:
            self._service.done_goals.add(id)
        if goal.status not in ("waiting", "overdue"):
            return goal.status == "interrupted"
        # A turn of the lead agent waits for what its chat asks, which the run does not know.
        if goal.run_id is None or goal.workflow is None:
            return False
        if await self._service.stretto.open(goal.run_id).is_driven():
            return False
        state = (await self._service.history(goal.run_id)).state
        return run_word(state, is_driven=False, now=now) != "waiting"

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
            elif not self._service.closing.is_set() and await self._service.resume(row.run_id):
                _log.info("stretto: drives run %s again", row.run_id)
        except StrettoError as error:
            self._given_up.add(row.run_id)
            _log.warning("stretto: run %s is not resumed: %s", row.run_id, error.with_hint)


def is_served(history: "History", adopted: set[str]) -> bool:
    """Whether a server drove it: one that a person drives at a terminal is theirs to resume."""
    trigger = history.started.trigger
    is_unattended = trigger.split(" ")[0] in _SERVED or trigger == "mcp http"
    return history.started.run_id in adopted or is_unattended
