"""Start, resume, cancel and list runs, and record the decisions of people about them."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from weakref import WeakValueDictionary

from msgspec import structs

from stretto.events.model import (
    CancelRequested,
    ChangesApplied,
    Event,
    MergeUndone,
    RunResumed,
    RunStarted,
)
from stretto.execution.clock import RunClock
from stretto.execution.driver import Driver, Listener, NoRunner
from stretto.execution.history import History, load
from stretto.execution.leases import (
    LEASE_SECONDS,
    POLL_SECONDS,
    Lease,
    LeaseKeeper,
    RunJournal,
    Store,
    take_lease,
)
from stretto.execution.retention import RunRemoval
from stretto.execution.reuse import NOTHING, Reusable
from stretto.execution.seals import (
    DecisionEvent,
    DecisionRequest,
    Seals,
    decision_of,
    describe_decision,
    find_decision,
    fire_overdue,
    questions_before,
    refusal,
)
from stretto.execution.start_line import PlaceInLine, StartLine
from stretto.plan.model import Plan, briefs, encode_plan
from stretto.ports.clock import Clock
from stretto.ports.journal import (
    ExternalEvent,
    Leased,
    LeaseOwner,
    Loss,
    RunNews,
    RunRow,
    StoredEvent,
)
from stretto.ports.runner import Runner, is_identified
from stretto.ports.workspace import Undone, Workspaces
from stretto.problems.errors import InvalidUsage, StrettoError
from stretto.schedule.state import RunState, begin
from stretto.vocabulary.amounts import KEEP_ALL, Retention
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.models import Setup
from stretto.vocabulary.names import RunId, StepId
from stretto.vocabulary.statuses import RunStatus

_LOOK_SECONDS = 0.05
_LEAVING_SECONDS = 4 * POLL_SECONDS  # a driver that stays has read its mailbox by then


def new_run_id() -> RunId:
    """Sorts by time, can be read aloud, and no two are alike: `20261115-214107-7f3a9c04d1`."""
    return RunId(f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(5)}")


@dataclass(frozen=True, slots=True)
class Start:
    """What a new run begins with."""

    plan: Plan  # as plan.prepare made it: nothing is changed in it any more
    inputs: Mapping[str, Json]
    run_id: RunId | None = None
    parent: str | None = None
    reusable: Reusable = NOTHING
    seed: int | None = None  # None: by chance
    model: str | None = None
    workspace: str = ""
    project: str = ""
    trusted: str = ""
    owner: str = ""
    trigger: str = ""


@dataclass(frozen=True, slots=True)
class Resume:
    """A recorded run that goes on. `permission`: what it may do to files from here on."""

    run_id: RunId
    permission: str = "auto"
    most_crashes: int | None = None  # that one step may take; None: as many as any run


class Runs:
    """Without `seals`, as in a test in memory, stored plans are believed."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        workspaces: Workspaces | None = None,
        seals: Seals | None = None,
        lease_seconds: float = LEASE_SECONDS,
        most_crashes: int = 3,
        owner: LeaseOwner | None = None,
        poll_seconds: float = POLL_SECONDS,
        retention: Retention = KEEP_ALL,
        start_line: StartLine | None = None,
    ) -> None:
        self._store = store
        self._seals = seals
        self._workspaces = workspaces
        self._clock = clock
        self._lease_seconds = lease_seconds
        self._most_crashes = most_crashes
        self._keeper = LeaseKeeper(store, lease_seconds, self._why_dropped, poll_seconds)
        self._owner = owner or LeaseOwner(f"a process without a name {secrets.token_hex(6)}")
        self._retention = retention
        self.removal = RunRemoval(store, workspaces, self._lease)
        self._drivers: dict[RunId, Driver | PlaceInLine] = {}
        self._leases = WeakValueDictionary[RunId, Lease]()
        self._start_line = start_line or StartLine()
        self._leasing = set[RunId]()  # a lease of these is being taken
        self._is_stopped = False

    async def drive(
        self,
        beginning: Start | Resume,
        runner: Runner,
        listener: Listener | None = None,
        on_accepted: Callable[[], None] = lambda: None,
    ) -> RunState:
        """Until the run has ended, is stopped, or waits for a person and nothing else.

        `on_accepted`: is called when the first event of a new run is durable.
        """
        if isinstance(beginning, Start):
            return await self.start(beginning, runner, listener, on_accepted)
        return await self.resume(
            beginning.run_id, runner, listener, beginning.permission, beginning.most_crashes
        )

    async def start(
        self,
        start: Start,
        runner: Runner,
        listener: Listener | None = None,
        on_accepted: Callable[[], None] = lambda: None,
    ) -> RunState:
        undone = await self._recover(start.workspace)
        await self._sweep(start.workspace)
        started = self._first_event(start, runner)
        run_id = RunId(started.run_id)
        lease = await self._lease(run_id, started)
        on_accepted()
        place = PlaceInLine(self._clock)
        async with self._driven(lease, place):
            # All that is not needed to answer whoever asked for it is left until the run begins.
            await self._start_line.wait()
            reusable = self._carry_approvals(start.reusable, run_id)
            driver = self._driver(lease, begin(start.plan), runner, self._clock, listener, reusable)
            _tell_undone(driver, undone)
            driver.accept(started)
            place.hand_over(driver)
            self._add(lease, driver)
            return await self._drive(driver)

    def _first_event(self, start: Start, runner: Runner) -> RunStarted:
        started = RunStarted(
            at=self._clock.now(),
            run_id=start.run_id or new_run_id(),
            workflow=start.plan.name,
            digest=start.plan.digest,
            plan=encode_plan(start.plan),
            inputs=dict(start.inputs),
            seed=secrets.randbits(48) if start.seed is None else start.seed,
            parent=start.parent,
            model=start.model,
            workspace=start.workspace,
            project=start.project,
            trusted=start.trusted,
            setup=_identify_setup(start.plan, runner),
            owner=start.owner,
            trigger=start.trigger,
        )
        return started if self._seals is None else self._seals.seal(started)

    async def resume(
        self,
        run_id: RunId,
        runner: Runner,
        listener: Listener | None = None,
        permission: str = "auto",
        most_crashes: int | None = None,
    ) -> RunState:
        """Go on where the journal ends. A run that has ended is given back as it is.

        Raises PlanNotAccepted: a stored plan counts for what was checked at the start.
        """
        row = await self._store.run(run_id)
        if row is None or row.ended_at is not None:
            history = await load(self._store, run_id)
            await self._sweep(history.started.workspace)  # its driver may have died while it tidied
            return history.state
        lease = await self._lease(run_id)
        try:
            # Not read before: until now another process may have written, the end perhaps.
            history = await load(self._store, run_id)
            await self._sweep(history.started.workspace)
            if history.state.is_recorded:
                await lease.release()
                return history.state
            self.check(history)
            undone = await self._recover(history.started.workspace)
            clock = RunClock(self._clock, history.events[-1].at)
            driver = self._driver(lease, history.state, runner, clock, listener, NOTHING)
            _tell_undone(driver, undone)
            setup = _identify_setup(history.state.plan, runner)
            most = most_crashes or self._most_crashes
            first = RunResumed(clock.now(), permission, setup, not row.is_let_go, most)
        except BaseException:  # also when it is cancelled: others may have the run at once
            await lease.release()
            raise
        return await self._go_on(lease, driver, first)

    def check(self, history: History) -> None:
        """Raises PlanNotAccepted unless the run began with exactly what its journal says now."""
        if self._seals is not None:
            self._seals.check(history.started, _decisions(history))

    def fingerprint(self, history: History) -> str:
        """What a person names who accepts a run that `check` refuses."""
        return self._seals.fingerprint(history.started, _decisions(history)) if self._seals else ""

    async def history(self, run_id: RunId, *, with_speech: bool = False) -> History:
        """`with_speech`: also what models said piece by piece."""
        return await load(self._store, run_id, with_speech=with_speech)

    async def started(self, run_id: RunId) -> RunStarted | None:
        """How it began; None: its journal cannot be read that far."""
        first = await self._store.first(run_id)
        return first if isinstance(first, RunStarted) else None

    def losses(self) -> Sequence[Loss]:
        """What the journal has lost of runs, for as long as its damaged files are kept."""
        return self._store.losses()

    async def events(
        self, run_id: RunId, after: int = 0, limit: int | None = None
    ) -> list[StoredEvent]:
        return await self._store.read(run_id, after, limit=limit)

    async def row(self, run_id: RunId) -> RunRow | None:
        return await self._store.run(run_id)

    async def is_known(self, run_id: RunId) -> bool:
        return await self._store.run(run_id) is not None

    async def has_ended(self, run_id: RunId) -> bool:
        row = await self._store.run(run_id)
        return row is not None and row.ended_at is not None

    def follow(self, run_id: RunId, seconds: float) -> None:
        """Somebody reads along for that long, where a driver of these runs is at work on it."""
        if run_id in self._drivers:
            self._drivers[run_id].follow(seconds)

    def is_driving(self, run_id: RunId) -> bool:
        """Whether a driver of these runs is at work on it."""
        return run_id in self._drivers

    async def is_driven(self, run_id: RunId) -> bool:
        row = await self._store.run(run_id)
        return row is not None and self._is_held(row)

    def is_interrupted(self, row: RunRow) -> bool:
        """Whether the run has not ended, and no process drives it."""
        has_ended = row.status not in (RunStatus.RUNNING, RunStatus.WAITING)
        return not has_ended and not self._is_held(row)

    def _is_held(self, row: RunRow) -> bool:
        if row.leased_by == self._owner.name:
            return True  # without looking at /proc: a server that drives many runs asks often
        return row.leased_by is not None and not self._owner.is_dead(row.leased_by)

    async def recent(self, limit: int = 50, before: RunId | None = None) -> list[RunRow]:
        return await self._store.runs(limit, before)

    async def unended(self) -> list[RunRow]:
        """All that may go on, newest first."""
        return await self._store.unended()

    async def news(self, after: int | None) -> RunNews:
        """Which runs have new events, also those of other processes."""
        return await self._store.news(after)

    async def addressed(self) -> set[RunId]:
        """Runs that have unread messages in their mailbox."""
        return {message.run_id for message in await self._store.pending()}

    async def cancel(self, run_id: RunId, reason: str = "") -> None:
        """Ask the process that drives the run to cancel it; if there is none, end the run here."""
        history = await load(self._store, run_id)
        if history.state.has_ended:
            raise InvalidUsage(f"run {run_id} has ended: {history.state.status.value}")
        try:
            lease = await self._lease(run_id)
        except Leased:
            await self._send(run_id, CancelRequested(self._clock.now(), reason))
            left = await self._lease_if_left(run_id)
            if left is None:
                return
            lease = left
        try:
            driver = await self._undriven(lease)
        except BaseException:
            await lease.release()
            raise
        if driver.state.has_ended:
            await lease.release()
        else:
            await self._go_on(lease, driver, CancelRequested(driver.now(), reason))

    async def _lease_if_left(self, run_id: RunId) -> Lease | None:
        """The lease of a run that its driver let go without a look at what was sent last. None: it
        has read that, or is busy and will."""
        give_up_at = self._clock.now() + _LEAVING_SECONDS
        while run_id not in self._drivers and self._clock.now() < give_up_at:
            await asyncio.sleep(_LOOK_SECONDS)
            if run_id not in await self.addressed():
                return None
            with suppress(Leased):
                return await self._lease(run_id)
        return None

    async def decide(
        self,
        run_id: RunId,
        step: StepId,
        is_approved: bool,
        by: str,
        reason: str = "",
        prompts: Mapping[str, str] | None = None,
        key: str | None = None,
    ) -> None:
        """Returns when the decision is in the journal and counts. Raises InvalidUsage, with what
        stands, where it does not: another decision was first, or the step runs already."""
        verdict = DecisionRequest(is_approved, by, reason, prompts or {}, key)
        event = decision_of(
            (await load(self._store, run_id)).state, step, verdict, self._clock.now()
        )
        if self._seals is not None:
            event = self._seals.seal_decision(run_id, event)

        def is_recorded(state: RunState) -> bool:
            found = find_decision(state, event)
            if found is not None and found.void:
                raise refusal(state, step, found.void)
            if found is None and state.has_ended:
                raise refusal(state, step, "the run has ended")
            return found is not None

        await self._record(run_id, event, is_recorded)

    async def note_applied(self, run_id: RunId, step: StepId, by: str) -> None:
        """A person has merged a step's change. Returns when that is in the journal."""
        applied = ChangesApplied(self._clock.now(), step, by)
        await self._record(run_id, applied, lambda state: _is_applied(state, step))

    async def _record(
        self,
        run_id: RunId,
        event: DecisionEvent | ChangesApplied,
        is_recorded: Callable[[RunState], bool],
    ) -> None:
        """Returns when the journal holds the event: whoever drives the run writes it down, or this
        process, if nobody drives it. What follows is done when the run goes on."""
        is_sent = False
        while not is_recorded((await load(self._store, run_id)).state):
            try:
                lease = await self._lease(run_id)
            except Leased:
                if not is_sent:
                    await self._send(run_id, event)
                    is_sent = True
                # The driver may let the run go before it reads its mailbox, so look again.
                await asyncio.sleep(_LOOK_SECONDS)
                continue
            try:
                driver = await self._undriven(lease)
                if not is_recorded(driver.state):
                    now = driver.now()
                    before: tuple[Event, ...] = ()
                    if isinstance(event, DecisionEvent):
                        asked = questions_before(driver.state, event, now)
                        before = (*asked, *fire_overdue(driver.state, now))
                    await driver.write(*before, structs.replace(event, at=now))
                    await self._release(driver.state)
            finally:
                await lease.release()

    async def _undriven(self, lease: Lease) -> Driver:
        """A driver that writes into the journal of a run that nobody drives, and starts nothing."""
        history = await load(self._store, lease.run_id)
        clock = RunClock(self._clock, history.events[-1].at)
        return self._driver(lease, history.state, NoRunner(), clock, None, NOTHING)

    def stop(self, run_id: RunId | None = None) -> None:
        """Leave one run where it is, or every run and those that are about to begin. Each can be
        resumed."""
        self._is_stopped = self._is_stopped or run_id is None
        if run_id is None:
            self._start_line.open()
        for id, driver in self._drivers.items():
            if run_id in (None, id):
                driver.stop()

    async def _send(self, run_id: RunId, event: ExternalEvent) -> None:
        """Leave an event in the run's mailbox for the process that drives it."""
        await self._store.send(run_id, event)
        if run_id in self._drivers:
            await self._keeper.poll_mailbox()  # this process drives it: deliver at once

    async def _recover(self, workspace: str) -> tuple[Undone, ...]:
        """A merge that a crash left half done is finished or undone before anybody reads."""
        if self._workspaces is None or not workspace:
            return ()
        return await self._workspaces.recover(Path(workspace))

    async def settle(self) -> tuple[Undone, ...]:
        """Finish or undo every merge that a crash left half done, in whatever workspace."""
        found: list[Undone] = []
        for workspace in await self.unsettled():
            found += await self._recover(str(workspace))
        return tuple(found)

    async def unsettled(self) -> tuple[Path, ...]:
        """Workspaces with an unfinished merge. A folder that is missing now (a disk that is not mounted)
        is left out."""
        if self._workspaces is None:
            return ()
        found = await self._workspaces.unfinished()
        return tuple(workspace for workspace in found if workspace.is_dir())

    async def litter(self) -> dict[str, tuple[Path, ...]]:
        """Copies of runs that have ended, by run: a crash left them, and no run needs them."""
        if self._workspaces is None:
            return {}
        found = await self._workspaces.leftovers()
        return {
            run: folders for run, folders in found.items() if not run or await self._is_over(run)
        }

    async def sweep(self) -> None:
        """Remove those copies. Copies of a run that may go on are kept."""
        if self._workspaces is None:
            return
        for run in await self.litter():
            if run:
                await self._workspaces.release(run)
        await self._workspaces.empty_trash()

    async def _sweep(self, workspace: str) -> None:
        with suppress(OSError, StrettoError):  # tidying up is no reason not to run
            if workspace:
                await self.sweep()
            expired = await self.removal.expired(self._retention, self._clock.now())
            await self.removal.remove([row.run_id for row in expired.runs])

    async def _is_over(self, run: str) -> bool:
        """Whether the run has ended. A run that the journal does not know may not have."""
        row = await self._store.run(RunId(run))
        return row is not None and row.status not in (None, RunStatus.RUNNING, RunStatus.WAITING)

    async def _release(self, state: RunState) -> None:
        """Remove the copies of writers that were cancelled, failed or timed out."""
        if self._workspaces is not None and state.workspace and state.has_ended:
            await self._workspaces.release(state.run_id)

    async def _lease(self, run_id: RunId, first: Event | None = None) -> Lease:
        # The store would give the same owner another lease, which fences off the first one.
        held = self._leases.get(run_id)
        if run_id in self._leasing or (held is not None and held.is_held):
            raise Leased(run_id, self._owner.name, self._lease_seconds)
        self._leasing.add(run_id)
        try:
            lease = self._leases[run_id] = await take_lease(
                self._store, self._clock, run_id, self._owner, self._lease_seconds, first
            )
        finally:
            self._leasing.discard(run_id)
        return lease

    def _why_dropped(self, run_id: RunId, event: ExternalEvent) -> str:
        """Why a message is not told to the run: a decision must carry the user's own seal."""
        if self._seals is None or not isinstance(event, DecisionEvent):
            return ""
        if self._seals.is_given(run_id, event):
            return ""
        return f"{describe_decision(event)} that you did not give"

    def _carry_approvals(self, reusable: Reusable, run_id: RunId) -> Reusable:
        """Approvals of the run that this one repeats, as approvals of this one."""
        approved = {}
        for step, then in reusable.approved.items():
            by = f"{then.by or 'a person'}, in run {reusable.run_id}"
            now = structs.replace(then, by=by)
            approved[step] = self._seals.seal_decision(run_id, now) if self._seals else now
        return replace(reusable, approved=approved)

    def _driver(
        self,
        lease: Lease,
        state: RunState,
        runner: Runner,
        clock: Clock,
        listener: Listener | None,
        reusable: Reusable,
    ) -> Driver:
        journal = RunJournal(self._store, lease)
        return Driver(state, journal, runner, clock, listener, reusable, self._workspaces)

    @asynccontextmanager
    async def _driven(self, lease: Lease, driver: Driver | PlaceInLine) -> AsyncIterator[None]:
        """Keeps the lease, and lets it go at the end."""
        self._add(lease, driver)
        try:
            yield
        finally:
            self._keeper.remove(lease.run_id)
            del self._drivers[lease.run_id]
            await lease.release()

    def _add(self, lease: Lease, driver: Driver | PlaceInLine) -> None:
        self._drivers[lease.run_id] = driver
        if self._is_stopped:
            driver.stop()
        self._keeper.add(lease, driver)

    async def _go_on(self, lease: Lease, driver: Driver, first: Event) -> RunState:
        """`first`: with which a recorded run goes on."""
        async with self._driven(lease, driver):
            # Messages sent while no process drove the run come first: a gate may be open already.
            await self._keeper.poll_mailbox()
            return await self._drive(driver, first)

    async def _drive(self, driver: Driver, first: Event | None = None) -> RunState:
        ended = await driver.drive(first)
        await self._keeper.acknowledge(RunId(ended.run_id))
        await self._release(ended)
        return ended


def _tell_undone(driver: Driver, undone: tuple[Undone, ...]) -> None:
    for each in undone:
        driver.tell(MergeUndone(driver.now(), each.paths, each.kept))


def _is_applied(state: RunState, step: StepId) -> bool:
    changes = state.steps[step].changes
    return changes is not None and changes.is_merged


def _identify_setup(plan: Plan, runner: Runner) -> Setup | None:
    """Which models and tools are behind the names of the plan, as the runner says."""
    if not is_identified(runner):
        return None
    agents = plan.agents.values()
    named = [brief.model for step in plan.steps for brief in briefs(step.work)]
    models = {
        "",
        *(model or "" for model in (*named, *(agent.model for agent in agents))),
    }
    models.update(name for agent in agents for name in agent.fallback_models)
    tools = {tool for agent in agents for tool in agent.tools}
    return runner.identify(sorted(models), sorted(tools))


def _decisions(history: History) -> list[DecisionEvent]:
    return [event for event in history.events if isinstance(event, DecisionEvent)]
