"""A budget is reserved before each call, by all who run together."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import pytest

from stretto.execution.budget import Account, BudgetLedger
from stretto.ports.runner import CallEstimate, NothingLeft, Reservation
from stretto.recipe.model import Budget
from stretto.vocabulary.amounts import Usage

T = TypeVar("T")


def size(input_tokens: int, output_tokens: int = 4_096) -> CallEstimate:
    # A dollar a thousand tokens in, ten dollars a thousand out.
    return CallEstimate(input_tokens, output_tokens, lambda given, out: given / 1_000 + out / 100)


def do(work: Awaitable[T]) -> T:
    async def main() -> T:
        async with asyncio.timeout(30):
            return await work

    return asyncio.run(main())


async def granted(account: Account, estimate: CallEstimate) -> Reservation:
    reserved = await account.reserve(estimate)
    assert isinstance(reserved, Reservation), reserved
    return reserved


def test_a_call_that_fits_is_granted_whole() -> None:
    async def play() -> Reservation:
        return await granted(BudgetLedger(Budget(tokens=10_000), Usage()).account(), size(100))

    reserved = do(play())
    assert (reserved.output_tokens, reserved.is_cut) == (4_096, False)


def test_the_last_call_is_held_to_what_is_left() -> None:
    async def play() -> Reservation:
        return await granted(BudgetLedger(Budget(tokens=1_000), Usage(600)).account(), size(100))

    reserved = do(play())
    assert (reserved.output_tokens, reserved.is_cut) == (300, True)


def test_money_bounds_the_answer_as_tokens_do() -> None:
    async def play() -> Reservation:
        ledger = BudgetLedger(Budget(usd=2.0), Usage(usd=0.5))
        return await granted(ledger.account(), size(500))

    assert do(play()).output_tokens == 100


@pytest.mark.parametrize(
    ("budget", "says"),
    [
        (Budget(tokens=1_000), "990 of 1,000 tokens used, and the next call takes 116 at least"),
        (Budget(usd=9.95), "$9.9000 of $9.9500 spent, and the next call costs $0.2600 at least"),
    ],
)
def test_a_call_that_does_not_fit_is_not_made(budget: Budget, says: str) -> None:
    async def play() -> Reservation | NothingLeft:
        return await BudgetLedger(budget, Usage(990, usd=9.9)).account().reserve(size(100))

    left = do(play())
    assert isinstance(left, NothingLeft)
    assert says in left.says


def test_fifty_at_once_stay_within_one_budget() -> None:
    async def call(ledger: BudgetLedger) -> int:
        account = ledger.account()
        reserved = await account.reserve(size(10))
        if isinstance(reserved, NothingLeft):
            return 0
        for _ in range(3):
            await asyncio.sleep(0)
        used = min(90, reserved.output_tokens)
        account.settle(reserved, Usage(10, used))
        account.close(Usage(10, used))
        return 10 + used

    async def play() -> list[int]:
        ledger = BudgetLedger(Budget(tokens=1_000), Usage())
        return await asyncio.gather(*(call(ledger) for _ in range(50)))

    used = do(play())
    assert sum(used) <= 1_000
    assert sum(used) > 900, "who waits gets what others give back"


def test_a_cancelled_call_gives_back_what_it_held() -> None:
    async def play() -> Reservation:
        ledger = BudgetLedger(Budget(tokens=1_000), Usage())
        first, second = ledger.account(), ledger.account()
        await granted(first, size(10))
        waiting = asyncio.ensure_future(granted(second, size(10)))
        await asyncio.sleep(0)
        assert not waiting.done()
        first.close(Usage(25))  # its attempt was called off
        return await waiting

    assert do(play()).output_tokens == 965


def test_what_an_agent_used_unasked_is_counted_when_it_ends() -> None:
    async def play() -> str | None:
        ledger = BudgetLedger(Budget(tokens=1_000), Usage())
        account, other = ledger.account(), ledger.account()
        await granted(account, size(10))
        assert account.overspent(Usage(900)) is None
        account.close(Usage(1_200))
        return other.overspent(Usage())

    assert do(play()) == "budget exhausted: 1,200 of 1,000 tokens used"
