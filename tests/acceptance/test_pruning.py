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
