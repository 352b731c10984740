"""What the names of models mean, and what is said of those that mean nothing."""

import subprocess
import sys
from contextlib import suppress

import pytest

from stretto.adapters.models.model_names import ModelName, NameFault, check_name, resolve_name
from stretto.adapters.models.provider_table import ALIASES, BY_NAME, PREFIXES, PROVIDERS

ANTHROPIC = {"ANTHROPIC_API_KEY": "a"}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("openai:gpt-4o", "openai:gpt-4o"),
        (" openai: gpt-4o ", "openai:gpt-4o"),
        ("openai-chat:gpt-4o", "openai:gpt-4o"),
        ("ollama:llama3.2:3b", "ollama:llama3.2:3b"),
        ("openrouter:anthropic/claude-sonnet-5:beta", "openrouter:anthropic/claude-sonnet-5:beta"),
        ("gemini:gemini-2.5-flash", "google:gemini-2.5-flash"),
        ("gpt-4o", "openai:gpt-4o"),
        ("o3", "openai:o3"),
        ("claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("gemini-2.5-pro", "google:gemini-2.5-pro"),
        ("embedded", "embedded"),
        ("local:qwen", "local:qwen"),
        ("scripted:a/b.yaml", "scripted:a/b.yaml"),
        ("cli:claude", "cli:claude"),
        ("inherit", None),
        ("", None),
    ],
)
def test_a_name_means_one_model(written: str, meant: str | None) -> None:
    assert resolve_name(written, {}) == ModelName(meant)


def test_the_tiers_of_claude_files_need_a_key_or_else_mean_the_runs_own_model() -> None:
    assert resolve_name("sonnet", ANTHROPIC) == ModelName("anthropic:claude-sonnet-5")
    assert resolve_name("Opus", ANTHROPIC) == ModelName("anthropic:claude-opus-5")
    routed = resolve_name("haiku", {"OPENROUTER_API_KEY": "o"})
    assert isinstance(routed, ModelName)
    assert (routed.name or "").startswith("openrouter:anthropic/claude-haiku")
    without = resolve_name("haiku", {})
    assert isinstance(without, ModelName)
    assert without.name is None
    assert "ANTHROPIC_API_KEY" in without.note


def test_a_server_of_ones_own_takes_any_bare_name() -> None:
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:8000/v1"}
    assert resolve_name("my-model", environ) == ModelName("openai:my-model")
    assert isinstance(resolve_name("my-model", {}), NameFault)


@pytest.mark.parametrize(
    ("written", "says", "hint"),
    [
        ("opnai:gpt-4o", "no known provider", "did you mean 'openai'?"),
        ("antropic:claude", "no known provider", "did you mean 'anthropic'?"),
        ("llama3.2:3b", "no known provider", "ollama:llama3.2:3b"),
        ("my-model", "which provider serves", "ollama:my-model"),
        ("sonet", "which provider serves", "did you mean 'sonnet'?"),
        ("openai:", "no model", "openai:MODEL"),
    ],
)
def test_a_name_that_means_nothing_is_explained(written: str, says: str, hint: str) -> None:
    fault = resolve_name(written, {})
    assert isinstance(fault, NameFault)
    assert says in fault.says
    assert hint in fault.hint


def test_a_missing_key_is_named() -> None:
    fault = check_name("openai:gpt-4o", {})
    assert fault is not None
    assert "OPENAI_API_KEY is not set" in fault.says
    fault = check_name("google:gemini-2.5-pro", {"GOOGLE_API_KEY": "  "})
    assert fault is not None
    assert "GEMINI_API_KEY or GOOGLE_API_KEY" in fault.says


def test_a_missing_package_is_named() -> None:
    fault = check_name("cohere:command-a", {"CO_API_KEY": "c"})
    if fault is None:
        pytest.skip("cohere is installed here")
    assert fault.hint == "pip install 'pydantic-ai-slim[cohere]'"


@pytest.mark.parametrize(
    ("name", "environ"),
    [
        ("openai:gpt-4o", {"OPENAI_API_KEY": "k"}),
        ("openai:mine", {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}),
        ("ollama:llama3", {}),
        ("embedded", {}),
        ("scripted:x.yaml", {}),
        ("inherit", {}),
        ("sonnet", {}),
    ],
)
def test_nothing_is_wrong_with_these(name: str, environ: dict[str, str]) -> None:
    assert check_name(name, environ) is None


def test_checking_a_name_imports_no_pydantic() -> None:
    program = (
        "import sys; from stretto.adapters.models.model_names import check_name; "
        "import stretto.adapters.models.named, stretto.adapters.models.default_model, stretto.adapters.models.prices; "
        "check_name('gpt-4o', {}); "
        "sys.exit(', '.join({'pydantic', 'pydantic_ai', 'openai', 'genai_prices'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr.strip() == ""


def test_the_table_agrees_with_pydantic_ai() -> None:
    from pydantic_ai.models import known_model_names
    from pydantic_ai.providers import infer_provider_class

    for provider in PROVIDERS:
        with suppress(ImportError):  # known there, and not installed here
            infer_provider_class(provider.name)
    known = set(known_model_names())
    for name in ("anthropic", "openai", "google", "groq", "deepseek", "cerebras", "moonshotai"):
        assert f"{name}:{BY_NAME[name].default_model}" in known
    assert {*ALIASES.values(), *PREFIXES.values()} <= BY_NAME.keys()
