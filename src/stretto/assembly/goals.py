"""Goals: run again until a verifier passes. `Stretto.goals`.

    set ──→ GoalSpec, on record ─┐
    resume ──────────────────────┴→ lease ─→ GoalDriver ─→ runs by the one road, checks

A goal lives in the user's own folder; its runs are runs like any other.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from stretto.assembly.arguments import check_inputs, check_text
from stretto.assembly.engine import Engine
from stretto.assembly.goal_executor import NOBODY, GoalWatch, RunAccess, RunExecutor
from stretto.assembly.goal_requests import AskedBy, GoalRequest, goal_spec, read_limits
from stretto.assembly.project import RecipeSource
from stretto.assembly.run import user_name
from stretto.execution.runs import new_run_id
from stretto.goals.goal import (
    DEFAULT_ITERATIONS,
    DEFAULT_STALL,
    GOAL_PREFIX,
    GoalEnded,
    GoalEvent,
    GoalLimits,
    GoalReopened,
    GoalReport,
    GoalStanding,
    GoalState,
    advance,
    goal_report,
)
from stretto.goals.loop import GoalDriver, Tell
from stretto.goals.store import GoalOwner, GoalStore, StoredGoal
from stretto.problems.errors import InvalidUsage, StrettoError
from stretto.vocabulary.amounts import Usage

_T = TypeVar("_T")
_POLL_SECONDS = 0.5  # of a goal that another process drives
_CLEAR_SECONDS = 20.0  # how long `clear` waits for the process that drives the goal


class _LeasedGoal:
    """The record of one goal, as its driver sees it."""

    def __init__(self, goals: "Goals", id: str, fence: int) -> None:
        self._goals = goals
        self._id = id
        self._fence = fence

    async def append(self, event: GoalEvent) -> None:
        await self._goals._with(lambda store: store.append(self._id, self._fence, event))

    async def renew(self, worked: float) -> str | None:
        return await self._goals._with(lambda store: store.renew(self._id, self._fence, worked))

    async def release(self, worked: float) -> None:
        await self._goals._with(lambda store: store.release(self._id, self._fence, worked))

    def now(self) -> float:
        return self._goals._engine.now()


class Goal:
    """One goal: `Goals.set` gives one that a task of this process drives, `Goals.open` one that is
    recorded. `wait` returns once it has ended, waits for a person, or was stopped."""

    def __init__(self, goals: "Goals", id: str) -> None:
        self._goals = goals
        self._id = id
        self._driver: GoalDriver | None = None
        self._task: asyncio.Task[GoalStanding] | None = None

    def __repr__(self) -> str:
        return f"<stretto.Goal {self._id}>"

    @property
    def id(self) -> str:
        return self._id

    async def report(self) -> GoalReport:
        """How it stands now. Raises NotFound."""
        return await self._goals.show(self._id)

    async def wait(self) -> GoalReport:
        """How it stands when nobody drives it any longer. Raises what kept this process from going
        on: a model that is not there, a full disk, another process."""
        if self._task is not None:
            await asyncio.wait([self._task])
            self._task.result()
            return await self.report()
        while (report := await self.report()).status == "active":
            await asyncio.sleep(_POLL_SECONDS)
        return report

    async def stop(self) -> None:
        """Drive it no further; `resume` goes on where it stands."""
        self.halt()
        if self._task is not None:
            await asyncio.wait([self._task])

    def halt(self) -> None:
        """The same without waiting, for signals."""
        if self._driver is not None:
            self._driver.stop()

    async def clear(self) -> GoalReport:
        """End the goal, and the run that works on it."""
        return await self._goals.clear(self._id)

    async def resume(
        self,
        *,
        max_iterations: int | None = None,
        budget: Mapping[str, float] | None = None,
        timeout: str | float | None = None,
    ) -> "Goal":
        """As `Goals.resume`."""
        return await self._goals.resume(
            self._id, max_iterations=max_iterations, budget=budget, timeout=timeout
        )

    async def _drive(
        self, executor: RunExecutor, standing: GoalStanding, fence: int, tell: Tell
    ) -> None:
        engine = self._goals._engine
        journal = _LeasedGoal(self._goals, self._id, fence)
        driver = self._driver = GoalDriver(standing, journal, executor, tell)

        async def work() -> GoalStanding:
            try:
                return await driver.drive()
            finally:
                with suppress(StrettoError):  # a full disk: the lease runs out by itself
                    await journal.release(driver.worked)

        self._task = asyncio.get_running_loop().create_task(work())
        engine.tasks.add(self._task)
        engine.stoppable.add(driver)

        def end(task: "asyncio.Task[GoalStanding]") -> None:
            engine.tasks.discard(task)
            engine.stoppable.discard(driver)
            if not task.cancelled():
                task.exception()  # `wait` raises it

        self._task.add_done_callback(end)


class Goals:
    """The goals of this user: `Stretto.goals`."""

    def __init__(self, engine: Engine, run_access: RunAccess) -> None:
        self._engine = engine
        self._run_access = run_access

    def __repr__(self) -> str:
        return "<stretto.Goals>"

    async def set(
        self,
        text: str,
        verify: str,
        *,
        workflow: RecipeSource | None = None,
        inputs: Mapping[str, object] | None = None,
        evidence_input: str | None = None,
        max_iterations: int = DEFAULT_ITERATIONS,
        budget: Mapping[str, float] | None = None,
        timeout: str | float | None = None,
        verify_timeout: str | float | None = None,
        stall_after: int = DEFAULT_STALL,
        model: str | None = None,
        permission: str | None = None,
        asked_by: AskedBy = "person",
        consent: str | None = None,
    ) -> Goal:
        """Record a goal and drive it by a task of this process; GoalRequest says what each is.

        Raises InvalidUsage, InvalidRecipe, InvalidInputs, NotFound and PermissionDenied.
        """
        limits = read_limits(
            GoalLimits(), max_iterations, budget, timeout, verify_timeout, stall_after
        )
        given = check_inputs(inputs)
        request = GoalRequest(
            text,
            verify,
            workflow,
            given,
            evidence_input,
            limits,
            model,
            permission,
            asked_by,
            consent,
        )
        return await self._drive(await self._record(request))

    async def _record(self, request: "GoalRequest") -> str:
        """Keep a goal without driving it: the id, for `_drive`. Raises as `set` does."""
        spec = await asyncio.to_thread(goal_spec, self._engine.project, request)
        id = f"{GOAL_PREFIX}{new_run_id()}"
        await self._with(lambda store: store.add(id, spec, self._engine.now()))
        return id

    async def list(self) -> tuple[GoalReport, ...]:
        """Newest first."""

        def read(store: GoalStore) -> tuple[GoalReport, ...]:
            return tuple(_report(store.get(id)) for id in store.ids())

        return await self._with(read)

    async def show(self, id: str) -> GoalReport:
        """Raises NotFound."""
        check_text(id=id)
        return _report(await self._with(lambda store: store.get(id)))

    def open(self, id: str) -> Goal:
        """A recorded goal. Whether there is one shows in its first use: NotFound."""
        check_text(id=id)
        return Goal(self, id)

    async def resume(
        self,
        id: str,
        *,
        max_iterations: int | None = None,
        budget: Mapping[str, float] | None = None,
        timeout: str | float | None = None,
    ) -> Goal:
        """Go on with a goal that was interrupted or waited. One that is exhausted, stalled or
        unachievable is opened again, with the limits that are given; what it has used still counts.

        Raises NotFound, InvalidUsage, and GoalLeased where another process drives it.
        """
        check_text(id=id)
        before = (await self.show(id)).limits
        return await self._drive(
            id, read_limits(before, max_iterations, budget, timeout, None, None)
        )

    async def _drive(
        self, id: str, limits: GoalLimits | None = None, watch: GoalWatch = NOBODY
    ) -> Goal:
        """Go on with a recorded goal, with these limits. Raises as `resume` does."""
        self._engine.check_open()
        fence = await self._with(lambda store: store.lease(id))
        journal = _LeasedGoal(self, id, fence)
        try:
            goal = await self._open_goal(id, journal, limits)
            project = await asyncio.to_thread(self._engine.project_in, Path(goal.spec.folder))
            executor = RunExecutor(self._engine, project, goal.spec, self._run_access, watch)
        except BaseException:
            await journal.release(0.0)
            raise
        found = Goal(self, id)
        await found._drive(executor, goal, fence, watch.heard)
        return found

    async def _open_goal(
        self, id: str, journal: "_LeasedGoal", limits: GoalLimits | None
    ) -> GoalStanding:
        """How a leased goal stands; one that has ended, or has other limits now, is opened again."""
        await self._with(lambda store: store.check_seal(id))
        stored = await self._with(lambda store: store.get(id))
        goal = stored.standing
        worked = max(stored.worked, goal.worked_seconds)
        limits = limits or goal.limits
        _check_resumable(goal, limits)
        if limits != goal.limits or goal.state != GoalState.ACTIVE:
            opened = GoalReopened(self._engine.now(), worked, limits=limits, by=user_name())
            await journal.append(opened)
            goal = advance(goal, opened)
        return replace(goal, worked_seconds=worked)

    async def clear(self, id: str) -> GoalReport:
        """End a goal and the run that works on it. One that has ended stays as it is."""
        check_text(id=id)
        stored = await self._with(lambda store: store.get(id))
        if stored.standing.state != GoalState.ACTIVE:
            return _report(stored)
        give_up_at = asyncio.get_running_loop().time() + _CLEAR_SECONDS
        by = user_name()
        await self._with(lambda store: store.ask_to_clear(id, by))
        while asyncio.get_running_loop().time() < give_up_at:
            stored = await self._with(lambda store: store.get(id))
            if stored.standing.state != GoalState.ACTIVE:
                break
            if not stored.is_driven:
                await self._clear_undriven(id)
            else:
                await asyncio.sleep(0.1)
        return _report(await self._with(lambda store: store.get(id)))

    async def _clear_undriven(self, id: str) -> None:
        fence = await self._with(lambda store: store.lease(id))
        journal = _LeasedGoal(self, id, fence)
        stored = await self._with(lambda store: store.get(id))
        goal = stored.standing
        used = Usage()
        try:
            if goal.in_flight is not None and goal.in_flight.run_id:
                executor = RunExecutor(
                    self._engine, self._engine.project, goal.spec, self._run_access, NOBODY
                )
                used = await executor.abandon(goal, goal.in_flight.run_id)
            why = f"cleared by {user_name()}"
            at = self._engine.now()
            ended = GoalEnded(at, stored.worked, state=GoalState.CLEARED, why=why, usage=used)
            await journal.append(ended)
        finally:
            await journal.release(stored.worked)

    async def _with(self, work: "Callable[[GoalStore], _T]") -> "_T":
        def do() -> "_T":
            with closing(self._open_store()) as store:
                return work(store)

        return await asyncio.to_thread(do)

    def _open_store(self) -> GoalStore:
        from stretto.adapters.clock import boot_name, elapsed
        from stretto.config.home import user_secret
        from stretto.processes.identity import is_dead, name_of_this_process

        home = self._engine.project.settings.home
        owner = GoalOwner(
            name_of_this_process(),
            is_dead,
            boot_name(),
            elapsed,
            self._engine.now,
            lambda: user_secret(home),
        )
        return GoalStore.open(home / "goals.db", owner)


class SurfaceGoals(Goals):
    """With what only surfaces need: to keep a goal first, and to watch it while it is driven."""

    record = Goals._record
    drive = Goals._drive


def _report(stored: StoredGoal) -> GoalReport:
    goal = stored.standing
    worked = max(goal.worked_seconds, stored.worked)
    return goal_report(replace(goal, worked_seconds=worked), stored.is_driven)


def _check_resumable(goal: GoalStanding, limits: GoalLimits) -> None:
    """Raises InvalidUsage."""
    if goal.state in (GoalState.ACHIEVED, GoalState.CLEARED):
        hint = "stretto goal set sets another one"
        raise InvalidUsage(f"goal {goal.id} is {goal.state}: there is nothing to resume", hint=hint)
    if goal.state == GoalState.EXHAUSTED and limits == goal.limits:
        option = {"iterations": "--max-iterations", "time": "--timeout"}.get(
            goal.limit or "", "--budget"
        )
        hint = f"give it more: stretto goal resume {goal.id} {option} …"
        raise InvalidUsage(f"goal {goal.id} is exhausted: {goal.why}", hint=hint)
