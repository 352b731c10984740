"""Which finished runs are kept, and how the others are removed. In: rows of runs. Out: those that go.

A run that has not ended is never removed: it waits for a person, or can be resumed. Nor is one whose
change awaits `stretto apply`, unless it is named.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from stretto.execution.history import load
from stretto.execution.leases import Lease, Store
from stretto.ports.journal import Leased, RunRow
from stretto.ports.workspace import Workspaces
from stretto.problems.errors import InvalidUsage, StrettoError
from stretto.schedule.state import StepState
from stretto.vocabulary.amounts import Retention
from stretto.vocabulary.names import RunId

_ALL = 1_000_000
_AT_ONCE = 20  # removed together: they share their commits, and others get their turn between


@dataclass(frozen=True, slots=True)
class Expired:
    runs: tuple[RunRow, ...]
    needed: tuple[RunRow, ...]  # expired too, but a change of theirs is merged nowhere


def find_expired(rows: Iterable[RunRow], retention: Retention, now: float) -> list[RunRow]:
    """`rows`: newest first. Out: those that have ended, beyond the number or beyond the age."""
    ended = [(row, row.ended_at) for row in rows if row.ended_at is not None]
    kept = len(ended) if retention.runs is None else retention.runs
    age = retention.age_seconds
    return [
        row
        for place, (row, ended_at) in enumerate(ended)
        if place >= kept or (age is not None and ended_at < now - age)
    ]


class RunRemoval:
    def __init__(
        self,
        store: Store,
        workspaces: Workspaces | None,
        take_lease: Callable[[RunId], Awaitable[Lease]],
    ) -> None:
        self._store = store
        self._workspaces = workspaces
        self._take_lease = take_lease

    async def expired(self, retention: Retention, now: float) -> Expired:
        if not retention.is_limited:
            return Expired((), ())
        going: list[RunRow] = []
        needed: list[RunRow] = []
        for row in find_expired(await self._store.runs(_ALL), retention, now):
            (needed if await self._is_needed(row.run_id) else going).append(row)
        return Expired(tuple(going), tuple(needed))

    async def check_ended(self, run_id: RunId) -> RunRow:
        """Raises InvalidUsage for a run that may go on, and NotFound."""
        row = await self._store.run(run_id)
        if row is None:
            await load(self._store, run_id)  # says which runs there are
            raise InvalidUsage(f"run {run_id} cannot be removed: its journal has no start")
        if row.ended_at is None:
            hint = f"stretto cancel {run_id} ends it; stretto resume {run_id} continues it"
            raise InvalidUsage(
                f"run {run_id} has not ended: only runs that have are removed", hint=hint
            )
        return row

    async def remove(self, run_ids: Sequence[RunId]) -> list[RunId]:
        """Out: those that were removed. One that another process uses just now is left."""
        found: list[RunId] = []
        for at in range(0, len(run_ids), _AT_ONCE):
            some = run_ids[at : at + _AT_ONCE]
            done = await asyncio.gather(*map(self._remove, some))
            found += [run_id for run_id, is_gone in zip(some, done, strict=True) if is_gone]
        return found

    async def compact(self) -> None:
        await self._store.compact()

    async def _remove(self, run_id: RunId) -> bool:
        try:
            lease = await self._take_lease(run_id)
        except Leased:
            return False
        try:
            # Files first: a crash leaves a run in the list, which the next try removes.
            if self._workspaces is not None:
                await self._workspaces.remove_run(run_id)
            await self._store.forget(run_id, fence=lease.fence)
        finally:
            await lease.release()
        return True

    async def _is_needed(self, run_id: RunId) -> bool:
        try:
            state = (await load(self._store, run_id)).state
        except StrettoError:  # nobody can read it, so nobody can apply anything of it
            return False
        return any(map(_awaits_merge, state.order))


def _awaits_merge(step: StepState) -> bool:
    found = step.changes
    if found is None or not found.artifact or found.is_merged or found.is_refused:
        return False
    return step.planned.merge_back != "never" and bool(found.files or found.conflicts)
