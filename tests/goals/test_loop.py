"""The loop of a goal, killed at every moment: no run is lost, repeated or counted twice."""

import asyncio
from dataclasses import dataclass, field
from itertools import count

import pytest

from stretto.goals.evidence import CheckResult, check_result
from stretto.goals.goal import (
    CheckEnded,
    GoalEvent,
    GoalLimits,
    GoalSpec,
    GoalStanding,
    GoalState,
    IterationEnded,
    IterationStarted,
    fold,
)
from stretto.goals.loop import Effort, GoalDriver
from stretto.goals.store import GoalFenced
from stretto.vocabulary.amounts import Usage


class Killed(BaseException):
    """As by kill -9: nothing after it happens."""


@dataclass
class World:
    """What outlives a process: the goal's events, and runs. `kill_at`: the how-manieth step is the last."""

    kill_at: int = 10**9
    asks_model: bool = False
    events: list[GoalEvent] = field(default_factory=list)
    begun: list[str] = field(default_factory=list)  # run ids, in the order in which they began
    ended: set[str] = field(default_factory=set)
    done: int = 0  # iterations whose effect has happened
    clear_by: str | None = None
    cancelled: list[str] = field(default_factory=list)
    steps: int = 0
    ids: "count[int]" = field(default_factory=lambda: count(1))

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.kill_at:
            raise Killed

    # the journal

    async def append(self, event: GoalEvent) -> None:
        self.step()  # killed before it is durable
        self.events.append(event)
        self.step()  # killed right after

    async def renew(self, worked: float) -> str | None:
        return self.clear_by

    def now(self) -> float:
        return 0.0

    # the executor

    def new_run_id(self) -> str:
        return f"run-{next(self.ids)}"

    async def verify(self, goal: GoalStanding, run_id: str) -> CheckResult:
        if run_id:
            self.run(run_id)
        self.step()
        usage = Usage(0, 1) if run_id else Usage()
        return check_result(self.done >= 3, f"{self.done} done", usage=usage)

    async def work(self, goal: GoalStanding, begun: IterationStarted) -> Effort:
        if self.run(begun.run_id):
            self.done += 1
        self.step()
        return Effort("complete", Usage(0, 10))

    def run(self, run_id: str) -> bool:
        """Start or resume it; True if its effect happens now."""
        if run_id not in self.begun:
            self.step()
            self.begun.append(run_id)
        self.step()
        is_new = run_id not in self.ended
        self.ended.add(run_id)
        return is_new

    async def abandon(self, goal: GoalStanding, run_id: str) -> Usage:
        self.cancelled.append(run_id)
        return Usage(0, 7)


SPEC = GoalSpec("x", "command:true", "/f", limits=GoalLimits(iterations=5))


def drive(world: World) -> GoalStanding:
    goal = fold("g", SPEC, 0.0, world.events)
    return asyncio.run(GoalDriver(goal, world, world).drive())


@pytest.mark.parametrize("asks_model", [False, True])
def test_wherever_it_is_killed_it_ends_as_if_it_had_not_been(asks_model: bool) -> None:
    whole = World(asks_model=asks_model)
    assert drive(whole).state == GoalState.ACHIEVED
    for moment in range(1, whole.steps + 1):
        world = World(moment, asks_model)
        with pytest.raises(Killed):
            drive(world)
        end = drive(world)
        assert end.state == GoalState.ACHIEVED
        assert (len(end.iterations), world.done) == (3, 3), f"killed at step {moment}"
        assert len(world.begun) == len(set(world.begun)) == len(whole.begun)
        assert end.usage == fold("g", SPEC, 0.0, whole.events).usage
        assert [e.number for e in world.events if isinstance(e, IterationStarted)] == [1, 2, 3]
        assert sum(isinstance(e, IterationEnded) for e in world.events) == 3
        assert sum(isinstance(e, CheckEnded) for e in world.events) == 4


def test_killed_at_every_second_step_it_still_ends() -> None:
    world = World()
    for _ in range(200):
        world.kill_at = world.steps + 6
        try:
            end = drive(world)
            break
        except Killed:
            continue
    assert end.state == GoalState.ACHIEVED
    assert (len(end.iterations), world.done, len(world.begun)) == (3, 3, 3)


class Slow(World):
    async def work(self, goal: GoalStanding, begun: IterationStarted) -> Effort:
        self.run(begun.run_id)
        await asyncio.Event().wait()
        raise AssertionError("it never ends")


def test_whoever_clears_it_ends_its_run_first() -> None:
    world = Slow()

    async def main() -> GoalStanding:
        driver = GoalDriver(fold("g", SPEC, 0.0, ()), world, world, beat_seconds=0.01)
        task = asyncio.create_task(driver.drive())
        while not world.begun:
            await asyncio.sleep(0.01)
        world.clear_by = "me"
        return await task

    end = asyncio.run(main())
    assert (end.state, end.why) == (GoalState.CLEARED, "cleared by me")
    assert world.cancelled == world.begun
    assert (end.usage, end.iterations[-1].status) == (Usage(0, 7), "cancelled")


def test_who_lost_the_lease_stops_and_says_so() -> None:
    class Taken(Slow):
        async def renew(self, worked: float) -> str | None:
            raise GoalFenced("g")

    world = Taken()
    driver = GoalDriver(fold("g", SPEC, 0.0, ()), world, world, beat_seconds=0.01)
    with pytest.raises(GoalFenced):
        asyncio.run(driver.drive())
    assert not any(isinstance(event, IterationEnded) for event in world.events)


def test_stopped_before_it_began_it_begins_nothing() -> None:
    world = World()

    async def main() -> GoalStanding:
        driver = GoalDriver(fold("g", SPEC, 0.0, ()), world, world)
        driver.stop()
        return await driver.drive()

    assert asyncio.run(main()).state == GoalState.ACTIVE
    assert world.begun == []
    assert drive(world).state == GoalState.ACHIEVED
