"""What every mailbox must do, whatever it is made of."""

import asyncio
from pathlib import Path

import pytest
from msgspec import Raw

from stretto.events.model import Approved, CancelRequested, Rejected, RunEnded, RunStarted
from stretto.execution.leases import Store as Everything
from stretto.ports.journal import Mailbox
from stretto.vocabulary.names import RunId, StepId
from support.stores import Store

PORTS = (Mailbox,)

RUN = RunId("run-1")
OTHER = RunId("run-2")
STARTED = RunStarted(1.0, RUN, "news", "d1", Raw(b"{}"), {}, seed=7)


def test_a_message_is_pending_for_its_run_in_order_until_it_is_acknowledged(store: Store) -> None:
    async def story(mailbox: Mailbox) -> None:
        said = [
            Approved(1.0, StepId("a"), "Ann"),
            Rejected(2.0, StepId("b"), "Bob", "„no“"),
            CancelRequested(3.0, "enough"),
        ]
        await mailbox.send(RUN, said[0])
        await mailbox.send(OTHER, said[1])
        await mailbox.send(RUN, said[2])
        pending = await mailbox.pending()
        assert [(one.run_id, one.event) for one in pending] == [
            (RUN, said[0]),
            (OTHER, said[1]),
            (RUN, said[2]),
        ]
        assert [one.number for one in pending] == sorted({one.number for one in pending})
        await mailbox.acknowledge([pending[0].number, pending[2].number])
        assert [one.event for one in await mailbox.pending()] == [said[1]]

    store.run(story)


def test_a_message_may_be_acknowledged_twice_and_its_number_is_never_used_again(
    store: Store,
) -> None:
    async def story(mailbox: Mailbox) -> None:
        await mailbox.send(RUN, CancelRequested(1.0))
        (first,) = await mailbox.pending()
        await mailbox.acknowledge([first.number])
        await mailbox.acknowledge([first.number, 999])
        await mailbox.acknowledge([])
        await mailbox.send(RUN, CancelRequested(2.0))
        (second,) = await mailbox.pending()
        assert second.number > first.number

    store.run(story)


def test_a_mailbox_needs_no_lease_and_no_run_that_is_known(store: Store) -> None:
    async def story(everything: Everything) -> None:
        await everything.lease(RUN, "somebody else", 60)
        mailbox: Mailbox = everything
        await mailbox.send(RUN, CancelRequested(1.0))
        await mailbox.send(RunId("nobody"), CancelRequested(1.0))
        assert len(await mailbox.pending()) == 2

    store.run(story)


def test_many_may_send_at_once(store: Store) -> None:
    async def story(mailbox: Mailbox) -> None:
        await asyncio.gather(
            *(mailbox.send(RunId(f"run-{n}"), CancelRequested(float(n))) for n in range(50))
        )
        pending = await mailbox.pending()
        assert {one.run_id for one in pending} == {f"run-{n}" for n in range(50)}
        assert len({one.number for one in pending}) == 50

    store.run(story)


def test_a_message_outlives_the_process_that_sent_it(tmp_path: Path) -> None:
    store = Store("sqlite", tmp_path)  # nothing in memory outlives its process

    async def send(mailbox: Mailbox) -> None:
        await mailbox.send(RUN, CancelRequested(1.0, "why"))

    async def read(mailbox: Mailbox) -> None:
        (message,) = await mailbox.pending()
        assert (message.run_id, message.event) == (RUN, CancelRequested(1.0, "why"))

    store.run(send)
    store.run(read)


def test_the_end_of_a_run_drops_what_was_sent_too_late(store: Store) -> None:
    async def story(everything: Everything) -> None:
        mailbox: Mailbox = everything
        fence = await everything.lease(RUN, "me", 60)
        await everything.append(RUN, [STARTED], fence=fence)
        await mailbox.send(RUN, CancelRequested(1.0))
        await mailbox.send(OTHER, CancelRequested(1.0))
        await everything.append(RUN, [RunEnded(2.0, "complete")], fence=fence)
        assert [one.run_id for one in await mailbox.pending()] == [OTHER]

    store.run(story)


def test_a_closed_mailbox_takes_nothing(store: Store) -> None:
    async def story(everything: Everything) -> None:
        mailbox: Mailbox = everything
        await everything.close()
        for asked in (mailbox.send(RUN, CancelRequested(1.0)), mailbox.pending()):
            with pytest.raises(RuntimeError, match="closed"):
                await asked

    store.run(story)
