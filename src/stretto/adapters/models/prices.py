"""What tokens cost in USD.

The prices are those of genai-prices as it is installed; they are never fetched. Importing that package
takes 0.25 s of CPU, a third of a short `stretto run`. So the rates of a model whose price is the same for every
token are kept in a file, for as long as the installed package is the same.
"""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from stretto.adapters.models.provider_table import ALIASES, BY_NAME
from stretto.ports.model import TokenCounts

# These run on the user's own machine. What a `cli:` program costs, it reports itself.
_FREE = frozenset({"scripted", "embedded", "local", "python"})
_MILLION = 1_000_000
_RATES = 3  # of a token: new input, cached input, output
_UNKNOWN: Sequence[float] = []  # kept for a model that the package does not know


class _Tokens(Protocol):
    """Cached tokens are part of the input; `cache_read_tokens` says how many, if it is there."""

    @property
    def input_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...


def price(name: str, usage: _Tokens) -> float | None:
    """`name` is `provider:model`; None when its price is not known."""
    head, _, model = name.partition(":")
    head = ALIASES.get(head, head)
    if head in _FREE:
        return 0.0
    provider = BY_NAME.get(head)
    if provider is None or not model:
        return None
    if provider.is_free:
        return 0.0
    from genai_prices import Usage, calc_price

    counted = Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=_cached_count(usage),
    )
    try:
        cost = calc_price(counted, model, provider_id=provider.price_id or provider.name)
    except (LookupError, ValueError):
        return None
    return float(cost.total_price)


def is_priced(name: str) -> bool:
    return price(name, TokenCounts()) is not None


class PriceList:
    """Prices, with the rates of known models kept in a file."""

    def __init__(self, file: Path | None = None) -> None:
        """Without a file they are kept in memory alone."""
        self._file = file
        self._rates: dict[str, Sequence[float]] | None = None
        self._package = ""

    def usd(self, name: str, tokens: _Tokens) -> float | None:
        if self._rates is None:
            self._package = _package_stamp()
            self._rates = self._read()
        rates = self._rates.get(name)
        if rates is None:
            return self._look_up(name, tokens, self._rates)
        if not rates:
            return None
        cached = _cached_count(tokens)
        counts = (tokens.input_tokens - cached, cached, tokens.output_tokens)
        return sum(rate * count for rate, count in zip(rates, counts, strict=True))

    def _look_up(
        self, name: str, tokens: _Tokens, known: dict[str, Sequence[float]]
    ) -> float | None:
        usd = price(name, tokens)
        if (rates := _flat_rates(name)) is not None:
            known[name] = rates
            self._write(known)
        return usd

    def _read(self) -> dict[str, Sequence[float]]:
        try:
            kept = json.loads(self._file.read_text("utf-8")) if self._file else {}
        except (OSError, ValueError):
            return {}
        if not isinstance(kept, dict) or kept.get("package") != self._package:
            return {}
        rates = kept.get("rates")
        return {
            name: each
            for name, each in (rates.items() if isinstance(rates, dict) else ())
            if isinstance(each, list)
            and len(each) in (0, _RATES)
            and all(isinstance(rate, int | float) and rate >= 0 for rate in each)
        }

    def _write(self, rates: dict[str, Sequence[float]]) -> None:
        if self._file is None:
            return
        text = json.dumps({"package": self._package, "rates": rates})
        new = self._file.with_name(f".{self._file.name}.{os.getpid()}")
        with suppress(OSError):  # then the next run looks the prices up again
            new.write_text(text, "utf-8")
            new.replace(self._file)


def _flat_rates(name: str) -> Sequence[float] | None:
    """None where the price of a token depends on the time or on how many tokens there are."""
    head, _, model = name.partition(":")
    provider = BY_NAME.get(ALIASES.get(head, head))
    if provider is None or provider.is_free or not model:
        return None
    from decimal import Decimal

    from genai_prices import Usage, calc_price

    try:
        found = calc_price(Usage(), model, provider_id=provider.price_id or provider.name)
    except (LookupError, ValueError):
        return _UNKNOWN
    prices = found.model_price
    listed = (prices.input_mtok, prices.cache_read_mtok, prices.output_mtok)
    if isinstance(found.model.prices, list) or not all(
        isinstance(each, Decimal | None) for each in listed
    ):
        return None
    samples = (TokenCounts(_MILLION), TokenCounts(_MILLION, 0, _MILLION), TokenCounts(0, _MILLION))
    return [(price(name, tokens) or 0.0) / _MILLION for tokens in samples]


def _cached_count(tokens: _Tokens) -> int:
    return min(int(getattr(tokens, "cache_read_tokens", 0)), tokens.input_tokens)


def _package_stamp() -> str:
    """Another one as soon as the package is updated, without importing it."""
    spec = find_spec("genai_prices")
    if spec is None or spec.origin is None:
        return ""
    with suppress(OSError):
        stat = Path(spec.origin).with_name("data.py").stat()
        return f"{stat.st_size}-{stat.st_mtime_ns}"
    return ""
