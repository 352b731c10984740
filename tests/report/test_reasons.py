"""A run that has not ended says in a sentence why it is where it is, and so does each of its steps."""

from stretto.report.reasons import standing_of
from stretto.vocabulary.names import StepId
from support.scheduling import Driven, Fail, Hang, drive, plan_of

TWO = """
name: two
steps:
  - {id: a, subagent: worker, prompt: go, retry: {max_attempts: 3}}
  - {id: b, subagent: worker, prompt: go}
"""
WRITERS = """
name: writers
steps:
  - {id: fix-a, subagent: worker, prompt: go, posture: writer, write_set: ["src/**"]}
  - {id: fix-b, subagent: worker, prompt: go, posture: writer, write_set: [src/b.py]}
  - {id: sum, subagent: worker, prompt: go, depends_on: [fix-a, fix-b]}
  - {id: sign, subagent: worker, prompt: go, gate: human}
"""
GATED = "name: g\nsteps: [{id: sign, subagent: worker, prompt: go, gate: human, timeout: 60s}]\n"


def why(run: Driven, step: str) -> str:
    return standing_of(run.state).steps[StepId(step)].says


def test_it_says_who_is_at_work_who_is_held_by_whom_and_who_is_asked() -> None:
    run = Driven(plan_of(WRITERS)).start()
    assert standing_of(run.state).run.says == (
        "A person must approve or reject 'sign'; 'fix-a' is running; "
        "'fix-b' waits for the files of fix-a (src/**)"
    )
    assert why(run, "sum") == "waits for fix-a, fix-b"


def test_it_says_what_is_queued_behind_what() -> None:
    run = Driven(plan_of(TWO, width=1)).start()
    assert standing_of(run.state).run.says == (
        "'a' is running; 1 step is queued: the only slot is taken"
    )


def test_a_retry_says_its_number_its_cause_and_when_it_is_due() -> None:
    run = Driven(plan_of(TWO), {"a": [Fail(error="rate limited", retry_after=4), "x"]}).start()
    while not (run.state.retrying and not run.state.open_attempts):
        run.step()
    found = standing_of(run.state)
    assert found.run.says == "'a': attempt 1 of 3 failed (rate limited); tries again"
    assert found.run.at == found.steps[StepId("a")].at == run.state.now + 4


def test_a_gate_says_until_when() -> None:
    run = Driven(plan_of(GATED)).start()
    found = standing_of(run.state).run
    assert found.says == "A person must approve or reject 'sign', at the latest"
    assert found.at == run.state.now + 60


def test_what_leads_up_to_a_moment_comes_last() -> None:
    script = {"a": [Fail(error="rate limited", retry_after=4), "x"], "b": Hang()}
    run = Driven(plan_of(TWO), script).start()
    while not run.state.retrying:
        run.step()
    found = standing_of(run.state).run
    assert found.says == "'b' is running; 'a': attempt 1 of 3 failed (rate limited); tries again"
    assert found.at == run.state.now + 4


def test_a_run_that_nobody_drives_says_so() -> None:
    run = Driven(plan_of(TWO), {"a": Hang(), "b": Hang()}).start()
    found = standing_of(run.state, is_interrupted=True)
    assert found.run.says == "No process drives this run: resume it to continue"
    assert "process that drove the run ended" in found.steps[StepId("a")].says


def test_a_run_that_has_ended_says_nothing() -> None:
    found = standing_of(drive(TWO).state)
    assert (found.run.says, found.steps) == ("", {})
