"""The driver: nothing happens before its cause is safe, and everything that began is answered."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec import Raw

from stretto.adapters.models.scripted import ScriptedRunner, read_script
from stretto.adapters.stores.memory import MemoryJournal
from stretto.adapters.workspaces import LocalWorkspaces
from stretto.events.model import (
    ApprovalRequested,
    Approved,
    AttemptCancelled,
    AttemptStarted,
    AttemptSucceeded,
    CancelRequested,
    Event,
    RunEnded,
    RunStarted,
)
from stretto.execution.driver import Driver
from stretto.execution.leases import Lease, RunJournal
from stretto.execution.runs import Runs, Start
from stretto.execution.start_line import StartLine
from stretto.ports.journal import Fenced, JournalFull
from stretto.ports.runner import AttemptRequest, AttemptResult, Witness
from stretto.ports.workspace import SharedWorkspace, UndeclaredChanges
from stretto.schedule.state import RunState, begin
from stretto.testing.clock import VirtualClock
from stretto.vocabulary.names import RunId, StepId
from stretto.vocabulary.statuses import RunStatus
from support.driven_runs import RUN, Stage, places, statuses
from support.recipes import flat

CHAIN = flat(
    "{id: a, subagent: researcher, prompt: look}",
    '{id: b, subagent: writer, prompt: "{{steps.a.output}}"}',
    '{id: c, subagent: reviewer, prompt: "{{steps.b.output}}"}',
)
DIAMOND = flat(
    "{id: a, subagent: researcher, prompt: look}",
    '{id: l, subagent: researcher, prompt: "left {{steps.a.output}}"}',
    '{id: r, subagent: researcher, prompt: "right {{steps.a.output}}"}',
    '{id: z, subagent: writer, prompt: "{{steps.l.output}} {{steps.r.output}}"}',
)


def test_no_attempt_runs_before_its_start_is_durable() -> None:
    stage = Stage(DIAMOND)
    assert stage.start().status is RunStatus.COMPLETE
    for step in ("a", "l", "r", "z"):
        assert stage.log.index(f"attempt_started {step}") < stage.log.index(f"runs {step}")
    for before, after in (("a", "l"), ("a", "r"), ("l", "z"), ("r", "z")):
        assert stage.log.index(f"attempt_succeeded {before}") < stage.log.index(f"runs {after}")


def test_a_turn_costs_one_commit() -> None:
    stage = Stage(CHAIN)
    stage.start()
    kinds = [[type(event).__name__ for event in commit] for commit in stage.store.commits]
    assert kinds == [
        ["RunStarted"],  # with its lease: the run is accepted
        ["AttemptStarted"],
        ["AttemptSucceeded", "AttemptStarted"],
        ["AttemptSucceeded", "AttemptStarted"],
        ["AttemptSucceeded", "RunEnded"],
    ]


def test_whoever_listens_hears_only_what_is_durable() -> None:
    stage = Stage(CHAIN)
    heard: list[Event] = []

    def listen(event: Event, state: RunState) -> None:
        heard.append(event)
        durable = [each for commit in stage.store.commits for each in commit]
        assert durable[: len(heard)] == heard

    stage.do(stage.starting(stage.runs(), listener=listen))
    assert heard == stage.journal()


def test_every_attempt_that_began_has_ended_in_the_journal() -> None:
    recipe = flat(
        "id: p\nparallel:\n"
        "  - {agent: researcher, input: x, output_key: quick}\n"
        "  - {agent: writer, input: y, output_key: slow}\n"
        "wait: any"
    )
    stage = Stage(recipe, "replies: {p/slow: {reply: late, delay: 9s}, p/quick: {reply: first}}")
    state = stage.start()
    assert state.status is RunStatus.COMPLETE
    (cancelled,) = [each for each in stage.journal() if isinstance(each, AttemptCancelled)]
    assert cancelled.attempt.part.text == "slow"
    assert isinstance(stage.journal()[-1], RunEnded)
    assert stage.clock.now() - (state.started_at or 0) < 9


class Broken:
    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        raise ZeroDivisionError("a bug in an adapter")


def test_a_runner_that_raises_fails_its_attempt_and_not_the_run() -> None:
    stage = Stage(CHAIN)
    state = stage.do(stage.runs().start(Start(stage.plan, {}, RUN), Broken()))
    assert state.status is RunStatus.FAILED
    assert state.steps[StepId("a")].error == "ZeroDivisionError: a bug in an adapter"


class Unforeseen(LocalWorkspaces):
    async def undeclared_changes(
        self, shared: SharedWorkspace, declared: Sequence[str]
    ) -> UndeclaredChanges:
        raise ZeroDivisionError("a bug in an adapter")


def test_a_shared_workspace_that_cannot_be_looked_at_is_a_warning_whatever_the_reason(
    tmp_path: Path,
) -> None:
    writer = "{id: a, subagent: writer, prompt: x, posture: writer, workspace_mode: shared}"
    stage = Stage(flat(writer))
    workspace = tmp_path / "workspace"
    workspace.mkdir()

    async def story() -> RunState:
        runs = Runs(stage.store, stage.clock, Unforeseen(tmp_path / "home"))
        async with asyncio.timeout(60):
            start = Start(stage.plan, {}, RUN, workspace=str(workspace))
            return await runs.start(start, stage.runner)

    state = stage.do(story())
    assert statuses(state) == {"a": "succeeded"}
    assert any("could not be looked at: a bug in an adapter" in each for each in state.all_warnings)


class Cancelling:
    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        raise asyncio.CancelledError


def test_a_runner_that_cancels_itself_is_a_failure_like_any_other() -> None:
    stage = Stage(flat("{id: a, subagent: researcher, prompt: look}"))
    state = stage.do(stage.runs().start(Start(stage.plan, {}, RUN), Cancelling()))
    assert statuses(state) == {"a": "failed"}


def test_an_attempt_that_is_cancelled_before_it_begins_never_runs() -> None:
    stage = Stage(DIAMOND)

    async def story() -> RunState:
        line = StartLine(patience_seconds=3600)
        runs = Runs(stage.store, stage.clock, start_line=line)
        with line.accepting():  # the run is accepted, and waits to begin
            task = asyncio.create_task(stage.starting(runs))
            while not runs.is_driving(RUN):
                await asyncio.sleep(0)
            await runs.cancel(RUN, "changed my mind")
        return await task

    state = stage.do(story())
    assert state.status is RunStatus.CANCELLED
    assert stage.runner.begun == []
    assert [type(each) for each in stage.journal()] == [RunStarted, CancelRequested, RunEnded]


GATED = flat("{id: a, subagent: writer, gate: human, prompt: x}")


def held_in_line(stage: Stage, then: Callable[[Runs], Awaitable[None]]) -> RunState:
    """The end of a run that is accepted and, before it begins, meets what `then` does."""

    async def story() -> RunState:
        line = StartLine(patience_seconds=3600)
        runs = Runs(stage.store, stage.clock, start_line=line)
        with line.accepting():
            task = asyncio.create_task(stage.starting(runs))
            while not runs.is_driving(RUN):
                await asyncio.sleep(0)
            meanwhile = asyncio.create_task(then(runs))
            while not await stage.store.pending() and not meanwhile.done():
                await asyncio.sleep(0)
                if runs._drivers[RUN]._inbox:
                    break
        state = await task
        await meanwhile
        return state

    return stage.do(story())


def test_an_approval_before_the_run_begins_comes_after_its_question() -> None:
    stage = Stage(GATED)
    state = held_in_line(stage, lambda runs: runs.decide(RUN, StepId("a"), True, "ada"))
    assert state.status is RunStatus.COMPLETE
    kinds = [type(each) for each in stage.journal()]
    assert kinds[:3] == [RunStarted, ApprovalRequested, Approved]


def test_a_run_whose_process_died_before_it_began_can_be_decided_about() -> None:
    stage = Stage(GATED)
    stop_before_it_begins(stage)
    stage.do(stage.runs().decide(RUN, StepId("a"), True, "ada"))
    assert [type(each) for each in stage.journal()] == [RunStarted, ApprovalRequested, Approved]
    assert stage.resume().status is RunStatus.COMPLETE


def test_a_run_that_is_cancelled_before_it_begins_asks_nobody() -> None:
    stage = Stage(GATED)
    assert held_in_line(stage, lambda runs: runs.cancel(RUN)).status is RunStatus.CANCELLED
    assert [type(each) for each in stage.journal()] == [RunStarted, CancelRequested, RunEnded]


def stop_before_it_begins(stage: Stage) -> RunState:
    async def story() -> RunState:
        line = StartLine(patience_seconds=3600)
        runs = Runs(stage.store, stage.clock, start_line=line)
        with line.accepting():
            task = asyncio.create_task(stage.starting(runs))
            while not runs.is_driving(RUN):
                await asyncio.sleep(0)
            runs.stop()
            return await task

    return stage.do(story())


def test_an_attempt_that_was_begun_and_cancelled_at_once_never_runs() -> None:
    stage = Stage(DIAMOND)
    stop_before_it_begins(stage)
    # Posted before anybody drives: it is the first thing that the driver hears.
    stage.do(stage.store.send(RUN, CancelRequested(0.0, "changed my mind")))
    assert stage.resume().status is RunStatus.CANCELLED
    assert stage.runner.begun == []
    assert places(stage.journal(), AttemptStarted) == [("a", "", 1)]
    assert [type(each) for each in stage.journal()][-2:] == [AttemptCancelled, RunEnded]


def test_a_run_that_is_stopped_before_it_begins_can_be_resumed() -> None:
    stage = Stage(DIAMOND)
    assert stop_before_it_begins(stage).status is RunStatus.RUNNING
    assert [type(each) for each in stage.journal()] == [RunStarted]
    assert stage.resume().status is RunStatus.COMPLETE


def test_a_journal_that_is_full_stops_the_drive_and_nothing_unwritten_happens() -> None:
    stage = Stage(CHAIN)
    full = MemoryJournal(stage.clock.now, capacity=0)
    with pytest.raises(JournalFull):
        stage.do(Runs(full, stage.clock).start(Start(stage.plan, {}, RUN), stage.runner))
    assert stage.runner.begun == []


def test_who_is_fenced_off_stops_at_its_next_commit() -> None:
    stage = Stage(CHAIN, "replies: {a: {reply: ok, delay: 5s}}\ndefault: ok")

    async def story() -> None:
        drive = asyncio.ensure_future(stage.starting(stage.runs()))
        await asyncio.sleep(1)
        held = (await stage.store.runs())[0]
        await stage.store.lease(RUN, held.leased_by or "", 30)  # a new process by the old name
        await drive

    with pytest.raises(Fenced):
        stage.do(story())
    assert stage.runner.steps == ["a"]
    assert places(stage.journal(), AttemptSucceeded) == []


def test_a_lost_lease_stops_the_driver_though_nothing_happens() -> None:
    stage = Stage(CHAIN, "replies: {a: {reply: ok, delay: 2h}}")

    async def story() -> float:
        drive = asyncio.ensure_future(stage.starting(stage.runs()))
        await asyncio.sleep(1)
        held = (await stage.store.runs())[0]
        await stage.store.lease(RUN, held.leased_by or "", 30)
        with pytest.raises(Fenced):
            await drive
        return stage.clock.now()

    began = stage.clock.now()
    assert stage.do(story()) - began < 30  # found out when it renewed its lease


def test_a_driver_that_is_stopped_leaves_its_attempts_in_doubt() -> None:
    stage = Stage(CHAIN, "replies: {a: {reply: ok, delay: 1h}}")

    async def story() -> RunState:
        runs = stage.runs()
        drive = asyncio.ensure_future(stage.starting(runs))
        await asyncio.sleep(1)
        runs.stop()
        return await drive

    state = stage.do(story())
    assert not state.has_ended
    assert [type(each) for each in stage.journal()] == [RunStarted, AttemptStarted]
    assert stage.do(stage.store.runs())[0].leased_by is None  # others may have it at once


def test_what_is_stopped_before_it_begins_can_be_resumed() -> None:
    stage = Stage(CHAIN)

    async def story() -> RunState:
        runs = stage.runs()
        runs.stop()
        return await stage.starting(runs)

    assert not stage.do(story()).has_ended
    assert stage.runner.begun == []
    assert stage.resume().status is RunStatus.COMPLETE


def test_time_never_runs_backwards_in_a_journal() -> None:
    stage = Stage(DIAMOND, "replies: {l: {reply: x, delay: 3s}}\ndefault: ok")
    stage.start()
    assert all(a.at <= b.at for a, b in pairwise(stage.journal()))


def test_a_driver_needs_no_keeper() -> None:
    clock = VirtualClock()
    stage = Stage(CHAIN)
    store = MemoryJournal(clock.now)

    async def story() -> RunState:
        lease = await Lease.take(store, clock, RUN, "me")
        runner = ScriptedRunner(read_script("default: ok"), clock)
        driver = Driver(begin(stage.plan), RunJournal(store, lease), runner, clock)
        return await driver.drive(RunStarted(clock.now(), RUN, "test", "", Raw(b"{}"), {}, 1))

    assert clock.run(story()).status is RunStatus.COMPLETE


def test_two_drives_of_one_seed_journal_the_same_bytes() -> None:
    recipe = flat(
        "{id: a, subagent: researcher, prompt: x, retry: {max_attempts: 4, backoff: exponential}}",
        "{id: b, subagent: researcher, prompt: y, timeout: 30s, on_failure: skip}",
        '{id: m, map: {over: "[1, 2, 3, 4, 5]", agent: writer, input: "{{item}}", batch_size: 2}}',
        '{id: z, subagent: writer, prompt: "{{steps.a.output}} {{steps.m.output}}"}',
    )
    script = (
        "replies:\n"
        "  a: [{fail: no, delay: 300ms}, {fail: no}, {reply: at last, delay: 20ms, tokens: 5}]\n"
        "  b: {reply: late, delay: 1h}\n"
        "  m/item.3: {reply: three, delay: 7s}\n"
        "default: ok\n"
    )
    drives = [Stage(recipe, script) for _ in range(2)]
    for stage in drives:
        assert stage.start().status is RunStatus.PARTIAL
    assert drives[0].bytes() == drives[1].bytes()
    assert len(drives[0].journal()) > 20


def test_a_thousand_small_runs_at_once_all_finish() -> None:
    stage = Stage(CHAIN)

    async def story() -> list[RunState]:
        runs = stage.runs()
        ids = [RunId(f"run-{n}") for n in range(1000)]
        return await asyncio.gather(*(stage.starting(runs, id) for id in ids))

    states = stage.do(story())
    assert {state.status for state in states} == {RunStatus.COMPLETE}
    assert len(stage.runner.begun) == 3000
