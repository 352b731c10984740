"""An agent of a folder that nobody trusts is not replaced by another of its name without a word."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from stretto import NotTrusted, Stretto
from support.background_runs import CHAIN, MODEL
from support.cli import refused, stretto, talk, write

STRANGE = {"STRETTO_TRUST": ""}
OWN = "---\ndescription: mine\n---\nYou look at news.\n"
SERVER = "mcp_servers:\n  tickets: {command: tickets-mcp, args: [--all], tools: [find]}\n"
ASKS_SERVER = """\
name: asks
agents: {clerk: {prompt: x, tools: [mcp__tickets__find], model: "cli:claude"}}
steps: [{id: a, subagent: clerk, prompt: x}]
"""


def folder_with(tmp_path: Path, agent: str) -> Path:
    write(tmp_path, f"agents/{agent}.md", OWN)
    write(tmp_path, "recipe.yaml", CHAIN)
    write(tmp_path, "script.yaml", "default: ok")
    return tmp_path


def test_a_namesake_of_a_bundled_agent_stops_the_run(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "researcher")
    said = stretto(folder, "run", "recipe.yaml", *MODEL, env=STRANGE)
    assert (said.code, said.out) == (4, "")
    assert "this folder has its own researcher, and is not trusted" in said.err
    assert "stretto trust" in said.err
    assert stretto(folder, "runs", "--json").json["runs"] == []
    as_json = stretto(folder, "run", "recipe.yaml", "--json", *MODEL, env=STRANGE)
    assert as_json.json["error"]["kind"] == "not_trusted"
    assert stretto(folder, "trust", env=STRANGE).code == 0
    assert stretto(folder, "run", "recipe.yaml", *MODEL, env=STRANGE).code == 0


def test_python_refuses_it_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STRETTO_TRUST", raising=False)
    folder = folder_with(tmp_path, "researcher")

    async def main() -> None:
        async with Stretto(folder, home=folder / "home") as opened:
            await opened.start(folder / "recipe.yaml", model=f"scripted:{folder / 'script.yaml'}")

    with pytest.raises(NotTrusted, match="its own researcher"):
        asyncio.run(main())


def test_whoever_says_no_is_told_that_another_agent_works(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "researcher")
    asked = [("Trust this folder", "n\n")]
    code, screen, _ = talk(folder, ["run", "recipe.yaml", *MODEL], asked, STRANGE)
    assert code == 0
    told = " ".join(screen.split())
    assert "another agent of that name would work in its place" in told


def test_an_agent_that_the_recipe_does_not_use_or_defines_itself_stops_nothing(
    tmp_path: Path,
) -> None:
    folder = folder_with(tmp_path, "antagonist")
    assert stretto(folder, "run", "recipe.yaml", *MODEL, env=STRANGE).code == 0
    folder = folder_with(tmp_path / "b", "researcher")
    write(folder, "recipe.yaml", CHAIN + "agents: {researcher: {prompt: x}}\n")
    said = stretto(folder, "run", "recipe.yaml", *MODEL, env=STRANGE)
    assert said.code == 0, said


def test_the_question_lists_what_would_be_trusted(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "researcher")
    write(folder, "stretto.yaml", SERVER)
    _, screen, _ = talk(folder, ["list"], [("Trust this folder", "n\n")], STRANGE)
    assert "starts MCP server 'tickets': tickets-mcp --all" in screen
    assert "agents: researcher" in screen
    said = stretto(folder, "trust", "--list", "--json", env=STRANGE).json
    assert said["offers"] == [
        "starts MCP server 'tickets': tickets-mcp --all",
        "agents: researcher",
    ]


def test_the_commands_that_agents_could_start_are_listed(tmp_path: Path) -> None:
    write(tmp_path, "stretto.yaml", "cli_commands: [tidy-agent, other-agent]\n")
    offers = stretto(tmp_path, "trust", "--list", "--json", env=STRANGE).json["offers"]
    commands = ("tidy-agent", "other-agent")
    assert offers == [f"lets agents start the command: {each}" for each in commands]
    _, screen, _ = talk(tmp_path, ["list"], [("Trust this folder", "n\n")], STRANGE)
    assert "lets agents start the command: tidy-agent" in screen


def test_a_server_of_an_untrusted_folder_is_not_called_unknown(tmp_path: Path) -> None:
    write(tmp_path, "stretto.yaml", SERVER)
    write(tmp_path, "recipe.yaml", ASKS_SERVER)
    said = stretto(tmp_path, "run", "recipe.yaml", "--json", env=STRANGE)
    assert "not used until you trust it" in said.err
    problems = refused(replace(said, err=""), "not_ready")["details"]["problems"]
    texts = [each["message"] for each in problems]
    about = [text for text in texts if "tickets" in text]
    assert about == [
        "agent 'clerk': the MCP server 'tickets' is not used: its folder is not trusted"
    ]
