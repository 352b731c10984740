"""A command reads a run's journal into a state once, and has one event loop."""

from pathlib import Path

import pytest

from support.call_counts import count_calls
from support.cli import stretto, write

RECIPE = """\
name: two
steps:
  - id: look
    subagent: writer
    prompt: Look.
  - id: write
    subagent: writer
    prompt: "Write: {{steps.look.output}}"
"""
RUN = ("run", "two.yaml", "--model", "scripted:replies.yaml")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "two.yaml", RECIPE)
    write(tmp_path, "replies.yaml", "default: fine")
    return tmp_path


def events_of(folder: Path) -> int:
    """How many events the journal of the last run holds."""
    return len(stretto(folder, "events", "--json").out.splitlines())


def test_a_run_folds_each_event_once_and_reports_from_that_state(folder: Path) -> None:
    counts = count_calls(folder, *RUN)
    assert counts == {"fold": 1, "advance": events_of(folder), "loop": 1}


@pytest.mark.parametrize("words", [["report"], ["report", "--json"], ["output"], ["watch"]])
def test_whatever_shows_a_run_folds_its_journal_once(folder: Path, words: list[str]) -> None:
    stretto(folder, *RUN)
    assert count_calls(folder, *words) == {"fold": 1, "advance": events_of(folder), "loop": 1}


@pytest.mark.parametrize("words", [["report", "--format", "html", "-o", "page.html"], ["logs"]])
def test_prompts_cost_one_more_fold(folder: Path, words: list[str]) -> None:
    # They are in no event: what shows them renders them again, from the state before each attempt.
    stretto(folder, *RUN)
    assert count_calls(folder, *words) == {"fold": 2, "advance": 2 * events_of(folder), "loop": 1}


@pytest.mark.parametrize("words", [["runs"], ["retry", *RUN[2:]], ["doctor"], ["prune"]])
def test_a_command_has_one_event_loop(folder: Path, words: list[str]) -> None:
    stretto(folder, *RUN)
    assert count_calls(folder, *words)["loop"] == 1


@pytest.mark.parametrize("words", [["validate", "two.yaml"], ["plan", "two.yaml"], ["list"]])
def test_what_only_reads_recipes_has_no_event_loop_and_no_state(
    folder: Path, words: list[str]
) -> None:
    assert count_calls(folder, *words) == {}
