"""What a server does unasked: go on with the runs and goals that servers drove, and keep deadlines at
gates.

A run or a goal whose server died, or was ended, goes on with the next server. A run that waits for a
person has no driver; when its deadline comes, the server drives it again, so that the deadline takes
effect. A goal that waits for a person goes on once its run does not wait any more.
"""

import asyncio
import logging
from dataclasses import dataclass
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
_LONGEST_PAUSE_SECONDS = 600.0  # between two tries at what fails each time
_AT_ONCE = 16  # runs that are taken up side by side
# Triggers of runs that servers drive. A run of a goal, a chat or a draft is driven by that instead.
_SERVED = ("http", "schedule", "webhook", "folder", "watch")
_log = logging.getLogger("stretto.server")


@dataclass(frozen=True, slots=True)
class _Pause:
    until: float
    seconds: float


class Upkeep:
    def __init__(self, service: "Service") -> None:
        self._service = service
        self._not_ours: set[str] = set()  # runs that no server drove
        self._pauses: dict[str, _Pause] = {}  # of runs and goals that could not be taken up
        self._dues: dict[str, float] = {}  # when the next deadline of a waiting run is
        self._goals: dict[str, asyncio.Task[object]] = {}  # that were taken up here

    async def keep(self) -> None:
        """Until it is cancelled."""
        while True:
            try:
                await self.look()
            except StrettoError as error:  # a store that cannot be read now is read again later
                _log.warning("stretto: %s", error.with_hint)
            except Exception:  # one fault must not end the upkeep of all runs
                _log.exception("stretto: runs and goals could not be looked after")
            await asyncio.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """Drive what a server drove and no process drives now, and what is overdue."""
        runs = await self._service.stretto.engine.runs_of()
        adopted, now = self._service.ledger.adopted(), self._service.stretto.engine.now()
        rows = [row for row in await self._service.unended() if runs.is_interrupted(row)]
        self._forget_others({row.run_id for row in rows}, adopted)
        left = [row for row in rows if self._may_be_due(row, now)]
        places = asyncio.Semaphore(_AT_ONCE)

        async def take(row: "RunRow") -> None:
            async with places:
                await self._take_up(row, adopted, now)

        await asyncio.gather(*map(take, left))
        for id in adopted - self._service.done_goals:
            if id.startswith(GOAL_PREFIX):
                await self._take_up_goal(id, now)

    def _forget_others(self, left: set[str], adopted: set[str]) -> None:
        """Keep only what is remembered of runs without a driver, and of adopted goals."""
        self._dues = {id: due for id, due in self._dues.items() if id in left}
        self._pauses = {id: pause for id, pause in self._pauses.items() if id in left | adopted}
        # A person may have gone on with it over HTTP since it was looked at.
        self._not_ours = (self._not_ours & left) - adopted

    async def _take_up_goal(self, id: str, now: float) -> None:
        try:
            if (task := self._goals.get(id)) is not None and task.done():
                del self._goals[id]
                task.result()
                self._pauses.pop(id, None)
            if task is not None or self._is_paused(id, now):
                return
            if await self._is_left(id, now) and not self._service.closing.is_set():
                goal = await self._service.stretto.goals.drive(id)
                self._goals[id] = asyncio.create_task(goal.wait())
                _log.info("stretto: drives goal %s again", id)
        except Leased:
            pass  # somebody else was quicker
        except StrettoError as error:
            self._pause(id, now)
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
        if row.run_id in self._not_ours or self._is_paused(row.run_id, now):
            return False
        return self._dues.get(row.run_id, 0.0) <= now

    def _is_paused(self, id: str, now: float) -> bool:
        return id in self._pauses and now < self._pauses[id].until

    def _pause(self, id: str, now: float) -> None:
        """What failed is tried again, ever less often: a busy store is soon free, an agent that is not
        there may never come."""
        before = self._pauses.get(id)
        seconds = min(before.seconds * 2, _LONGEST_PAUSE_SECONDS) if before else _LOOK_SECONDS
        self._pauses[id] = _Pause(now + seconds, seconds)

    async def _take_up(self, row: "RunRow", adopted: set[str], now: float) -> None:
        try:
            history = await self._service.history(row.run_id)
            if not is_served(history, adopted):
                self._not_ours.add(row.run_id)
                return
            word = run_word(history.state, is_driven=False, now=now)
            if word == "waiting":
                dues = history.state.timers.values()
                self._dues[row.run_id] = min(dues, default=float("inf"))
                self._pauses.pop(row.run_id, None)
            elif not self._service.closing.is_set() and await self._service.resume(row.run_id):
                _log.info("stretto: drives run %s again", row.run_id)
        except StrettoError as error:
            self._pause(row.run_id, now)
            _log.warning("stretto: run %s is not resumed: %s", row.run_id, error.with_hint)


def is_served(history: "History", adopted: set[str]) -> bool:
    """Whether a server drove it: one that a person drives at a terminal is theirs to resume."""
    trigger = history.started.trigger
    is_unattended = trigger.split(" ")[0] in _SERVED or trigger == "mcp http"
    return history.started.run_id in adopted or is_unattended
