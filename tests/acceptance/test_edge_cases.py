"""Failures and edge cases of a wrapped recipe, as users meet them at the terminal: one test for each rule."""

from pathlib import Path

import pytest

from support.background_runs import MODEL, ran, run, statuses
from support.cli import problems, refused, stretto, talk, write

HEAD = """\
workflow:
  name: t
  inputs: [{name: topic, default: tea}]
  agents:
    one: {prompt: "You are one."}
    two: {prompt: "You are two."}
    judge: {prompt: "You judge."}
  steps:
"""
ASKING = HEAD.replace("default: tea", "required: true") + "    - {id: a, agent: one}\n"
LOOP = HEAD + "    - {id: l, loop: {agent: one, validator: judge, max_iterations: 2}}\n"


def test_a_required_input_that_is_missing_is_asked_for_before_anything_starts(
    tmp_path: Path,
) -> None:
    write(tmp_path, "recipe.yaml", ASKING)
    write(tmp_path, "script.yaml", "default: ok")
    code, screen, _ = talk(tmp_path, ["run", "recipe.yaml", *MODEL], [("topic", "looms\r")])
    assert code == 0, screen
    run_id = stretto(tmp_path, "runs", "--json").json["runs"][0]["run_id"]
    assert '"topic":"looms"' in stretto(tmp_path, "events", run_id).out.replace(" ", "")


def test_where_nobody_can_be_asked_one_error_names_the_missing_input(tmp_path: Path) -> None:
    error = refused(run(tmp_path, ASKING, "default: ok", "--json"), "invalid_inputs")
    assert "topic" in error["message"]


def test_an_empty_output_is_a_failure_that_is_retried_and_falls_back(tmp_path: Path) -> None:
    recipe = HEAD + (
        "    - {id: a, agent: one, retry: {max_attempts: 2}, on_failure: 'fallback:two'}\n"
    )
    report = ran(tmp_path, recipe, 'replies: {a: ["", " ", from the fallback]}')
    assert report["status"] == "complete"
    assert report["output"] == "from the fallback"
    assert report["steps"]["a"]["attempts"] == 3
    assert any("two took over" in text for text in report["warnings"])


def test_a_circle_is_rejected_with_a_clear_error(tmp_path: Path) -> None:
    recipe = HEAD + (
        "    - {id: a, agent: one, depends_on: [b]}\n    - {id: b, agent: one, depends_on: [a]}\n"
    )
    (problem,) = problems(run(tmp_path, recipe, "default: ok", "--json"))
    assert "a" in problem["message"]
    assert "b" in problem["message"]
    assert problem["line"] in (9, 10)
    assert stretto(tmp_path, "runs", "--json").json["runs"] == []


def test_one_failed_branch_follows_its_agents_policy_and_the_others_continue(
    tmp_path: Path,
) -> None:
    recipe = HEAD.replace('"You are two."', '"You are two.", retry: {on_failure: skip}') + (
        "    - {id: p, parallel: [{agent: one, input: x}, {agent: two, input: y}]}\n"
        '    - {id: z, agent: one, input: "{{steps.p.output}}"}\n'
    )
    report = ran(tmp_path, recipe, "default: ok\nreplies: {p/two: {fail: broken}}")
    assert report["status"] == "partial"
    assert report["steps"]["p"]["outputs"] == {"one": "ok", "two": None}
    assert report["steps"]["z"]["status"] == "succeeded"


def test_a_loop_past_its_limit_keeps_the_last_output_and_is_flagged(tmp_path: Path) -> None:
    script = """\
replies:
  l/try.1: first
  l/try.2: last
  l/check.1: {reply: {passed: false, feedback: more}}
  l/check.2: {reply: {passed: false, feedback: still more}}
"""
    report = ran(tmp_path, LOOP, script)
    assert report["output"] == "last"
    assert any("max iterations reached" in text for text in report["warnings"])
    assert "max iterations reached" in stretto(tmp_path, "report", report["run_id"]).out


def test_the_global_timeout_aborts_what_runs_and_reports_what_ended(tmp_path: Path) -> None:
    recipe = HEAD.replace("workflow:", "workflow:\n  timeout: 500ms") + (
        "    - {id: a, agent: one}\n    - {id: b, agent: two}\n"
    )
    report = ran(tmp_path, recipe, "default: ok\nreplies: {b: {reply: late, delay: 10m}}")
    assert report["status"] == "partial"
    assert statuses(report) == {"a": "succeeded", "b": "cancelled"}
    assert any("timed out" in text for text in report["warnings"])


def test_a_syntax_error_is_reported_with_its_line_and_a_suggestion(tmp_path: Path) -> None:
    said = run(tmp_path, HEAD + "    - {id: a, agent: one\n", "default: ok", "--json")
    found = problems(said)
    assert found[0]["line"] in (8, 9, 10)
    assert found[0]["hint"]


def test_an_undefined_variable_is_reported_before_the_run(tmp_path: Path) -> None:
    recipe = HEAD + '    - {id: a, agent: one, input: "{{inputs.topik}}"}\n'
    (problem,) = problems(run(tmp_path, recipe, "default: ok", "--json"))
    assert "topik" in problem["message"]
    assert "topic" in problem["hint"]
    assert stretto(tmp_path, "runs", "--json").json["runs"] == []


def test_an_ambiguous_condition_takes_the_false_branch_and_warns(tmp_path: Path) -> None:
    recipe = HEAD + (
        "    - {id: a, agent: one}\n"
        '    - {id: c, condition: {eval: "{{steps.a.output.n}} > 1", true: two, false: judge}}\n'
    )
    report = ran(tmp_path, recipe, "default: who knows")
    assert report["status"] == "complete"
    assert any("undecided" in text for text in report["warnings"])
    events = stretto(tmp_path, "events", report["run_id"]).out
    assert '"judge"' in events.splitlines()[3]


@pytest.mark.parametrize("kind", ["error", "timeout"])
def test_a_fallback_that_fails_too_is_an_abort(tmp_path: Path, kind: str) -> None:
    recipe = HEAD + (
        "    - {id: a, agent: one, on_failure: 'fallback:two'}\n    - {id: b, agent: one}\n"
    )
    said = run(tmp_path, recipe, f"default: ok\nreplies: {{a: {{fail: both, kind: {kind}}}}}")
    assert said.code == 1
    assert "failed in " in said.err
    run_id = stretto(tmp_path, "runs", "--json").json["runs"][0]["run_id"]
    report = stretto(tmp_path, "report", run_id, "--json").json
    assert statuses(report) == {"a": "failed", "b": "cancelled"}
