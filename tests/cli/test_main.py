"""The command line as a whole: which of its words are options, and which are text."""

from pathlib import Path

import pytest

from support.background_runs import GATED, journal, ran
from support.cli import stretto, write

UNTRUSTED = {"STRETTO_TRUST": "0"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Its settings name a model, which only counts once they are trusted."""
    write(tmp_path, "stretto.yaml", "model: scripted:script.yaml\n")
    write(tmp_path, "script.yaml", "default: of the folder\n")
    return tmp_path


def test_trust_counts_wherever_it_stands_among_the_options(folder: Path) -> None:
    for words in (("--trust", "task", "writer", "hi"), ("task", "writer", "-q", "--trust", "hi")):
        said = stretto(folder, *words, env=UNTRUSTED)
        assert (said.code, said.out) == (0, "of the folder\n"), said


def test_trust_after_two_dashes_is_a_text_and_trusts_nothing(folder: Path) -> None:
    for text in ("--trust", "--json"):
        said = stretto(folder, "task", "writer", "--", text, env=UNTRUSTED)
        assert "of the folder" not in said.out, said
    said = stretto(folder, "task", "writer", "--trust", "--json", "--", "--trust", env=UNTRUSTED)
    assert (said.code, '"prompt":"--trust"' in said.out) == (0, True), said


def test_trust_as_the_value_of_an_option_is_a_text_and_trusts_nothing(tmp_path: Path) -> None:
    run_id = ran(tmp_path, GATED)["run_id"]
    said = stretto(tmp_path, "cancel", run_id, "--reason", "--trust")
    assert said.code == 0, said
    assert any(event.get("reason") == "--trust" for event in journal(tmp_path, run_id))


def test_a_short_option_with_others_before_it_takes_trust_as_its_value(folder: Path) -> None:
    words = ("chat", "-qp", "--trust", "--model", "scripted:script.yaml")
    said = stretto(folder, *words, env=UNTRUSTED)
    assert (said.code, said.out) == (0, "of the folder\n"), said


def test_a_short_option_that_holds_its_value_leaves_trust_an_option(folder: Path) -> None:
    recipe = "name: r\ninputs: [{name: topic}]\nsteps: [{id: a, subagent: writer, prompt: go}]\n"
    write(folder, "r.yaml", recipe)
    said = stretto(folder, "run", "r.yaml", "-qitopic=radio", "--trust", env=UNTRUSTED)
    assert (said.code, said.out) == (0, "of the folder\n"), said


def test_json_after_two_dashes_does_not_choose_how_an_error_is_told(tmp_path: Path) -> None:
    said = stretto(tmp_path, "report", "--", "--json")
    assert (said.code, said.out) == (2, "")
    assert "there is no run '--json'" in said.err
