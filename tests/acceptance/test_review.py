"""Propose, review, apply: a change is given to a reviewer, and merged when that says yes."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from stretto.testing.openai_script import Said, ToolCall
from stretto.testing.openai_server import serving
from support.background_runs import journal, lines
from support.cli import ROOT, stretto, write

WRITES = ToolCall("Write", {"file_path": "src/new.py", "content": "answer = 42\n"})


def reviewed(
    folder: Path, verdict: str, edit: tuple[str, str] = ("", ""), *words: str
) -> tuple[dict[str, Any], list[str]]:
    """The report of a run of the example, and the prompts that the model got."""
    write(folder, "src/old.py", "answer = 41\n")
    shutil.copy(ROOT / "examples/propose-review-apply.yaml", folder / "example.yaml")
    text = (folder / "example.yaml").read_text().replace(*edit)
    write(folder, "example.yaml", text)
    answers = [
        Said("", tool_calls=(WRITES,)),
        Said("Wrote it."),
        Said(verdict),
        Said("Something changed."),
    ]
    with serving(answers) as server:
        environ = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-loopback-0123456789"}
        said = stretto(
            folder, "run", "example.yaml", "-i", "task=Write it", "--json",
            "--model", "openai:m", *words, env=environ,
        )  # fmt: skip
        prompts = [json.dumps(request.body) for request in server.requests]
    return lines(said)[-1], prompts


def test_a_change_is_shown_to_the_reviewer_and_merged_when_it_is_approved(tmp_path: Path) -> None:
    report, prompts = reviewed(tmp_path, '{"approved": true, "reason": "fine"}')
    assert report["status"] == "complete", report
    assert "+answer = 42" in prompts[2]
    assert "src/new.py" in prompts[2]
    assert "src/new.py" in prompts[3]
    assert (tmp_path / "src/new.py").read_text() == "answer = 42\n"
    assert report["steps"]["propose"]["changes"]["merged"] is True
    rows = [row["type"] for row in journal(tmp_path, report["run_id"])]
    # Kept when it was proposed, merged before the next step began.
    assert rows.count("changes_collected") == 2
    assert rows.index("changes_collected") < len(rows) - rows[::-1].index("changes_collected")
    last_merge = len(rows) - 1 - rows[::-1].index("changes_collected")
    last_start = len(rows) - 1 - rows[::-1].index("attempt_started")
    assert last_merge < last_start


def test_a_change_that_is_not_approved_is_kept_and_can_be_applied(tmp_path: Path) -> None:
    report, _ = reviewed(tmp_path, '{"approved": false, "reason": "no"}')
    assert report["steps"]["announce"]["status"] == "skipped"
    assert report["steps"]["propose"]["changes"]["merged"] is False
    assert any("steps.review.output.approved == true is false" in w for w in report["warnings"])
    assert not (tmp_path / "src/new.py").exists()
    assert stretto(tmp_path, "apply", report["run_id"], "propose").code == 0
    assert (tmp_path / "src/new.py").exists()


@pytest.mark.parametrize("verdict", ["not JSON at all", '{"reason": "forgot to say"}'])
def test_a_review_that_fails_merges_nothing(tmp_path: Path, verdict: str) -> None:
    report, _ = reviewed(tmp_path, verdict)
    assert report["steps"]["review"]["status"] == "failed"
    assert report["steps"]["propose"]["changes"]["merged"] is False
    assert not (tmp_path / "src/new.py").exists()


def test_without_a_condition_the_success_of_the_step_is_enough(tmp_path: Path) -> None:
    without = ("    merge_when: steps.review.output.approved == true\n", "")
    report, _ = reviewed(tmp_path, '{"approved": false, "reason": "no"}', without)
    assert report["steps"]["propose"]["changes"]["merged"] is True
    assert (tmp_path / "src/new.py").exists()


def test_a_conflict_fails_the_step_that_it_was_merged_after(tmp_path: Path) -> None:
    # The step that reviews writes the same file first.
    recipe = """
name: both
agents: {w: {prompt: x, tools: [Write]}}
steps:
  - {id: a, agent: w, prompt: go, write_set: [x.txt], merge_back: after b}
  - {id: b, agent: w, prompt: go, write_set: [x.txt], depends_on: [a]}
"""
    write(tmp_path, "both.yaml", recipe)
    calls = [ToolCall("Write", {"file_path": "x.txt", "content": each}) for each in "12"]
    answers = [
        Said("", tool_calls=(calls[0],)),
        Said("ok"),
        Said("", tool_calls=(calls[1],)),
        Said("ok"),
    ]
    with serving(answers) as server:
        environ = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-loopback-0123456789"}
        said = stretto(tmp_path, "run", "both.yaml", "--json", "--model", "openai:m", env=environ)
    report = lines(said)[-1]
    assert "the change of step 'a' was not merged" in report["steps"]["b"]["error"]
    assert report["steps"]["b"]["changes"]["merged"] is True
    assert (tmp_path / "x.txt").read_text() == "2"
