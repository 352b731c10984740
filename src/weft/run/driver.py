"""Drive one run. In: a RunState, a journal, a runner, a clock. Out: the state at its end.

    inbox ─events→ advance ─commands→ … journal.append(events + starts) … → carried out → inbox

What a batch of events causes is decided in memory, then the events and the starts that follow
from them are made durable together, and only then does anything happen: one commit a turn,
and no effect before its cause is safe (docs/decisions/0002).
"""

import asyncio
from collections.abc import Callable, Sequence

from weft.events.model import (
    AttemptCancelled,
    AttemptFailed,
    AttemptStarted,
    AttemptSucceeded,
    Event,
    RunEnded,
    TimerFired,
)
from weft.ports.clock import Clock
from weft.ports.runner import AttemptRequest, Failure, Runner, Success
from weft.run.journaling import RunJournal
from weft.run.timers import Timers
from weft.schedule.advance import advance
from weft.schedule.commands import (
    AskApproval,
    CancelAttempt,
    ClearTimer,
    Command,
    EndRun,
    SetTimer,
    StartAttempt,
)
from weft.schedule.state import RunState

Listener = Callable[[Event, RunState], None]
_AttemptId = tuple[str, str, int]


class Driver:
    def __init__(
        self,
        state: RunState,
        journal: RunJournal,
        runner: Runner,
        clock: Clock,
        listener: Listener | None = None,
    ) -> None:
        self._state = state
        self._journal = journal
        self._runner = runner
        self._clock = clock
        self._listener = listener
        self._inbox: list[Event] = []
        self._arrived = asyncio.Event()
        self._attempts: dict[_AttemptId, asyncio.Task[None]] = {}
        self._timers = Timers(clock, self._on_timer)

    def tell(self, event: Event) -> None:
        """A fact from outside: a person decided, someone wants it cancelled."""
        self._inbox.append(event)
        self._arrived.set()

    async def drive(self, first: Event) -> RunState:
        """Until the run has ended, or waits for a person and nothing else."""
        try:
            await self._turn([first])
            while not self._state.has_ended and not self.is_waiting:
                await self._arrived.wait()
                self._arrived.clear()
                events, self._inbox = self._inbox, []
                await self._turn(events)
            return self._state
        finally:
            await self._stop()

    @property
    def is_waiting(self) -> bool:
        is_idle = not self._attempts and not self._inbox and not self._state.retrying
        return is_idle and bool(self._state.people)

    async def _turn(self, events: Sequence[Event]) -> None:
        rows: list[Event] = []
        commands: list[Command] = []
        for event in events:
            self._fold(event, rows, commands)
        for command in tuple(commands):
            if isinstance(command, StartAttempt):
                self._fold(self._started(command), rows, commands)
            elif isinstance(command, EndRun):
                self._fold(RunEnded(self._clock.now(), command.status.value), rows, commands)
        await self._journal.append(rows)
        for row in rows:
            if self._listener:
                self._listener(row, self._state)
        for command in commands:
            self._carry_out(command)

    def _fold(self, event: Event, rows: list[Event], commands: list[Command]) -> None:
        rows.append(event)
        commands.extend(advance(self._state, event)[1])

    def _started(self, command: StartAttempt) -> AttemptStarted:
        return AttemptStarted(
            self._clock.now(),
            command.step,
            command.part,
            command.attempt,
            command.agent,
            command.key,
        )

    def _carry_out(self, command: Command) -> None:
        match command:
            case StartAttempt():
                id = (command.step, command.part, command.attempt)
                self._attempts[id] = asyncio.create_task(self._attempt(command))
            case CancelAttempt():
                task = self._attempts.get((command.step, command.part, command.attempt))
                if task is not None:
                    task.cancel()
            case SetTimer():
                self._timers.set(command.timer, command.due_at)
            case ClearTimer():
                self._timers.clear(command.timer)
            case AskApproval() | EndRun():
                pass  # the state says so; whoever watches shows it

    async def _attempt(self, command: StartAttempt) -> None:
        id = (command.step, command.part, command.attempt)
        event: Event
        try:
            result = await self._runner.run(self._request(command))
            event = self._ended(command, result)
        except asyncio.CancelledError:
            event = AttemptCancelled(self._clock.now(), *id)
        except Exception as error:  # a bug in an adapter must not hang the run
            said = f"{type(error).__name__}: {error}"
            event = AttemptFailed(self._clock.now(), *id, kind="error", error=said)
        self._attempts.pop(id, None)
        self.tell(event)

    def _ended(self, command: StartAttempt, result: Success | Failure) -> Event:
        id = (command.step, command.part, command.attempt)
        now = self._clock.now()
        if isinstance(result, Success):
            return AttemptSucceeded(
                now, *id, result.output, result.usage, result.warnings, result.model
            )
        return AttemptFailed(
            now,
            *id,
            kind=result.kind,
            error=result.error,
            usage=result.usage,
            retry_after_seconds=result.retry_after_seconds,
            model=result.model,
        )

    def _request(self, command: StartAttempt) -> AttemptRequest:
        agent = self._state.plan.agents[command.agent]
        output = self._state.steps[command.step].planned.output
        return AttemptRequest(
            run_id=self._state.run_id,
            step=command.step,
            part=command.part,
            attempt=command.attempt,
            agent=command.agent,
            instructions=command.instructions,
            prompt=command.prompt,
            model=command.model,
            tools=agent.tools,
            max_turns=agent.max_turns,
            format=output.format,
            schema=output.schema or agent.validation.schema,
            rules=agent.validation.rules,
        )

    def _on_timer(self, timer: str) -> None:
        self.tell(TimerFired(self._clock.now(), timer))

    async def _stop(self) -> None:
        self._timers.close()
        tasks = tuple(self._attempts.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
