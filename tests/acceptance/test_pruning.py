"""What runs that were killed, cancelled or timed out leave behind, and who removes it."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stretto.testing.openai_script import Asked, Hang, Said, ServerAnswer, ToolCall
from stretto.testing.openai_server import OpenAIServer, serving
from support.background_runs import lines
from support.cli import environment, stretto, write

RECIPE = """
name: one
agents: {{writer: {{prompt: Write., tools: [Write]}}}}
{keys}
steps: [{{id: a, agent: writer, prompt: go, write_set: [a.txt]}}]
"""


def hanging(asked: Asked) -> ServerAnswer:
    """Writes a file, and then says nothing for long."""
    if len(asked.messages) > 2:
        return Hang()
    return Said("", tool_calls=(ToolCall("Write", {"file_path": "a.txt", "content": "x\n"}),))


def environ_for(server: OpenAIServer) -> dict[str, str]:
    return {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-loopback-0123456789"}


def started(folder: Path, server: OpenAIServer) -> "subprocess.Popen[bytes]":
    """A run whose writer is at work in its copy."""
    child = subprocess.Popen(
        [sys.executable, "-m", "stretto", "run", "one.yaml", "--json", "--model", "openai:m"],
        cwd=folder,
        env=environment(folder, environ_for(server)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while server.asked_times < 2:
        assert child.poll() is None
        time.sleep(0.02)
    return child


def copies(folder: Path) -> list[Path]:
    return sorted((folder / "home/workspaces").glob("*/*/copy-*"))


def run_id(folder: Path) -> str:
    found: str = stretto(folder, "runs", "--json").json["runs"][0]["run_id"]
    return found


def test_a_run_that_timed_out_leaves_no_copy(tmp_path: Path) -> None:
    write(tmp_path, "one.yaml", RECIPE.format(keys="timeout: 2s"))
    with serving(hanging) as server:
        words = ("run", "one.yaml", "--json", "--model", "openai:m")
        said = stretto(tmp_path, *words, env=environ_for(server))
    assert lines(said)[-1]["status"] != "complete"
    assert copies(tmp_path) == []


@pytest.mark.parametrize("is_driven", [True, False])
def test_a_run_that_was_cancelled_leaves_no_copy(tmp_path: Path, is_driven: bool) -> None:
    write(tmp_path, "one.yaml", RECIPE.format(keys=""))
    with serving(hanging) as server:
        child = started(tmp_path, server)
        if not is_driven:
            child.kill()
            child.wait()
        assert copies(tmp_path)
        assert stretto(tmp_path, "cancel", run_id(tmp_path)).code == 0
        if is_driven:
            child.wait(timeout=60)
    assert copies(tmp_path) == []


def test_prune_removes_what_is_left_and_nothing_that_a_run_needs(tmp_path: Path) -> None:
    write(tmp_path, "one.yaml", RECIPE.format(keys=""))
    with serving(hanging) as server:
        child = started(tmp_path, server)
        child.kill()
        child.wait()
    needed = copies(tmp_path)
    home = tmp_path / "home/workspaces"
    (home / "trash/0123").mkdir(parents=True)
    (home / "of-another-time/a/copy-1").mkdir(parents=True)  # the journal does not know that run
    tried = stretto(tmp_path, "prune", "--dry-run", "--json").json
    assert tried["removed"] == [str(home / "trash/0123")]
    assert (home / "trash/0123").exists()
    assert stretto(tmp_path, "prune", "--json").json["removed"] == tried["removed"]
    assert not (home / "trash/0123").exists()
    assert copies(tmp_path) == sorted([*needed, home / "of-another-time/a/copy-1"])
    assert "nothing is left over" in stretto(tmp_path, "prune").out


def test_the_next_run_removes_what_an_ended_one_has_left(tmp_path: Path) -> None:
    write(tmp_path, "one.yaml", RECIPE.format(keys=""))
    call = ToolCall("Write", {"file_path": "a.txt", "content": "x\n"})
    script = [Said("", tool_calls=(call,)), Said("Done.")]
    words = ("run", "one.yaml", "--json", "--model", "openai:m")
    with serving(script) as server:
        first = stretto(tmp_path, *words, env=environ_for(server))
        ended = lines(first)[-1]["run_id"]
        trash = tmp_path / "home/workspaces/trash/0123"
        trash.mkdir(parents=True)
        assert stretto(tmp_path, "resume", ended, env=environ_for(server)).code == 0
        assert not trash.exists()
    left = tmp_path / "home/workspaces" / ended / "a/copy-1"
    left.mkdir()
    with serving(script) as server:
        stretto(tmp_path, *words, env=environ_for(server))
    assert not left.exists()
    assert (left.parent / "change").is_dir()


CUT = """
import os, sys
from pathlib import Path
from stretto.workspaces.change import open_changes
from stretto.workspaces.transaction import merge_back

artifact, workspace, home = map(Path, sys.argv[1:])
merge_back(open_changes(artifact), workspace, home, lambda at: at == "synced" and os._exit(0))
"""


@pytest.mark.parametrize("by", ["run", "prune"])
def test_a_merge_that_met_an_edit_after_a_crash_leaves_nothing_and_is_told(
    tmp_path: Path, by: str
) -> None:
    write(tmp_path, "a.txt", "mine\n")
    write(tmp_path, "one.yaml", RECIPE.format(keys="").replace("go,", "go, merge_back: manual,"))
    call = ToolCall("Write", {"file_path": "a.txt", "content": "by the step\n"})
    words = ("run", "one.yaml", "--json", "--model", "openai:m")
    with serving([Said("", tool_calls=(call,)), Said("Done.")]) as server:
        report = lines(stretto(tmp_path, *words, env=environ_for(server)))[-1]
    artifact = report["steps"]["a"]["changes"]["artifact"]
    cut = [sys.executable, "-c", CUT, artifact, str(tmp_path), str(tmp_path / "home")]
    subprocess.run(cut, check=True)
    write(tmp_path, "a.txt", "edited since\n")
    if by == "run":
        with serving(Said("Done.")) as server:
            told = stretto(tmp_path, *words, env=environ_for(server)).out
    else:
        told = stretto(tmp_path, "prune", "--json").out
    assert "a.txt" in told
    assert (tmp_path / "a.txt").read_text() == "edited since\n"
    assert list(tmp_path.glob(".stretto-merge-*")) == []
    (kept,) = (tmp_path / "home/merges").glob("*/kept/*/a.txt")
    assert kept.read_text() == "mine\n"
    assert str(kept.parent) in told


def test_a_terminal_that_is_closed_leaves_a_run_that_goes_on(tmp_path: Path) -> None:
    write(tmp_path, "one.yaml", RECIPE.format(keys=""))
    with serving(hanging) as server:
        child = started(tmp_path, server)
        child.send_signal(signal.SIGHUP)
        assert child.wait(timeout=60) == 130
    assert stretto(tmp_path, "runs", "--json").json["runs"][0]["status"] == "interrupted"


SCRIPT = "default: Fine.\n"
ONE = "name: one\nsteps: [{id: a, subagent: researcher, prompt: go}]\n"
GATED = "name: gated\nsteps: [{id: a, subagent: researcher, gate: human, prompt: go}]\n"
MODEL = ("--model", "scripted:script.yaml")


def run_of(folder: Path, recipe: str, *words: str) -> str:
    found: str = lines(stretto(folder, "run", recipe, "--json", *MODEL, *words))[-1]["run_id"]
    return found


def known(folder: Path) -> list[str]:
    return [row["run_id"] for row in stretto(folder, "runs", "--json").json["runs"]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("one.yaml", ONE), ("gated.yaml", GATED), ("script.yaml", SCRIPT)):
        write(tmp_path, name, text)
    return tmp_path


def test_prune_removes_finished_runs_beyond_a_number_and_never_a_waiting_one(folder: Path) -> None:
    waiting = run_of(folder, "gated.yaml")
    first, second, third = (run_of(folder, "one.yaml") for _ in range(3))
    assert "nothing is left over" in stretto(folder, "prune").out
    assert stretto(folder, "prune", "--older-than", "1h", "--json").json["runs"] == []
    tried = stretto(folder, "prune", "--keep", "1", "--dry-run")
    assert f"would remove 2 runs: {second}, {first}" in tried.out
    assert known(folder) == [third, second, first, waiting]
    assert stretto(folder, "prune", "--keep", "1", "--json").json["runs"] == [second, first]
    assert known(folder) == [third, waiting]
    assert stretto(folder, "report", first).code == 2
    assert stretto(folder, "prune", "--older-than", "1ms", "--json").json["runs"] == [third]
    assert known(folder) == [waiting]
    assert stretto(folder, "approve", waiting, "a").code == 0
    assert stretto(folder, "runs").err == ""  # and no loss is suspected


def test_a_run_that_is_named_is_removed_unless_it_may_go_on(folder: Path) -> None:
    waiting, ended = run_of(folder, "gated.yaml"), run_of(folder, "one.yaml", "--open")
    assert (folder / f"home/reports/{ended}.html").exists()
    said = stretto(folder, "prune", waiting)
    assert said.code == 2
    assert f"stretto cancel {waiting}" in said.err
    assert stretto(folder, "prune", "nonsense").code == 2
    assert stretto(folder, "prune", "last", "--keep", "1").code == 2
    assert f"removed 1 run: {ended}" in stretto(folder, "prune", "last").out
    assert known(folder) == [waiting]
    assert not (folder / f"home/reports/{ended}.html").exists()


def test_every_run_applies_the_retention_of_the_user_and_no_project_has_one(folder: Path) -> None:
    write(folder, "home/stretto.yaml", "retention: {runs: 2, age: 90d}\n")
    made = [run_of(folder, "one.yaml") for _ in range(4)]
    assert known(folder) == made[:0:-1]  # two that had ended when the last one began, and that one
    assert stretto(folder, "prune", "--json").json["runs"] == [made[1]]
    write(folder, "stretto.yaml", "retention: {runs: 0}\n")
    said = stretto(folder, "runs")
    assert said.code == 2
    assert "CFG001 a project cannot set retention" in said.err


def test_a_change_that_is_not_merged_keeps_its_run(tmp_path: Path) -> None:
    write(
        tmp_path, "one.yaml", RECIPE.format(keys="").replace("a.txt]", "a.txt], merge_back: manual")
    )
    call = ToolCall("Write", {"file_path": "a.txt", "content": "x\n"})
    words = ("run", "one.yaml", "--json", "--model", "openai:m")
    with serving([Said("", tool_calls=(call,)), Said("Done.")]) as server:
        made = lines(stretto(tmp_path, *words, env=environ_for(server)))[-1]["run_id"]
    change = tmp_path / "home/workspaces" / made / "a/change"
    assert change.is_dir()
    assert stretto(tmp_path, "prune", "--keep", "0", "--json").json["kept"] == [made]
    assert "not merged" in stretto(tmp_path, "prune", "--keep", "0").out
    assert change.is_dir()
    assert stretto(tmp_path, "apply", made, "a").code == 0
    assert stretto(tmp_path, "prune", "--keep", "0", "--json").json["runs"] == [made]
    assert not change.exists()
    assert (tmp_path / "a.txt").read_text() == "x\n"
