"""What work cost: tokens, dollars and model calls, which add up."""

from msgspec import Struct


class Usage(Struct, frozen=True, gc=False):
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    model_calls: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.usd + other.usd,
            self.model_calls + other.model_calls,
        )

    def __sub__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens - other.input_tokens,
            self.output_tokens - other.output_tokens,
            self.usd - other.usd,
            self.model_calls - other.model_calls,
        )

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens
