"""An answer that is reused brings the files that it speaks of, or the step is done anew."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from stretto.testing.openai_script import Asked, Said, ServerAnswer, Status, ToolCall
from stretto.testing.openai_server import OpenAIServer, serving
from support.background_runs import lines
from support.cli import stretto, write

RECIPE = """
name: two
agents:
  writer: {{prompt: Write., tools: [Write]}}
  reader: {{prompt: Read.}}
steps:
  - {{id: a, agent: writer, prompt: "write it", write_set: [a.txt], {keys}}}
  - {{id: b, agent: reader, prompt: "go on after {{{{steps.a.output}}}}"}}
"""


class Model:
    """Writes a.txt, then says so. The second step fails as long as `is_failing`."""

    def __init__(self) -> None:
        self.writes = 0
        self.is_failing = False

    def __call__(self, asked: Asked) -> ServerAnswer:
        told = json.dumps(asked.messages)
        if "go on after" in told:
            return Status(400, "not now") if self.is_failing else Said("Went on.")
        if asked.messages[-1]["role"] == "tool":
            return Said("I wrote a.txt.")
        self.writes += 1
        call = ToolCall("Write", {"file_path": "a.txt", "content": "by the step\n"})
        return Said("", tool_calls=(call,))


@contextmanager
def project(folder: Path, keys: str = "") -> Iterator[tuple[Model, OpenAIServer]]:
    write(folder, "a.txt", "base\n")
    write(folder, "two.yaml", RECIPE.format(keys=keys))
    model = Model()
    with serving(model) as server:
        yield model, server


def ran(folder: Path, server: OpenAIServer, *words: str) -> dict[str, Any]:
    environ = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-loopback-0123456789"}
    printed = lines(stretto(folder, *words, "--json", "--model", "openai:m", env=environ))
    assert printed[-1].get("type") == "report", printed
    report: dict[str, Any] = printed[-1]
    return report


def content(folder: Path) -> str:
    return (folder / "a.txt").read_text()


def test_a_retry_brings_the_files_back(tmp_path: Path) -> None:
    with project(tmp_path) as (model, server):
        model.is_failing = True
        first = ran(tmp_path, server, "run", "two.yaml")
        assert content(tmp_path) == "by the step\n"
        write(tmp_path, "a.txt", "base\n")  # git checkout, say
        model.is_failing = False
        again = ran(tmp_path, server, "retry", first["run_id"])
    assert again["status"] == "complete"
    assert (model.writes, content(tmp_path)) == (1, "by the step\n")
    assert again["steps"]["a"]["changes"]["merged"]
    assert "+by the step" in stretto(tmp_path, "diff", again["run_id"], "a").out


def test_what_is_there_already_is_no_conflict(tmp_path: Path) -> None:
    with project(tmp_path) as (model, server):
        model.is_failing = True
        first = ran(tmp_path, server, "run", "two.yaml")
        model.is_failing = False
        again = ran(tmp_path, server, "retry", first["run_id"])
    assert (again["status"], model.writes) == ("complete", 1)
    assert content(tmp_path) == "by the step\n"


def _gone(home: Path) -> None:
    for artifact in home.glob("workspaces/*/a/change"):
        shutil.rmtree(artifact)


def _damaged(home: Path) -> None:
    for pack in home.glob("workspaces/*/a/change/objects/pack"):
        pack.write_bytes(b"\0" * pack.stat().st_size)


@pytest.mark.parametrize("damage", [_gone, _damaged])
def test_without_the_change_the_step_is_done_anew(tmp_path: Path, damage: Any) -> None:
    with project(tmp_path) as (model, server):
        model.is_failing = True
        first = ran(tmp_path, server, "run", "two.yaml")
        write(tmp_path, "a.txt", "base\n")
        damage(tmp_path / "home")
        model.is_failing = False
        again = ran(tmp_path, server, "retry", first["run_id"])
    assert (again["status"], model.writes) == ("complete", 2)
    assert content(tmp_path) == "by the step\n"


def test_a_change_that_no_longer_applies_is_made_anew(tmp_path: Path) -> None:
    with project(tmp_path) as (model, server):
        model.is_failing = True
        first = ran(tmp_path, server, "run", "two.yaml")
        write(tmp_path, "a.txt", "something else\n")
        model.is_failing = False
        again = ran(tmp_path, server, "retry", first["run_id"])
    assert (again["status"], model.writes) == ("complete", 2)
    assert content(tmp_path) == "by the step\n"


def test_the_cache_brings_the_files_too(tmp_path: Path) -> None:
    with project(tmp_path, "cache: true") as (model, server):
        ran(tmp_path, server, "run", "two.yaml")
        for base in ("base\n", "base\n"):
            write(tmp_path, "a.txt", base)
            again = ran(tmp_path, server, "run", "two.yaml")
            assert again["steps"]["a"]["changes"]["merged"]
            assert (model.writes, content(tmp_path)) == (1, "by the step\n")
        _gone(tmp_path / "home")
        write(tmp_path, "a.txt", "base\n")
        ran(tmp_path, server, "run", "two.yaml")
    assert (model.writes, content(tmp_path)) == (2, "by the step\n")


def test_a_manual_merge_is_kept_again_and_can_be_applied(tmp_path: Path) -> None:
    with project(tmp_path, "merge_back: manual") as (model, server):
        model.is_failing = True
        first = ran(tmp_path, server, "run", "two.yaml")
        model.is_failing = False
        again = ran(tmp_path, server, "retry", first["run_id"])
    assert (again["status"], model.writes) == ("complete", 1)
    assert content(tmp_path) == "base\n"
    assert stretto(tmp_path, "apply", again["run_id"], "a").code == 0
    assert content(tmp_path) == "by the step\n"


def test_a_fork_brings_the_files_back(tmp_path: Path) -> None:
    with project(tmp_path) as (model, server):
        first = ran(tmp_path, server, "run", "two.yaml")
        write(tmp_path, "a.txt", "base\n")
        ran(tmp_path, server, "fork", first["run_id"], "--from", "b")
    assert (model.writes, content(tmp_path)) == (1, "by the step\n")


@pytest.mark.parametrize("keys", ["workspace_mode: shared", "workspace_mode: shared, cache: true"])
def test_a_shared_writer_whose_files_are_gone_is_done_anew(tmp_path: Path, keys: str) -> None:
    with project(tmp_path, keys) as (model, server):
        model.is_failing = "cache" not in keys
        first = ran(tmp_path, server, "run", "two.yaml")
        write(tmp_path, "a.txt", "base\n")
        model.is_failing = False
        words = ("run", "two.yaml") if "cache" in keys else ("retry", first["run_id"])
        ran(tmp_path, server, *words)
    assert (model.writes, content(tmp_path)) == (2, "by the step\n")


def test_a_shared_writer_whose_files_are_there_is_not_done_again(tmp_path: Path) -> None:
    with project(tmp_path, "workspace_mode: shared") as (model, server):
        model.is_failing = True
        run = ran(tmp_path, server, "run", "two.yaml")
        for _ in range(2):
            run = ran(tmp_path, server, "retry", run["run_id"])
            assert run["steps"]["a"]["status"] == "succeeded"
    assert (model.writes, content(tmp_path)) == (1, "by the step\n")
