"""What would keep a run from working is said before it starts, once, with what was probably meant."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from support.background_runs import CHAIN
from support.cli import Said, environment, stretto, write


def tried(folder: Path, model: str, env: dict[str, str] | None = None) -> Said:
    write(folder, "recipe.yaml", CHAIN)
    said = stretto(folder, "run", "recipe.yaml", "--model", model, env=env)
    assert stretto(folder, "runs", "--json").json["runs"] == [], "nothing was started"
    return said


@pytest.mark.parametrize(
    ("model", "meant"),
    [
        ("sonnet", "export ANTHROPIC_API_KEY="),
        ("Opus", "export ANTHROPIC_API_KEY="),
        ("claude", "anthropic:claude-sonnet-5, or cli:claude"),
        ("codex", "cli:codex"),
        ("openai", "openai:gpt-5.4-mini"),
        ("gemini", "google:"),
        ("qwen2.5-coder", "local:qwen2.5-coder"),
        ("claud", "did you mean 'claude'"),
        ("inherit", "provider:name"),
        ("gpt-5", "export OPENAI_API_KEY="),
        ("llama3", "ollama:llama3"),
        ("scripted:nowhere.yaml", "default: An answer."),
    ],
)
def test_a_model_that_cannot_be_asked_is_said_once(tmp_path: Path, model: str, meant: str) -> None:
    said = tried(tmp_path, model)
    assert said.code == 2, said
    assert said.err.count("RUN001") == 1, said.err
    assert meant in said.err


def test_what_several_agents_lack_is_said_once_with_their_names(tmp_path: Path) -> None:
    steps = "".join(f"  - {{id: s{i}, subagent: a{i}, prompt: x}}\n" for i in range(3))
    agents = "".join(f"  a{i}: {{prompt: x, model: openai:gpt-5}}\n" for i in range(3))
    write(tmp_path, "three.yaml", f"name: three\nagents:\n{agents}steps:\n{steps}")
    said = stretto(tmp_path, "run", "three.yaml")
    assert said.err.count("OPENAI_API_KEY is not set") == 1
    assert "agents a0, a1, a2" in said.err.replace(" and ", ", ")


def test_that_nobody_is_at_ollama_is_said_before_the_run(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        host = f"127.0.0.1:{taken.getsockname()[1]}"
        said = tried(tmp_path, "ollama:llama3", {"OLLAMA_HOST": host})
    assert said.code == 2
    assert said.err.count("RUN001") == 1
    assert f"no server answers at http://{host}" in said.err
    assert "ollama serve" in said.err


def test_without_a_key_the_choices_are_named_with_their_commands(tmp_path: Path) -> None:
    write(tmp_path, "recipe.yaml", CHAIN)
    said = stretto(tmp_path, "run", "recipe.yaml", env={"OLLAMA_HOST": "127.0.0.1:9"})
    assert said.code == 2
    assert "no key is set" in said.err
    for choice in ("export OPENAI_API_KEY=", "stretto models pull", "cli:claude", "scripted:"):
        assert choice in said.err, choice
    assert said.err.count("models pull smollm2") == 1  # advice is given once
    assert max(map(len, said.err.splitlines())) <= 80


WITHOUT_LOCAL_MODELS = """
import sys
from importlib.machinery import PathFinder

class WithoutLocalModels(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name == "xllamacpp" else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = WithoutLocalModels
from stretto.cli.main import main

main()
"""


def test_the_choices_are_named_where_the_package_of_local_models_is_missing_too(tmp_path: Path):
    write(tmp_path, "recipe.yaml", CHAIN)
    env = environment(tmp_path, {"OLLAMA_HOST": "127.0.0.1:9"})
    words = [sys.executable, "-c", WITHOUT_LOCAL_MODELS, "run", "recipe.yaml"]
    ended = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, encoding="utf-8")
    assert ended.returncode == 2
    choices = ("export OPENAI_API_KEY=", "pip install 'stretto[local]'", "stretto models pull")
    for choice in choices:
        assert ended.stderr.count(choice) >= 1, ended.stderr
    assert max(map(len, ended.stderr.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nowhere.yaml"], "nowhere.yaml"),
        (["recipe.yaml", "-i", "x=@nowhere.txt"], "nowhere.txt"),
        (["recipe.yaml", "--input-json", "nowhere.json"], "nowhere.json"),
    ],
)
def test_a_missing_file_is_named(tmp_path: Path, words: list[str], says: str) -> None:
    write(tmp_path, "recipe.yaml", CHAIN)
    said = stretto(tmp_path, "run", *words)
    assert said.code == 2
    assert says in said.err
