"""Keep the runs that this process drives: renew their leases, and read their mailboxes.

One for all of them: ten thousand runs cost one look at the store each quarter of a second.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from msgspec import structs

from stretto.events.codec import UnknownEvent
from stretto.events.model import Event, MessageDropped
from stretto.ports.clock import Clock
from stretto.ports.journal import (
    Cache,
    CachedOutput,
    ExternalEvent,
    Fenced,
    Journal,
    Leased,
    LeaseOwner,
    Mailbox,
    Message,
)
from stretto.problems.errors import StrettoError
from stretto.text.visible import one_line, visible_line
from stretto.vocabulary.json_value import Json, Large
from stretto.vocabulary.names import RunId

LEASE_SECONDS = 30.0
POLL_SECONDS = 0.25
_MOST_LETTERS = 200  # of what is said about a message that does not count


class Driven(Protocol):
    def now(self) -> float: ...
    def queue(self, event: Event, durable: asyncio.Future[None]) -> None: ...
    def on_lease_lost(self, error: StrettoError) -> None: ...


class Store(Journal, Mailbox, Cache, Protocol):
    """All that one store offers."""


class Lease:
    """One run, held by this process until its lease runs out."""

    def __init__(
        self, store: Store, clock: Clock, run_id: RunId, fence: int, seconds: float, until: float
    ) -> None:
        self.run_id = run_id
        self.fence = fence
        self.is_held = True
        self._store = store
        self._clock = clock
        self._seconds = seconds
        self._until = until

    @classmethod
    async def take(
        cls,
        store: Store,
        clock: Clock,
        run_id: RunId,
        owner: str,
        seconds: float = LEASE_SECONDS,
        first: Event | None = None,
    ) -> "Lease":
        """`first`: with which a new run begins. Raises Leased, and for a new run RefusedToOverwrite."""
        until = clock.now() + seconds
        if first is None:
            fence = await store.lease(run_id, owner, seconds)
        else:
            fence = await store.begin(run_id, owner, seconds, first)
        return cls(store, clock, run_id, fence, seconds, until)

    async def confirm(self) -> None:
        """Call this before an effect. Raises Fenced when another process has taken the run over.

        A process that was away (stopped, suspended, busy) for longer than its lease does not know,
        and so asks the store. It goes on only if nobody has taken the run meanwhile.
        """
        if self._clock.now() >= self._until:
            await self.renew()

    async def renew(self) -> None:
        asked_at = self._clock.now()
        await self._store.renew(self.run_id, fence=self.fence, seconds=self._seconds)
        self._until = asked_at + self._seconds

    async def release(self) -> None:
        try:
            await self._store.release(self.run_id, fence=self.fence)
        finally:
            self.is_held = False


@dataclass(frozen=True, slots=True)
class RunJournal:
    """The store as the driver of one run sees it."""

    store: Store
    lease: Lease

    async def append(self, events: Sequence[Event]) -> Mapping[int, Large]:
        return await self.store.append(self.lease.run_id, events, fence=self.lease.fence)

    async def put(self, key: str, output: Json) -> None:
        await self.store.put(key, CachedOutput(output, self.lease.run_id))

    async def get(self, key: str) -> CachedOutput | None:
        return await self.store.get(key)


async def take_lease(
    store: Store,
    clock: Clock,
    run_id: RunId,
    owner: LeaseOwner,
    seconds: float,
    first: Event | None = None,
) -> Lease:
    """Raises Leased while another process holds the run and may be alive. `first`: as in `Lease.take`."""
    try:
        return await Lease.take(store, clock, run_id, owner.name, seconds, first)
    except Leased as held:
        if not owner.is_dead(held.by):
            raise
        # The lease of a process that was killed need not run out first. Leasing by the
        # dead process's name fences it off, in case it is alive after all, and releasing that
        # lease makes room. If two processes do this at once, the store gives the run to one.
        await (await Lease.take(store, clock, run_id, held.by, seconds)).release()
        return await Lease.take(store, clock, run_id, owner.name, seconds, first)


class LeaseKeeper:
    def __init__(
        self,
        store: Store,
        lease_seconds: float = LEASE_SECONDS,
        why_dropped: Callable[[RunId, ExternalEvent], str] = lambda run_id, event: "",
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        """`why_dropped`: why a message does not count; it is dropped, with a warning in the log."""
        self._store = store
        self._why_dropped = why_dropped
        self._renew_seconds = lease_seconds / 3
        self._poll_seconds = poll_seconds
        self._driven: dict[RunId, tuple[Lease, Driven]] = {}
        # By number, the messages that were seen. Done: it is on record. None: it needs no more work.
        self._seen: dict[RunId, dict[int, asyncio.Future[None] | None]] = {}
        self._task: asyncio.Task[None] | None = None

    def add(self, lease: Lease, driven: Driven) -> None:
        self._driven[lease.run_id] = (lease, driven)
        if self._task is None:
            self._task = asyncio.create_task(self._keep())

    def remove(self, run_id: RunId) -> None:
        self._driven.pop(run_id, None)
        self._seen.pop(run_id, None)
        if not self._driven and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        renew_at = loop.time() + self._renew_seconds
        while True:
            await asyncio.sleep(min(self._poll_seconds, self._renew_seconds))
            await self.poll_mailbox()
            if loop.time() >= renew_at:
                await self._renew()
                renew_at = loop.time() + self._renew_seconds

    async def poll_mailbox(self) -> None:
        """Tell the drivers what was sent to them. A store that cannot be read now is read again later."""
        with suppress(StrettoError):
            mine = [m for m in await self._store.pending() if m.run_id in self._driven]
            for message in mine:
                self._tell(message)
            for run_id in {message.run_id for message in mine}:
                await self.acknowledge(run_id)

    async def acknowledge(self, run_id: RunId) -> None:
        """Empty the run's mailbox of what is on record. Only of that: a message that its driver was
        told and did not write down is for whoever drives the run next."""
        seen = self._seen.get(run_id, {})
        numbers = [number for number, durable in seen.items() if durable and durable.done()]
        if numbers:
            # What stays in the mailbox is read again, and counts once.
            with suppress(StrettoError):
                await self._store.acknowledge(numbers)
                seen.update(dict.fromkeys(numbers))

    def _tell(self, message: Message) -> None:
        driven = self._driven[message.run_id][1]
        seen = self._seen.setdefault(message.run_id, {})
        if message.number in seen:
            return
        try:
            event = self._event_of(message, driven.now())
        except StrettoError:
            return  # it is tried again later
        except Exception as error:  # no message may cost all runs their keeper
            seen[message.number] = None
            _say(message, f"cannot read a message ({type(error).__name__}: {error})")
            return
        seen[message.number] = durable = asyncio.get_running_loop().create_future()
        driven.queue(event, durable)

    def _event_of(self, message: Message, now: float) -> Event:
        """What the run is told, at the time when it learns of it: its clock never runs backwards."""
        event = message.event
        if isinstance(event, ExternalEvent) and not (
            why := self._why_dropped(message.run_id, event)
        ):
            return structs.replace(event, at=now)
        if isinstance(event, UnknownEvent):
            why = f"a message that {event.reason}"
        elif not isinstance(event, ExternalEvent):
            why = f"a message that only its driver may write ({event.type})"
        why = one_line(visible_line(why), _MOST_LETTERS)
        _say(message, f"ignored {why}")
        return MessageDropped(now, why)

    async def _renew(self) -> None:
        # Together: what is asked of a store at once costs it one commit.
        await asyncio.gather(*(self._renew_one(*it) for it in self._driven.values()))

    async def _renew_one(self, lease: Lease, driven: Driven) -> None:
        try:
            await lease.renew()
        except Fenced as error:
            driven.on_lease_lost(error)
        except StrettoError:
            pass  # a full disk: the next append says so, and louder


def _say(message: Message, what: str) -> None:
    import logging  # seldom

    logging.getLogger("stretto.execution").warning(
        "stretto: run %s: %s in its mailbox", message.run_id, one_line(visible_line(what))
    )
