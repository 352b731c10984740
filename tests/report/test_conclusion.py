"""How a run came out is said in a sentence, with what to do, in every form of the report."""

import re
from dataclasses import replace

import pytest

from stretto.events.model import CancelRequested, Rejected
from stretto.report.conclusion import conclusion_of
from stretto.report.html import as_html
from stretto.report.json_form import report_as_json
from stretto.report.markdown import as_markdown
from stretto.report.report import report_of
from support.reported_runs import CHAIN, GATED, Fail, Hang, driven, reported
from support.scheduling import Driven, plan_of

TRIED = """
name: tried
agents: {flaky: {prompt: "Do it.", retry: {max_attempts: 3}}}
steps:
  - {id: a, agent: worker, prompt: x}
  - {id: b, agent: flaky, prompt: "{{steps.a.output}}", on_failure: block}
  - {id: c, agent: worker, prompt: "{{steps.b.output}}"}
"""


def commands(report):
    return [each.command for each in conclusion_of(report).commands]


def test_a_complete_run_has_nothing_to_do():
    found = conclusion_of(reported(CHAIN))
    assert found.says == "All 3 steps succeeded."
    assert found.commands == ()


def test_a_failed_step_is_named_with_its_attempts_its_error_and_its_consequence():
    report = reported(TRIED, {"b": Fail("no score field", "validation")})
    found = conclusion_of(report)
    assert found.says == (
        "Step 'b' failed after 3 attempts: no score field. 1 of 3 steps succeeded. "
        "Step 'c' was held back, because what it needs failed."
    )
    assert "schema and rules" in found.advice
    assert commands(report) == ["stretto logs run-1 b", "stretto retry run-1"]


def test_a_partial_run_whose_steps_succeeded_says_that_something_is_missing():
    report = replace(reported(CHAIN), status="partial")
    says = "All 3 steps succeeded. A part of the work is missing: the warnings say which."
    assert conclusion_of(report).says == says


def test_of_a_step_that_a_person_rejected_there_are_no_logs():
    driven = Driven(plan_of(GATED), {}).start().run()
    (asked,) = driven.state.awaiting_approval
    driven.see(Rejected(driven.now, asked, reason="no"))
    driven.run()
    assert commands(report_of(driven.state)) == ["stretto retry run-1"]


def test_several_failures_are_told_by_the_first():
    recipe = CHAIN.replace("{{steps.a.output}}", "x").replace("{{steps.b.output}}", "x")
    says = conclusion_of(reported(recipe, {"a": Fail("one"), "c": Fail("two")})).says
    assert says.startswith("Step 'a' failed: one. So did 'c'.")


def test_a_run_that_waits_says_how_to_decide():
    report = reported(GATED)
    assert conclusion_of(report).says.startswith("A person must approve or reject 'publish'.")
    assert "stretto approve run-1 publish" in commands(report)
    assert "stretto reject run-1 publish" in commands(report)


def test_a_run_that_nobody_drives_says_how_to_go_on():
    run = Driven(plan_of(CHAIN), {"b": Hang()}).start()
    for _ in range(3):
        run.step()
    assert commands(report_of(run.state, is_interrupted=True)) == ["stretto resume run-1"]
    assert commands(report_of(run.state)) == ["stretto watch run-1"]


def test_a_cancelled_run_says_why():
    run = Driven(plan_of(CHAIN), {"b": Hang()}).start()
    for _ in range(3):
        run.step()
    run.see(CancelRequested(run.now, "wrong topic"))
    run.run()
    report = report_of(run.state)
    assert report.status == "cancelled"
    assert "wrong topic" in conclusion_of(report).says
    assert commands(report) == ["stretto retry run-1"]


@pytest.mark.parametrize("error", ["", "x" * 5_000, "two\nlines\x1b[2J", "ends with a stop."])
def test_any_error_makes_one_line(error: str):
    says = conclusion_of(reported(TRIED, {"b": Fail(error)})).says
    assert "\n" not in says
    assert "\x1b" not in says
    assert ".." not in says
    assert len(says) < 700


def test_every_form_of_the_report_says_it():
    run = driven(TRIED, {"b": Fail("no score field", "validation")})
    report = report_of(run.state)
    found = conclusion_of(report)
    shown = report_as_json(report)
    assert shown["summary"] == found.says
    assert shown["next"] == [each.command for each in found.commands]
    text = as_markdown(report)
    assert text.splitlines()[2] == f"{found.says} {found.advice}"
    assert all(f"- `{each.command}` {each.does}" in text for each in found.commands)
    page = as_html(report, run.plan)
    assert "Step &#x27;b&#x27; failed after 3 attempts: no score field." in page
    head = page.partition("</header>")[0]
    assert all(f">{each.command}</code>" in head for each in found.commands)
    assert re.search(r">\s*PARTIAL<", head)
