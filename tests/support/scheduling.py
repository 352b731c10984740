"""Drive a run without a process: scripted replies, and a time that only events move.

    drive(plan, {"draft": "text", "check": [Fail("bad"), "good"]}) → Driven

A reply is looked up by "step/part", then by the step, then by the agent; a list is used up from
attempt to attempt and its last reply stays. What has no reply answers with its own name.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TypeAlias

from msgspec import Raw

from stretto.events.attempts import AttemptId, Timer
from stretto.events.model import (
    AttemptCancelled,
    AttemptFailed,
    AttemptStarted,
    AttemptSucceeded,
    ChangesCollected,
    Event,
    FailureKind,
    MergeFailed,
    RunStarted,
    TimerFired,
)
from stretto.plan.build import Problems, build
from stretto.plan.catalog import Catalog
from stretto.plan.model import Plan
from stretto.recipe.model import Agent
from stretto.recipe.read import read_recipe
from stretto.schedule.advance import advance
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
from stretto.schedule.outputs import output_of
from stretto.schedule.state import NO_USAGE, RunState, begin
from stretto.vocabulary.amounts import DEFAULT_LIMITS, Limits, Usage
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import AgentId, StepId
from stretto.vocabulary.statuses import RunStatus

NO_PLAN = Raw(b"{}")  # the scheduler is given its plan, and does not look
AGENTS = Catalog({AgentId(name): Agent(AgentId(name)) for name in ("worker", "default", "other")})


@dataclass(frozen=True)
class Fail:
    error: str = "it broke"
    kind: FailureKind = "error"
    after: float = 1.0
    retry_after: float | None = None
    usage: Usage = NO_USAGE


@dataclass(frozen=True)
class Give:
    output: Json
    after: float = 1.0
    usage: Usage = NO_USAGE


@dataclass(frozen=True)
class Hang:
    """Never answers, unless it is told to stop."""


Reply: TypeAlias = Fail | Give | Hang | Json
Script: TypeAlias = Mapping[str, Reply | Sequence[Reply]]


def plan_of(
    text: str, limits: Limits = DEFAULT_LIMITS, width: int = 4, catalog: Catalog = AGENTS
) -> Plan:
    plan = build(read_recipe(text, limits=limits), catalog, limits, width)
    assert not isinstance(plan, Problems), "\n".join(f"{p.code} {p.message}" for p in plan.problems)
    return plan


@dataclass
class Driven:
    """A run on its way: what happened is in `journal`, what was asked for in `commands`."""

    plan: Plan
    script: Script = field(default_factory=dict)
    inputs: dict[str, Json] = field(default_factory=dict)
    seed: int = 0
    workspace: str = "/work"  # without one, nothing is isolated
    conflicts: frozenset[str] = frozenset()  # steps whose changes cannot be merged
    state: RunState = field(init=False)
    now: float = 0.0
    journal: list[Event] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    asked: list[StepId] = field(default_factory=list)
    ended: list[RunStatus] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = begin(self.plan)
        self._due: list[tuple[float, int, Callable[[], Event | None]]] = []
        self._order = count()
        self._timers: dict[Timer, float] = {}
        self._open: dict[AttemptId, StartAttempt] = {}
        self._used: dict[str, int] = {}

    def start(self) -> "Driven":
        at = self.now
        name, where = self.plan.name, self.workspace
        started = RunStarted(
            at, "run-1", name, "", NO_PLAN, self.inputs, self.seed, workspace=where
        )
        self.see(started)
        return self

    def see(self, event: Event) -> tuple[Command, ...]:
        """One event, and what follows from it at once."""
        self.now = max(self.now, event.at)
        self.journal.append(event)
        same, commands = advance(self.state, event)
        assert same is self.state
        self.commands.extend(commands)
        for command in commands:
            self._carry_out(command)
        return commands

    def run(self, most_events: int = 100_000) -> "Driven":
        """Until nothing more happens by itself."""
        for _ in range(most_events):
            if not self.step():
                return self
        raise AssertionError("the run does not end")

    def step(self) -> bool:
        while self._due:
            at, _, happen = heapq.heappop(self._due)
            before, self.now = self.now, max(self.now, at)
            event = happen()
            if event is not None:
                self.see(event)
                return True
            self.now = before
        return False

    @property
    def status(self) -> RunStatus:
        return self.state.status

    @property
    def output(self) -> Json:
        return output_of(self.state)

    @property
    def starts(self) -> list[StartAttempt]:
        return [command for command in self.commands if isinstance(command, StartAttempt)]

    @property
    def started(self) -> list[str]:
        return [start.step for start in self.starts]

    def prompt(self, step: str, part: str = "", attempt: int = 1) -> str:
        return self.command(step, part, attempt).request.prompt

    def command(self, step: str, part: str = "", attempt: int = 1) -> StartAttempt:
        wanted = f"{step}/{part}/{attempt}"
        return next(start for start in self.starts if start.attempt.text == wanted)

    def statuses(self) -> dict[str, str]:
        return {id: step.status.value for id, step in self.state.steps.items()}

    def warnings(self) -> str:
        return "\n".join(self.state.all_warnings)

    def _carry_out(self, command: Command) -> None:
        match command:
            case StartAttempt():
                self._start(command)
            case CancelAttempt(attempt):
                if self._open.pop(attempt, None):
                    self._later(0, lambda: AttemptCancelled(self.now, attempt))
            case SetTimer(timer, due_at):
                self._timers[timer] = due_at
                self._at(due_at, lambda: self._fire(timer, due_at))
            case ClearTimer(timer):
                self._timers.pop(timer, None)
            case AskApproval(step=step):
                self.asked.append(step)
            case CollectChanges(step, is_merged):
                self._later(0, lambda: self._collected(step, is_merged))
            case EndRun(status):
                self.ended.append(status)

    def _start(self, start: StartAttempt) -> None:
        where = start.attempt
        self._open[where] = start
        self._later(0, lambda: self._begin(where, start))
        reply = self._reply(start)
        if not isinstance(reply, Hang):
            self._later(reply.after, lambda: self._end(where, reply))

    def _collected(self, step: StepId, is_merged: bool) -> Event:
        if is_merged and step in self.conflicts:
            return MergeFailed(self.now, step, "kept", "conflicts in a.txt", ("a.txt",))
        return ChangesCollected(self.now, step, "kept", 1, 2, 3, is_merged)

    def _begin(self, where: AttemptId, start: StartAttempt) -> Event | None:
        if where not in self._open:
            return None
        return AttemptStarted(self.now, where, start.request.agent, start.key)

    def _end(self, where: AttemptId, reply: Fail | Give) -> Event | None:
        if self._open.pop(where, None) is None:
            return None
        if isinstance(reply, Give):
            return AttemptSucceeded(self.now, where, reply.output, reply.usage)
        return AttemptFailed(
            *(self.now, where, reply.kind, reply.error),
            usage=reply.usage,
            retry_after_seconds=reply.retry_after,
        )

    def _fire(self, timer: Timer, due_at: float) -> Event | None:
        if self._timers.get(timer) != due_at:
            return None
        del self._timers[timer]
        return TimerFired(self.now, timer)

    def _reply(self, start: StartAttempt) -> Fail | Give | Hang:
        part = start.attempt.part.text
        names = (f"{start.step}/{part}", start.step, start.request.agent)
        name = next((name for name in names if name in self.script), None)
        if name is None:
            return Give(f"{start.step}/{part}" if part else start.step)
        scripted = self.script[name]
        if isinstance(scripted, list):
            used = self._used.get(name, 0)
            self._used[name] = used + 1
            scripted = scripted[min(used, len(scripted) - 1)]
        if isinstance(scripted, Fail | Give | Hang):
            return scripted
        return Give(scripted)  # type: ignore[arg-type]

    def _later(self, seconds: float, happen: Callable[[], Event | None]) -> None:
        self._at(self.now + seconds, happen)

    def _at(self, at: float, happen: Callable[[], Event | None]) -> None:
        heapq.heappush(self._due, (at, next(self._order), happen))


def drive(
    recipe: str | Plan, script: Script | None = None, width: int = 4, **inputs: Json
) -> Driven:
    """The whole run, from its start to where nothing more happens by itself."""
    plan = plan_of(recipe, width=width) if isinstance(recipe, str) else recipe
    return Driven(plan, script or {}, inputs).start().run()
