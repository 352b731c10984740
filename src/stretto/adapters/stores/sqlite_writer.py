"""The one thread that writes: changes that are asked for at the same time share one commit.

    append ─┐                  ┌ one thread ─────────────────┐
    append ─┼→ queue → batch → │ BEGIN, each change, COMMIT  │ → all futures at once
    lease  ─┘                  └─────────────────────────────┘

What is asked while one transaction commits goes into the next: many appends, one fsync.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeAlias, TypeVar, TypeVarTuple, cast

from stretto.adapters.stores.acknowledged import Acknowledged, check, losses
from stretto.adapters.stores.sqlite_file import (
    explain_error,
    lease_clock,
    open_for_writing,
    take_in_wal,
)
from stretto.adapters.stores.sqlite_ledger import BeginRun, Ledger
from stretto.ports.journal import Loss
from stretto.problems.errors import StrettoError

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")
# Who waits, which method of the ledger, and its arguments. A bare tuple: there are thousands.
_Request: TypeAlias = tuple[asyncio.Future[Any], Callable[..., object], tuple[Any, ...]]
_Outcomes: TypeAlias = list[tuple[asyncio.Future[Any], object]]


class Writer:
    """The one thread that writes.

    Handing over to it is a third of what a lone append costs, and still none is committed on the
    loop's thread: mostly that would take 0.2 ms, but 4 when the disk is busy, and seconds when
    another process holds the lock. SimpleQueue is the quickest way over that we measured.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._loop = asyncio.get_running_loop()
        self._queue = SimpleQueue[list[_Request] | None]()  # None: no more will come
        self._gathered: list[_Request] = []  # in this round of the loop
        self._opened: asyncio.Future[None] = self._loop.create_future()
        # A daemon, so that a program that forgets to close can exit; what was acknowledged is safe.
        self._thread = Thread(target=self._work, name="stretto-journal", daemon=True)
        self._is_closed = False
        self.lease_time: Callable[[], float] = time.time  # known once it is started
        self.losses: tuple[Loss, ...] = ()  # likewise

    async def start(self) -> None:
        self._thread.start()
        try:
            await self._opened
        except BaseException:
            await self.close()
            raise

    def submit(
        self, change: "Callable[[Ledger, *_Ts], _T]", *arguments: *_Ts
    ) -> asyncio.Future[_T]:
        self.check_open()
        done: asyncio.Future[_T] = self._loop.create_future()
        if not self._gathered:
            self._loop.call_soon(self._hand_over)
        self._gathered.append((done, change, arguments))
        return done

    def _hand_over(self) -> None:
        """What was submitted in one round of the loop, at once: waking the thread for each costs more."""
        gathered, self._gathered = self._gathered, []
        if gathered:
            self._queue.put(gathered)

    def check_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("this journal is closed")

    async def close(self) -> None:
        self.end()
        await asyncio.to_thread(self._thread.join)

    def end(self) -> None:
        """The thread writes what is queued, and ends."""
        if not self._is_closed:
            self._is_closed = True
            self._hand_over()
            self._queue.put(None)

    def _work(self) -> None:
        try:
            acknowledged = Acknowledged(self._path, check(self._path))
            self.losses = losses(self._path)
            db = open_for_writing(self._path)
            self.lease_time = lease_clock(db)
        except Exception as error:
            self._settle([(self._opened, explain_error(error))])
            return
        self._settle([(self._opened, None)])
        ledger = Ledger(db, acknowledged.note)
        with closing(acknowledged), closing(db):
            for batch in self._batches():
                self._settle(_commit(ledger, batch))
                if acknowledged.is_full:
                    acknowledged.forget(take_in_wal(db))

    def _batches(self) -> Iterator[list[_Request]]:
        """All that is queued, each time; nothing is queued after None."""
        is_open = True
        while is_open:
            taken = [self._queue.get()]
            while not self._queue.empty():
                taken.append(self._queue.get())
            is_open = taken[-1] is not None
            if batch := [request for some in taken if some is not None for request in some]:
                yield batch

    def _settle(self, outcomes: _Outcomes) -> None:
        # All at once: waking the loop costs more than a row.
        with suppress(RuntimeError):  # the loop is closed: no coroutine waits any more
            self._loop.call_soon_threadsafe(_resolve, outcomes)


def _resolve(outcomes: _Outcomes) -> None:
    for done, outcome in outcomes:
        if done.done():  # cancelled while it waited
            continue
        if isinstance(outcome, Exception):
            done.set_exception(outcome)
        else:
            done.set_result(outcome)


def _commit(ledger: Ledger, batch: Sequence[_Request]) -> _Outcomes:
    """What came of each: its result, or an exception. All in one transaction, if that can be."""
    try:
        ledger.begin()
    except sqlite3.Error as error:  # a lock, as a rule: it has been waited for long enough
        ledger.roll_back()
        return [(done, explain_error(error)) for done, _, _ in batch]
    try:
        if begun := list(_runs_to_begin(batch)):
            ledger.begin_new(begun)
        outcomes = [_outcome(ledger, request) for request in batch]
        ledger.commit()
    except Exception as error:
        ledger.roll_back()
        if len(batch) == 1:
            return [(batch[0][0], explain_error(error))]
        # One of them may be at fault, or too large: by itself, each answers only for itself.
        return [outcome for request in batch for outcome in _commit(ledger, [request])]
    return outcomes


def _runs_to_begin(batch: Iterable[_Request]) -> Iterator[BeginRun]:
    """Runs that begin, without those that are leased before it in the same batch."""
    leased = set[object]()
    for _, change, given in batch:
        if change is Ledger.lease:
            leased.add(given[0])
        elif change is Ledger.begin_run and given[0] not in leased:
            yield cast(BeginRun, given)


def _outcome(ledger: Ledger, request: _Request) -> tuple[asyncio.Future[Any], object]:
    done, change, arguments = request
    try:
        return done, change(ledger, *arguments)
    except StrettoError as refused:  # and it has written nothing: changes look before they write
        return done, refused
