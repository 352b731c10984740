"""Drive a goal: verify, work, verify, until it ends. In: a leased goal and GoalExecutor. Out: how it stands.

Each check and iteration is on record before it begins, and its outcome before the next one is
decided. After a crash the loop goes on with what was in flight: its run is resumed, and its usage is
counted once.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar, assert_never

from stretto.goals.evidence import CheckResult
from stretto.goals.goal import (
    CheckEnded,
    CheckStarted,
    Conclude,
    GoalEnded,
    GoalEvent,
    GoalStanding,
    GoalState,
    Iterate,
    IterationEnded,
    IterationStarted,
    IterationWaits,
    Verify,
    advance,
    next_move,
)
from stretto.goals.store import GoalFenced
from stretto.problems.errors import StrettoError
from stretto.vocabulary.amounts import Usage

BEAT_SECONDS = 0.5
_T = TypeVar("_T")
Tell: TypeAlias = Callable[[GoalEvent, GoalStanding], None]


@dataclass(frozen=True, slots=True)
class Effort:
    """How one iteration of work ended, or why it has not."""

    # The run's: complete, partial, failed, cancelled; or waiting, overdue, interrupted.
    status: str
    usage: Usage = Usage()
    declared: str = ""  # why the agent takes the goal for unachievable
    spent: str = ""  # tokens or usd: the budget kept it from going on
    error: str = ""
    warnings: tuple[str, ...] = ()  # what was amiss in the run, whatever its status


class GoalExecutor(Protocol):
    """What the loop reaches the world through. A call that is cancelled can be made again later,
    and then goes on with the same run."""

    def new_run_id(self) -> str: ...

    async def verify(self, goal: GoalStanding, run_id: str) -> CheckResult:
        """`run_id`: of the judge's run, empty where no model is asked. A run that exists goes on."""
        ...

    @property
    def asks_model(self) -> bool: ...

    async def work(self, goal: GoalStanding, begun: IterationStarted) -> Effort:
        """A run that exists goes on; otherwise it starts, with that id."""
        ...

    async def abandon(self, goal: GoalStanding, run_id: str) -> Usage:
        """End a run that nobody drives. Out: what it used. One that never began is not started."""
        ...


class GoalJournal(Protocol):
    """The record of one goal, leased by this process."""

    async def append(self, event: GoalEvent) -> None:
        """Durable when it returns. Raises GoalFenced."""
        ...

    async def renew(self, worked: float) -> str | None:
        """Out: who wants the goal cleared."""
        ...

    def now(self) -> float: ...


class _Stopped(Exception):
    pass


class GoalDriver:
    """One process at work on one goal. `stop` leaves the goal where it is."""

    def __init__(
        self,
        goal: GoalStanding,
        journal: GoalJournal,
        executor: GoalExecutor,
        tell: Tell = lambda event, goal: None,
        beat_seconds: float = BEAT_SECONDS,
    ) -> None:
        self.goal = goal
        self._journal = journal
        self._executor = executor
        self._tell = tell
        self._beat_seconds = beat_seconds
        self._began: float | None = None
        self._worked_before = goal.worked_seconds
        self._halt: asyncio.Future[str | None] | None = None  # None: stopped; text: cleared by
        self._is_stopped = False

    @property
    def worked(self) -> float:
        """Seconds of work on the goal until now, by this process and those before it."""
        if self._began is None:
            return self._worked_before
        return self._worked_before + asyncio.get_running_loop().time() - self._began

    def stop(self) -> None:
        self._is_stopped = True
        self._set_halt(None)

    async def drive(self) -> GoalStanding:
        """Until the goal has ended, waits for a person, or was stopped. Raises what keeps it from
        going on: a model that is not there, a full disk, another process."""
        loop = asyncio.get_running_loop()
        self._began, self._halt = loop.time(), loop.create_future()
        if self._is_stopped:
            self._set_halt(None)
        beat = loop.create_task(self._beat())
        try:
            while (move := next_move(self.goal)) is not None:
                if not await self._make(move):
                    break
        except _Stopped:
            if (by := self._halt.result()) is not None:
                await self._clear(by)
        finally:
            beat.cancel()
            with suppress(asyncio.CancelledError):
                await beat
            if not self._halt.done():
                self._halt.cancel()
            elif not self._halt.cancelled():
                # Retrieved, so that asyncio does not log it: it was raised, or the goal had ended.
                self._halt.exception()
        return self.goal

    async def _make(self, move: "Verify | Iterate | Conclude") -> bool:
        """Whether the loop goes on."""
        match move:
            case Conclude():
                await self._note(
                    GoalEnded(*self._stamp(), state=move.state, why=move.why, limit=move.limit)
                )
                return False
            case Verify():
                await self._check(move)
                return True
            case Iterate():
                return await self._work(move)
            case _:
                assert_never(move)

    async def _check(self, move: Verify) -> None:
        begun = move.begun
        if begun is None:
            run_id = self._executor.new_run_id() if self._executor.asks_model else ""
            begun = CheckStarted(*self._stamp(), number=move.number, run_id=run_id)
            await self._note(begun)
        found = await self._or_halt(self._executor.verify(self.goal, begun.run_id))
        await self._note(
            CheckEnded(
                *self._stamp(),
                number=move.number,
                is_met=found.is_met,
                evidence=found.evidence,
                fingerprint=found.fingerprint,
                usage=found.usage,
                cannot_run=found.cannot_run,
            )
        )

    async def _work(self, move: Iterate) -> bool:
        begun = move.begun
        if begun is None:
            begun = IterationStarted(
                *self._stamp(), number=move.number, run_id=self._executor.new_run_id()
            )
            await self._note(begun)
        effort = await self._or_halt(self._executor.work(self.goal, begun))
        if effort.status == "interrupted":
            return False
        if effort.status in ("waiting", "overdue"):
            waits = IterationWaits(
                *self._stamp(), number=move.number, status=effort.status, why=effort.error
            )
            await self._note(waits)
            return False
        await self._note(
            IterationEnded(
                *self._stamp(),
                number=move.number,
                status=effort.status,
                usage=effort.usage,
                declared=effort.declared,
                spent=effort.spent,
                error=effort.error,
                warnings=effort.warnings,
            )
        )
        return True

    async def _clear(self, by: str) -> None:
        """The run in flight is ended first: nothing of a cleared goal works on."""
        used = Usage()
        if self.goal.in_flight is not None and self.goal.in_flight.run_id:
            used = await self._executor.abandon(self.goal, self.goal.in_flight.run_id)
        why = f"cleared by {by}" if by else ""
        await self._note(GoalEnded(*self._stamp(), state=GoalState.CLEARED, why=why, usage=used))

    async def _or_halt(self, work: "Coroutine[Any, Any, _T]") -> "_T":
        """Await the work, unless somebody stops the loop first."""
        assert self._halt is not None
        task = asyncio.get_running_loop().create_task(work)
        try:
            first: list[asyncio.Future[Any]] = [task, self._halt]
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await _end(task)
            raise
        if not self._halt.done():
            return task.result()
        # A result that came at the same moment does not count: it may be that of a run which was
        # stopped as well. Whoever goes on reads it again from that run.
        await _end(task)
        self._halt.result()  # raises GoalFenced
        raise _Stopped

    async def _note(self, event: GoalEvent) -> None:
        await self._journal.append(event)
        self.goal = advance(self.goal, event)
        self._tell(event, self.goal)

    async def _beat(self) -> None:
        """Renew the lease, keep the time that was worked, and hear who wants the goal cleared."""
        while True:
            await asyncio.sleep(self._beat_seconds)
            try:
                by = await self._journal.renew(self.worked)
            except GoalFenced as error:
                if self._halt is not None and not self._halt.done():
                    self._halt.set_exception(error)
                return
            except StrettoError:  # a full disk, a lock: the next append fails too, and raises it
                continue
            if by is not None:
                self._set_halt(by)
                return

    def _set_halt(self, by: str | None) -> None:
        if self._halt is not None and not self._halt.done():
            self._halt.set_result(by)

    def _stamp(self) -> tuple[float, float]:
        return self._journal.now(), self.worked


async def _end(task: "asyncio.Task[Any]") -> None:
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.exception()  # it was asked to stop: how it went does not matter any more
