"""A store of journals in memory, for tests and trials.

It keeps the rows as text, as the one on disk does: what cannot be written there fails here too,
and nobody can change an event after it was appended.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stretto.events.codec import UnknownEvent, decode, encode
from stretto.events.model import Event, ModelSpoke, RunEnded, RunResumed, RunStarted
from stretto.ports.journal import (
    CachedOutput,
    ExternalEvent,
    Fenced,
    JournalFull,
    Leased,
    Loss,
    Message,
    RunNews,
    RunRow,
    StoredEvent,
)
from stretto.problems.errors import RefusedToOverwrite
from stretto.vocabulary.json_value import Large
from stretto.vocabulary.names import RunId
from stretto.vocabulary.statuses import RunStatus


@dataclass(slots=True)
class _Run:
    rows: list[str] = field(default_factory=list)
    listed: RunRow | None = None
    fence: int = 0
    owner: str | None = None
    leased_until: float = 0.0
    is_removed: bool = False


class MemoryJournal:
    """`capacity` is how many characters fit, for tests of what happens when no more do."""

    is_shared = False

    def __init__(
        self, now: Callable[[], float] = time.monotonic, capacity: int | None = None
    ) -> None:
        self._now = now
        self._capacity = capacity
        self._runs: dict[RunId, _Run] = {}
        self._mailbox: dict[int, Message] = {}
        self._last_number = 0
        self._kept: dict[str, tuple[str, str]] = {}  # by key: an output as JSON, and its run
        self._appended: list[RunId] = []  # the run of each event, in order
        self._is_closed = False

    async def append(
        self, run_id: RunId, events: Sequence[Event], *, fence: int
    ) -> Mapping[int, Large]:
        rows = [encode(event) for event in events]
        run = self._check_fence(run_id, fence)
        if self._capacity is not None:
            self._capacity -= self._fitting(rows)
        run.rows += rows
        self._appended += [run_id for event in events if type(event) is not ModelSpoke]
        for event in events:
            if type(event) in _LISTED:
                run.listed = _update_row(run.listed, event, run_id)
            if type(event) is RunEnded:
                self._mailbox = {n: m for n, m in self._mailbox.items() if m.run_id != run_id}
        return {}  # nothing lies anywhere else

    async def read(
        self, run_id: RunId, after: int = 0, *, with_speech: bool = True, limit: int | None = None
    ) -> list[StoredEvent]:
        self._check_open()
        run = self._runs.get(run_id, _Run())
        rows = enumerate(run.rows[max(after, 0) :], max(after, 0) + 1)
        events = [StoredEvent(seq, decode(row)) for seq, row in rows]
        found = [e for e in events if with_speech or not isinstance(e.event, ModelSpoke)]
        return found[:limit]

    async def first(self, run_id: RunId) -> Event | UnknownEvent | None:
        self._check_open()
        rows = self._runs.get(run_id, _Run()).rows
        return decode(rows[0]) if rows else None

    async def runs(self, limit: int = 50, before: RunId | None = None) -> list[RunRow]:
        self._check_open()
        listed = [
            replace(
                run.listed,
                leased_by=run.owner if run.leased_until > self._now() else None,
                is_let_go=run.owner is None,
            )
            for run in reversed(self._runs.values())
            if run.listed
        ]
        found = sorted(listed, key=lambda run: run.started_at, reverse=True)
        if before is not None:
            places = [place for place, run in enumerate(found) if run.run_id == before]
            found = found[places[0] + 1 :] if places else []
        return found[:limit]

    async def unended(self) -> list[RunRow]:
        return [row for row in await self.runs(len(self._runs)) if row.ended_at is None]

    async def run(self, run_id: RunId) -> RunRow | None:
        return next((row for row in await self.runs(len(self._runs)) if row.run_id == run_id), None)

    async def news(self, after: int | None) -> RunNews:
        self._check_open()
        last = len(self._appended)
        start = last if after is None else after
        return RunNews(last, tuple(dict.fromkeys(self._appended[start:])), start <= last)

    async def lease(self, run_id: RunId, owner: str, seconds: float) -> int:
        self._check_open()
        run, now = self._runs.get(run_id, _Run()), self._now()
        if run.owner not in (None, owner) and run.leased_until > now:
            raise Leased(run_id, str(run.owner), run.leased_until - now)
        run.fence, run.owner, run.leased_until = run.fence + 1, owner, now + seconds
        self._runs[run_id] = run
        return run.fence

    async def begin(self, run_id: RunId, owner: str, seconds: float, first: Event) -> int:
        self._check_open()
        row, run = encode(first), self._runs.get(run_id)
        if run is not None and (run.rows or run.is_removed):
            raise RefusedToOverwrite(f"there is a run {run_id} already")
        if self._capacity is not None:
            self._fitting([row])
        fence = await self.lease(run_id, owner, seconds)
        await self.append(run_id, [first], fence=fence)
        return fence

    async def renew(self, run_id: RunId, *, fence: int, seconds: float) -> None:
        self._check_fence(run_id, fence).leased_until = self._now() + seconds

    async def release(self, run_id: RunId, *, fence: int) -> None:
        self._check_open()
        run = self._runs.get(run_id)
        if run is not None and run.fence == fence:
            run.owner = None

    async def send(self, run_id: RunId, event: ExternalEvent) -> None:
        self._check_open()
        self._last_number += 1
        self._mailbox[self._last_number] = Message(self._last_number, run_id, event)

    async def pending(self) -> list[Message]:
        self._check_open()
        return list(self._mailbox.values())

    async def acknowledge(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._mailbox.pop(number, None)

    async def put(self, key: str, kept: CachedOutput) -> None:
        self._check_open()
        self._kept[key] = (json.dumps(kept.output, allow_nan=False), kept.run_id)

    async def get(self, key: str) -> CachedOutput | None:
        self._check_open()
        found = self._kept.get(key)
        return None if found is None else CachedOutput(json.loads(found[0]), found[1])

    async def forget(self, run_id: RunId, *, fence: int) -> None:
        run = self._check_fence(run_id, fence)
        # The fence stays: whoever drove the run long ago must not append to it.
        run.rows, run.listed, run.owner, run.is_removed = [], None, None, True
        self._mailbox = {n: m for n, m in self._mailbox.items() if m.run_id != run_id}
        self._kept = {key: kept for key, kept in self._kept.items() if kept[1] != run_id}

    async def compact(self) -> None:
        pass  # nothing is kept for what was removed

    def losses(self) -> Sequence[Loss]:
        return ()

    async def close(self) -> None:
        self._is_closed = True

    def _check_fence(self, run_id: RunId, fence: int) -> _Run:
        self._check_open()
        run = self._runs.get(run_id)
        if run is None or run.owner is None or run.fence != fence:
            raise Fenced(run_id, fence)
        return run

    def _fitting(self, rows: Sequence[str]) -> int:
        size = sum(map(len, rows))
        if size > (self._capacity or 0):
            raise JournalFull("the journal cannot be written: no space is left")
        return size

    def _check_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("this journal is closed")


# What a list of runs shows comes from these.
_LISTED = frozenset({RunStarted, RunResumed, RunEnded})


def _update_row(row: RunRow | None, event: Event, run_id: RunId) -> RunRow | None:
    match event:
        case RunStarted():
            return RunRow(run_id, event.workflow, RunStatus.RUNNING, event.at, None)
        case RunResumed() if row:
            return replace(row, status=RunStatus.RUNNING, ended_at=None)
        case RunEnded() if row:
            return replace(row, status=event.status, ended_at=event.at)
        case _:
            return row
