import pytest

from stretto.events.model import Approved, RunResumed
from stretto.report.report import report_of
from stretto.report.timeline import timeline_of
from stretto.vocabulary.names import StepId
from support.reported_runs import CHAIN, GATED, Fail, Give, Hang, driven, reported


def _bars(row):
    return [bar for lane in row.lanes for bar in lane]


def test_bars_stand_where_their_attempts_ran():
    rows = timeline_of(reported(CHAIN, {"b": Give("x", after=2)})).rows
    places = [(bar.left, bar.width) for row in rows for bar in _bars(row)]
    assert places == [pytest.approx(place) for place in [(0, 25), (25, 50), (75, 25)]]


def test_every_attempt_has_its_bar_and_its_word():
    recipe = """
name: flaky
agents: {flaky: {prompt: Do it., retry: {max_attempts: 2}}}
steps: [{id: a, agent: flaky, prompt: x}]
"""
    (row,) = timeline_of(reported(recipe, {"a": [Fail("busy"), "done"]})).rows
    assert [bar.word for bar in _bars(row)] == ["failed", "succeeded"]
    assert _bars(row)[0].says == "attempt 1 by flaky, failed after 1s: busy"


def test_attempts_at_the_same_time_are_in_different_lanes():
    recipe = """
name: fan
steps:
  - id: both
    parallel: [{agent: worker, input: x, output_key: a}, {agent: worker, input: y, output_key: b}]
"""
    (row,) = timeline_of(reported(recipe)).rows
    assert [len(lane) for lane in row.lanes] == [1, 1]


def test_a_long_idle_stretch_is_cut_short():
    run = driven(GATED, {"write": Give("x", after=60), "publish": Give("y", after=60)})
    run.see(Approved(run.now + 86400, StepId("publish"), "ana"))
    run.run()
    timeline = timeline_of(report_of(run.state))
    (gap,) = timeline.breaks
    assert gap.seconds == 86400
    write, publish = timeline.rows
    assert _bars(write)[0].width > 40
    assert _bars(publish)[0].left + _bars(publish)[0].width == pytest.approx(100)
    assert len(timeline.ticks) >= 3


def test_the_time_that_a_process_was_gone_is_cut_short():
    run = driven(CHAIN, {"b": Hang()})
    run.script = {}
    run.see(RunResumed(run.now + 40_000))
    if run.state.awaiting_approval:
        run.see(Approved(run.now, StepId("b"), "bo"))
    run.run()
    timeline = timeline_of(report_of(run.state))
    assert [gap.seconds for gap in timeline.breaks] == [40_000]
    assert [bar.word for bar in _bars(timeline.rows[1])] == ["in doubt", "succeeded"]


def test_ticks_are_round_and_apart():
    ticks = timeline_of(reported(CHAIN, {"a": Give("x", after=290)})).ticks
    assert [tick.label for tick in ticks] == ["0s", "1m", "2m", "3m", "4m"]


def test_a_step_that_asked_nobody_still_has_a_row():
    recipe = """
name: routed
steps:
  - {id: gate, condition: {eval: "1 > 2", "true": b}}
  - {id: b, agent: worker, prompt: y}
"""
    timeline = timeline_of(reported(recipe))
    assert [row.step.id for row in timeline.rows] == ["gate"]
    assert all(0 <= row.left <= 100 for row in timeline.rows)


def test_a_thousand_slivers_stay_few_bars():
    recipe = """
name: many
inputs: {items: {type: json}}
agents: {one: {prompt: "Do {{item}}"}}
steps: [{id: each, map: {over: "{{inputs.items}}", agent: one, batch_size: 2}}]
"""
    (row,) = timeline_of(reported(recipe, items=list(range(1000)))).rows
    assert len(row.lanes) == 2
    assert sum(map(len, row.lanes)) < 500
    assert all(bar.left + bar.width < 100.5 for bar in _bars(row))
