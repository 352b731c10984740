"""What every allowance must do, whatever the budget limits."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from stretto.execution.budget import Account, BudgetLedger
from stretto.ports.runner import Allowance, CallEstimate, NothingLeft, Reservation
from stretto.recipe.model import Budget
from stretto.vocabulary.amounts import Usage

PORTS = (Allowance,)


def call(input_tokens: int, output_tokens: int) -> CallEstimate:
    # A cent a token, in and out: a budget of ten dollars is one of a thousand tokens.
    return CallEstimate(input_tokens, output_tokens, lambda given, out: (given + out) / 100)


def used(tokens: int) -> Usage:
    return Usage(input_tokens=tokens, usd=tokens / 100, model_calls=1)


@dataclass
class Purse:
    """The accounts of two attempts of one run, which may spend a thousand tokens together."""

    budget: Budget
    is_recorded: bool = False
    recorded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        ledger = BudgetLedger(self.budget, Usage())
        self.mine: Allowance = self._account(ledger)
        self.neighbours: Allowance = self._account(ledger)

    def _account(self, ledger: BudgetLedger) -> Account:
        async def record() -> None:
            self.recorded.append("before the call")

        return ledger.account(record if self.is_recorded else None)

    def left(self) -> float:
        tokens, usd = self.mine.left()
        if tokens is not None:
            return tokens
        assert usd is not None
        return usd * 100


KINDS: dict[str, Callable[[], Purse]] = {
    "tokens": lambda: Purse(Budget(tokens=1_000)),
    "dollars": lambda: Purse(Budget(usd=10.0)),
    "both": lambda: Purse(Budget(tokens=1_000, usd=10.0)),
    "on record": lambda: Purse(Budget(tokens=1_000), is_recorded=True),
}


@pytest.fixture(params=KINDS)
def purse(request: pytest.FixtureRequest) -> Purse:
    return KINDS[request.param]()


def run(story: Awaitable[None]) -> None:
    async def main() -> None:
        async with asyncio.timeout(30):
            await story

    asyncio.run(main())


async def granted(allowance: Allowance, estimate: CallEstimate) -> Reservation:
    reserved = await allowance.reserve(estimate)
    assert isinstance(reserved, Reservation), reserved
    return reserved


def test_what_is_reserved_is_not_left_to_anybody(purse: Purse) -> None:
    async def story() -> None:
        reserved = await granted(purse.mine, call(100, 300))
        assert (reserved.input_tokens, reserved.output_tokens) == (100, 300)
        assert not reserved.is_cut
        assert purse.left() == pytest.approx(600)
        assert purse.neighbours.left() == purse.mine.left()
        assert purse.recorded == ["before the call"] * purse.is_recorded

    run(story())


@pytest.mark.parametrize("tokens", [0, 150, 400, 700])
def test_settling_counts_what_the_call_took_and_no_more(purse: Purse, tokens: int) -> None:
    async def story() -> None:
        reserved = await granted(purse.mine, call(100, 300))
        purse.mine.settle(reserved, used(tokens) if tokens else Usage())
        assert purse.left() == pytest.approx(1_000 - tokens)

    run(story())


def test_the_last_call_is_cut_to_what_is_left(purse: Purse) -> None:
    async def story() -> None:
        reserved = await granted(purse.mine, call(400, 4_000))
        assert reserved.output_tokens == pytest.approx(600, abs=1)
        assert reserved.is_cut

    run(story())


def test_what_does_not_fit_is_refused_in_words_and_reserves_nothing(purse: Purse) -> None:
    async def story() -> None:
        refused = await purse.mine.reserve(call(2_000, 100))
        assert isinstance(refused, NothingLeft)
        assert refused.says.startswith("budget exhausted: ")
        assert purse.left() == pytest.approx(1_000)
        assert purse.recorded == []

    run(story())


def test_a_call_waits_for_what_another_holds_and_gets_what_it_gives_back(purse: Purse) -> None:
    async def story() -> None:
        held = await granted(purse.neighbours, call(100, 800))
        waiting = asyncio.create_task(granted(purse.mine, call(100, 400)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not waiting.done()
        purse.neighbours.settle(held, used(200))
        assert not (await waiting).is_cut
        assert purse.left() == pytest.approx(300)

    run(story())


def test_who_is_cancelled_while_it_waits_holds_nothing(purse: Purse) -> None:
    async def story() -> None:
        held = await granted(purse.neighbours, call(100, 800))
        waiting = asyncio.create_task(purse.mine.reserve(call(100, 400)))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        purse.neighbours.settle(held, Usage())
        assert purse.left() == pytest.approx(1_000)

    run(story())


def test_what_a_run_of_its_own_took_is_charged_to_the_whole_budget(purse: Purse) -> None:
    purse.mine.charge(used(700))
    assert purse.left() == pytest.approx(300)
    assert purse.neighbours.overspent(used(200)) is None
    assert purse.neighbours.overspent(used(301)) is not None


def test_an_agent_that_calls_models_itself_is_told_when_it_must_stop(purse: Purse) -> None:
    assert purse.mine.overspent(used(1_000)) is None
    said = purse.mine.overspent(used(1_001))
    assert said is not None
    assert said.startswith("budget exhausted: ")


def test_what_was_settled_is_not_counted_twice(purse: Purse) -> None:
    async def story() -> None:
        reserved = await granted(purse.mine, call(100, 500))
        purse.mine.settle(reserved, used(600))
        assert purse.mine.overspent(used(600)) is None
        assert purse.mine.overspent(used(1_001)) is not None

    run(story())


def test_what_has_no_limit_has_no_number() -> None:
    tokens = Purse(Budget(tokens=1_000)).mine
    dollars = Purse(Budget(usd=10.0)).mine
    assert tokens.left() == (1_000, None)
    assert dollars.left() == (None, 10.0)
