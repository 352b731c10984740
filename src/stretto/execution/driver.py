"""Drive one run: journal its events, carry out its commands, until it ends or waits for a person.

    inbox ─events→ advance ─commands→ … journal.append(events + starts) … → carried out → inbox

What a batch of events causes is decided in memory, then the events and the starts that follow
from them are made durable together, and only then does anything happen: one commit a turn,
and no effect before its cause is safe (docs/decisions/0002).
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic

from msgspec import UNSET, structs

from stretto.agents.live_events import telling_phase
from stretto.events.attempts import AttemptId, Timer
from stretto.events.model import (
    ApprovalRequested,
    Approved,
    AttemptCancelled,
    AttemptFailed,
    AttemptStarted,
    AttemptSucceeded,
    CancelRequested,
    Event,
    Happening,
    RunEnded,
    TimerFired,
    UsageNoted,
)
from stretto.execution.budget import Account, BudgetLedger
from stretto.execution.clock import Timers
from stretto.execution.command_files import CommandFiles
from stretto.execution.leases import RunJournal
from stretto.execution.reuse import NOTHING, AnswerCache, Reusable, Reuse, ReusedOutput
from stretto.execution.seals import fire_overdue
from stretto.execution.writer_copies import CollectionEvent, WriterCopies
from stretto.ports.clock import Clock
from stretto.ports.runner import (
    Allowance,
    AttemptRequest,
    AttemptResult,
    Failure,
    Runner,
    Success,
    Witness,
)
from stretto.ports.workspace import Workspaces
from stretto.problems.errors import StrettoError
from stretto.schedule.advance import advance, deadline_of
from stretto.schedule.changes import owed_collections
from stretto.schedule.commands import (
    AskApproval,
    CancelAttempt,
    ClearTimer,
    CollectChanges,
    Command,
    EndRun,
    SetTimer,
    StartAttempt,
)
from stretto.schedule.outputs import release_output
from stretto.schedule.recovery import usage_with_interrupted
from stretto.schedule.state import NO_USAGE, RunState
from stretto.text.short import shorten
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.names import StepId

Listener = Callable[[Event, RunState], None]
_MOST_WARNINGS = 100  # that a run's last event repeats
_STOP_SECONDS = 5.0  # how long a cancelled attempt may take to stop, before it is left behind


class Driver:
    def __init__(
        self,
        state: RunState,
        journal: RunJournal,
        runner: Runner,
        clock: Clock,
        listener: Listener | None = None,
        reusable: Reusable = NOTHING,
        workspaces: Workspaces | None = None,
    ) -> None:
        self._state = state
        self._journal = journal
        self._runner = runner
        self._clock = clock
        self._listener = listener
        self._reusable = reusable
        self._reuse = Reuse(reusable, state)
        self._copies = WriterCopies(state, workspaces)
        self._files = CommandFiles(state, workspaces)
        budget = state.plan.budget
        is_bounded = budget.tokens is not None or budget.usd is not None
        spent = usage_with_interrupted(state)
        self._ledger = BudgetLedger(budget, spent) if is_bounded else None
        self._collecting: dict[StepId, asyncio.Task[None]] = {}
        self._collected: list[CollectionEvent] = []  # whose copies go once they are on record
        self._discarding: set[asyncio.Task[None]] = set()
        self._cache = AnswerCache(state, journal)
        self._accepted: deque[Command] = deque()  # what follows from a first event on record
        self._inbox: list[Event] = []
        self._awaiting: list[asyncio.Future[None]] = []  # who waits until the inbox is durable
        self._has_news = False  # since the last turn
        self._idle: asyncio.Future[None] | None = None  # waits for news
        self._is_stopped = False
        self._followed_until = 0.0
        self._lost: StrettoError | None = None
        self._attempts: dict[AttemptId, asyncio.Task[None]] = {}
        self._timers = Timers(clock, self._on_timer)

    def tell(self, event: Event) -> None:
        """Queue an event: an attempt has ended, a person has decided, the run is to be cancelled."""
        self._inbox.append(event)
        self._wake()

    def queue(self, event: Event, durable: asyncio.Future[None]) -> None:
        """As `tell`; `durable` is done once the event is on record."""
        self._awaiting.append(durable)
        self.tell(event)

    async def record(self, event: Event) -> None:
        """Queue an event, and return when it is durable."""
        durable = asyncio.get_running_loop().create_future()
        self.queue(event, durable)
        await durable

    async def confirm(self) -> None:
        """Raises Fenced when another process drives the run: no effect may follow then."""
        await self._journal.lease.confirm()

    def now(self) -> float:
        return self._clock.now()

    def follow(self, seconds: float) -> None:
        """Somebody reads along for that long, and says so again while it lasts."""
        self._followed_until = monotonic() + seconds

    def is_followed(self) -> bool:
        return monotonic() < self._followed_until

    @property
    def state(self) -> RunState:
        return self._state

    def stop(self) -> None:
        """Drive no further. What was under way is in doubt, as after a crash."""
        self._is_stopped = True
        self._wake()

    def on_lease_lost(self, error: StrettoError) -> None:
        """Another process drives the run now: stop, and raise the error from `drive`."""
        self._lost = error
        self.stop()

    def accept(self, first: Event) -> None:
        """A new run's first event is durable. What follows from it happens when `drive` is called."""
        rows: list[Event] = []
        self._fold(first, rows, self._accepted)
        self._tell_listener(rows)

    async def drive(self, first: Event | None = None) -> RunState:
        """Returns once the run has ended, was stopped, or waits for a person and for nothing else.

        `first`: with which a recorded run goes on; None after `accept`.
        """
        try:
            if first is not None:
                await self._turn([first, *fire_overdue(self._state, self._clock.now())])
                self._take_over()
            elif not self._is_stopped:
                # A run that was cancelled while it waited to begin starts nothing. All other events
                # come after its beginning.
                await self._turn(self._take_cancellations())
            while not (self._state.has_ended or self._is_stopped or self.is_waiting):
                await self._wait_for_news()
                events, self._inbox = self._inbox, []
                awaiting, self._awaiting = self._awaiting, []
                if Approved in map(type, events):
                    # A deadline that is past counts first, though its timer has yet to fire.
                    events = [*fire_overdue(self._state, self._clock.now()), *events]
                if events:
                    await self._turn(events)
                for waiting in awaiting:
                    if not waiting.done():
                        waiting.set_result(None)
            if self._lost is not None:
                raise self._lost
            return self._state
        finally:
            await self._stop()

    def _wake(self) -> None:
        self._has_news = True
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    async def _wait_for_news(self) -> None:
        # Not an asyncio.Event: it keeps a list of those who wait, and here there is one, for each step.
        if not self._has_news:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle
        self._has_news = False

    def _take_cancellations(self) -> list[Event]:
        found: list[Event] = [each for each in self._inbox if isinstance(each, CancelRequested)]
        self._inbox = [event for event in self._inbox if event not in found]
        return found

    async def write(self, *events: Event) -> None:
        """Journal what happened to a run that nobody drives, and the run's end if that ends it.

        Nothing is carried out: whoever resumes the run is given the same commands again.
        """
        rows: list[Event] = []
        decided: deque[Command] = deque()
        for event in events:
            self._fold(event, rows, decided)
        for command in tuple(decided):
            if isinstance(command, EndRun):
                self._fold(self._end_run(self._clock.now(), command), rows, decided)
        await self._append(rows)

    def _end_run(self, now: float, command: EndRun) -> RunEnded:
        told = [shorten(text, 500) for text in self._state.all_warnings[:_MOST_WARNINGS]]
        return RunEnded(now, command.status.value, tuple(told))

    def _take_over(self) -> None:
        """Deal with what a process that is gone has left, where the first event did not: attempts
        that nobody works on have stopped, and changes that nobody collects are still owed."""
        now = self._clock.now()
        for step in self._state.order:
            for part in step.parts.values() if step.open_attempts else ():
                for attempt in part.attempts:
                    is_open = attempt.stage in ("running", "stopping")
                    if is_open and attempt.id not in self._attempts:
                        self.tell(AttemptCancelled(now, attempt.id, attempt.noted_usage))
            for command in owed_collections(step):
                self._carry_out(command)

    @property
    def is_waiting(self) -> bool:
        state = self._state
        if self._attempts or self._inbox or state.retrying or state.collecting:
            return False
        if not state.awaiting_approval:
            return False
        # A deadline that is past, as after a late resume, does not wait for anybody.
        return all(due_at > self._clock.now() for due_at in state.timers.values())

    async def _turn(self, events: Sequence[Event]) -> None:
        rows: list[Event] = []
        decided, self._accepted = self._accepted, deque()
        for event in events:
            self._fold(event, rows, decided)
        commands = await self._settle(rows, decided)
        if rows:
            await self._append(rows)
        for command in commands:
            self._carry_out(command)

    async def _settle(self, rows: list[Event], decided: deque[Command]) -> list[Command]:
        """Add the events that follow at once, and give the commands that are left to carry out."""
        # What the same batch starts and calls off again never starts.
        called_off = {each.attempt for each in decided if isinstance(each, CancelAttempt)}
        commands: list[Command] = []
        now = self._clock.now()  # for all that is decided here
        while decided:
            command = decided.popleft()
            if isinstance(command, StartAttempt):
                if called_off and command.attempt in called_off:
                    continue
                self._fold(_start_event(command, now), rows, decided)
                found = self._reuse.find(command)
                if found is not None or self._cache.is_used:
                    found = await self._find_usable(command, found)
                    now = self._clock.now()
                if found is None:
                    commands.append(command)
                else:
                    if found.command is not None:
                        said = structs.replace(found.command, at=now, attempt=command.attempt)
                        self._fold(said, rows, decided)
                    follows = self._fold(_reuse_event(command, found, now), rows, decided)
                    # What is answered at once may call off others that have yet to start.
                    called_off.update(e.attempt for e in follows if isinstance(e, CancelAttempt))
            elif isinstance(command, AskApproval):
                if command.step not in self._state.awaiting_approval:
                    continue  # it was cancelled in the same batch
                if self._state.steps[command.step].asked_key != command.key:
                    asked = ApprovalRequested(now, command.step, command.key, command.about)
                    self._fold(asked, rows, decided)
                if (approved := await self._find_approval(command)) is not None:
                    self.tell(approved)
                commands.append(command)
            elif isinstance(command, EndRun):
                self._fold(self._end_run(now, command), rows, decided)
            else:
                commands.append(command)
        return commands

    async def _append(self, rows: Sequence[Event]) -> None:
        for place, large in (await self._journal.append(rows)).items():
            kept = rows[place]
            assert isinstance(kept, AttemptSucceeded)
            release_output(self._state, kept, large)
        if self._collected:
            self._discard_copies(rows)
        self._tell_listener(rows)
        if self._cache.is_used:
            await self._cache.fill(rows, self._files.digest)

    def _tell_listener(self, rows: Sequence[Event]) -> None:
        if self._listener is not None:
            for row in rows:
                self._listener(row, self._state)

    def _fold(
        self, event: Event, rows: list[Event], decided: deque[Command]
    ) -> tuple[Command, ...]:
        rows.append(event)
        commands = advance(self._state, event)[1]
        decided.extend(commands)
        return commands

    async def _find_usable(
        self, command: StartAttempt, found: ReusedOutput | None
    ) -> ReusedOutput | None:
        """An answer of the earlier run, or else of the cache; of a writer, only with its files."""
        if self._reuse.must_be_anew(command):
            return None  # a person asked for it again, and so not for what the cache holds
        if command.request.command is not None:
            return await self._find_command_output(command, found)
        if found is None:
            found = await self._cache.find(command)
        if found is None or await self._copies.can_reuse(command, found.run_id):
            return found
        return None

    async def _find_command_output(
        self, command: StartAttempt, found: ReusedOutput | None
    ) -> ReusedOutput | None:
        """What a command has said about the files that it would read now."""
        if found is not None:
            self._files.want(command)
            is_alike = await self._files.are_alike(command, found.earlier)
            if is_alike and await self._copies.can_reuse(command, found.run_id):
                return found
        files = await self._files.look(command)
        found = await self._cache.find(command, files) if files else None
        if found is None or not await self._copies.can_reuse(command, found.run_id):
            return None
        await self._files.note(command)
        return found

    def _carry_out(self, command: Command) -> None:
        match command:
            case StartAttempt():
                self._attempts[command.attempt] = asyncio.create_task(self._attempt(command))
            case CancelAttempt():
                if task := self._attempts.get(command.attempt):
                    task.cancel()
                    # One that is cancelled before it begins never runs at all, and says nothing.
                    task.add_done_callback(lambda _: self._on_cancelled(command))
                    loop = asyncio.get_running_loop()
                    loop.call_later(_STOP_SECONDS, self._leave_behind, command.attempt)
            case SetTimer():
                self._timers.set(command.timer, command.due_at)
            case ClearTimer():
                self._timers.clear(command.timer)
            case AskApproval():
                pass  # the state says so, and whoever watches shows it
            case CollectChanges():
                if command.step not in self._collecting:
                    task = asyncio.create_task(self._collect(command))
                    self._collecting[command.step] = task
            case EndRun():
                pass  # it is on record already

    async def _find_approval(self, command: AskApproval) -> Approved | None:
        """The approval of the same content in the run that this one repeats, if there is one.

        The files count as content: after a writer that worked anew a person is asked again, and so
        about a command that would read other files.
        """
        then = self._reusable.approved.get(command.step)
        if then is None or command.about != "start" or then.key != command.key:
            return None
        if self._copies.follows_new_files(command.step):
            return None
        ran = self._reusable.commands.values()
        if not await self._files.is_approved_still(command.step, ran):
            return None
        return structs.replace(then, at=self._clock.now())

    async def _attempt(self, command: StartAttempt) -> None:
        ended: AttemptSucceeded | AttemptFailed | AttemptCancelled
        witness = _Witness(self, command.attempt)
        account = self._ledger.account(witness.hold) if self._ledger else None
        witness.account = account
        try:
            request = self._equip(command, account)
            await self.confirm()
            if self._copies.is_writer(command.step):
                with telling_phase(command.attempt, witness, "copies the workspace"):
                    folder = await self._copies.open(command)
                origin = "" if folder == request.workspace else request.workspace
                request = structs.replace(request, workspace=folder, origin=origin)
            ended = self._end_event(command, await self._run(command, request, witness))
        except asyncio.CancelledError:
            ended = AttemptCancelled(self._clock.now(), command.attempt, usage=witness.spent)
        except StrettoError as error:
            ended = self._end_event(command, Failure("error", error.with_hint, witness.spent))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a bug in an adapter must not hang the run
            failure = Failure("error", f"{type(error).__name__}: {error}", witness.spent)
            ended = self._end_event(command, failure)
        if account is not None:
            account.close(ended.usage)
        # Told from here and not by a callback: that would take the loop one round more.
        if self._attempts.pop(command.attempt, None):  # None: it was left behind
            self.tell(ended)

    async def _run(
        self, command: StartAttempt, request: AttemptRequest, witness: Witness
    ) -> AttemptResult:
        if request.command is None:
            return await self._runner.run(request, witness)
        await self._files.look(command)
        result = await self._runner.run(request, witness)
        await self._files.note(command)
        warnings = (*result.warnings, *self._files.warnings(command))
        return structs.replace(result, warnings=warnings)

    async def _collect(self, command: CollectChanges) -> None:
        try:
            await self.confirm()
        except StrettoError as error:
            self.on_lease_lost(error)
            return
        event = await self._copies.collect(command, self._clock)
        del self._collecting[command.step]
        self._collected.append(event)
        self.tell(event)

    def _discard_copies(self, rows: Sequence[Event]) -> None:
        """A copy is needed until the journal holds what became of its change."""
        for answer in [each for each in self._collected if each in rows]:
            self._collected.remove(answer)
            task = asyncio.create_task(self._copies.discard(answer))
            self._discarding.add(task)
            task.add_done_callback(self._discarding.discard)

    def _on_cancelled(self, command: CancelAttempt) -> None:
        if self._attempts.pop(command.attempt, None):
            self.tell(AttemptCancelled(self._clock.now(), command.attempt))

    def _leave_behind(self, attempt: AttemptId) -> None:
        """Go on without an attempt that does not stop, though it was cancelled."""
        if self._attempts.pop(attempt, None) and not self._is_stopped:
            said = _say_left(attempt)
            step = self._state.steps[attempt.step]
            used = step.parts[attempt.part].attempts[attempt.number - 1].noted_usage
            self.tell(AttemptCancelled(self._clock.now(), attempt, used, (said,)))

    def _end_event(
        self, command: StartAttempt, result: AttemptResult
    ) -> AttemptSucceeded | AttemptFailed:
        now = self._clock.now()
        if isinstance(result, Success):
            return AttemptSucceeded(
                now,
                command.attempt,
                result.output,
                result.usage,
                result.warnings,
                result.model,
            )
        return AttemptFailed(
            now,
            command.attempt,
            kind=result.kind,
            error=result.error,
            usage=result.usage,
            retry_after_seconds=result.retry_after_seconds,
            model=result.model,
            warnings=result.warnings,
        )

    def _equip(self, command: StartAttempt, allowance: Allowance | None) -> AttemptRequest:
        """The request with what only the driver knows: the time left and whom to ask for money."""
        request = command.request
        if self._state.timers:
            request = structs.replace(request, seconds_left=self._seconds_left(command))
        return request if allowance is None else structs.replace(request, allowance=allowance)

    def _seconds_left(self, command: StartAttempt) -> float | None:
        due_at = deadline_of(self._state, command.attempt)
        return None if due_at is None else max(0.0, due_at - self._clock.now())

    def _on_timer(self, timer: Timer) -> None:
        self.tell(TimerFired(self._clock.now(), timer))

    async def _stop(self) -> None:
        self._is_stopped = True
        self._timers.close()
        attempts = dict(self._attempts)
        for task in attempts.values():
            task.cancel()
        if attempts:
            await asyncio.wait(attempts.values(), timeout=_STOP_SECONDS)
            for attempt, task in attempts.items():
                if not task.done():
                    self._attempts.pop(attempt, None)
                    _say_left(attempt)
        # A merge is not stopped halfway; it is soon done.
        under_way = (*self._collecting.values(), *self._discarding)
        await asyncio.gather(*under_way, return_exceptions=True)


class NoRunner:
    """For a run that is only brought to its end: nothing of it may start."""

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        return Failure("error", "this run is being ended, and nothing of it may start")


class _Witness:
    """The driver, as one attempt sees it."""

    __slots__ = ("_attempt", "_driver", "_noted", "account", "spent")

    def __init__(self, driver: Driver, attempt: AttemptId) -> None:
        self._driver = driver
        self._attempt = attempt
        self._noted = NO_USAGE
        self.account: Account | None = None  # of a run with a budget
        self.spent = NO_USAGE

    def now(self) -> float:
        return self._driver.now()

    def is_followed(self) -> bool:
        return self._driver.is_followed()

    def note(self, event: Happening) -> None:
        self._note_usage()
        self._driver.tell(event)

    async def record(self, event: Happening) -> None:
        if isinstance(event, UsageNoted):
            self._noted = self._usage_held()
        else:
            self._note_usage()
        await self._driver.record(event)

    async def hold(self) -> None:
        """Returns when it is on record what the attempt may have used once its next call is made."""
        self._noted = self._usage_held()
        await self._driver.record(UsageNoted(self.now(), self._attempt, self._noted))

    def _note_usage(self) -> None:
        """An attempt that ends says itself what it took: only one that goes on needs this."""
        if self._noted != (held := self._usage_held()):
            self._noted = held
            self._driver.tell(UsageNoted(self.now(), self._attempt, held))

    def _usage_held(self) -> Usage:
        return self.spent if self.account is None else self.account.held(self.spent)

    async def confirm(self) -> None:
        await self._driver.confirm()

    def spend(self, usage: Usage) -> None:
        self.spent += usage


def _say_left(attempt: AttemptId) -> str:
    import logging  # seldom

    said = (
        f"it did not stop within {_STOP_SECONDS:.0f} s after it was cancelled, and may still work"
    )
    logging.getLogger("stretto.execution").warning(
        "stretto: attempt %s of step '%s': %s", attempt.number, attempt.step, said
    )
    return said


def _start_event(command: StartAttempt, now: float) -> AttemptStarted:
    request = command.request
    given = request.playbooks or UNSET
    return AttemptStarted(now, request.attempt, request.agent, command.key, given)


def _reuse_event(command: StartAttempt, found: ReusedOutput, now: float) -> AttemptSucceeded:
    return AttemptSucceeded(
        now,
        command.attempt,
        output=found.output,
        warnings=found.warnings,
        reused_from=found.run_id,
    )
