"""`stretto run` and what looks at runs, from outside."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from support.background_runs import (
    CHAIN,
    GATED,
    MODEL,
    journal,
    lines,
    ran,
    run,
    started,
    statuses,
)
from support.cli import refused, stretto, talk, write
from support.recipes import RECIPES

REPORT_KEYS = {"type", "ok", "run_id", "workflow", "status", "output", "steps", "warnings"}
STEP_KEYS = {
    "status",
    "warnings",
    "tool_calls",
    "playbooks",
    "output",
    "outputs",
    "attempts",
    "started_at",
    "ended_at",
    "duration_seconds",
    "error",
    "usage",
}
FAILING = "default: ok\nreplies: {b: {fail: broken}}"


def test_piped_it_prints_one_line_a_change_and_no_control_codes(tmp_path: Path) -> None:
    said = run(tmp_path, CHAIN)
    assert said.code == 0, said
    *changes, standing, _, named = said.err.partition("\n  stretto")[0].splitlines()
    assert re.fullmatch(r"run \S+ of chain started", changes[0])
    assert [line.split()[1:3] for line in changes[1:]] == [
        ["a", "running"],
        ["a", "succeeded"],
        ["b", "running"],
        ["b", "succeeded"],
        ["c", "running"],
        ["c", "succeeded"],
    ]
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", said.out + said.err)
    assert said.out == "ok\n"
    assert re.fullmatch(r"complete in \S+: 3 of 3 steps succeeded", standing)
    assert re.fullmatch(r"run \S+ of chain", named)


def test_as_json_it_prints_an_event_a_line_and_last_the_report(tmp_path: Path) -> None:
    said = run(tmp_path, CHAIN, "default: ok", "--json")
    assert said.err == ""
    *events, report = lines(said)
    assert events[0]["type"] == "run_started"
    assert events[-1]["type"] == "run_ended"
    assert set(report) >= REPORT_KEYS
    assert (report["type"], report["ok"], report["status"]) == ("report", True, "complete")
    assert report["output"] == "ok"
    assert report["warnings"] == []
    for step in report["steps"].values():
        assert set(step) == STEP_KEYS
    assert events == journal(tmp_path, report["run_id"])


def test_a_near_miss_of_a_condition_is_in_the_events_and_in_the_report(tmp_path: Path) -> None:
    recipe = """
name: near
steps:
  - {id: ask, subagent: writer, prompt: yes or no}
  - {id: act, subagent: writer, prompt: act, when: "steps.ask.output == 'yes'"}
output: "{{steps.ask.output}}"
"""
    near = 'steps.ask.output == \'yes\': "Yes." and "yes" differ only in capitals or punctuation'
    *events, report = lines(run(tmp_path, recipe, "default: Yes.", "--json"))
    assert near in events[-1]["warnings"][0]
    assert near in report["warnings"][0]
    assert report["steps"]["act"]["status"] == "skipped"


def test_the_last_line_is_what_report_says_later(tmp_path: Path) -> None:
    for report in (ran(tmp_path, CHAIN, FAILING), ran(tmp_path, GATED)):
        later = stretto(tmp_path, "report", report["run_id"], "--format", "json").json
        assert set(later) == set(report)
        moving = {"duration_seconds"} if report["ended_at"] is None else set()
        assert {k: later[k] for k in later if k not in moving} == {
            k: report[k] for k in report if k not in moving
        }


def test_a_dry_run_runs_nothing_and_leaves_no_run(tmp_path: Path) -> None:
    said = run(tmp_path, CHAIN, "default: ok", "--dry-run")
    assert said.code == 0
    assert stretto(tmp_path, "runs", "--json").json["runs"] == []


@pytest.mark.parametrize(
    ("recipe", "script", "code"),
    [
        (CHAIN, "default: ok", 0),
        (CHAIN, FAILING, 1),
        (CHAIN.replace("writer,", "writer, on_failure: abort,"), FAILING, 1),
        (CHAIN.replace("researcher", "nobody"), "default: ok", 2),
        (CHAIN.replace("steps:", "inputs: [{name: x, required: true}]\nsteps:"), "default: ok", 2),
        (CHAIN, "answers: none", 2),
        (GATED, "default: ok", 3),
    ],
    ids=["complete", "partial", "failed", "recipe", "inputs", "script", "waiting"],
)
def test_the_exit_code_says_how_it_went(
    tmp_path: Path, recipe: str, script: str, code: int
) -> None:
    assert run(tmp_path, recipe, script).code == code


def test_a_model_that_cannot_be_had_is_an_error_before_the_run(tmp_path: Path) -> None:
    write(tmp_path, "recipe.yaml", CHAIN)
    refused(stretto(tmp_path, "run", "recipe.yaml", "--json"), "not_ready")
    assert stretto(tmp_path, "runs", "--json").json["runs"] == []


def test_runs_are_listed_newest_first(tmp_path: Path) -> None:
    assert "no runs yet" in stretto(tmp_path, "runs").out
    first, second, third = ran(tmp_path, CHAIN), ran(tmp_path, CHAIN, FAILING), ran(tmp_path, GATED)
    rows = stretto(tmp_path, "runs", "--json").json["runs"]
    assert [(row["run_id"], row["status"]) for row in rows] == [
        (third["run_id"], "waiting"),
        (second["run_id"], "partial"),
        (first["run_id"], "complete"),
    ]
    table = stretto(tmp_path, "runs", "--limit", "1").out.splitlines()
    assert table[0].split() == ["RUN", "STATUS", "STARTED", "TOOK", "COST", "WORKFLOW"]
    assert table[1].split()[0] == third["run_id"]
    assert table[2:] == ["", "2 more; --limit 3 shows them"]


def test_a_run_that_is_not_there_is_an_error_everywhere(tmp_path: Path) -> None:
    for words in (["report"], ["events"], ["events", "--follow"], ["watch"], ["cancel"]):
        refused(stretto(tmp_path, words[0], "nothing", *words[1:], "--json"), "not_found")
    refused(stretto(tmp_path, "approve", "nothing", "a", "--json"), "not_found")


def test_the_report_comes_as_markdown_json_and_a_page_of_its_own(tmp_path: Path) -> None:
    run_id = ran(tmp_path, CHAIN, FAILING)["run_id"]
    text = stretto(tmp_path, "report", run_id).out
    assert "Workflow Execution Report: chain" in text
    assert "Status: PARTIAL" in text
    assert "broken" in text
    page = stretto(tmp_path, "report", run_id, "--format", "html").out
    assert page.lower().startswith("<!doctype html>")
    assert not re.search(r'(src|href)="https?:', page)
    said = stretto(tmp_path, "report", run_id, "--format", "html", "-o", "page.html")
    assert said.code == 0
    assert (tmp_path / "page.html").read_text() == page


def test_events_go_on_after_a_number_and_end_with_the_run(tmp_path: Path) -> None:
    run_id = ran(tmp_path, CHAIN)["run_id"]
    everything = journal(tmp_path, run_id)
    rest = lines(stretto(tmp_path, "events", run_id, "--after", "3", "--follow"))
    assert rest == everything[3:]
    assert stretto(tmp_path, "events", run_id, "--after", "999", "--follow").out == ""


def test_approve_then_resume_lets_a_gated_step_run(tmp_path: Path) -> None:
    said = run(tmp_path, GATED)
    assert said.code == 3
    run_id = re.search(r"stretto approve (\S+) g", said.err)[1]  # type: ignore[index]
    assert stretto(tmp_path, "approve", run_id, "nothing").code == 2
    approved = stretto(tmp_path, "approve", run_id, "g", "--no-resume")
    assert approved.code == 0
    assert f"stretto resume {run_id}" in approved.out
    said = stretto(tmp_path, "resume", run_id, "--json", *MODEL)
    assert said.code == 0, said
    report = lines(said)[-1]
    assert report["status"] == "complete"
    assert report["resumed"] is True
    assert started(journal(tmp_path, run_id)) == ["a", "g"]
    assert stretto(tmp_path, "report", run_id, "--json").json == report


def test_reject_ends_the_step_by_its_policy(tmp_path: Path) -> None:
    run_id = ran(tmp_path, GATED)["run_id"]
    said = stretto(tmp_path, "reject", run_id, "g", "--reason", "not now")
    assert said.code == 1
    assert "not now" in said.err
    assert statuses(stretto(tmp_path, "report", run_id, "--json").json)["g"] == "failed"


def test_resume_without_a_run_takes_up_those_that_can_go_on(tmp_path: Path) -> None:
    assert "no run was interrupted" in stretto(tmp_path, "resume", *MODEL).err
    ran(tmp_path, GATED)
    # One that waits for a person was not cut off, and nobody has decided yet.
    assert "no run was interrupted" in stretto(tmp_path, "resume", *MODEL).err


def test_a_fork_runs_from_a_step_on(tmp_path: Path) -> None:
    first = ran(tmp_path, CHAIN)
    fork = lines(stretto(tmp_path, "fork", first["run_id"], "--from", "c", "--json", *MODEL))[-1]
    assert fork["agents_deployed"] == 1
    assert fork["parent"] == first["run_id"]
    refused(stretto(tmp_path, "retry", first["run_id"], "--from", "x", "--json", *MODEL), "usage")
    both = ("retry", first["run_id"], "--from", "c", "--failed", "--json")
    refused(stretto(tmp_path, *both, *MODEL), "usage")


def test_what_another_script_answered_is_not_reused(tmp_path: Path) -> None:
    first = ran(tmp_path, CHAIN, FAILING)
    write(tmp_path, "script.yaml", "default: ok")
    again = lines(stretto(tmp_path, "retry", first["run_id"], "--failed", "--json", *MODEL))[-1]
    assert (again["status"], again["agents_deployed"]) == ("complete", 3)
    write(tmp_path, "other.yaml", "default: of another")
    write(tmp_path, "same.yaml", CHAIN)
    words = ("retry", again["run_id"], "--recipe", "same.yaml", "--json")
    other = lines(stretto(tmp_path, *words, "--model", "scripted:other.yaml"))[-1]
    assert {step["output"] for step in other["steps"].values()} == {"of another"}


def test_retry_with_an_edited_recipe_reuses_what_is_unchanged(tmp_path: Path) -> None:
    first = ran(tmp_path, CHAIN)
    write(tmp_path, "edited.yaml", CHAIN.replace('"check', '"check well'))
    words = ("retry", first["run_id"], "--recipe", "edited.yaml", "--json")
    report = lines(stretto(tmp_path, *words, *MODEL))[-1]
    assert report["status"] == "complete"
    assert report["agents_deployed"] == 1


def test_a_run_says_which_answers_are_reused(tmp_path: Path) -> None:
    first = ran(tmp_path, CHAIN)
    write(tmp_path, "edited.yaml", CHAIN.replace('"check', '"check well'))
    said = stretto(tmp_path, "retry", first["run_id"], "--recipe", "edited.yaml", *MODEL).err
    told = {line.split()[1]: line for line in said.splitlines() if " succeeded in " in line}
    reused = [step for step, line in told.items() if line.endswith(", reused")]
    assert len(reused) == len(told) - 1, said
    assert f", {len(reused)} answers reused\n" in said
    assert "reused" not in stretto(tmp_path, "run", "edited.yaml", *MODEL).err


LEAD = '{"lead_data": {"name": "Ann"}, "icp_criteria": {}}'
PROPOSAL = '{"company_name": "Acme", "contact_name": "Ann", "our_services": "looms"}'
REVIEWED = """\
default: A page.
replies:
  research: {reply: {company_overview: looms, key_challenges: [speed]}}
  identify_pains:
    reply:
      - {problem: p, impact: i, solution: s}
      - {problem: q, impact: i, solution: s}
      - {problem: r, impact: i, solution: s}
  pricing: {reply: {tiers: []}}
  review/check.1: {reply: {passed: true, overall_score: 9}}
"""


@pytest.mark.parametrize(
    ("name", "inputs", "script", "steps"),
    [
        ("research-and-brief", '{"topic": "looms"}', "default: words", 3),
        ("threat-brief", '{"topic": "looms"}', "default: words", 3),
        ("multi-criteria-lead-scoring", LEAD, "default: {reply: {score: 80}}", 2),
        ("research-to-proposal", PROPOSAL, REVIEWED, 5),
    ],
)
def test_the_printed_recipes_run_from_end_to_end(
    tmp_path: Path, name: str, inputs: str, script: str, steps: int
) -> None:
    write(tmp_path, "script.yaml", script)
    recipe = str(RECIPES / f"{name}.yaml")
    said = stretto(tmp_path, "run", recipe, "--json", "--input-json", "-", *MODEL, stdin=inputs)
    assert said.code == 0, said
    report = lines(said)[-1]
    assert report["status"] == "complete"
    assert len(report["steps"]) == steps
    assert set(statuses(report).values()) == {"succeeded"}


def test_a_journal_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    ran(tmp_path, GATED)
    ran(tmp_path, GATED)
    with closing(sqlite3.connect(tmp_path / "home" / "runs.db")) as db, db:
        db.execute(
            "UPDATE events SET event = replace(event, '\"steps\":', '\"stepz\":') WHERE run = 1"
        )
    said = stretto(tmp_path, "runs")
    assert said.code == 0
    assert sorted(line.split()[1] for line in said.out.splitlines()[1:]) == [
        "unreadable",
        "waiting",
    ]


def test_runs_have_the_colour_of_their_state(tmp_path: Path) -> None:
    complete = ran(tmp_path, CHAIN)["run_id"]
    partial = ran(tmp_path, CHAIN, FAILING)
    assert partial["status"] == "partial"
    colours = {"NO_COLOR": "", "TERM": "xterm-256color"}
    _, screen, _ = talk(tmp_path, ["runs"], [], colours)
    assert f"\x1b[32m\x1b[1m{complete}\x1b[0m" in screen
    assert f"\x1b[33m\x1b[1m{partial['run_id']}\x1b[0m" in screen
    assert "\x1b" not in stretto(tmp_path, "runs").out
