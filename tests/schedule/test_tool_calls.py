"""Tool calls that did not work are counted, told once per kind, and decide what a run claims."""

from stretto.events.attempts import AttemptId
from stretto.events.model import AttemptStarted, AttemptSucceeded, ChangesCollected, ToolEnded
from stretto.schedule.tool_calls import MOST_FAULTS
from stretto.vocabulary.names import AgentId, StepId
from stretto.vocabulary.statuses import RunStatus
from support.scheduling import Driven, plan_of

A = StepId("a")
READER = "name: r\nsteps: [{id: a, agent: worker, prompt: go}]\n"
WRITER = """
name: w
agents: {scribe: {prompt: Write., tools: [Read, Write, Bash]}}
steps: [{id: a, agent: scribe, prompt: go, write_set: [out/**]}]
"""


def working(recipe: str, *calls: tuple[str, str, str]) -> Driven:
    """A step that made these calls (tool, verdict, message) and then answered."""
    run = Driven(plan_of(recipe)).start()
    run.see(AttemptStarted(1, AttemptId(A, 1), AgentId("worker"), "key"))
    for number, (tool, verdict, message) in enumerate(calls, 1):
        run.see(ToolEnded(2, AttemptId(A, 1), number, tool, {}, verdict, 0, 0.1, message))
    run.see(AttemptSucceeded(3, AttemptId(A, 1), "Done."))
    return run


def unchanged(run: Driven) -> Driven:
    run.see(ChangesCollected(4, A, "kept", 0, 0, 0, True, is_unchanged=True))
    return run


def test_a_call_that_was_refused_or_failed_is_a_warning_with_its_reason():
    run = working(READER, ("Read", "ok", ""), ("Read", "error", "Error: there is no x.txt"))
    assert run.state.all_warnings == ("a: Read failed: there is no x.txt",)
    assert run.state.status is RunStatus.COMPLETE  # one of its calls worked


def test_equal_faults_are_told_once_and_counted():
    refused = ("Edit", "refused", "Refused: x.txt is outside")
    run = working(READER, ("Read", "ok", ""), *[refused] * 3)
    assert run.state.all_warnings == ("a: Edit was refused 3 times: x.txt is outside",)


def test_of_a_thousand_kinds_of_faults_some_are_named_and_the_rest_counted():
    run = working(READER, *(("Read", "error", f"no {n}") for n in range(MOST_FAULTS + 7)))
    warnings = run.state.all_warnings
    assert "a: 7 more tool calls were refused or failed" in warnings
    assert len(warnings) == MOST_FAULTS + 2  # and that none of them worked


def test_a_step_none_of_whose_calls_worked_leaves_the_run_partial():
    run = working(READER, ("mcp__x__y", "error", "the server is gone"))
    assert run.state.status is RunStatus.PARTIAL
    assert "a: none of its tool calls worked (1 made)" in run.state.all_warnings


def test_a_writer_that_changed_no_file_says_so():
    run = unchanged(working(WRITER, ("Read", "ok", "")))
    assert run.state.all_warnings == ("a: it is a writer, but changed no file",)
    assert run.state.status is RunStatus.COMPLETE  # perhaps there was nothing to change


def test_a_writer_that_only_says_that_it_has_written_is_not_believed():
    run = unchanged(working(WRITER))
    assert run.state.all_warnings == (
        "a: it is a writer, but made no tool call and changed no file",
    )


def test_a_writer_whose_write_was_refused_and_that_changed_nothing_leaves_the_run_partial():
    run = unchanged(working(WRITER, ("Read", "ok", ""), ("Write", "refused", "Refused: no")))
    assert run.state.status is RunStatus.PARTIAL


def test_a_failed_command_of_a_writer_that_had_nothing_to_write_is_only_a_warning():
    run = unchanged(working(WRITER, ("Read", "ok", ""), ("Bash", "error", "exit code 1")))
    assert run.state.status is RunStatus.COMPLETE
    assert "a: Bash failed: exit code 1" in run.state.all_warnings


def test_a_writer_of_a_run_without_a_workspace_says_that_nothing_was_written():
    run = Driven(plan_of(WRITER), workspace="").start().run()
    assert run.state.all_warnings == (
        "a: it is a writer, but this run has no workspace: no file changed",
    )


def test_a_journal_from_before_says_nothing_about_unchanged_files():
    run = working(WRITER)
    run.see(ChangesCollected(4, A, "", 0, 0, 0, False))
    assert run.state.all_warnings == ()
