"""Schedules against rules too plain to be wrong, over any plan and any order of events."""

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import combinations
from random import Random

from hypothesis import HealthCheck, given, settings, strategies as st
from msgspec import Raw, structs

from stretto.events.attempts import AttemptId, CheckPart, RetryTimer, Timer
from stretto.events.model import (
    Approved,
    AttemptCancelled,
    AttemptFailed,
    AttemptStarted,
    AttemptSucceeded,
    CancelRequested,
    Event,
    FailureKind,
    Rejected,
    RunResumed,
    RunStarted,
    TimerFired,
)
from stretto.plan.model import Plan, PlannedDelegation, PlannedMap, PlannedStep, RetryPolicy
from stretto.schedule.advance import advance
from stretto.schedule.commands import (
    AskApproval,
    CancelAttempt,
    ClearTimer,
    Command,
    EndRun,
    SetTimer,
    StartAttempt,
)
from stretto.schedule.outputs import output_of
from stretto.schedule.state import RunState, begin
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import StepId
from stretto.vocabulary.statuses import RunStatus, StepStatus
from support.random_plans import CALM_POLICIES, nested_plans, plans

MOST_EVENTS = 3_000
NO_PLAN = Raw(b"{}")  # the scheduler is given its plan, and does not look
ENDED = {"succeeded", "failed", "skipped", "held", "cancelled"}
seeds = st.integers(0, 2**32)
CALM_PLANS = plans(policies=CALM_POLICIES, is_calm=True) | nested_plans(CALM_POLICIES, is_calm=True)
SHORT_PLANS = plans(policies=CALM_POLICIES, is_calm=True, most_steps=5) | nested_plans(
    CALM_POLICIES, is_calm=True, most_steps=2
)


def examples(count: int) -> settings:
    """`count`: in a quick run of all tests; a thorough one looks at ten times as many."""
    count *= settings().max_examples // 50 or 1
    checks = (HealthCheck.too_slow, HealthCheck.data_too_large)
    return settings(max_examples=count, deadline=None, suppress_health_check=checks)


@dataclass
class World:
    """Carries out commands in any order it likes; what comes out is decided by an oracle."""

    plan: Plan
    luck: Random
    is_fair: bool = False  # outcomes follow from what is asked, not from the order of events
    state: RunState = field(init=False)
    now: float = 0.0
    journal: list[Event] = field(default_factory=list)
    commands: list[tuple[Command, ...]] = field(default_factory=list)
    planned: dict[AttemptId, StartAttempt] = field(default_factory=dict)
    running: dict[AttemptId, StartAttempt] = field(default_factory=dict)
    stopping: set[AttemptId] = field(default_factory=set)
    timers: dict[Timer, float] = field(default_factory=dict)
    asked: dict[StepId, None] = field(default_factory=dict)
    failures: dict[tuple[str, str, str], int] = field(default_factory=dict)
    ends: list[RunStatus] = field(default_factory=list)
    watch: Callable[["World"], None] = lambda world: None

    def __post_init__(self) -> None:
        self.state = begin(self.plan)

    def start(self) -> None:
        self.see(RunStarted(0.0, "run", "any", "", NO_PLAN, {}, 7))

    def see(self, event: Event) -> None:
        self.journal.append(event)
        if isinstance(event, AttemptFailed):
            self._count_failure(event)
        _, commands = advance(self.state, event)
        self.commands.append(commands)
        for command in commands:
            self._carry_out(command)
        self.watch(self)

    def run(self) -> None:
        for _ in range(MOST_EVENTS):
            event = self._next()
            if event is None:
                return
            self.see(event)
        raise AssertionError("the run does not end")

    def _carry_out(self, command: Command) -> None:
        match command:
            case StartAttempt():
                self.planned[command.attempt] = command
            case CancelAttempt(attempt):
                self.planned.pop(attempt, None)
                self.stopping.add(attempt)
            case SetTimer(timer, due_at):
                self.timers[timer] = due_at
            case ClearTimer(timer):
                del self.timers[timer]
            case AskApproval(step=step):
                self.asked[step] = None
            case EndRun(status):
                self.ends.append(status)

    def _next(self) -> Event | None:
        self.now += self.luck.random()
        happenings: list[Callable[[], Event]] = [
            *(lambda w=w, s=s: self._begin(w, s) for w, s in self.planned.items()),
            *(lambda w=w, s=s: self._end(w, s) for w, s in self.running.items()),
            *(lambda t=t: self._fire(t) for t in self._due()),
            *(lambda s=s: self._decide(s) for s in self.asked),
        ]
        return self.luck.choice(happenings)() if happenings else None

    def _due(self) -> list[Timer]:
        if self.is_fair:
            return list(self.timers)
        # Those of the run and of steps come seldom, or nothing else would ever be seen.
        rare = self.luck.random() < 0.1 or not (self.planned or self.running)
        return [timer for timer in self.timers if rare or isinstance(timer, RetryTimer)]

    def _begin(self, where: AttemptId, start: StartAttempt) -> Event:
        del self.planned[where]
        self.running[where] = start
        return AttemptStarted(self.now, where, start.request.agent, start.key)

    def _end(self, where: AttemptId, start: StartAttempt) -> Event:
        del self.running[where]
        if where in self.stopping and self.luck.random() < 0.8:
            return AttemptCancelled(self.now, where, Usage(1))
        failed = self.failures.get((start.step, start.attempt.part.text, start.request.agent), 0)
        chance = self._chance(start, failed) if self.is_fair else self.luck.random()
        if chance < 0.3:
            error = f"{start.step} {start.attempt.part.text} {failed}"
            kind: FailureKind = "validation" if chance < 0.1 else "error"
            return AttemptFailed(self.now, where, kind, error, Usage(1))
        passed = '{"passed": %s}' % ("true" if chance < 0.6 else "false")
        said: Json = passed if isinstance(start.attempt.part, CheckPart) else start.key
        return AttemptSucceeded(self.now, where, said, Usage(1))

    def _chance(self, start: StartAttempt, failed: int) -> float:
        asked = f"{start.step}/{start.attempt.part.text}/{start.request.agent}/{failed}"
        return sha256(asked.encode()).digest()[0] / 256

    def _count_failure(self, event: AttemptFailed) -> None:
        id = event.attempt
        part = self.state.steps[id.step].parts[id.part]
        who = (id.step, id.part.text, part.attempts[id.number - 1].agent)
        self.failures[who] = self.failures.get(who, 0) + 1

    def _fire(self, timer: Timer) -> Event:
        self.now = max(self.now, self.timers.pop(timer))
        return TimerFired(self.now, timer)

    def _decide(self, step: StepId) -> Event:
        del self.asked[step]
        is_doubt = self.state.steps[step].status is StepStatus.RUNNING
        chance = sha256(step.encode()).digest()[0] / 256 if self.is_fair else self.luck.random()
        if is_doubt or chance < 0.7:
            return Approved(self.now, step)
        return Rejected(self.now, step)


def picture(state: RunState) -> object:
    """All that a reader of the run would ever see."""
    steps = {
        id: (step.status, step.output, step.outputs, step.validation, step.error, step.iteration)
        for id, step in state.steps.items()
    }
    return steps, state.status, state.usage, state.all_warnings, output_of(state)


def outcome(state: RunState) -> object:
    """What must not depend on the order of events."""
    steps = {id: (s.status, s.output, s.outputs, s.error) for id, s in state.steps.items()}
    return steps, state.status, output_of(state)


def check_rules(world: World) -> None:
    state = world.state
    running = [step for step in state.order if step.status is StepStatus.RUNNING]
    assert state.open_attempts == state.ready.running <= state.plan.width == state.ready.width
    assert len(running) == len(state.running)
    for step in running:
        queued = [part for part in step.parts.values() if part.status == "queued"]
        assert queued == sorted(step.queued or (), key=list(step.parts.values()).index)
        assert not queued or state.open_attempts == state.plan.width, "a slot is free"
        if isinstance(step.planned.work, PlannedMap):
            assert step.open_attempts <= step.planned.work.batch_size
    at_work = [step for step in state.order if step in running or step.open_attempts]
    for one, other in combinations(at_work, 2):
        assert not one.planned.claims.conflicts(other.planned.claims), (one.id, other.id)
    for step in running:
        for before in step.planned.depends_on:
            assert state.steps[before].ended_at is not None
    if state.has_ended:
        assert not running
    else:
        # Something is always owed, so no run waits for nothing.
        assert state.open_attempts or state.retrying or state.awaiting_approval


@given(plans() | nested_plans(), seeds)
@examples(100)
def test_dependencies_width_and_files_hold_and_every_run_ends_once(plan: Plan, seed: int) -> None:
    world = World(plan, Random(seed), watch=check_rules)
    world.start()
    world.run()
    assert len(world.ends) == 1
    state = world.state
    assert {step.status.value for step in state.order} <= ENDED
    assert not state.timers
    assert not world.timers
    assert (state.open_attempts, state.retrying, state.awaiting_approval) == (0, 0, {})
    answered = [e for e in world.journal if isinstance(e, AttemptSucceeded | AttemptFailed)]
    stopped = [e for e in world.journal if isinstance(e, AttemptCancelled)]
    assert state.usage.input_tokens == len(answered) + len(stopped)


@given(plans() | nested_plans(), seeds, st.integers(1, 40))
@examples(60)
def test_a_run_can_be_cancelled_at_any_time(plan: Plan, seed: int, after: int) -> None:
    world = World(plan, Random(seed), watch=check_rules)
    world.start()
    for _ in range(after):
        event = world._next()
        if event is None:
            break
        world.see(event)
    had_ended = list(world.ends)
    world.see(CancelRequested(world.now))
    begun = len(world.journal)
    world.run()
    assert len(world.ends) == 1
    assert had_ended or world.ends[0] in (RunStatus.CANCELLED, world.state.closed_as)
    late = world.commands[begun:]
    assert not any(isinstance(command, StartAttempt) for said in late for command in said)


@given(plans() | nested_plans(), seeds)
@examples(50)
def test_the_same_journal_gives_the_same_commands_and_the_same_state(plan: Plan, seed: int) -> None:
    world = World(plan, Random(seed))
    world.start()
    world.run()
    state = begin(plan)
    assert [advance(state, event)[1] for event in world.journal] == world.commands
    assert picture(state) == picture(world.state)


@given(CALM_PLANS, seeds, seeds)
@examples(50)
def test_the_order_of_events_changes_no_outcome(plan: Plan, one: int, other: int) -> None:
    outcomes = []
    for seed in (one, other):
        world = World(plan, Random(seed), is_fair=True)
        world.start()
        world.run()
        outcomes.append(outcome(world.state))
    assert outcomes[0] == outcomes[1]


@given(SHORT_PLANS, seeds)
@examples(50)
def test_a_crash_after_any_event_changes_no_outcome(plan: Plan, seed: int) -> None:
    whole = World(plan, Random(seed), is_fair=True)
    whole.start()
    whole.run()
    for length in range(1, len(whole.journal) + 1):
        world = World(plan, Random(seed + length), is_fair=True)
        for event in whole.journal[:length]:
            world.see(event)
        fresh = World(plan, Random(seed + length), is_fair=True, watch=check_rules)
        fresh.state, fresh.failures, fresh.now = world.state, world.failures, world.now
        fresh.see(RunResumed(fresh.now))
        fresh.run()
        assert len(fresh.ends) == 1
        assert outcome(fresh.state) == outcome(whole.state)


@dataclass
class Naive:
    """Pass over the ready steps in listing order, and start each that fits; whatever that costs."""

    plan: Plan
    running: list[StepId] = field(default_factory=list)
    asleep: list[StepId] = field(default_factory=list)  # until a retry: they hold files, no place
    awake: list[StepId] = field(default_factory=list)  # their time has come, and they want a place
    ended: set[StepId] = field(default_factory=set)
    held: set[StepId] = field(default_factory=set)

    def begin(self) -> list[StepId]:
        begun: list[StepId] = []
        for step in self.plan.steps:
            if len(self.running) < self.plan.width and self._may_begin(step):
                self.awake = [id for id in self.awake if id != step.id]
                self.running.append(step.id)
                begun.append(step.id)
        return begun

    def _may_begin(self, step: PlannedStep) -> bool:
        if step.id in self.awake:
            return True
        if step.id in (*self.ended, *self.held, *self.running, *self.asleep):
            return False
        at_work = [self.plan.step(id).claims for id in (*self.running, *self.asleep, *self.awake)]
        is_ready = all(before in self.ended for before in step.depends_on)
        return is_ready and not any(step.claims.conflicts(other) for other in at_work)

    def sleep(self, step: StepId) -> None:
        self.running.remove(step)
        self.asleep.append(step)

    def wake(self, step: StepId) -> None:
        self.asleep.remove(step)
        self.awake.append(step)

    def end(self, ended: StepId, holds_dependents: bool) -> None:
        self.running.remove(ended)
        if not holds_dependents:
            self.ended.add(ended)
            return
        gone = {ended}
        for _ in self.plan.steps:
            gone |= {s.id for s in self.plan.steps if gone & set(s.depends_on)}
        self.held |= gone - {ended}
        self.held.add(ended)


def plain(plan: Plan, most_attempts: int) -> Plan:
    """Steps that start when they can, and wait before they try again."""
    steps = []
    for step in plan.steps:
        assert isinstance(step.work, PlannedDelegation)
        work = PlannedDelegation(
            structs.replace(step.work.brief, retry=RetryPolicy(most_attempts, "linear"))
        )
        steps.append(structs.replace(step, work=work, when=None, is_gated=False))
    return structs.replace(plan, steps=tuple(steps))


@given(plans(kinds=("sequential",), policies=CALM_POLICIES, is_calm=True, most_steps=12), seeds)
@examples(100)
def test_steps_start_as_one_pass_in_listing_order_would_start_them(plan: Plan, seed: int) -> None:
    plan, luck = plain(plan, most_attempts=3), Random(seed)
    naive, state = Naive(plan), begin(plan)
    tries = dict.fromkeys(state.steps, 0)
    _, commands = advance(state, RunStarted(0.0, "run", "any", "", NO_PLAN, {}, 0))
    while True:
        begun = [command.step for command in commands if isinstance(command, StartAttempt)]
        assert begun == naive.begin()
        for each in begun:
            tries[each] += 1
        if not naive.running and not naive.asleep:
            break
        step = luck.choice(naive.running + naive.asleep)
        event: Event
        if step in naive.asleep:
            naive.wake(step)
            event = TimerFired(1.0, RetryTimer(AttemptId(step, tries[step])))
        elif luck.random() < 0.5:
            naive.end(step, holds_dependents=False)
            event = AttemptSucceeded(1.0, AttemptId(step, tries[step]), "done")
        else:
            event = AttemptFailed(1.0, AttemptId(step, tries[step]), "error", "no")
            if tries[step] < 3:
                naive.sleep(step)
            else:
                naive.end(step, plan.step(step).on_failure == "block")
        _, commands = advance(state, event)
    assert isinstance(commands[-1], EndRun)
