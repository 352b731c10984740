"""Runs: one driver each, messages that reach it, and leases that do not outlive their process."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import structs

from stretto.adapters.stores.sqlite import SqliteJournal
from stretto.events.model import (
    Approved,
    AttemptStarted,
    AttemptSucceeded,
    CancelRequested,
    Rejected,
    RunEnded,
    RunStarted,
)
from stretto.execution.runs import Runs, Start
from stretto.ports.journal import Leased
from stretto.ports.runner import AttemptRequest, AttemptResult, Success, Witness
from stretto.problems.errors import InvalidUsage, NotFound
from stretto.schedule.state import RunState
from stretto.vocabulary.names import RunId, StepId
from stretto.vocabulary.statuses import RunStatus
from support.driven_runs import RUN, Stage, after_a_crash, statuses, this_process
from support.recipes import flat

SLOW = flat(
    "{id: a, subagent: researcher, prompt: x}",
    '{id: b, subagent: writer, prompt: "{{steps.a.output}}"}',
)
SCRIPT = "replies: {a: ok, b: {reply: ok, delay: 1h}}"
GATED = flat(
    "{id: g, subagent: writer, gate: human, prompt: x}",
    "{id: side, subagent: researcher, prompt: y}",
)
# Leases the run as a `Runs` does, says so, and never lets go.
HOLDER = """
import asyncio, sys
from pathlib import Path
from stretto.processes.identity import name_of_this_process
from stretto.adapters.stores.sqlite import SqliteJournal

async def hold():
    store = await SqliteJournal.open(Path(sys.argv[1]))
    await store.lease("run-1", name_of_this_process(), 3600)
    print("held", flush=True)
    await asyncio.sleep(3600)

asyncio.run(hold())
"""


def test_two_cannot_drive_one_run() -> None:
    stage = Stage(SLOW, SCRIPT)

    async def story() -> None:
        drive = asyncio.ensure_future(stage.starting(stage.runs()))
        await asyncio.sleep(600)  # long after the first lease would have run out
        with pytest.raises(Leased) as refused:
            await stage.runs().resume(RUN, stage.runner)
        assert "pid" in refused.value.by
        assert await stage.runs().is_driven(RUN)
        await drive

    stage.do(story())
    assert stage.runner.steps == ["a", "b"]


def test_a_cancel_reaches_a_running_driver_within_a_second_and_keeps_what_ended() -> None:
    stage = Stage(SLOW, SCRIPT)

    async def story() -> tuple[RunState, float]:
        drive = asyncio.ensure_future(stage.starting(stage.runs()))
        await asyncio.sleep(10)
        asked = stage.clock.now()
        await stage.runs().cancel(RUN, "enough")
        return await drive, stage.clock.now() - asked

    state, waited = stage.do(story())
    assert waited <= 1
    assert state.status is RunStatus.CANCELLED
    assert statuses(state) == {"a": "succeeded", "b": "cancelled"}
    assert [each.reason for each in stage.journal() if isinstance(each, CancelRequested)] == [
        "enough"
    ]
    assert stage.do(stage.store.pending()) == []


class SlowToStop:
    """Its attempts take three seconds to stop, as those do that wait for a program."""

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(3)
        return Success("ok")


def test_a_cancel_that_a_stopped_driver_cannot_follow_counts_when_the_run_is_resumed() -> None:
    stage = Stage(flat("{id: a, subagent: researcher, prompt: x}"))

    async def story() -> RunState:
        server = stage.runs()
        start = Start(stage.plan, {}, RUN)
        drive = asyncio.ensure_future(server.start(start, SlowToStop()))
        await asyncio.sleep(10)
        server.stop()
        await asyncio.sleep(1)
        await stage.runs().cancel(RUN, "I do not want it")
        return await drive

    assert not stage.do(story()).has_ended
    assert stage.resume().status is RunStatus.CANCELLED
    assert stage.runner.begun == []
    assert stage.do(stage.store.pending()) == []


def test_a_cancel_that_a_leaving_driver_did_not_read_ends_the_run_without_a_resume() -> None:
    stage = Stage(GATED)
    assert stage.start().status is RunStatus.WAITING

    async def story() -> None:
        # As a driver holds it that has looked into its mailbox for the last time.
        fence = await stage.store.lease(RUN, "a process elsewhere", 3600)
        cancel = asyncio.ensure_future(stage.runs().cancel(RUN, "enough"))
        while RUN not in await stage.runs().addressed():
            await asyncio.sleep(0.01)
        await stage.store.release(RUN, fence=fence)
        await cancel

    stage.do(story())
    assert stage.do(stage.store.runs())[0].status == "cancelled"
    assert stage.do(stage.store.pending()) == []


def test_a_cancel_does_not_wait_for_a_driver_that_hangs() -> None:
    stage = Stage(GATED)
    stage.start()

    async def story() -> float:
        await stage.store.lease(RUN, "a process elsewhere", 3600)
        asked = stage.clock.now()
        await stage.runs().cancel(RUN, "enough")
        return stage.clock.now() - asked

    assert stage.do(story()) < 2
    assert stage.do(stage.runs().addressed()) == {RUN}


def test_a_message_about_a_run_that_goes_on_waiting_is_read_once() -> None:
    stage = Stage(flat("{id: g, subagent: writer, gate: human, prompt: x}"))
    stage.start()
    stage.do(stage.store.send(RUN, Approved(1.0, StepId("g"), key="of another prompt")))
    for _ in range(2):
        assert stage.resume().status is RunStatus.WAITING
    assert len([each for each in stage.journal() if isinstance(each, Approved)]) == 1
    assert stage.do(stage.store.pending()) == []


def test_a_cancel_of_a_run_that_nobody_drives_ends_it_at_once() -> None:
    stage = Stage(GATED)
    assert stage.start().status is RunStatus.WAITING
    stage.do(stage.runs().cancel(RUN))
    assert isinstance(stage.journal()[-1], RunEnded)
    assert stage.do(stage.store.runs())[0].status == "cancelled"
    assert stage.resume().status is RunStatus.CANCELLED
    with pytest.raises(InvalidUsage, match="has ended: cancelled"):
        stage.do(stage.runs().cancel(RUN))


def test_a_cancelled_attempt_of_a_dead_driver_is_on_record_as_cancelled() -> None:
    stage = Stage(SLOW, SCRIPT)

    async def story() -> RunState:
        runs = stage.runs()
        drive = asyncio.ensure_future(stage.starting(runs))
        await asyncio.sleep(1)
        runs.stop()
        await drive
        await stage.runs().cancel(RUN)
        return (await stage.runs().history(RUN)).state

    state = stage.do(story())
    assert state.is_recorded
    assert statuses(state) == {"a": "succeeded", "b": "cancelled"}


@pytest.mark.parametrize(("is_allowed", "status"), [(True, "complete"), (False, "partial")])
def test_a_decision_reaches_a_running_driver_within_a_second(is_allowed: bool, status: str) -> None:
    stage = Stage(GATED, "default: ok\nreplies: {side: {reply: ok, delay: 1m}}")

    async def story() -> RunState:
        drive = asyncio.ensure_future(stage.starting(stage.runs()))
        await asyncio.sleep(5)
        await stage.runs().decide(RUN, StepId("g"), is_allowed, "Ann", "because")
        return await drive

    began = stage.clock.now()
    state = stage.do(story())
    assert state.status.value == status
    (decided,) = [each for each in stage.journal() if isinstance(each, Approved | Rejected)]
    assert decided.at - began <= 6
    assert decided.by == "Ann"


def test_a_decision_is_on_record_at_once_where_nobody_drives_the_run() -> None:
    stage = Stage(GATED)
    stage.start()
    stage.do(stage.runs().decide(RUN, StepId("g"), True, "Ann"))
    assert any(isinstance(each, Approved) for each in stage.journal())
    assert stage.runner.steps == ["side"]
    assert stage.resume().status is RunStatus.COMPLETE
    assert stage.runner.steps == ["side", "g"]


def test_only_what_waits_for_a_person_can_be_decided() -> None:
    stage = Stage(GATED)
    stage.start()
    with pytest.raises(InvalidUsage, match="'side' does not await approval") as refused:
        stage.do(stage.runs().decide(RUN, StepId("side"), True, "Ann"))
    assert "g" in refused.value.hint


def test_a_run_that_is_not_there_is_named_with_what_is_near() -> None:
    stage = Stage(SLOW, SCRIPT)
    stage.start()
    with pytest.raises(NotFound, match="there is no run 'run-2'") as missing:
        stage.do(stage.runs().history(RunId("run-2")))
    assert "run-1" in missing.value.hint


def test_a_run_is_interrupted_when_it_has_no_end_and_nobody_drives_it() -> None:
    stage = Stage(GATED)

    async def story() -> list[bool]:
        said: list[bool] = []

        async def look() -> None:
            runs = stage.runs()
            row = (await runs.recent())[0]
            said.append(runs.is_interrupted(row))

        runs = stage.runs()
        drive = asyncio.ensure_future(stage.starting(runs))
        await drive
        await look()
        await runs.cancel(RUN)
        await look()
        return said

    assert stage.do(story()) == [True, False]


def test_the_lease_of_a_process_that_was_killed_is_taken_over_at_once(tmp_path: Path) -> None:
    stage = Stage(GATED)
    stage.start()
    rows = stage.journal()
    file = tmp_path / "runs.db"

    async def story() -> None:
        store = await SqliteJournal.open(file)
        try:
            fence = await store.lease(RUN, "earlier", 60)
            await store.append(RUN, rows, fence=fence)
            await store.release(RUN, fence=fence)
            holder = subprocess.Popen(
                [sys.executable, "-c", HOLDER, file], stdout=subprocess.PIPE, text=True
            )
            try:
                assert holder.stdout is not None
                await asyncio.to_thread(holder.stdout.readline)
                runs = Runs(store, stage.clock, owner=this_process())
                with pytest.raises(Leased):
                    await runs.resume(RUN, stage.runner)
                assert await Runs(store, _Now(), owner=this_process()).is_driven(RUN)
            finally:
                holder.kill()
            # Killed, though nobody has waited for it yet: a zombie drives nothing either.
            await _until_dead(Runs(store, _Now(), owner=this_process()))
            assert runs.is_interrupted((await runs.recent())[0])
            state = await runs.resume(RUN, stage.runner)
            assert state.status is RunStatus.WAITING
            holder.wait()
            holder.stdout.close()
        finally:
            await store.close()

    asyncio.run(story())


class _Now:
    """Any moment at which the lease still lasts."""

    def now(self) -> float:
        return 0.0

    async def sleep_until(self, at: float) -> None:
        raise NotImplementedError


async def _until_dead(runs: Runs) -> None:
    for _ in range(1000):
        if not await runs.is_driven(RUN):
            return
        await asyncio.sleep(0.01)
    raise AssertionError("a killed process still counts as alive")


def test_of_many_who_find_a_dead_lease_at_once_one_gets_the_run() -> None:
    stage = Stage(SLOW, SCRIPT)
    dead = _name_of_a_dead_process()

    async def story() -> list[object]:
        runs = stage.runs()
        drive = asyncio.ensure_future(stage.starting(runs))
        await asyncio.sleep(1)
        runs.stop()
        await drive
        await stage.store.lease(RUN, dead, 3600)
        tries = (stage.runs().resume(RUN, stage.runner) for _ in range(10))
        return await asyncio.gather(*tries, return_exceptions=True)

    outcomes = stage.do(story())
    assert [type(each) for each in outcomes].count(RunState) == 1
    assert [type(each) for each in outcomes].count(Leased) == 9
    assert stage.runner.steps == ["a", "b", "b"]  # b was in doubt


def _name_of_a_dead_process() -> str:
    say = "from stretto.processes.identity import name_of_this_process as n; print(n())"
    return subprocess.run(
        [sys.executable, "-c", say], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_a_cancel_collects_what_a_dead_process_still_owed_before_it_ends_the_run() -> None:
    writer = "{id: a, subagent: worker, prompt: x, workspace_mode: isolated, write_set: [a]}"
    stage = Stage(flat(writer))
    stage.start()
    started, *rest = stage.journal()
    assert isinstance(started, RunStarted)
    # The process died while it merged the change of the writer, whose work was done.
    done = [event for event in rest if isinstance(event, AttemptStarted | AttemptSucceeded)]
    left = after_a_crash(
        stage, [structs.replace(started, workspace="/work"), *done], "default: ok", 60.0
    )
    left.do(left.runs().cancel(RUN, "no longer needed"))
    kinds = [event.type for event in left.journal()]
    assert kinds[-3:] == ["cancel_requested", "merge_failed", "run_ended"], "nobody isolates here"
    assert left.runner.steps == []
    ended = left.journal()[-1]
    assert isinstance(ended, RunEnded)
    assert ended.status == RunStatus.CANCELLED.value
