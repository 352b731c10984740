"""What tokens cost. In: a model's name and its usage. Out: USD, or None when nobody knows.

The prices are those of genai-prices as it is installed; they are never fetched.
"""

from typing import Protocol

from stretto.adapters.models.provider_table import ALIASES, BY_NAME

# On the user's own machine, or somebody else's business: `cli:` tools bill as they please.
_FREE = frozenset({"scripted", "embedded", "local"})


class _Tokens(Protocol):
    """Cached tokens are part of the input; `cache_read_tokens` says how many, if it is there."""

    @property
    def input_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...


def price(name: str, usage: _Tokens) -> float | None:
    """`name` is `provider:model`."""
    head, _, model = name.partition(":")
    head = ALIASES.get(head, head)
    if head in _FREE:
        return 0.0
    provider = BY_NAME.get(head)
    if provider is None or not model:
        return None
    if provider.is_free:
        return 0.0
    # 0.1 s to import, so only when something is to be priced.
    from genai_prices import Usage, calc_price

    cached = min(int(getattr(usage, "cache_read_tokens", 0)), usage.input_tokens)
    counted = Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=cached,
    )
    try:
        cost = calc_price(counted, model, provider_id=provider.price_id or provider.name)
    except (LookupError, ValueError):
        return None
    return float(cost.total_price)


class _NoTokens:
    input_tokens = 0
    output_tokens = 0


def is_priced(name: str) -> bool:
    return price(name, _NoTokens()) is not None
