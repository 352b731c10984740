"""The keeper: leases that last as long as their driver, and post that arrives."""

import asyncio
from collections.abc import Sequence

import pytest

from stretto.adapters.stores.memory import MemoryJournal
from stretto.events.model import Approved, CancelRequested, Event, MessageDropped, RunEnded
from stretto.execution.leases import LEASE_SECONDS, Lease, LeaseKeeper
from stretto.ports.journal import ExternalEvent, JournalFull, Message
from stretto.problems.errors import StrettoError
from stretto.testing.clock import VirtualClock
from stretto.vocabulary.names import RunId, StepId

RUN = RunId("run-1")


class Told:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.lost: list[StrettoError] = []
        self.durable: list[asyncio.Future[None]] = []
        self.writes = True  # what it is told, into the journal

    def now(self) -> float:
        return 5.0

    def queue(self, event: Event, durable: asyncio.Future[None]) -> None:
        self.events.append(event)
        self.durable.append(durable)
        if self.writes:
            durable.set_result(None)

    def on_lease_lost(self, error: StrettoError) -> None:
        self.lost.append(error)


def test_leases_are_renewed_for_as_long_as_a_run_is_driven() -> None:
    clock = VirtualClock()
    store = MemoryJournal(clock.now)

    async def story() -> None:
        keeper, told = LeaseKeeper(store), Told()
        ids = [RunId(f"run-{n}") for n in range(5)]
        for id in ids:
            keeper.add(await Lease.take(store, clock, id, "me"), told)
        for _ in range(20):
            await asyncio.sleep(LEASE_SECONDS / 2)
            outcomes = await asyncio.gather(
                *(store.lease(id, "you", 1) for id in ids), return_exceptions=True
            )
            assert all(isinstance(each, StrettoError) for each in outcomes)
        for id in ids:
            keeper.remove(id)
        await asyncio.sleep(LEASE_SECONDS)
        assert await store.lease(RUN, "you", 1)
        assert told.lost == []

    clock.run(story())


def test_only_who_lost_a_lease_is_told_so() -> None:
    clock = VirtualClock()
    store = MemoryJournal(clock.now)

    async def story() -> None:
        keeper, robbed, safe = LeaseKeeper(store), Told(), Told()
        keeper.add(await Lease.take(store, clock, RUN, "me"), robbed)
        other = RunId("run-2")
        keeper.add(await Lease.take(store, clock, other, "me"), safe)
        await store.lease(RUN, "me", LEASE_SECONDS)
        await asyncio.sleep(LEASE_SECONDS / 2)
        assert [error.kind for error in robbed.lost] == ["fenced"]
        assert safe.lost == []
        keeper.remove(RUN)
        keeper.remove(other)

    clock.run(story())


def test_post_is_brought_once_and_stamped_with_the_time_it_arrives() -> None:
    clock = VirtualClock()
    store = MemoryJournal(clock.now)

    async def story() -> None:
        keeper, told = LeaseKeeper(store), Told()
        await store.send(RUN, CancelRequested(1.0, "why"))
        await store.send(RunId("of others"), CancelRequested(1.0))
        keeper.add(await Lease.take(store, clock, RUN, "me"), told)
        await asyncio.sleep(5)
        keeper.remove(RUN)
        (event,) = told.events
        assert event.at > 1.0
        assert [message.run_id for message in await store.pending()] == ["of others"]

    clock.run(story())


def test_post_stays_in_the_mailbox_until_it_is_on_record() -> None:
    clock = VirtualClock()
    store = MemoryJournal(clock.now)

    async def story() -> None:
        keeper, stopped = LeaseKeeper(store), Told()
        stopped.writes = False
        await store.send(RUN, CancelRequested(1.0, "why"))
        keeper.add(await Lease.take(store, clock, RUN, "me"), stopped)
        await asyncio.sleep(5)
        keeper.remove(RUN)
        assert len(stopped.events) == 1
        assert len(await store.pending()) == 1, "its driver never wrote it down"
        again = Told()
        keeper.add(await Lease.take(store, clock, RUN, "me"), again)
        await asyncio.sleep(5)
        keeper.remove(RUN)
        assert [type(event) for event in again.events] == [CancelRequested]
        assert await store.pending() == []

    clock.run(story())


def test_post_that_is_on_record_goes_though_its_driver_leaves_at_once() -> None:
    clock = VirtualClock()
    store = MemoryJournal(clock.now)

    async def story() -> None:
        keeper, told = LeaseKeeper(store), Told()
        told.writes = False
        await store.send(RUN, CancelRequested(1.0, "why"))
        await store.send(RUN, CancelRequested(1.0, "it came too late"))
        keeper.add(await Lease.take(store, clock, RUN, "me"), told)
        await keeper.poll_mailbox()
        told.durable[0].set_result(None)
        await keeper.acknowledge(RUN)
        keeper.remove(RUN)
        assert [message.number for message in await store.pending()] == [2]

    clock.run(story())


def test_what_does_not_count_is_dropped_with_a_word_and_acknowledged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = VirtualClock()
    store = MemoryJournal(clock.now)

    async def story() -> None:
        def why_dropped(run_id: RunId, event: ExternalEvent) -> str:
            return f"an approval of {event.step}" if isinstance(event, Approved) else ""

        keeper = LeaseKeeper(store, why_dropped=why_dropped)
        told = Told()
        await store.send(RUN, Approved(1.0, StepId("g\x1b[2J"), "mallory"))
        await store.send(RUN, RunEnded(1.0, "complete"))  # type: ignore[arg-type]
        await store.send(RUN, CancelRequested(1.0))
        keeper.add(await Lease.take(store, clock, RUN, "me"), told)
        await asyncio.sleep(5)
        keeper.remove(RUN)
        assert [type(event) for event in told.events] == [
            MessageDropped,
            MessageDropped,
            CancelRequested,
        ]
        assert await store.pending() == []

    clock.run(story())
    approval, end = (record.getMessage() for record in caplog.records)
    assert f"run {RUN}: ignored an approval of g" in approval
    assert "\x1b" not in approval
    assert "run_ended" in end


def test_a_message_that_nobody_can_judge_keeps_no_other_from_its_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = VirtualClock()
    store = MemoryJournal(clock.now)

    def why_dropped(run_id: RunId, event: ExternalEvent) -> str:
        if isinstance(event, Approved):
            raise ZeroDivisionError("a bug")
        return ""

    async def story() -> None:
        keeper, told = LeaseKeeper(store, why_dropped=why_dropped), Told()
        await store.send(RUN, Approved(1.0, StepId("g")))
        keeper.add(await Lease.take(store, clock, RUN, "me"), told)
        await asyncio.sleep(5)
        await store.send(RUN, CancelRequested(1.0))
        await asyncio.sleep(5)
        keeper.remove(RUN)
        assert [type(event) for event in told.events] == [CancelRequested]
        (left,) = await store.pending()
        assert isinstance(left.event, Approved), "whoever drives the run next may do better"

    clock.run(story())
    (said,) = [record.getMessage() for record in caplog.records]
    assert f"run {RUN}: cannot read a message (ZeroDivisionError: a bug) in its mailbox" in said


class Unreadable(MemoryJournal):
    is_broken = True

    async def pending(self) -> list[Message]:
        if self.is_broken:
            raise StrettoError("it cannot be read now")
        return await super().pending()

    async def renew(self, run_id: RunId, *, fence: int, seconds: float) -> None:
        if self.is_broken:
            raise JournalFull("no space")
        await super().renew(run_id, fence=fence, seconds=seconds)

    async def acknowledge(self, numbers: Sequence[int]) -> None:
        await super().acknowledge(numbers)


def test_a_store_that_fails_for_a_while_is_asked_again() -> None:
    clock = VirtualClock()
    store = Unreadable(clock.now)

    async def story() -> None:
        keeper, told = LeaseKeeper(store), Told()
        keeper.add(await Lease.take(store, clock, RUN, "me"), told)
        await store.send(RUN, CancelRequested(1.0))
        await asyncio.sleep(15)
        assert told.events == []
        assert told.lost == []
        store.is_broken = False
        await asyncio.sleep(1)
        assert len(told.events) == 1
        keeper.remove(RUN)

    clock.run(story())
