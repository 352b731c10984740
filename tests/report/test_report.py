import json

from msgspec import Raw

from stretto.events.attempts import AttemptId
from stretto.events.model import (
    Approved,
    AttemptStarted,
    AttemptSucceeded,
    CancelRequested,
    Rejected,
    RunResumed,
    RunStarted,
)
from stretto.report.report import report_as_json, report_as_json_text, report_of
from stretto.schedule.advance import advance
from stretto.schedule.state import begin
from stretto.vocabulary.names import AgentId, StepId
from support.reported_runs import (
    CHAIN,
    GATED,
    Fail,
    Give,
    Hang,
    driven,
    priced,
    reported,
    step_of,
)

_KEYS = ["type", "ok", "run_id", "workflow", "status", "output", "steps", "warnings"]
_STEP_KEYS = [
    *("status", "output", "outputs", "attempts", "started_at", "ended_at"),
    *("duration_seconds", "error", "usage", "warnings", "tool_calls", "playbooks"),
]
_RETRYING = """
name: retrying
agents: {flaky: {prompt: Do it., retry: {max_attempts: 3}}, spare: {prompt: Do it too.}}
steps:
  - {id: one, agent: flaky, prompt: x}
  - {id: two, agent: flaky, prompt: y, on_failure: "fallback:spare"}
"""


def test_a_clean_run_has_nothing_to_say():
    report = reported(CHAIN)
    assert report.is_ok
    assert report.issues == ()
    assert (report.agents_deployed, report.retries, report.duration_seconds) == (3, 0, 3.0)


def test_the_json_has_the_agreed_keys_first_and_in_their_order():
    written = report_as_json(reported(CHAIN))
    assert list(written)[: len(_KEYS)] == _KEYS
    assert all(list(step) == _STEP_KEYS for step in written["steps"].values())
    assert {"usage", "duration_seconds", "critical_path", "resumed", "retries"} <= written.keys()
    assert json.loads(json.dumps(written)) == written


def test_times_are_iso_and_durations_are_seconds():
    step = report_as_json(reported(CHAIN))["steps"]["b"]
    assert step["started_at"] == "2026-01-01T00:00:01.000+00:00"
    assert step["duration_seconds"] == 1.0
    assert step["attempts"] == 1


def test_a_retry_is_told_with_its_cause_and_a_fallback_is_no_retry():
    script = {"one": [Fail("rate limited"), "done"]}
    script["two"] = [Fail("down"), Fail("down"), Fail("down"), "spare work"]
    report = reported(_RETRYING, script)
    assert [step_of(report, id).retries for id in ("one", "two")] == [1, 2]
    assert report.retries == 3
    assert report.agents_deployed == 6
    assert "one: 1 retry of flaky after an error: rate limited" in report.warnings
    assert "two: 2 retries of flaky after an error: down" in report.warnings
    assert any(text.startswith("two: flaky failed, spare took over") for text in report.warnings)


def test_an_answer_that_was_not_accepted_says_why():
    script = {"one": [Fail("lacks the field 'score'", "validation"), "done"]}
    (warning,) = reported(_RETRYING, script).warnings
    assert warning == (
        "one: 1 retry of flaky after an answer that was not accepted: lacks the field 'score'"
    )


def test_a_failure_is_an_issue_and_the_step_keeps_its_error():
    recipe = CHAIN.replace("id: b,", "id: b, on_failure: block,")
    report = reported(recipe, {"b": Fail("no canvas")})
    assert report.status == "partial"
    assert [issue.text for issue in report.issues] == [
        "b: failed: no canvas",
        "held: c (b failed)",
    ]
    assert report.warnings == ()
    assert step_of(report, "b").error == "no canvas"


def test_a_run_that_a_step_stopped_says_so_once():
    recipe = CHAIN.replace("id: b,", "id: b, on_failure: abort,")
    report = reported(recipe, {"b": Fail("boom")})
    assert report.status == "failed"
    assert report.warnings == ("the run stopped because step 'b' failed",)
    assert [issue.text for issue in report.issues if "boom" in issue.text] == ["b: failed: boom"]
    assert "cancelled: c (step 'b' failed)" in [issue.text for issue in report.issues]


def test_what_a_budget_stopped_is_told():
    report = reported(CHAIN + "budget: {agents: 2}\n")
    assert report.status == "failed"
    assert "budget exhausted: 2 of 2 agents deployed" in report.warnings
    assert step_of(report, "c").status == "cancelled"


def test_an_undecided_condition_and_the_last_iteration_are_told():
    report = reported(
        """
name: told
agents: {judge: {prompt: Judge it.}}
steps:
  - {id: a, agent: worker, prompt: x}
  - {id: gate, depends_on: [a], condition: {eval: "steps.a.output.score > 3", "true": b}}
  - {id: b, agent: worker, prompt: y}
  - id: polish
    depends_on: [a]
    prompt: Polish it.
    loop: {agent: worker, validator: judge, max_iterations: 2}
""",
        {"a": {"score": None}, "judge": {"passed": False}, "polish/check.1": {"passed": False},
         "polish/check.2": {"passed": False}},
    )  # fmt: skip
    assert "polish: max iterations reached" in report.warnings
    assert any("gate: the condition is undecided" in text for text in report.warnings)
    assert "skipped: b (no condition chose it)" in [issue.text for issue in report.issues]


def test_who_approved_a_step_is_told_and_of_a_decision_nobody_asked_for_that_it_did_not_count():
    run = driven(GATED)
    run.see(Approved(run.now, StepId("write"), "eve"))
    run.see(Approved(run.now + 60, StepId("publish"), "ana"))
    run.run()
    report = report_of(run.state)
    assert report.warnings == (
        "write: approved by eve at 2026-01-01 00:00:01 UTC; it did not count: nothing was asked",
        "publish: approved by ana at 2026-01-01 00:01:01 UTC",
    )


def test_who_rejected_a_step_is_told_with_the_reason():
    run = driven(GATED)
    run.see(Rejected(run.now, StepId("publish"), "ana", "not yet"))
    report = report_of(run.state)
    assert "publish: rejected by ana at 2026-01-01 00:00:01 UTC: not yet" in report.warnings


def test_a_run_that_waits_says_for_whom_and_what_to_do():
    report = reported(GATED)
    assert report.status == "waiting"
    assert not report.is_ok
    assert report.warnings == (
        "publish: awaits approval: stretto approve run-1 publish, or stretto reject run-1 publish",
    )


def test_a_run_that_was_interrupted_says_when_and_what_was_cut_short():
    run = driven(CHAIN, {"b": Hang()})
    run.script = {}
    run.see(RunResumed(run.now + 30))
    if run.state.awaiting_approval:
        run.see(Approved(run.now, StepId("b"), "bo"))
    run.run()
    report = report_of(run.state)
    assert report_as_json(report)["resumed"] is True
    assert report.retries == 0
    assert (
        "resumed at 2026-01-01 00:00:31 UTC after an interruption, 30s after its last event"
        in report.warnings
    )
    assert any(text.startswith("b: 1 attempt in doubt: ") for text in report.warnings)


def test_going_on_after_an_approval_is_no_interruption():
    run = driven(GATED)
    run.see(RunResumed(run.now + 30))
    run.see(Approved(run.now, StepId("publish"), "ana"))
    run.run()
    report = report_of(run.state)
    assert report_as_json(report)["resumed"] is True
    assert [issue.kind for issue in report.issues] == ["asked"]


def test_a_reused_output_is_told_and_deploys_nobody():
    run = driven("name: one\nsteps: [{id: a, agent: worker, prompt: x}]")
    state = begin(run.plan)
    events = [
        RunStarted(0.0, "run-2", "one", "", Raw(b"{}"), {}, 0, parent="run-1"),
        AttemptStarted(0.0, AttemptId(StepId("a"), 1), AgentId("worker"), "key"),
        AttemptSucceeded(0.0, AttemptId(StepId("a"), 1), "old", reused_from="run-1"),
    ]
    for event in events:
        advance(state, event)
    report = report_of(state)
    assert report.parent == "run-1"
    assert report.agents_deployed == 0
    assert report.warnings == ("a: 1 output reused from run run-1",)


def test_a_cancelled_run_says_why():
    run = driven(CHAIN, {"b": Hang()})
    run.see(CancelRequested(run.now, "too dear"))
    run.run()
    report = report_of(run.state)
    assert report.status == "cancelled"
    assert report.warnings == ("the run was cancelled: too dear",)
    assert "cancelled: b, c (the run was cancelled: too dear)" in [
        issue.text for issue in report.issues
    ]


def test_tokens_and_cost_are_summed():
    report = reported(CHAIN, {"a": priced("x", 0.25), "b": priced("y", 0.5)})
    usage = report_as_json(report)["usage"]
    assert usage == {"input_tokens": 200, "output_tokens": 40, "usd": 0.75, "model_calls": 2}


def test_a_run_that_has_not_begun_can_be_reported():
    report = report_of(begin(driven(CHAIN).plan))
    assert report.duration_seconds == 0
    assert report.critical_path == ()


def test_equal_causes_are_told_once():
    recipe = """
name: many
agents: {flaky: {prompt: "Do {{item}}", retry: {max_attempts: 2}}}
inputs: {items: {type: json}}
steps: [{id: each, map: {over: "{{inputs.items}}", agent: flaky}}]
"""
    script = {"each": [*([Fail("busy")] * 3), Give("done")]}
    report = reported(recipe, script, items=[1, 2, 3])
    assert report.warnings == ("each: 3 retries of flaky after an error: busy",)


def test_the_json_piece_by_piece_is_the_same_json():
    recipe = "name: t\nsteps: [{id: a, subagent: worker, prompt: x}, {id: b, subagent: worker, prompt: y}]"
    report = reported(recipe, {"a": {"n": [1, "→"]}})
    for ensure_ascii in (True, False):
        text = "".join(report_as_json_text(report, ensure_ascii=ensure_ascii))
        assert text == json.dumps(report_as_json(report), ensure_ascii=ensure_ascii)
