"""Naming a run: `last`, the beginning or the end of its id, or nothing at all."""

from pathlib import Path

import pytest

from support.background_runs import CHAIN, GATED, MODEL, ran, run, stuck
from support.cli import refused, stretto, write


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    folder = tmp_path_factory.mktemp("handles")
    first = ran(folder, CHAIN, "default: first")["run_id"]
    second = ran(folder, CHAIN, "default: second")["run_id"]
    return folder, first, second


@pytest.mark.parametrize("handle", [(), ("last",)])
@pytest.mark.parametrize("command", ["output", "report", "logs", "events", "watch"])
def test_the_newest_run_is_meant(
    two_runs: tuple[Path, str, str], command: str, handle: tuple[str, ...]
) -> None:
    folder, _, second = two_runs
    said = stretto(folder, command, *handle)
    assert said.code == 0, said
    assert f"run {second} of chain, started " in said.err
    exact = stretto(folder, command, second)
    assert said.out == exact.out
    assert "started " not in exact.err.partition("of chain started")[0]


def test_a_part_of_an_id_is_enough(two_runs: tuple[Path, str, str]) -> None:
    folder, first, second = two_runs
    for id, answer in ((first, "first\n"), (second, "second\n")):
        for part in (id[:-1], id[-6:], id.rpartition("-")[2][:6]):
            assert stretto(folder, "output", part).out == answer, part
            assert stretto(folder, "plan", "--run", part).code == 0


def test_a_part_of_several_ids_lists_them(two_runs: tuple[Path, str, str]) -> None:
    folder, first, second = two_runs
    said = stretto(folder, "report", "20")
    assert said.code == 2
    assert "'20' is a part of the ids of 2 runs" in said.err
    assert first in said.err
    assert second in said.err
    refused(stretto(folder, "report", "20", "--json"), "usage")


def test_an_unknown_run_is_suggested(two_runs: tuple[Path, str, str]) -> None:
    folder, first, second = two_runs
    wrong = second[:-1] + ("0" if second[-1] != "0" else "1")
    said = stretto(folder, "report", wrong)
    assert said.code == 2
    assert f"there is no run '{wrong}'" in said.err
    assert f"did you mean '{second}'" in said.err
    assert f"the newest run of chain is {second}" in stretto(folder, "retry", "chain").err
    assert "stretto runs" in stretto(folder, "logs", "???").err
    assert first not in stretto(folder, "diff", "nothing").out


def test_a_single_word_may_be_a_step_of_the_newest_run(two_runs: tuple[Path, str, str]) -> None:
    folder, first, second = two_runs
    assert stretto(folder, "output", "b").out == "second\n"
    assert stretto(folder, "output", first[-6:], "b").out == "first\n"
    said = stretto(folder, "output", "last", "bb")
    assert (said.code, said.out) == (2, "")
    assert f"run {second} has no step 'bb'" in said.err


def test_without_runs_it_says_how_to_start_one(tmp_path: Path) -> None:
    for words in (["report"], ["output", "last"], ["report", "x"], ["retry"]):
        said = stretto(tmp_path, *words)
        assert said.code == 2
        assert "stretto run NAME" in said.err


def test_what_changes_a_run_names_it(tmp_path: Path) -> None:
    first = ran(tmp_path, CHAIN)["run_id"]
    said = stretto(tmp_path, "retry", *MODEL)
    assert said.code == 0
    assert f"run {first} of chain, started " in said.err
    again = stretto(tmp_path, "fork", "last", "--from", "c", "--json", *MODEL)
    assert again.code == 0
    assert stretto(tmp_path, "diff", first[-8:], "last").code == 0


def test_a_gate_is_found_by_its_step_and_refused_where_two_have_it(tmp_path: Path) -> None:
    first = ran(tmp_path, GATED)["run_id"]
    ran(tmp_path, CHAIN)
    said = stretto(tmp_path, "approve", "g", "--no-resume")
    assert said.code == 0, said
    assert f"run {first} of gated" in said.err
    assert "awaits approval" in stretto(tmp_path, "reject", "g").err
    second, third = (ran(tmp_path, GATED)["run_id"] for _ in range(2))
    said = stretto(tmp_path, "reject", "g")
    assert said.code == 2
    assert second in said.err
    assert third in said.err


def test_a_gate_is_found_by_its_run_where_no_other_step_awaits_approval(tmp_path: Path) -> None:
    run_id = ran(tmp_path, GATED)["run_id"]
    for handle in ("last", run_id, run_id[-6:]):
        said = stretto(tmp_path, "approve", handle, "--show")
        assert (said.code, f"run {run_id} of gated" in said.err) == (0, True), said
        assert "Step 'g' of gated awaits approval" in said.out
    assert stretto(tmp_path, "reject", "last", "--no-resume").out.startswith("rejected g\n")
    said = stretto(tmp_path, "approve", "last")
    assert (said.code, f"no step of run {run_id} awaits approval" in said.err) == (2, True)
    assert "stretto runs --status waiting" in said.err
    two = GATED.replace(
        "steps:", "steps:\n  - {id: h, subagent: writer, gate: human, prompt: x}", 1
    )
    ran(tmp_path, two)
    said = stretto(tmp_path, "approve", "last")
    assert (said.code, "name one of them: h, g" in said.err) == (2, True), said


def test_cancel_without_a_run_takes_the_only_one_that_has_not_ended(tmp_path: Path) -> None:
    ran(tmp_path, CHAIN)
    assert "every run has ended" in stretto(tmp_path, "cancel").err
    waiting = ran(tmp_path, GATED)["run_id"]
    ran(tmp_path, CHAIN)
    said = stretto(tmp_path, "cancel")
    assert said.code == 0
    assert f"asked run {waiting} to stop" in said.out
    ran(tmp_path, GATED)
    ran(tmp_path, GATED)
    assert "this may mean 2 runs" in stretto(tmp_path, "cancel").err


def test_a_finished_run_is_not_resumed_and_says_so(tmp_path: Path) -> None:
    run_id = ran(tmp_path, CHAIN)["run_id"]
    # Not even its model is needed.
    (tmp_path / "script.yaml").unlink()
    said = stretto(tmp_path, "resume", run_id)
    assert (said.code, said.out) == (0, "ok\n")
    assert f"run {run_id} is finished, there is nothing to resume" in said.err
    assert f"stretto retry {run_id}" in said.err
    run(tmp_path, CHAIN, "default: {fail: broken}")
    assert stretto(tmp_path, "resume", "last").code == 1


def test_a_run_that_another_process_drives_has_an_exit_code_of_its_own(tmp_path: Path) -> None:
    with stuck(tmp_path) as (_, run_id):
        said = stretto(tmp_path, "resume", run_id, *MODEL)
        assert said.code == 5
        assert f"stretto watch {run_id}" in said.err
    write(tmp_path, "script.yaml", "default: ok")


def test_what_is_neither_a_step_nor_a_run_is_told_as_both(
    two_runs: tuple[Path, str, str],
) -> None:
    folder, run_id, _ = two_runs
    said = stretto(folder, "diff", run_id, "nobody")
    assert said.code == 2
    assert f"run {run_id} has no step 'nobody', and there is no run 'nobody'" in said.err
    assert "its steps: " in said.err


@pytest.mark.parametrize(
    "words",
    ["prune RUN", "cancel RUN", "resume RUN", "report RUN", "output RUN g", "plan --run RUN",
     "approve RUN", "approve RUN g", "reject RUN", "capture RUN"],
)  # fmt: skip
def test_an_empty_word_means_no_run(tmp_path: Path, words: str) -> None:
    """As that of a shell's variable that is not set; the only run would fit it."""
    ran(tmp_path, GATED)
    given = ["" if word == "RUN" else word for word in words.split()]
    error = refused(stretto(tmp_path, *given, "--json"), "usage")
    assert error["message"].endswith(" is empty")
    (row,) = stretto(tmp_path, "runs", "--json").json["runs"]
    assert row["status"] == "waiting"
