"""Who is meant by a name, and what is said when nobody is."""

from pathlib import Path

import pytest

from stretto.adapters.models.cli.names import NamedCli, NamedCommand, cli_fault, read_name


@pytest.mark.parametrize(
    ("name", "cli", "model", "speaks_acp"),
    [
        ("cli:claude", "claude", "", False),
        ("cli:claude:opus", "claude", "opus", False),
        ("cli:claude/opus", "claude", "opus", False),
        ("cli:claude:claude-opus-4-8[1m]", "claude", "claude-opus-4-8[1m]", False),
        ("cli:codex:gpt-5.1-codex", "codex", "gpt-5.1-codex", False),
        ("cli:opencode/anthropic/claude-sonnet-4", "opencode", "anthropic/claude-sonnet-4", False),
        ("cli:goose/openai/gpt-4o", "goose", "openai/gpt-4o", False),
        ("cli:acp:gemini", "gemini", "", True),
        ("cli:acp:opencode/a/b", "opencode", "a/b", True),
    ],
)
def test_a_cli_may_be_named_with_a_model(name: str, cli: str, model: str, speaks_acp: bool) -> None:
    asked = read_name(name)
    assert isinstance(asked, NamedCli)
    assert (asked.cli.name, asked.model, asked.speaks_acp) == (cli, model, speaks_acp)


@pytest.mark.parametrize(
    ("name", "words", "speaks_acp"),
    [
        ("cli:cat", ("cat",), False),
        ("cli:./answer.py --short 'two words'", ("./answer.py", "--short", "two words"), False),
        ("cli:acp:my-agent --stdio", ("my-agent", "--stdio"), True),
    ],
)
def test_everything_else_is_a_command(name: str, words: tuple[str, ...], speaks_acp: bool) -> None:
    assert read_name(name) == NamedCommand(words, speaks_acp)


@pytest.mark.parametrize("name", ["cli:claude:--dangerously-skip-permissions", "cli:codex/-x"])
def test_a_model_cannot_smuggle_in_an_option(name: str) -> None:
    # It is then a command of that odd name, which nobody has.
    assert isinstance(read_name(name), NamedCommand)
    assert cli_fault(name, "/nowhere") is not None


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("cli:", "'cli:' names no program"),
        ("cli:acp:", "'cli:acp:' names no program"),
        ("cli:acp", "'cli:acp' names no program"),
        ("cli:'", "cannot be split into words: no closing quotation"),
        ("cli:acp:claude", "'claude' does not speak ACP: write cli:claude"),
        ("cli:claude", "'claude' is not installed, or not on PATH: npm install -g @anthropic"),
        ("cli:cladue", "there is no command 'cladue' on PATH; did you mean 'claude'?"),
        ("cli:gemni:flash", "there is no command 'gemni:flash' on PATH; did you mean 'gemini'?"),
        ("cli:acpp:x", "did you mean 'acp'?"),
        ("cli:frobnicate", "there is no command 'frobnicate' on PATH"),
    ],
)
def test_a_faulty_name_is_explained(name: str, fault: str) -> None:
    said = cli_fault(name, "/nowhere")
    assert said is not None
    assert fault in said


@pytest.mark.parametrize("name", ["cli:claude", "cli:goose/openai/gpt-4o", "cli:acp:x", "cli:cat"])
def test_what_is_installed_is_no_fault(name: str, tmp_path: Path) -> None:
    for program in ("claude", "goose", "x", "cat"):
        (tmp_path / program).touch(mode=0o755)
    assert cli_fault(name, str(tmp_path)) is None
