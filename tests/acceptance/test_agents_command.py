"""`stretto agents`: who there is, where from, and whether they could work here."""

from pathlib import Path
from typing import Any

import pytest

from support.cli import refused, stretto, succeeded, write

MINE = """\
---
name: reviewer
description: Ours.
tools: [Read, Write]
model: openai:gpt-x
max_turns: 7
timeout: 90s
---
You review our way.
"""


def agents(folder: Path, *words: str, **env: str) -> dict[str, dict[str, Any]]:
    said = succeeded(stretto(folder, "agents", *words, "--json", env=env))
    return {each["name"]: each for each in said["agents"]}


def test_the_bundled_agents_are_listed_with_what_they_are(tmp_path: Path) -> None:
    found = agents(tmp_path, "list")
    assert found["researcher"]["layer"] == "bundled"
    assert found["researcher"]["posture"] == "read_only"
    assert found["worker"]["posture"] == "writer"
    assert "Bash" in found["worker"]["tools"]
    assert found["worker"]["description"]


def test_a_later_layer_shadows_an_earlier_one_and_says_so(tmp_path: Path) -> None:
    write(tmp_path, "home/agents/reviewer.md", "Mine.")
    write(tmp_path, ".claude/agents/reviewer.md", "Another tool's.")
    write(tmp_path, "agents/reviewer.md", MINE)
    mine = agents(tmp_path, "list")["reviewer"]
    assert mine["layer"] == "project"
    assert mine["file"] == "agents/reviewer.md"
    assert (mine["model"], mine["max_turns"], mine["timeout_seconds"]) == ("openai:gpt-x", 7, 90)
    assert mine["posture"] == "writer"
    assert [each["layer"] for each in mine["shadows"]] == ["bundled", "user", ".claude"]
    said = stretto(tmp_path, "agents", "list")
    assert "agents/reviewer.md shadows stretto:reviewer.md (bundled)" in said.out


def test_folders_of_the_settings_come_last(tmp_path: Path) -> None:
    write(tmp_path, "stretto.yaml", "agents: {dirs: [more]}\n")
    write(tmp_path, "agents/reviewer.md", "One.")
    write(tmp_path, "more/reviewer.md", "Two.")
    assert agents(tmp_path, "list")["reviewer"]["layer"] == "settings"


def test_agents_of_a_folder_that_is_not_trusted_are_not_listed(tmp_path: Path) -> None:
    write(tmp_path, "agents/mine.md", "Mine.")
    said = stretto(tmp_path, "agents", "list", "--json", env={"STRETTO_TRUST": ""})
    assert "mine" not in {each["name"] for each in said.json["agents"]}
    assert "stretto trust" in said.err


def test_a_broken_file_is_listed_with_its_problems(tmp_path: Path) -> None:
    write(tmp_path, "agents/odd.md", "---\ntool: [Read]\n---\nHello.")
    odd = agents(tmp_path, "list")["odd"]
    assert odd["ok"] is False
    assert [problem["code"] for problem in odd["problems"]] == ["RCP101"]
    said = stretto(tmp_path, "agents", "list")
    assert said.code == 0
    assert "1 problem in agents/odd.md" in said.out


def test_show_prints_the_definition_with_the_prompt(tmp_path: Path) -> None:
    write(tmp_path, "agents/reviewer.md", MINE)
    said = stretto(tmp_path, "agents", "show", "reviewer")
    assert said.code == 0
    for words in ("project: agents/reviewer.md", "Read, Write", "1m30s", "You review our way."):
        assert words in said.out
    shown = succeeded(stretto(tmp_path, "agents", "show", "reviewer", "--json"))["agent"]
    assert shown["prompt"] == "You review our way."


def test_show_of_a_broken_agent_shows_its_problems(tmp_path: Path) -> None:
    write(tmp_path, "agents/odd.md", "---\ntools: [Reed]\n---\nHello.")
    error = refused(stretto(tmp_path, "agents", "show", "odd", "--json"), "invalid_recipe")
    (problem,) = error["details"]["problems"]
    assert (problem["file"], problem["line"]) == ("agents/odd.md", 2)


def test_an_unknown_agent_is_guessed(tmp_path: Path) -> None:
    error = refused(stretto(tmp_path, "agents", "show", "reviewr", "--json"), "not_found")
    assert "reviewer" in error["details"]["hint"]


def test_control_characters_of_a_prompt_do_not_reach_the_terminal(tmp_path: Path) -> None:
    write(tmp_path, "agents/sly.md", b"Hello \xc2\x9b2J.\nSecond line.")
    said = stretto(tmp_path, "agents", "show", "sly")
    assert all(c.isprintable() or c == "\n" for c in said.out)


def test_check_finds_every_broken_file_and_exits_2(tmp_path: Path) -> None:
    write(tmp_path, "agents/odd.md", "---\ntool: [Read]\n---\nHello.")
    write(tmp_path, "agents/odder.yaml", "prompt: [")
    said = stretto(tmp_path, "agents", "check")
    assert said.code == 2
    assert "agents/odd.md:2:1" in said.out
    assert "agents/odder.yaml:1" in said.out
    error = refused(stretto(tmp_path, "agents", "check", "--json"), "invalid_recipe")
    assert {each["file"] for each in error["details"]["problems"]} == {
        "agents/odd.md",
        "agents/odder.yaml",
    }
    assert any(each["name"] == "worker" for each in error["details"]["agents"])


def test_check_of_some_names_leaves_the_others_alone(tmp_path: Path) -> None:
    write(tmp_path, "agents/odd.md", "---\ntool: [Read]\n---\nHello.")
    assert list(agents(tmp_path, "check", "reviewer")) == ["reviewer"]


LACKING = {
    "key": ("model: anthropic:claude-x", "ANTHROPIC_API_KEY"),
    "provider": ("model: nobody:x", "no known provider"),
    "fallback": ("fallback_models: [openai:gpt-x]", "OPENAI_API_KEY"),
    "cli": ("model: cli:claude", "not installed"),
    "mcp": ("tools: [mcp__files__read]", "there is no MCP server 'files'"),
    "search": ("tools: [Read, WebSearch]", "WebSearch has nothing to search with"),
}


@pytest.mark.parametrize(("line", "said"), LACKING.values(), ids=LACKING)
def test_what_is_missing_here_is_a_warning(tmp_path: Path, line: str, said: str) -> None:
    write(tmp_path, "agents/mine.md", f"---\n{line}\n---\nHello.")
    warnings = agents(tmp_path, "check", "mine")["mine"]["warnings"]
    assert any(said in f"{each['message']} {each['hint']}" for each in warnings), warnings


def test_what_is_there_is_no_warning(tmp_path: Path) -> None:
    write(tmp_path, "stretto.yaml", "mcp_servers: {files: {command: files}}\n")
    text = "---\nmodel: openai:gpt-x\ntools: [mcp__files__read, WebSearch]\n---\nHello."
    write(tmp_path, "agents/mine.md", text)
    env = {"OPENAI_API_KEY": "sk-none", "STRETTO_SEARCH_URL": "http://127.0.0.1:9/search"}
    assert agents(tmp_path, "check", "mine", **env)["mine"]["warnings"] == []


def test_a_command_that_nobody_allowed_is_a_warning(tmp_path: Path) -> None:
    write(tmp_path, "home/agents/mine.md", "---\nmodel: cli:sh -c true\n---\nHello.")
    project = tmp_path / "project"
    project.mkdir()
    env = {"STRETTO_TRUST": "", "STRETTO_HOME": str(tmp_path / "home")}
    warnings = agents(project, "check", "mine", **env)["mine"]["warnings"]
    assert "would start the command 'sh'" in warnings[0]["message"]


def test_a_tool_that_only_another_program_has_is_a_warning(tmp_path: Path) -> None:
    write(tmp_path, ".claude/agents/other.md", "---\ntools: Read, TodoWrite\n---\nHello.")
    said = stretto(tmp_path, "agents", "check", "other")
    assert said.code == 0
    assert "there is no tool 'TodoWrite'" in said.out


def test_a_sandbox_that_is_off_is_a_warning(tmp_path: Path) -> None:
    write(tmp_path, "stretto.yaml", "sandbox: off\n".replace("off", '"off"'))
    warnings = agents(tmp_path, "check", "worker")["worker"]["warnings"]
    assert "the sandbox is off" in warnings[0]["message"]


def test_bare_it_lists_and_flags_are_accepted_anywhere(tmp_path: Path) -> None:
    usual = stretto(tmp_path, "agents", "list", "--json")
    assert stretto(tmp_path, "agents", "--json") == usual
    assert stretto(tmp_path, "--json", "agents", "list") == usual
    assert "--json" in stretto(tmp_path, "agents", "--help").out
    refused(stretto(tmp_path, "agents", "lst", "--json"), "usage")
