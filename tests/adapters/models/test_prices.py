"""What tokens cost: known prices, free models, and those that nobody has priced."""

import pytest

from stretto.adapters.models.prices import is_priced, price
from stretto.adapters.models.provider_table import PROVIDERS, TIERS
from stretto.ports.model import TokenCounts
from stretto.vocabulary.usage import Usage

MILLION = Usage(1_000_000, 1_000_000)


def test_tokens_are_priced_by_model() -> None:
    assert price("openai:gpt-4o", MILLION) == pytest.approx(2.5 + 10)
    assert price("openai:gpt-4o", Usage()) == 0.0
    assert price("openai-chat:gpt-4o", MILLION) == price("openai:gpt-4o", MILLION)


def test_cached_tokens_cost_less() -> None:
    cached = TokenCounts(input_tokens=1_000_000, cache_read_tokens=1_000_000)
    full = price("openai:gpt-4o", TokenCounts(input_tokens=1_000_000))
    half = price("openai:gpt-4o", cached)
    assert full is not None
    assert half is not None
    assert 0 < half < full


def test_more_cached_than_sent_is_not_believed() -> None:
    lied = TokenCounts(input_tokens=10, cache_read_tokens=1_000_000)
    assert price("openai:gpt-4o", lied) is not None


@pytest.mark.parametrize(
    "name", ["embedded", "local:qwen", "scripted:x.yaml", "scripted", "ollama:llama3", "vllm:m"]
)
def test_ones_own_machine_is_free(name: str) -> None:
    assert price(name, MILLION) == 0.0


@pytest.mark.parametrize(
    "name", ["openai:nobody-knows", "nobody:m", "gpt-4o", "openai:", "cli:claude", ""]
)
def test_what_nobody_has_priced_has_no_price(name: str) -> None:
    assert price(name, MILLION) is None
    assert not is_priced(name)


def test_every_default_has_a_price() -> None:
    names = [f"{p.name}:{p.default_model}" for p in PROVIDERS if p.default_model]
    names += [f"anthropic:{model}" for model in TIERS.values()]
    assert [name for name in names if not is_priced(name)] == []
