"""`stretto capture` from outside: two tasks, a recipe of them, and the recipe run with other inputs."""

import json
from pathlib import Path

import pytest

from support.cli import Said, refused, stretto, write

FOUND = "Acme Corp sells looms to weavers, and has forty people in Ghent."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "found.yaml", json.dumps({"default": FOUND}))
    write(tmp_path, "line.yaml", "default: A line on looms.")
    return tmp_path


def task(folder: Path, agent: str, prompt: str, script: str) -> str:
    said = stretto(folder, "task", agent, prompt, "--model", f"scripted:{script}.yaml", "--json")
    found: str = json.loads(said.out.splitlines()[-1])["run_id"]
    return found


def two_tasks(folder: Path) -> list[str]:
    first = task(folder, "researcher", "Research the company Acme Corp.", "found")
    return [first, task(folder, "writer", f"A line on Acme Corp. Facts:\n  {FOUND}", "line")]


def prompts(said: Said) -> list[str]:
    entries = [json.loads(line) for line in said.out.splitlines()]
    return [each["text"] for each in entries if each["kind"] == "prompt"]


def test_tasks_become_a_workflow_that_runs_with_other_inputs(folder: Path) -> None:
    runs = two_tasks(folder)
    said = stretto(folder, "capture", *runs, "--save", "line")
    assert said.code == 0, said
    assert "{{inputs.company}}" in said.out
    assert "{{steps.researcher.output}}" in said.out
    assert "[1. researcher] --> [2. writer]" in said.err
    assert "replayed: the same steps were asked the same" in said.err
    words = ("run", "line", "-i", "company=Initech", "--model", "scripted:script.yaml", "-q")
    write(
        folder, "script.yaml", "replies: {researcher: Initech makes spindles., writer: Spindles!}"
    )
    assert stretto(folder, *words).out == "Spindles!\n"
    assert prompts(stretto(folder, "logs", "--json")) == [
        "Research the company Initech.",
        "A line on Initech. Facts:\n  Initech makes spindles.",
    ]
    again = stretto(folder, "capture", *runs, "--save", "another", "--json").json
    assert again["ok"] is True
    assert again["saved"]["same_as"] == "line"
    assert not (folder / "home/workflows/another.yaml").exists()


def test_a_run_that_a_draft_became_is_captured_as_it_was_drafted(folder: Path) -> None:
    drafted = """\
name: lines
inputs: [{name: company, default: Acme}]
steps:
  - {id: look, subagent: researcher, prompt: "Look at {{inputs.company}}."}
  - {id: good, loop: {agent: writer, validator: reviewer, max_iterations: 2}, prompt: "Say {{steps.look.output}}"}
"""
    replies = {"look": FOUND, "good/check.1": {"reply": {"passed": True}}}
    text = json.dumps({"default": "A line.", "replies": replies, "draft": drafted})
    write(folder, "script.yaml", text)
    ran = stretto(
        folder, "draft", "look, then say", "--yes", "--model", "scripted:script.yaml", "--json"
    )
    assert ran.code == 0, ran
    said = stretto(folder, "capture", "last", "--save", "kept")
    assert (said.code, said.out) == (0, drafted), said
    kept = (folder / "home/workflows/kept.yaml").read_text(encoding="utf-8")
    assert kept == drafted.replace("name: lines", "name: kept")
    refusal = stretto(folder, "capture", ran.json["draft"]["id"], "--json")
    assert "nothing of it has run" in refused(refusal, "usage")["message"]


def test_what_cannot_be_captured_says_why(folder: Path) -> None:
    first, second = two_tasks(folder)
    assert (
        "fewer than two" in refused(stretto(folder, "capture", first, "--json"), "usage")["message"]
    )
    wrong = stretto(folder, "capture", first, second, "-i", "x=Umbrella", "--json")
    assert "no prompt holds 'Umbrella'" in refused(wrong, "usage")["message"]
    refused(stretto(folder, "capture", "nothing", "--json"), "not_found")
    refused(stretto(folder, "capture", first, second, "--save", "../x", "--json"), "usage")
    mine = "name: line\nsteps: [{id: a, subagent: writer, prompt: Mine.}]\n"
    write(folder, "workflows/line.yaml", mine)
    taken = stretto(folder, "capture", first, second, "--save", "line", "--json")
    refused(taken, "exists")
    assert (folder / "workflows/line.yaml").read_text(encoding="utf-8") == mine
