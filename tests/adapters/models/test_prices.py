"""What tokens cost: known prices, free models, and those that nobody has priced."""

import json
from pathlib import Path

import pytest

from stretto.adapters.models.prices import PriceList, is_priced, price
from stretto.adapters.models.provider_table import PROVIDERS, TIERS
from stretto.ports.model import TokenCounts
from stretto.vocabulary.amounts import Usage

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


USAGES = [TokenCounts(1_234, 567, 89), TokenCounts(500_000, 3_000), TokenCounts()]


@pytest.mark.parametrize(
    "name",
    [
        "openai:gpt-4o",
        "anthropic:claude-sonnet-5",
        "google:gemini-2.5-pro",
        "deepseek:deepseek-chat",
    ],
)
def test_a_kept_price_is_the_same_as_one_that_was_looked_up(name: str, tmp_path: Path) -> None:
    for _ in range(2):
        prices = PriceList(tmp_path / "prices.json")
        for usage in USAGES:
            assert prices.usd(name, usage) == pytest.approx(price(name, usage))


def test_kept_rates_are_used_only_while_the_package_is_the_same(tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    PriceList(file).usd("openai:gpt-4o", USAGES[0])
    kept = json.loads(file.read_text())
    assert list(kept["rates"]) == ["openai:gpt-4o"]
    kept["rates"]["openai:gpt-4o"] = [1, 1, 1]
    file.write_text(json.dumps(kept))
    assert PriceList(file).usd("openai:gpt-4o", USAGES[0]) == 1_234 + 567
    file.write_text(json.dumps({**kept, "package": "another"}))
    assert PriceList(file).usd("openai:gpt-4o", USAGES[0]) == price("openai:gpt-4o", USAGES[0])


@pytest.mark.parametrize("text", ["", "[]", "{", '{"package": "x"}', '{"rates": {"a": 1}}'])
def test_a_file_that_cannot_be_used_is_ignored(text: str, tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    file.write_text(text)
    assert PriceList(file).usd("openai:gpt-4o", USAGES[0]) == price("openai:gpt-4o", USAGES[0])
    assert PriceList(tmp_path / "none" / "prices.json").usd("openai:gpt-4o", USAGES[0])


def test_a_price_that_is_not_the_same_for_every_token_is_not_kept(tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    prices = PriceList(file)
    prices.usd("google:gemini-2.5-pro", USAGES[0])
    prices.usd("deepseek:deepseek-chat", USAGES[0])
    prices.usd("ollama:llama3", USAGES[0])
    prices.usd("local:qwen", USAGES[0])
    assert not file.exists()


def test_that_a_price_is_not_known_is_kept_too(tmp_path: Path) -> None:
    for _ in range(2):
        prices = PriceList(tmp_path / "prices.json")
        assert prices.usd("openai:nobody-knows", USAGES[0]) is None
    assert json.loads((tmp_path / "prices.json").read_text())["rates"] == {
        "openai:nobody-knows": []
    }
