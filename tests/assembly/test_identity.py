"""Who is behind a name: the same text only for the same model at the same place."""

from pathlib import Path

import pytest
from msgspec import structs

from stretto.assembly.identity import MachineIdentities
from stretto.config.settings import (
    BashSettings,
    Search,
    Settings,
    WorkspaceSettings,
    load_settings,
)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(tmp_path, {"STRETTO_HOME": str(tmp_path / "home")})


def model(name: str, settings: Settings, **environ: str) -> str:
    return MachineIdentities(settings, environ).of_model(name)


def test_a_model_at_another_url_is_another_model(settings: Settings) -> None:
    theirs = model("openai:gpt-4o", settings)
    ours = model("openai:gpt-4o", settings, OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert theirs != ours
    assert model("ollama:x", settings) != model("ollama:x", settings, OLLAMA_HOST="10.0.0.1")
    place = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
    assert model("anthropic:x", settings) != model("anthropic:x", settings, **place)


def test_names_that_mean_one_model_are_one(settings: Settings) -> None:
    assert model("gpt-4o", settings) == model("openai:gpt-4o", settings)
    assert model("openai-chat:gpt-4o", settings) == model("openai:gpt-4o", settings)
    assert model("embedded", settings) == model("local:smollm2", settings)


def test_the_key_of_a_provider_is_not_told_and_changes_nothing(settings: Settings) -> None:
    said = model("openai:gpt-4o", settings, OPENAI_API_KEY="sk-secret-0123456789")
    assert "secret" not in said
    assert said == model("openai:gpt-4o", settings)


def test_weights_of_ones_own_are_another_model_once_the_file_is(
    tmp_path: Path, settings: Settings
) -> None:
    file = tmp_path / "own.gguf"
    file.write_bytes(b"GGUF one")
    before = model(f"local:{file}", settings)
    assert before == model(f"local:{file}", settings)
    file.write_bytes(b"GGUF other")
    assert before != model(f"local:{file}", settings)


def test_a_command_is_another_model_once_its_script_is(tmp_path: Path, settings: Settings) -> None:
    script = tmp_path / "answer.py"
    script.write_text("print(1)")
    before = model("cli:python3 answer.py", settings, PATH="/usr/bin:/bin")
    assert before.startswith("cli:")
    assert before == model("cli:python3 answer.py", settings, PATH="/usr/bin:/bin")
    script.write_text("print(1, 2)")
    assert before != model("cli:python3 answer.py", settings, PATH="/usr/bin:/bin")


def test_a_name_that_nobody_can_ask_is_only_a_name(settings: Settings) -> None:
    for name in ("nobody", "cli:", "local:nothing", "openai:x"):
        assert model(name, settings, OPENAI_BASE_URL="no url" if name == "openai:x" else "")


def tool(name: str, settings: Settings) -> str:
    return MachineIdentities(settings, {}).of_tool(name)


def test_a_tool_is_another_once_it_is_configured_otherwise(
    tmp_path: Path, settings: Settings
) -> None:
    server = structs.replace(
        settings, mcp_servers={"s": {"command": "serve", "args": ["serve.py"]}}
    )
    other = structs.replace(settings, mcp_servers={"s": {"command": "serve", "args": ["--all"]}})
    assert tool("mcp__s__look", server) != tool("mcp__s__look", other)
    (tmp_path / "serve.py").write_text("x")
    assert tool("mcp__s__look", server) != tool("mcp__s__look", settings)
    networked = structs.replace(settings, bash=BashSettings(network=True))
    assert tool("Bash", networked) != tool("Bash", settings)
    assert tool("Bash", structs.replace(settings, sandbox="off")) != tool("Bash", settings)
    carrying = structs.replace(settings, workspace=WorkspaceSettings(carry=("lib",)))
    assert tool("Bash", carrying) != tool("Bash", settings)
    one, two = (structs.replace(settings, search=Search(f"http://{host}/")) for host in ("a", "b"))
    assert tool("WebSearch", one) != tool("WebSearch", two)
    assert tool("Read", one) == tool("Read", two) == ""


def test_what_a_program_is_given_of_the_environment_counts(settings: Settings) -> None:
    """But a key that was renewed asks for the same."""
    entry = {"url": "http://127.0.0.1:9/", "headers": {"X-Team": "${TEAM}", "X-Key": "${API_KEY}"}}
    server = {"s": entry}
    given = structs.replace(
        settings, mcp_servers=server, bash=BashSettings(environment=("TEAM", "API_KEY"))
    )

    def tools(**environ: str) -> list[str]:
        asked = MachineIdentities(given, environ)
        names = [asked.of_tool(name) for name in ("Bash", "mcp__s__look")]
        return [*names, asked.of_model("cli:sh answer.sh")]

    ours = tools(TEAM="ours", API_KEY="sk-one-0123456789abcdef")
    assert ours == tools(TEAM="ours", API_KEY="sk-two-0123456789abcdef", OTHER="x")
    assert all(a != b for a, b in zip(ours, tools(TEAM="theirs"), strict=True))
    assert all(a != b for a, b in zip(tools(), tools(TEAM="ours"), strict=True))
