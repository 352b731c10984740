"""A crash at any moment loses nothing: what had ended is never run again."""

import asyncio
from collections.abc import Collection
from typing import Any

import pytest

from stretto.events.model import (
    Approved,
    AttemptFailed,
    AttemptStarted,
    AttemptSucceeded,
    Event,
    RunEnded,
    RunResumed,
    TimerFired,
)
from stretto.ports.journal import StoredEvent
from stretto.problems.errors import StrettoError
from stretto.report.report import report_as_json, report_of
from stretto.schedule.outputs import output_of
from stretto.schedule.state import RunState
from stretto.vocabulary.models import Setup
from stretto.vocabulary.names import RunId, StepId
from stretto.vocabulary.statuses import RunStatus
from support.driven_runs import RUN, Counting, Stage, after_a_crash, places, statuses
from support.recipes import flat

EVERYTHING = flat(
    "{id: a, subagent: researcher, prompt: x, retry: {max_attempts: 3, backoff: exponential}}",
    "id: p\nparallel:\n"
    "  - {agent: researcher, input: x, output_key: one}\n"
    '  - {agent: writer, input: "{{steps.a.output}}", output_key: two}\n',
    '{id: m, map: {over: "[1, 2, 3]", agent: writer, input: "{{item}}", reduce: reviewer}}',
    "{id: bad, subagent: researcher, prompt: x, on_failure: skip}",
    "{id: l, loop: {agent: writer, validator: reviewer, max_iterations: 3}, depends_on: [p]}",
    '{id: z, subagent: writer, depends_on: [l, bad], prompt: "{{steps.p.output}} {{steps.m.output}}"}',
)
SCRIPT = """
default: ok
replies:
  a: [{fail: no, delay: 1s}, {reply: found, delay: 2s}]
  p/two: {reply: two, delay: 3s}
  m/item.1: {reply: second, delay: 4s}
  bad: {fail: broken}
  l/try.1: a draft
  l/check.1: {reply: {passed: false, feedback: longer}}
  l/check.2: {reply: {passed: true}}
"""
GATED = flat(
    "{id: a, subagent: researcher, prompt: x}",
    "{id: g, subagent: writer, gate: human, depends_on: [a], prompt: x}",
    '{id: z, subagent: writer, prompt: "{{steps.g.output}}"}',
)


def whole() -> Stage:
    stage = Stage(EVERYTHING, SCRIPT)
    assert stage.start().status is RunStatus.PARTIAL
    return stage


def ended(rows: list[Event]) -> set[tuple[str, str, int]]:
    return {*places(rows, AttemptSucceeded), *places(rows, AttemptFailed)}


def test_after_a_crash_at_any_row_the_run_ends_alike_and_repeats_nothing_that_ended() -> None:
    stage = whole()
    rows = stage.journal()
    expected = stage.do(stage.runs().history(RUN)).state
    assert len(rows) > 20
    repeated = 0
    for length in range(1, len(rows)):
        kept = rows[:length]
        new = after_a_crash(stage, kept, SCRIPT, kept[-1].at + 0.5)
        state = new.resume()
        assert statuses(state) == statuses(expected), length
        assert output_of(state) == output_of(expected), length
        assert state.status is expected.status
        assert isinstance(new.journal()[-1], RunEnded)
        repeated += len(ended(kept) & set(new.runner.begun))
    assert repeated == 0


def test_a_run_that_crashes_again_and_again_ends_alike() -> None:
    stage = whole()
    expected = stage.do(stage.runs().history(RUN)).state
    rows: list[Event] = stage.journal()[:1]
    begun: list[tuple[str, str, int]] = []
    for _ in range(50):
        new = after_a_crash(stage, rows, SCRIPT, rows[-1].at)
        state = new.resume()
        # Of what it did, only the first few rows reach the disk before the next crash: enough
        # for all that is under way to begin again, and for a little to end.
        survived = len(rows) + 9
        begun += [place for place in new.runner.begun if place in ended(new.journal()[:survived])]
        rows = new.journal()[:survived]
        if isinstance(rows[-1], RunEnded):
            break
    assert isinstance(rows[-1], RunEnded)
    assert statuses(state) == statuses(expected)
    assert output_of(state) == output_of(expected)
    assert len(begun) == len(set(begun))


def test_the_report_says_that_it_was_resumed() -> None:
    stage = whole()
    new = after_a_crash(stage, stage.journal()[:9], SCRIPT, stage.clock.now())
    new.resume()
    history = new.do(new.runs().history(RUN))
    assert report_as_json(report_of(history.state))["resumed"] is True


def test_resuming_a_run_that_has_ended_changes_nothing() -> None:
    stage = whole()
    before = stage.bytes()
    done = len(stage.runner.begun)
    assert stage.resume().status is RunStatus.PARTIAL
    assert stage.bytes() == before
    assert len(stage.runner.begun) == done


class Unidentified(Counting):
    """Cannot say which models answer, as when a key is missing."""

    error: BaseException

    def identify(self, models: Collection[str], tools: Collection[str]) -> Setup:
        raise self.error


@pytest.mark.parametrize(
    "error", [StrettoError("no key"), OSError("no file"), asyncio.CancelledError()], ids=repr
)
def test_a_resume_that_fails_before_it_drives_holds_the_run_no_longer(
    error: BaseException,
) -> None:
    stage = Stage(GATED)
    stopped = stage.runs()
    stopped.stop()
    stage.do(stage.starting(stopped))
    broken = Unidentified(SCRIPT, stage.clock, stage.log)
    broken.error = error
    runs = stage.runs()

    async def story() -> RunState:
        with pytest.raises(type(error)):
            await runs.resume(RUN, broken)
        row = await stage.store.run(RUN)
        assert row is not None
        assert row.leased_by is None
        return await runs.resume(RUN, stage.runner)

    assert stage.do(story()).status is RunStatus.WAITING


def test_a_run_that_cannot_be_read_is_held_by_nobody_who_tried_to_cancel_it() -> None:
    stage = Stage(GATED)
    stopped = stage.runs()
    stopped.stop()
    stage.do(stage.starting(stopped))
    runs, read, left = stage.runs(), stage.store.read, [1]

    async def read_once(run_id: RunId, after: int = 0, **how: Any) -> list[StoredEvent]:
        left[0] -= 1
        if left[0] < 0:
            raise OSError("no file")
        return await read(run_id, after, **how)

    async def story() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stage.store, "read", read_once)
            with pytest.raises(OSError, match="no file"):
                await runs.cancel(RUN)
        row = await stage.store.run(RUN)
        assert row is not None
        assert row.leased_by is None

    stage.do(story())


def test_an_end_that_was_not_written_is_written_on_resume() -> None:
    stage = whole()
    new = after_a_crash(stage, stage.journal()[:-1], SCRIPT, stage.clock.now())
    assert new.resume().status is RunStatus.PARTIAL
    assert [type(each) for each in new.journal()[-2:]] == [RunResumed, RunEnded]
    assert new.runner.begun == []


def test_a_retry_keeps_its_moment_over_a_resume() -> None:
    recipe = flat(
        "{id: a, subagent: researcher, prompt: x, retry: {max_attempts: 2, backoff: linear}}"
    )
    script = "replies: {a: [{fail: no, retry_after: 40s}, ok]}"
    stage = Stage(recipe, script)
    stage.start()
    rows = stage.journal()
    fired = next(each.at for each in rows if isinstance(each, TimerFired))
    kept = rows[: next(i for i, each in enumerate(rows) if isinstance(each, TimerFired))]
    early = after_a_crash(stage, kept, script, fired - 10)
    early.resume()
    assert [each.at for each in early.journal() if isinstance(each, TimerFired)] == [fired]
    late = after_a_crash(stage, kept, script, fired + 100)
    late.resume()
    assert [each.at for each in late.journal() if isinstance(each, TimerFired)] == [fired + 100]


@pytest.mark.parametrize(("asleep", "left"), [(20.0, 40.0), (300.0, 0.0)])
def test_the_timeout_of_a_run_counts_from_its_start(asleep: float, left: float) -> None:
    recipe = flat(
        "{id: a, subagent: researcher, prompt: x}",
        "{id: b, subagent: researcher, depends_on: [a], prompt: x}",
        head="timeout: 60s",
    )
    script = "replies: {a: ok, b: {reply: late, delay: 1h}}"
    stage = Stage(recipe, script)
    began = stage.clock.now()
    stage.start()
    kept = [each for each in stage.journal() if each.at == began]
    new = after_a_crash(stage, kept, script, began + asleep)
    state = new.resume()
    assert statuses(state) == {"a": "succeeded", "b": "cancelled"}
    assert new.clock.now() == began + asleep + left


def test_who_waits_for_a_person_still_waits_after_a_crash() -> None:
    stage = Stage(GATED)
    assert stage.start().status is RunStatus.WAITING
    new = after_a_crash(stage, stage.journal(), "default: ok", stage.clock.now())
    assert new.resume().status is RunStatus.WAITING
    assert new.runner.begun == []

    async def story() -> RunStatus:
        runs = new.runs()
        await runs.decide(RUN, StepId("g"), True, by="Ann")
        return (await runs.resume(RUN, new.runner)).status

    assert new.do(story()) is RunStatus.COMPLETE
    assert new.runner.steps == ["g", "z"]
    assert [each.by for each in new.journal() if isinstance(each, Approved)] == ["Ann"]


def test_a_run_that_waits_for_a_person_past_its_timeout_ends_on_resume() -> None:
    stage = Stage(GATED.replace("steps:", "timeout: 1h\nsteps:"))
    stage.start()
    new = after_a_crash(stage, stage.journal(), "default: ok", stage.clock.now() + 7200)
    state = new.resume()
    assert state.status is RunStatus.PARTIAL
    assert statuses(state) == {"a": "succeeded", "g": "cancelled", "z": "cancelled"}


@pytest.mark.parametrize(
    ("agent", "status", "begun"), [("researcher", "complete", ["a"]), ("worker", "waiting", [])]
)
def test_an_attempt_in_doubt_is_run_again_for_readers_and_asked_about_for_writers(
    agent: str, status: str, begun: list[str]
) -> None:
    stage = Stage(flat(f"{{id: a, subagent: {agent}, prompt: x}}"))
    stage.start()
    rows = stage.journal()
    assert isinstance(rows[1], AttemptStarted)
    new = after_a_crash(stage, rows[:2], "default: ok", stage.clock.now())
    assert new.resume().status.value == status
    assert new.runner.steps == begun


@pytest.mark.parametrize("set_by", [-86_400.0, -1.0])
def test_a_clock_that_was_set_back_meanwhile_neither_stops_timers_nor_turns_time_back(
    set_by: float,
) -> None:
    recipe = flat("{id: a, subagent: researcher, prompt: x, timeout: 8s, on_failure: skip}")
    stage = Stage(recipe, "default: {reply: never, delay: 10h}")
    assert stage.start().status is not RunStatus.COMPLETE
    rows = [event for event in stage.journal() if not isinstance(event, RunEnded | TimerFired)]
    rows = rows[: 1 + max(n for n, row in enumerate(rows) if isinstance(row, AttemptStarted))]
    new = after_a_crash(stage, rows, "default: {reply: never, delay: 10h}", rows[-1].at + set_by)
    began = new.clock.now()
    new.resume()
    assert new.clock.now() - began <= 9.0
    times = [event.at for event in new.journal()]
    assert times == sorted(times)
    assert isinstance(new.journal()[-1], RunEnded)


def _killed_in_a_call(budget: str) -> Stage:
    """Resumed after a crash while step `a` waited for its reply of 80 tokens."""
    recipe = flat("{id: a, subagent: researcher, prompt: x}") + budget
    script = "replies: {a: {reply: found, delay: 5s, tokens: 80}}"
    stage = Stage(recipe, script)
    stage.start()
    rows = stage.journal()
    kept = rows[: next(i for i, each in enumerate(rows) if isinstance(each, AttemptSucceeded))]
    return after_a_crash(stage, kept, script, kept[-1].at + 1)


def test_what_a_call_may_have_taken_counts_when_a_crash_cuts_it_off() -> None:
    new = _killed_in_a_call("budget: {tokens: 200}\n")
    state = new.resume()
    assert state.status is RunStatus.COMPLETE
    assert [each.usage.tokens for each in state.steps[StepId("a")].attempts] == [80, 80]
    assert state.usage.tokens == 160
    says = [each.text for each in report_of(state).issues if each.kind == "interrupted"]
    assert any("80 tokens of it are counted" in each for each in says), says


def test_a_call_that_a_crash_cut_off_leaves_less_of_the_budget() -> None:
    new = _killed_in_a_call("budget: {tokens: 100}\n")
    state = new.resume()
    assert state.status is RunStatus.FAILED
    assert state.usage.tokens == 80
    assert [each.failure.kind for each in state.steps[StepId("a")].attempts if each.failure] == [
        "in_doubt",
        "budget",
    ]
