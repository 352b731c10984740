import re

import pytest

from stretto.events.attempts import AttemptId
from stretto.events.model import Approved, AttemptStarted, CancelRequested, Rejected, RunResumed
from stretto.report.markdown import as_markdown
from stretto.report.report import report_of
from stretto.vocabulary.names import AgentId, StepId
from support.reported_runs import GATED, NEW_YEAR, Give, driven, reported
from support.scheduling import Driven, Hang, plan_of

_DIAMOND = """
name: diamond
steps:
  - {id: start, agent: worker, prompt: x}
  - {id: short, agent: worker, prompt: "{{steps.start.output}}"}
  - {id: long, agent: worker, prompt: "{{steps.start.output}}"}
  - {id: end, agent: worker, prompt: "{{steps.short.output}} {{steps.long.output}}"}
  - {id: aside, agent: worker, prompt: x}
"""


def _ids(report):
    return [step.step for step in report.critical_path]


def test_it_follows_the_dependency_that_ended_last():
    report = reported(_DIAMOND, {"long": Give("x", after=9)})
    assert _ids(report) == ["start", "long", "end"]


def test_it_is_as_long_as_the_run():
    report = reported(_DIAMOND, {"long": Give("x", after=9), "start": Give("x", after=4)})
    legs = [step.duration_seconds + step.waited_seconds for step in report.critical_path]
    assert sum(legs) == report.duration_seconds


def test_the_step_that_ended_last_counts_whatever_depends_on_it():
    report = reported(_DIAMOND, {"aside": Give("x", after=60)})
    assert _ids(report) == ["aside"]


def test_a_step_that_waited_for_a_place_follows_the_one_that_left_it():
    recipe = "name: narrow\nsteps: [{id: a, agent: worker, prompt: x}, {id: b, agent: worker, prompt: y}]"
    report = reported(recipe, {"a": Give("x", after=7)}, width=1)
    assert _ids(report) == ["a", "b"]
    assert report.critical_path[1].waited_for == "a free place"
    assert sum(step.duration_seconds for step in report.critical_path) == report.duration_seconds


def test_a_step_that_waited_for_files_follows_the_one_that_held_them():
    recipe = """
name: files
steps:
  - {id: a, agent: worker, prompt: x, posture: writer, write_set: [src]}
  - {id: b, agent: worker, prompt: y, posture: writer, write_set: [src/b.py]}
"""
    report = reported(recipe, {"a": Give("x", after=7)})
    assert _ids(report) == ["a", "b"]
    assert report.critical_path[1].waited_for == "the files of a"
    assert "2. b: 1s (12%), after waiting for the files of a" in as_markdown(report)


def test_a_wait_for_a_person_is_named():
    run = driven(GATED)
    run.see(Approved(run.now + 600, StepId("publish"), "ana"))
    run.run()
    write, publish = report_of(run.state).critical_path
    assert (publish.waited_for, publish.waited_seconds) == ("a person", 600)
    assert write.waited_for == ""


@pytest.mark.parametrize("decided", [Approved, Rejected])
def test_a_wait_for_a_person_is_named_where_the_resume_asked_for_one(decided):
    recipe = """
name: asked
steps:
  - {id: a, agent: worker, prompt: x}
  - {id: b, agent: worker, prompt: y, posture: writer, depends_on: [a]}
"""
    run = Driven(plan_of(recipe), {}, now=NEW_YEAR).start()
    run.see(RunResumed(run.now, "ask"))
    run.run()
    asked_key = run.state.steps[StepId("b")].asked_key
    run.see(decided(run.now + 600, StepId("b"), "ana", key=asked_key))
    run.run()
    _, b = report_of(run.state).critical_path
    assert (b.waited_for, b.waited_seconds) == ("a person", 600)


def test_a_person_who_was_asked_later_is_not_what_the_start_waited_for():
    recipe = """
name: narrow
steps:
  - {id: a, agent: worker, prompt: x}
  - {id: b, agent: worker, prompt: y, posture: writer, recovery: ask}
"""
    script = {"a": Give("x", after=7), "b": [Hang(), "done"]}
    run = Driven(plan_of(recipe, width=1), script, now=NEW_YEAR).start()
    run.run()
    run.see(RunResumed(run.now + 100))
    asked_key = run.state.steps[StepId("b")].asked_key
    run.see(Approved(run.now + 600, StepId("b"), "ana", key=asked_key))
    run.run()
    assert run.state.steps[StepId("b")].decisions[0].void == ""
    _, b = report_of(run.state).critical_path
    assert b.waited_for == "a free place"


def test_a_skipped_step_passes_the_chain_on_without_being_in_it():
    recipe = """
name: routed
steps:
  - {id: a, agent: worker, prompt: x}
  - {id: gate, depends_on: [a], condition: {eval: "1 > 2", "true": b, "false": c}}
  - {id: b, agent: worker, prompt: y}
  - {id: c, agent: worker, prompt: y}
  - {id: d, agent: worker, prompt: z, depends_on: [b, c]}
"""
    assert _ids(reported(recipe)) == ["a", "gate", "c", "d"]


def _adds_up(report):
    legs = [step.duration_seconds + step.waited_seconds for step in report.critical_path]
    assert sum(legs) == pytest.approx(report.duration_seconds)
    shares = [int(found) for found in re.findall(r"\((\d+)%\)", as_markdown(report))]
    assert all(share <= 100 for share in shares)


@pytest.mark.parametrize("decided", [Approved, Rejected])
def test_it_leaves_out_the_time_in_which_nobody_drove_the_run(decided):
    run = driven(GATED)
    run.see(RunResumed(run.now + 500))
    run.see(decided(run.now + 600, StepId("publish"), "ana"))
    run.run()
    report = report_of(run.state)
    assert report.paused_seconds
    _adds_up(report)


def test_a_step_that_was_cut_off_is_no_longer_than_the_run():
    run = Driven(plan_of(GATED), {"write": Hang()}, now=NEW_YEAR).start()
    run.see(AttemptStarted(NEW_YEAR + 1, AttemptId(StepId("write"), 1), AgentId("worker"), "key"))
    run.see(RunResumed(NEW_YEAR + 1000))
    run.see(CancelRequested(NEW_YEAR + 1001))
    report = report_of(run.state)
    (leg,) = report.critical_path
    assert leg.duration_seconds <= report.duration_seconds < 1000
