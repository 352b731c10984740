"""What a run may still spend. All attempts of a run share one budget, so each model call is reserved
here before it is made.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from stretto.vocabulary.usage import Usage


@dataclass(frozen=True, slots=True)
class CallEstimate:
    input_tokens: int
    output_tokens: int  # of a long answer; fewer may be granted
    usd: Callable[[int, int], float]  # what so many input and output tokens cost


@dataclass(frozen=True, slots=True, eq=False)
class Reservation:
    input_tokens: int
    output_tokens: int
    usd: float
    is_cut: bool  # fewer output tokens than were asked for: the call must be held to them


@dataclass(frozen=True, slots=True)
class NothingLeft:
    says: str


class Allowance(Protocol):
    """One attempt's share of the budget."""

    async def reserve(self, estimate: CallEstimate) -> Reservation | NothingLeft:
        """Waits while calls under way hold what this one needs: most give some of it back."""
        ...

    def settle(self, reservation: Reservation, usage: Usage) -> None:
        """What the call has really taken, or nothing if it was not answered."""
        ...

    def charge(self, usage: Usage) -> None:
        """What a run has taken that the attempt started. It is no part of the attempt's own usage."""
        ...

    def left(self) -> tuple[int | None, float | None]:
        """Tokens and dollars that nobody has spent or reserved; None: there is no limit."""
        ...

    def overspent(self, usage: Usage) -> str | None:
        """Why an agent that calls models on its own must stop, having used so much so far."""
        ...
