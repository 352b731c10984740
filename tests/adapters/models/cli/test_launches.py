"""How each CLI is started: with what the step may do, and never with more."""

import json
import tomllib
from pathlib import Path

import pytest

from stretto.adapters.models.cli.cli_spec import CliLaunch, LaunchRefused, LaunchRequest, for_cli
from stretto.adapters.models.cli.names import CLI_NAMES, known_cli
from stretto.ports.runner import AttemptRequest, Failure
from stretto.vocabulary.json_value import Json
from support.cli_agents import READING, WRITING, attempt, run

STRICT: dict[str, Json] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
NEVER = ("yolo", "bypass", "dangerous", "danger-full-access", "--auto", "skip-permissions")


def _order(
    request: AttemptRequest,
    model: str = "",
    max_usd: float | None = None,
    trusts_project: bool = False,
    speaks_acp: bool = False,
    home: Path = Path("/nowhere"),
) -> LaunchRequest:
    environ = {"HOME": str(home)}
    return LaunchRequest(
        request, model, Path("/private"), max_usd, trusts_project, speaks_acp, environ
    )


def _launched(
    name: str,
    request: AttemptRequest,
    model: str = "",
    max_usd: float | None = None,
    trusts_project: bool = False,
    speaks_acp: bool = False,
    home: Path = Path("/nowhere"),
) -> CliLaunch:
    order = _order(request, model, max_usd, trusts_project, speaks_acp, home)
    launch = known_cli(name).launch(order)
    assert isinstance(launch, CliLaunch)
    return launch


def _after(launch: CliLaunch, word: str) -> str:
    return launch.words[launch.words.index(word) + 1]


@pytest.mark.parametrize("name", sorted(CLI_NAMES))
@pytest.mark.parametrize("may_write", [False, True])
def test_no_cli_is_ever_told_to_skip_all_questions(name: str, may_write: bool) -> None:
    tools = WRITING if may_write else ()
    launch = _launched(name, attempt(f"cli:{name}", tools=tools, may_write=may_write))
    assert not [word for word in launch.words if any(bad in word for bad in NEVER)]


@pytest.mark.parametrize("name", sorted(CLI_NAMES))
def test_the_prompt_is_never_on_the_command_line(name: str) -> None:
    request = attempt(f"cli:{name}", prompt="the prompt", instructions="the role", tools=())
    launch = _launched(name, request)
    shown = " ".join(launch.words)
    assert "the prompt" in launch.prompt
    assert "the prompt" not in shown
    assert "the role" not in shown
    assert "the role" in launch.prompt + "".join(launch.files.values())


@pytest.mark.parametrize("name", sorted(CLI_NAMES))
def test_a_prompt_is_no_command_of_the_cli(name: str) -> None:
    launch = _launched(name, attempt(f"cli:{name}", prompt="/login as me", tools=()))
    assert launch.prompt.startswith("Task:")


def test_claude_reads_with_reading_tools_only() -> None:
    launch = _launched("claude", attempt("cli:claude", tools=(*WRITING, "WebFetch")))
    assert _after(launch, "--tools") == "Glob,Grep,Read,WebFetch"
    assert _after(launch, "--permission-mode") == "dontAsk"
    assert launch.warnings == ("it works without Bash, Edit, Write",)


def test_claude_writes_with_the_tools_that_are_listed() -> None:
    request = attempt("cli:claude", tools=("Read", "Edit", "Bash(git diff:*)"), may_write=True)
    launch = _launched("claude", request, "opus")
    assert _after(launch, "--tools") == "Bash,Edit,Read"
    assert _after(launch, "--permission-mode") == "acceptEdits"
    assert _after(launch, "--allowedTools") == "Read,Bash(git diff:*)"
    assert _after(launch, "--model") == "opus"


def test_claude_gets_turns_budget_and_schema() -> None:
    request = attempt("cli:claude", max_turns=7, schema=STRICT)
    launch = _launched("claude", request, max_usd=0.5)
    assert _after(launch, "--max-turns") == "7"
    assert _after(launch, "--max-budget-usd") == "0.5000"
    assert json.loads(_after(launch, "--json-schema")) == STRICT


def test_claude_obeys_the_workspace_only_if_it_is_trusted() -> None:
    assert "--strict-mcp-config" in _launched("claude", attempt("cli:claude")).words
    trusted = _launched("claude", attempt("cli:claude"), trusts_project=True)
    assert "--strict-mcp-config" not in trusted.words
    assert "--setting-sources" not in trusted.words


def test_codex_is_held_by_its_sandbox() -> None:
    reader = _launched("codex", attempt("cli:codex"))
    writer = _launched("codex", attempt("cli:codex", tools=WRITING, may_write=True))
    assert _after(reader, "--sandbox") == "read-only"
    assert _after(writer, "--sandbox") == "workspace-write"
    assert 'approval_policy="never"' in reader.words
    assert reader.words[-1] == "-"


def test_codex_runs_none_of_the_users_servers(tmp_path: Path) -> None:
    settings = tmp_path / ".codex/config.toml"
    settings.parent.mkdir()
    settings.write_text('[mcp_servers.files]\ncommand="x"\n[mcp_servers.web]\ncommand="y"\n')
    words = _launched("codex", attempt("cli:codex"), home=tmp_path).words
    assert "mcp_servers.files.enabled=false" in words
    assert "mcp_servers.web.enabled=false" in words
    settings.write_text('[mcp_servers."a.b"]\ncommand="x"\n')
    words = _launched("codex", attempt("cli:codex"), home=tmp_path).words
    assert "--ignore-user-config" in words


def test_codex_gets_a_schema_only_if_its_api_takes_it() -> None:
    launch = _launched("codex", attempt("cli:codex", schema=STRICT))
    assert json.loads(launch.files["schema.json"]) == STRICT
    open_one: dict[str, Json] = {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert not _launched("codex", attempt("cli:codex", schema=open_one)).files


def test_gemini_is_denied_every_tool_but_those_listed(tmp_path: Path) -> None:
    reader = _launched("gemini", attempt("cli:gemini", tmp_path, tools=WRITING))
    denied, allowed = tomllib.loads(reader.files["policy.toml"])["rule"]
    assert (denied["toolName"], denied["decision"]) == ("*", "deny")
    assert allowed["toolName"] == ["glob", "grep_search", "list_directory", "read_file"]
    assert allowed["priority"] > denied["priority"]
    assert _after(reader, "--approval-mode") == "default"
    writer = _launched("gemini", attempt("cli:gemini", tmp_path, tools=WRITING, may_write=True))
    allowed = tomllib.loads(writer.files["policy.toml"])["rule"][1]
    assert {"write_file", "replace", "run_shell_command"} < {*allowed["toolName"]}
    assert _after(writer, "--approval-mode") == "auto_edit"


def test_gemini_gets_no_shell_where_ours_has_a_filter(tmp_path: Path) -> None:
    request = attempt("cli:gemini", tmp_path, tools=("Edit", "Bash(git diff:*)"), may_write=True)
    launch = _launched("gemini", request)
    assert "run_shell_command" not in launch.files["policy.toml"]
    assert launch.warnings == ("it works without Bash",)


def test_gemini_trusts_a_workspace_that_has_nothing_to_obey(tmp_path: Path) -> None:
    assert "--skip-trust" in _launched("gemini", attempt("cli:gemini", tmp_path)).words
    (tmp_path / ".gemini").mkdir()
    assert "--skip-trust" not in _launched("gemini", attempt("cli:gemini", tmp_path)).words
    trusted = _launched("gemini", attempt("cli:gemini", tmp_path), trusts_project=True)
    assert "--skip-trust" in trusted.words


def test_opencode_gets_an_agent_that_may_do_what_is_listed() -> None:
    launch = _launched("opencode", attempt("cli:opencode", max_turns=4), "a/b")
    settings = json.loads(launch.variables["OPENCODE_CONFIG_CONTENT"])
    agent = settings["agent"]["stretto"]
    assert agent["permission"] == {"*": "deny", "glob": "allow", "grep": "allow", "read": "allow"}
    assert next(iter(agent["permission"])) == "*"  # the last rule that fits decides
    assert agent["steps"] == 4
    assert launch.variables["OPENCODE_DISABLE_PROJECT_CONFIG"] == "1"
    assert _after(launch, "--model") == "a/b"


def test_opencode_over_acp_gets_the_same_agent_and_model() -> None:
    launch = _launched("opencode", attempt("cli:opencode"), "a/b", speaks_acp=True)
    settings = json.loads(launch.variables["OPENCODE_CONFIG_CONTENT"])
    assert (settings["default_agent"], settings["model"]) == ("stretto", "a/b")
    assert launch.words == ("acp",)


@pytest.mark.parametrize("speaks_acp", [False, True])
def test_goose_only_talks_for_a_reader_without_tools(speaks_acp: bool) -> None:
    launch = _launched("goose", attempt("cli:goose", tools=()), speaks_acp=speaks_acp)
    assert launch.variables["GOOSE_MODE"] == "chat"
    assert "--with-builtin" not in launch.words


@pytest.mark.parametrize("speaks_acp", [False, True])
def test_goose_is_refused_to_a_reader_with_tools(speaks_acp: bool) -> None:
    order = _order(attempt("cli:goose", tools=READING), speaks_acp=speaks_acp)
    refused = known_cli("goose").launch(order)
    assert isinstance(refused, LaunchRefused)
    assert "goose cannot read files without being able to write them" in refused.reason


def test_goose_writes_with_a_shell_or_asks() -> None:
    request = attempt("cli:goose", tools=("Read", "Edit"), may_write=True, max_turns=3)
    assert isinstance(known_cli("goose").launch(_order(request)), LaunchRefused)
    asking = _launched("goose", request, "openai/gpt-4o", speaks_acp=True)
    assert asking.variables == {
        "GOOSE_MODE": "approve",
        "GOOSE_PROVIDER": "openai",
        "GOOSE_MODEL": "gpt-4o",
    }
    free = _launched("goose", attempt("cli:goose", tools=WRITING, may_write=True, max_turns=3))
    assert free.variables["GOOSE_MODE"] == "auto"
    assert _after(free, "--max-turns") == "3"


def test_a_refusal_is_a_failure_before_anything_is_started(tmp_path: Path) -> None:
    mark = tmp_path / "started"
    goose = tmp_path / "goose"
    goose.write_text(f"#!/bin/sh\ntouch {mark}\n")
    goose.chmod(0o755)
    result = run(attempt("cli:goose", tmp_path), environ={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert isinstance(result, Failure)
    assert result.kind == "refused"
    assert not mark.exists()


def test_a_cli_that_is_not_installed_says_how_to_get_it(tmp_path: Path) -> None:
    result = run(attempt("cli:codex", tmp_path), environ={"PATH": str(tmp_path)})
    assert isinstance(result, Failure)
    assert result.kind == "permanent"
    assert result.error.endswith("npm install -g @openai/codex")


def test_a_cli_gets_its_own_keys_and_no_others() -> None:
    ours = {
        "PATH": "/bin",
        "XDG_CONFIG_HOME": "/x",
        "ANTHROPIC_API_KEY": "a",
        "OPENAI_API_KEY": "o",
    }
    ours |= {"AWS_SECRET_ACCESS_KEY": "s", "DATABASE_URL": "d", "GITHUB_TOKEN": "g"}
    shared = {"PATH": "/bin", "XDG_CONFIG_HOME": "/x", "TERM": "dumb", "NO_COLOR": "1"}
    assert for_cli(known_cli("claude"), ours, ()) == {**shared, "ANTHROPIC_API_KEY": "a"}
    assert for_cli(known_cli("codex"), ours, ("GITHUB_TOKEN",)) == {
        **shared,
        "OPENAI_API_KEY": "o",
        "GITHUB_TOKEN": "g",
    }
