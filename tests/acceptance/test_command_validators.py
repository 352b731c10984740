"""A command as a loop's validator: it sees the candidate's files, and only what passed is merged."""

from pathlib import Path

import pytest

import stretto
from stretto.report.model import Report
from stretto.workspaces.sandbox.sandbox import NoSandbox, find_sandbox

pytestmark = pytest.mark.skipif(
    isinstance(find_sandbox(), NoSandbox), reason="commands need a sandbox"
)
RECIPE = """
name: green
steps:
  - id: fix
    prompt: Mend it.
    posture: writer
    write_set: [code.txt]
    loop:
      agent: fixer
      validator: {run: 'cat > /dev/null; cat code.txt; grep -q "round 2" code.txt'}
      max_iterations: MOST
"""


def run(folder: Path, recipe: str) -> tuple[Report, list[str | None]]:
    """The agent writes which round it is; what it was told of the round before comes back."""
    heard = list[str | None]()

    def fixer(context: stretto.AgentContext, feedback: str | None, iteration: int) -> str:
        heard.append(feedback)
        assert context.workspace is not None
        (context.workspace / "code.txt").write_text(f"round {iteration}\n")
        return f"candidate {iteration}"

    (folder / "code.txt").write_text("broken\n")
    home = folder.parent / "home"
    report = stretto.run(recipe, folder=folder, home=home, agents={"fixer": fixer}, environ={})
    return report, heard


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_the_loop_goes_on_until_the_command_passes(work: Path) -> None:
    report, heard = run(work, RECIPE.replace("MOST", "5"))
    assert report.status == "complete", report.issues
    step = report.steps["fix"]
    assert step.output == "candidate 2"
    assert heard == [None, "exit code 1\nround 1"]
    assert step.validation == {"passed": True, "feedback": "round 2", "exit_code": 0}
    assert (work / "code.txt").read_text() == "round 2\n"


def test_what_never_passed_is_kept_and_not_merged(work: Path) -> None:
    report, _ = run(work, RECIPE.replace("MOST", "1"))
    assert report.status == "partial"
    step = report.steps["fix"]
    assert step.output == "candidate 1"
    assert "max iterations reached" in step.warnings
    assert "its change was not merged: the command never passed" in step.warnings
    assert step.changes is not None
    assert step.changes.files == 1
    assert not step.changes.is_merged
    assert (work / "code.txt").read_text() == "broken\n"


def test_a_validator_that_cannot_run_fails_the_step_at_once(work: Path) -> None:
    recipe = RECIPE.replace("MOST", "5").replace("cat > /dev/null;", "no-such-program &&")
    recipe = recipe.replace("cat code.txt; grep", "grep")
    report, heard = run(work, recipe)
    assert report.steps["fix"].status == "failed"
    assert len(heard) == 1
    assert "the validator cannot run" in (report.steps["fix"].error or "")
    assert (work / "code.txt").read_text() == "broken\n"


def test_the_candidate_is_on_stdin(work: Path) -> None:
    recipe = RECIPE.replace("MOST", "5")
    start, end = recipe.index("{run:"), recipe.index("\n", recipe.index("{run:"))
    recipe = recipe[:start] + "{run: 'grep -q \"candidate 3\"'}" + recipe[end:]
    report, heard = run(work, recipe)
    assert report.steps["fix"].output == "candidate 3"
    assert len(heard) == 3
