"""Random plans, and runs of them without a process. In: a Scene and chance. Out: what was seen.

The scheduler is the real one. What it starts ends in a random order, well or badly, and is
cancelled where it says so. At every moment the steps at work are compared by the files they name.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from random import Random
from typing import Any

from overlaps_scene import Scene, draw_set

from stretto.events.attempts import AttemptId, Timer
from stretto.events.model import (
    AttemptCancelled,
    AttemptFailed,
    AttemptStarted,
    AttemptSucceeded,
    ChangesCollected,
    Event,
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
    CancelAttempt,
    ClearTimer,
    CollectChanges,
    Command,
    EndRun,
    SetTimer,
    StartAttempt,
)
from stretto.schedule.state import begin
from stretto.vocabulary.names import AgentId, StepId
from stretto.vocabulary.statuses import StepStatus

MOST_EVENTS = 1_000
_AGENTS = Catalog({AgentId(name): Agent(AgentId(name)) for name in ("worker", "other")})


@dataclass(frozen=True, slots=True)
class Task:
    """A step as it was drawn, and the files that it names."""

    id: str
    is_writer: bool
    is_isolated: bool
    files: frozenset[str]  # those that a writer writes, or a reader reads

    def conflicts(self, other: "Task") -> bool:
        """The rule for conflicting steps, on files."""
        if self.is_writer and other.is_writer:
            return not self.files.isdisjoint(other.files)
        if self.is_writer == other.is_writer:
            return False
        writer = self if self.is_writer else other
        return not writer.is_isolated and not self.files.isdisjoint(other.files)


@dataclass(frozen=True, slots=True)
class Drawn:
    plan: Plan
    tasks: dict[str, Task]
    rivals: frozenset[tuple[str, str]]  # pairs of steps that name one file, and may not


@dataclass(slots=True)
class Seen:
    moments: int = 0
    most_at_once: int = 0
    overlaps: set[tuple[str, str]] = field(default_factory=set)
    has_ended: bool = False


def draw_plan(luck: Random, scene: Scene) -> Drawn:
    steps, tasks = list[dict[str, Any]](), dict[str, Task]()
    for place in range(luck.randint(2, 8)):
        step, task = _draw_step(luck, scene, place)
        steps.append(step)
        tasks[task.id] = task
    luck.shuffle(steps)
    recipe = json.dumps({"name": "any", "steps": steps})
    plan = build(read_recipe(recipe), _AGENTS, width=luck.choice((2, 4, 8)))
    assert not isinstance(plan, Problems), [problem.message for problem in plan.problems]
    rivals = {(a.id, b.id) for a, b in combinations(tasks.values(), 2) if a.conflicts(b)}
    return Drawn(plan, tasks, frozenset(rivals))


def drive(drawn: Drawn, plan: Plan, luck: Random) -> Seen:
    return _Run(drawn, plan, luck).run()


def _draw_step(luck: Random, scene: Scene, place: int) -> tuple[dict[str, Any], Task]:
    id = f"s{place}"
    before = [f"s{n}" for n in range(place) if luck.random() < 0.2]
    step: dict[str, Any] = {"id": id, "task": "go", "depends_on": before}
    if luck.random() < 0.15:
        step["parallel"] = [{"agent": "worker"}, {"agent": "other"}]
    else:
        step["agent"] = "worker"
    step["on_failure"] = luck.choice(("inline", "skip", "block", "abort"))
    if luck.random() < 0.3:
        step["retry"] = {"max_attempts": 2, "backoff": luck.choice(("none", "linear"))}
    is_writer, globs = luck.random() < 0.65, draw_set(luck, scene)
    is_isolated = is_writer and luck.random() < 0.4
    step["posture"] = "writer" if is_writer else "read_only"
    step["write_set" if is_writer else "read_set"] = globs
    if is_writer:
        step["workspace_mode"] = "isolated" if is_isolated else "shared"
        if luck.random() < 0.3:
            step["read_set"] = draw_set(luck, scene)  # which must not matter
    return step, Task(id, is_writer, is_isolated, scene.named_by(globs))


class _Run:
    def __init__(self, drawn: Drawn, plan: Plan, luck: Random) -> None:
        self.rivals = drawn.rivals
        self.luck = luck
        self.state = begin(plan)
        self.seen = Seen()
        self.now = 0.0
        self.planned: dict[AttemptId, StartAttempt] = {}
        self.running: dict[AttemptId, StartAttempt] = {}
        self.stopping: set[AttemptId] = set()
        self.collecting: dict[StepId, bool] = {}
        self.timers: dict[Timer, float] = {}

    def run(self) -> Seen:
        name = self.state.plan.name
        self._see(RunStarted(0.0, "run-1", name, "", {}, {}, 0, workspace="/work"))
        for _ in range(MOST_EVENTS):
            happenings = self._happenings()
            if not happenings:
                return self.seen
            self.now += 1
            self._see(self.luck.choice(happenings)())
        return self.seen

    def _see(self, event: Event) -> None:
        _, commands = advance(self.state, event)
        for command in commands:
            self._carry_out(command)
        self._check()

    def _check(self) -> None:
        running = {id for id, s in self.state.steps.items() if s.status is StepStatus.RUNNING}
        at_work = running | {where.step for where in (*self.planned, *self.running)}
        at_work |= set(self.collecting)
        self.seen.moments += 1
        self.seen.most_at_once = max(self.seen.most_at_once, len(at_work))
        self.seen.overlaps |= self.rivals & set(combinations(sorted(at_work), 2))

    def _carry_out(self, command: Command) -> None:
        match command:
            case StartAttempt():
                self.planned[command.attempt] = command
            case CancelAttempt(attempt):
                self.stopping.add(attempt)
            case CollectChanges(step, is_merged):
                self.collecting[step] = is_merged
            case SetTimer(timer, due_at):
                self.timers[timer] = due_at
            case ClearTimer(timer):
                self.timers.pop(timer, None)
            case EndRun():
                self.seen.has_ended = True

    def _happenings(self) -> list[Callable[[], Event]]:
        return [
            *(lambda w=w, s=s: self._begin(w, s) for w, s in self.planned.items()),
            *(lambda w=w: self._end(w) for w in self.running),
            *(lambda s=s, m=m: self._collect(s, m) for s, m in self.collecting.items()),
            *(lambda t=t: self._fire(t) for t in self.timers),
        ]

    def _begin(self, where: AttemptId, start: StartAttempt) -> Event:
        del self.planned[where]
        if where in self.stopping:
            return AttemptCancelled(self.now, where)
        self.running[where] = start
        return AttemptStarted(self.now, where, start.request.agent, start.key)

    def _end(self, where: AttemptId) -> Event:
        del self.running[where]
        if where in self.stopping:
            return AttemptCancelled(self.now, where)
        if self.luck.random() < 0.12:
            return AttemptFailed(self.now, where, "error", "it broke")
        return AttemptSucceeded(self.now, where, "done")

    def _collect(self, step: StepId, is_merged: bool) -> Event:
        del self.collecting[step]
        return ChangesCollected(self.now, step, "kept", 1, 2, 3, is_merged)

    def _fire(self, timer: Timer) -> Event:
        self.now = max(self.now, self.timers.pop(timer))
        return TimerFired(self.now, timer)
