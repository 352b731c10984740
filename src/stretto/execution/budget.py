"""What a run has spent and reserved of its budget, with an account for each attempt.

The scheduler decides by what ended attempts have cost, from events alone. The calls of attempts
under way are decided here, before each of them, so that all that run together stay within one
budget; an attempt that gets nothing fails as `budget`, and the scheduler ends the run.
"""

import asyncio
from collections.abc import Awaitable, Callable

from stretto.ports.runner import CallEstimate, NothingLeft, Reservation
from stretto.recipe.model import Budget
from stretto.vocabulary.amounts import Usage

# An answer of fewer tokens is of no use, and some providers refuse a lower limit.
_LEAST_OUTPUT_TOKENS = 16


class BudgetLedger:
    def __init__(self, budget: Budget, spent: Usage) -> None:
        self._budget = budget
        self._tokens = spent.tokens
        self._usd = spent.usd
        self._open: set[Reservation] = set()
        self._waiting: list[asyncio.Future[None]] = []

    def account(self, record: Callable[[], Awaitable[None]] | None = None) -> "Account":
        """`record`: is awaited before a granted call is made, to journal what the attempt may then
        have used."""
        return Account(self, record)

    async def reserve(self, estimate: CallEstimate) -> Reservation | NothingLeft:
        while True:
            output = self._output_left(estimate)
            # What calls under way hold is more than most of them take: wait for the rest.
            if output >= estimate.output_tokens or not self._open:
                return self._grant(estimate, output)
            change = asyncio.get_running_loop().create_future()
            self._waiting.append(change)
            await change

    def release(self, reservation: Reservation) -> None:
        self._open.discard(reservation)
        self._wake()

    def add(self, tokens: int, usd: float) -> None:
        self._tokens += tokens
        self._usd += usd
        self._wake()

    def left(self) -> tuple[int | None, float | None]:
        budget = self._budget
        reserved = sum(each.input_tokens + each.output_tokens for each in self._open)
        tokens = None if budget.tokens is None else budget.tokens - self._tokens - reserved
        usd = None if budget.usd is None else budget.usd - self._usd
        return tokens, usd if usd is None else usd - sum(each.usd for each in self._open)

    def overspent(self, tokens: int, usd: float) -> str | None:
        """`tokens` and `usd`: used by an attempt, and not settled yet."""
        budget = self._budget
        if budget.tokens is not None and self._tokens + tokens > budget.tokens:
            return f"budget exhausted: {self._tokens + tokens:,} of {budget.tokens:,} tokens used"
        if budget.usd is not None and self._usd + usd > budget.usd:
            return f"budget exhausted: ${self._usd + usd:.4f} of ${budget.usd:.4f} spent"
        return None

    def _grant(self, estimate: CallEstimate, output: int) -> Reservation | NothingLeft:
        granted = min(output, estimate.output_tokens)
        if granted < min(_LEAST_OUTPUT_TOKENS, estimate.output_tokens):
            return NothingLeft(self._refusal(estimate))
        usd = estimate.usd(estimate.input_tokens, granted)
        reservation = Reservation(
            estimate.input_tokens, granted, usd, is_cut=granted < estimate.output_tokens
        )
        self._open.add(reservation)
        return reservation

    def _output_left(self, estimate: CallEstimate) -> int:
        """How many output tokens the call may have, next to all that is reserved. Below 0: not even
        its input fits."""
        budget, output = self._budget, estimate.output_tokens
        if budget.tokens is not None:
            reserved = sum(each.input_tokens + each.output_tokens for each in self._open)
            output = min(output, budget.tokens - self._tokens - reserved - estimate.input_tokens)
        if budget.usd is not None:
            reserved_usd = sum(each.usd for each in self._open)
            left = budget.usd - self._usd - reserved_usd - estimate.usd(estimate.input_tokens, 0)
            each_token = estimate.usd(0, 1_000) / 1_000
            if each_token:
                output = min(output, int(left / each_token))
            elif left < 0:
                output = -1
        return output

    def _refusal(self, estimate: CallEstimate) -> str:
        budget = self._budget
        if budget.tokens is not None:
            needed = estimate.input_tokens + min(_LEAST_OUTPUT_TOKENS, estimate.output_tokens)
            if self._tokens + needed > budget.tokens:
                used = f"{self._tokens:,} of {budget.tokens:,} tokens used"
                return f"budget exhausted: {used}, and the next call takes {needed:,} at least"
        needed_usd = estimate.usd(estimate.input_tokens, _LEAST_OUTPUT_TOKENS)
        used = f"${self._usd:.4f} of ${budget.usd or 0.0:.4f} spent"
        return f"budget exhausted: {used}, and the next call costs ${needed_usd:.4f} at least"

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)


class Account:
    """The account of one attempt, closed when the attempt ends in whatever way."""

    def __init__(
        self, ledger: BudgetLedger, record: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self._ledger = ledger
        self._record = record
        self._open: set[Reservation] = set()
        self._settled = Usage()

    async def reserve(self, estimate: CallEstimate) -> Reservation | NothingLeft:
        granted = await self._ledger.reserve(estimate)
        if isinstance(granted, Reservation):
            self._open.add(granted)
            if self._record is not None:
                await self._record()
        return granted

    def settle(self, reservation: Reservation, usage: Usage) -> None:
        self._open.discard(reservation)
        self._settled += usage
        self._ledger.add(usage.tokens, usage.usd)
        self._ledger.release(reservation)

    def charge(self, usage: Usage) -> None:
        self._ledger.add(usage.tokens, usage.usd)

    def held(self, spent: Usage) -> Usage:
        """What the attempt has used, and what its calls under way may take. `spent`: as it told."""
        return Usage(
            max(
                spent.input_tokens, self._settled.input_tokens + self._sum_reserved("input_tokens")
            ),
            max(
                spent.output_tokens,
                self._settled.output_tokens + self._sum_reserved("output_tokens"),
            ),
            max(spent.usd, self._settled.usd + sum(each.usd for each in self._open)),
            max(spent.model_calls, self._settled.model_calls + len(self._open)),
        )

    def _sum_reserved(self, name: str) -> int:
        return sum(getattr(each, name) for each in self._open)

    def left(self) -> tuple[int | None, float | None]:
        return self._ledger.left()

    def overspent(self, usage: Usage) -> str | None:
        return self._ledger.overspent(
            usage.tokens - self._settled.tokens, usage.usd - self._settled.usd
        )

    def close(self, usage: Usage) -> None:
        """`usage`: of the whole attempt. What was not settled call by call is counted now."""
        self._ledger.add(
            max(0, usage.tokens - self._settled.tokens), max(0.0, usage.usd - self._settled.usd)
        )
        for reservation in self._open:
            self._ledger.release(reservation)
        self._open.clear()
