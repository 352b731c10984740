"""States are so, and are the same words wherever they are shown."""

import re
from typing import get_args

import pytest

from stretto.cli.progress.frame import _STYLES
from stretto.cli.progress.lines import ASCII_SIGNS, SIGNS
from stretto.events.attempts import AttemptId
from stretto.events.model import AttemptStarted, AttemptSucceeded, ModelRetried, RunResumed
from stretto.report.html import as_html
from stretto.report.markdown import as_markdown
from stretto.report.report import report_of
from stretto.schedule.status import run_word, step_word
from stretto.vocabulary.names import AgentId, StepId
from stretto.vocabulary.statuses import RUN_WORDS, STEP_WORDS, RunStatus, StepStatus, StepWord
from support.doc_pages import DOCS
from support.scheduling import Driven, Fail, Give, Hang, drive, plan_of

A = StepId("a")
ONE = "name: t\nsteps: [{id: a, subagent: worker, prompt: go}]\n"
TIMED = """
name: t
steps: [{id: a, subagent: worker, prompt: go, timeout: 10s, on_failure: skip,
         retry: {max_attempts: 3}}]
"""
WRITER = """
name: w
agents: {scribe: {prompt: Write., tools: [Write]}}
steps: [{id: a, agent: scribe, prompt: go, write_set: [out/**]}]
"""
FAN = """
name: f
steps:
  - id: a
    wait: any
    parallel:
      - {agent: worker, prompt: x, output_key: quick}
      - {agent: worker, prompt: y, output_key: slow}
      - {agent: worker, prompt: z, output_key: slower}
"""


def test_every_word_has_a_meaning_a_sign_and_a_style():
    assert set(STEP_WORDS) == set(get_args(StepWord)) == set(SIGNS) == set(ASCII_SIGNS)
    assert set(STEP_WORDS) == set(_STYLES)
    assert {status.value for status in StepStatus} <= set(STEP_WORDS)
    assert {status.value for status in RunStatus} <= set(RUN_WORDS)


def test_the_docs_have_the_same_table():
    page = (DOCS / "runs.md").read_text(encoding="utf-8")
    section = page.partition("## States\n")[2].partition("\n## ")[0]
    rows = [f"| `{word}` | {says} |" for word, says in (*RUN_WORDS.items(), *STEP_WORDS.items())]
    assert [row for row in rows if row not in section] == []


def test_a_step_whose_changes_are_being_merged_is_not_retrying():
    run = Driven(plan_of(WRITER)).start()
    run.see(AttemptStarted(1, AttemptId(A, 1), AgentId("scribe"), "key"))
    run.see(AttemptSucceeded(2, AttemptId(A, 1), "Done."))
    assert step_word(run.state.steps[A]) == "merging"
    assert report_of(run.state).steps[0].status == "merging"


def test_a_step_that_waits_for_its_next_attempt_is_retrying():
    run = Driven(plan_of(TIMED), {"a": Fail(retry_after=5)}).start()
    while not run.state.retrying:
        run.step()
    assert step_word(run.state.steps[A]) == "retrying"


def test_a_run_that_nobody_drives_is_interrupted_in_its_report_too():
    run = Driven(plan_of(ONE), {"a": Hang()}).start()
    report = report_of(run.state, is_interrupted=True)
    assert (report.status, report.steps[0].status) == ("interrupted", "interrupted")
    run.see(AttemptStarted(1, AttemptId(A, 1), AgentId("scribe"), "key"))
    left = report_of(run.state, is_interrupted=True)
    assert [attempt.status for attempt in left.steps[0].attempts] == ["interrupted"]
    assert "Total time: at least 1s" in as_markdown(left)
    assert "at least 1s" in as_html(left)
    assert "running" not in re.sub("(?s)<style>.*?</style>", "", as_html(left))
    driven = report_of(run.state)
    assert [attempt.status for attempt in driven.steps[0].attempts] == ["running"]
    assert "at least" not in as_markdown(driven) + as_html(driven)
    assert run_word(run.state, is_driven=True) == "running"


def test_a_run_that_waits_for_a_person_was_not_interrupted():
    run = Driven(plan_of(ONE.replace("prompt: go", "prompt: go, gate: human"))).start()
    report = report_of(run.state, is_interrupted=True)
    assert (report.status, report.steps[0].status) == ("waiting", "awaiting approval")


OVERDUE = [
    ONE.replace("prompt: go", "prompt: go, gate: human, timeout: 10s"),
    "timeout: 10s\n" + ONE.replace("prompt: go", "prompt: go, gate: human"),
]


@pytest.mark.parametrize("recipe", OVERDUE, ids=["step", "run"])
def test_a_gate_whose_deadline_has_passed_says_so(recipe: str):
    run = Driven(plan_of(recipe)).start()

    def seen(after: float, is_interrupted: bool = True):
        at = run.state.now + after
        return report_of(run.state, is_interrupted=is_interrupted, now=at)

    assert (seen(9).status, seen(9).steps[0].status) == ("waiting", "awaiting approval")
    late = seen(11)
    assert (late.status, late.steps[0].status) == ("overdue", "overdue")
    (issue,) = [issue for issue in late.issues if issue.kind == "waiting"]
    assert "deadline has passed" in issue.says
    assert "stretto resume" in issue.says
    assert "stretto approve" not in issue.says
    # Whoever drives the run sees to its deadlines.
    assert seen(11, is_interrupted=False).steps[0].status == "awaiting approval"


def test_a_run_that_has_ended_stays_as_it_ended():
    run = drive(ONE)
    assert report_of(run.state, is_interrupted=True).status == "complete"


def test_times_leave_out_what_lies_between_an_interruption_and_its_resumption():
    run = Driven(plan_of(ONE), {"a": Hang()}).start()
    run.step()
    run.script = {"a": Give("x", after=2)}
    run.see(RunResumed(run.now + 40_000))
    run.run()
    report = report_of(run.state)
    assert report.duration_seconds < 100
    assert report.steps[0].duration_seconds is not None
    assert report.steps[0].duration_seconds < 100
    assert report.paused_seconds == 40_000


def test_branches_that_lost_are_named():
    run = drive(FAN, {"a/quick": Give("x", after=1), "a/slow": Hang(), "a/slower": Hang()})
    assert run.state.all_warnings == ("a: stopped once 1 of 3 had succeeded: slow, slower",)


def test_a_step_timeout_names_what_the_step_was_waiting_for():
    run = drive(TIMED, {"a": Fail("429 too many requests", retry_after=60)})
    assert run.state.steps[A].error == "the step timed out after 10s, after: 429 too many requests"


def test_a_step_timeout_names_the_fault_that_the_client_was_getting_over():
    run = Driven(plan_of(TIMED), {"a": Hang()}).start()
    run.see(AttemptStarted(1, AttemptId(A, 1), AgentId("worker"), "key"))
    run.see(ModelRetried(2, AttemptId(A, 1), "m", "503 overloaded", 1, 3, 60.0))
    run.run()
    assert "after: 503 overloaded" in (run.state.steps[A].error or "")
