"""Fire what is due, and start the runs that are owed. In: the triggers of a project. Out: runs.

Two halves, with a record between them. First a fire is recorded, with the id of its run, once by its
key; then its run is started by that id. Whoever is killed in between leaves a fire that is queued:
the next process starts its run, or finds that the run is in the journal already.
"""

import asyncio
import fcntl
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar
from zoneinfo import ZoneInfo

from stretto.assembly.request import RunRequest
from stretto.config.home import make_private
from stretto.execution.runs import new_run_id
from stretto.problems.errors import RefusedToOverwrite, StrettoError
from stretto.triggers.arrivals import NOT_TEXT, FolderWatch, versions_in
from stretto.triggers.cron import CronSchedule, due, next_fires
from stretto.triggers.store import TriggerStore, has_triggers
from stretto.triggers.trigger import Trigger, TriggerFire
from stretto.vocabulary.names import RunId

if TYPE_CHECKING:
    from stretto.assembly.engine import Engine
    from stretto.assembly.goal_executor import Launch, OpenRun

_TICK_SECONDS = 0.5
_STANDBY_SECONDS = 2.0
_MOST_STARTED = 100  # runs that one look may start
_MOST_QUEUED = 1_000  # fires of one trigger that may wait for its last run
LONGEST_WHY = 2_000  # characters
_LOOKED_AT = 50  # started fires of a trigger, newest first, among which one may still run
_T = TypeVar("_T")
_log = logging.getLogger("stretto.triggers")


@dataclass(slots=True)
class _Watched:
    """What the loop remembers of a trigger between two looks. It may forget all of it."""

    next_at: float = 0.0  # of a schedule: no fire is due before
    of: Trigger | None = None
    folder: FolderWatch = field(default_factory=FolderWatch)
    fault: str = ""


class WithStore(Protocol):
    async def __call__(self, work: Callable[[TriggerStore], _T]) -> _T:
        """Do something with the store, in a thread."""
        ...


def new_fire(trigger: Trigger, key: str, due_at: float, now: float) -> TriggerFire:
    return TriggerFire(trigger.name, trigger.kind, key, new_run_id(), due_at, now, "queued")


class TriggerLoop:
    def __init__(
        self,
        with_store: WithStore,
        wall: Callable[[], float],
        engine: "Engine",
        launch: "Launch",
        open_run: "OpenRun",
        tell: Callable[[TriggerFire], None] | None = None,
    ) -> None:
        self._launch = launch
        self._open_run = open_run
        self._with_store = with_store
        self._wall = wall
        self._engine = engine
        self._tell = tell or (lambda fire: None)
        self._watched: dict[str, _Watched] = {}
        self._last_now = 0.0

    async def run(self) -> None:
        home = self._engine.project.settings.home
        while True:
            try:
                with _alone(home, self._engine.project.settings.project) as is_alone:
                    if is_alone:
                        await self._serve(home)
            except OSError as error:  # a home that cannot be written to: it may be mended
                _log.warning("triggers: %s", error)
            await asyncio.sleep(_STANDBY_SECONDS)

    async def _serve(self, home: Path) -> None:
        has_recovered = False
        while True:
            try:
                if has_triggers(home):
                    if not has_recovered:
                        await self.recover()
                        has_recovered = True
                    await self.look()
            # A full disk, a locked file: the next look may work.
            except (StrettoError, OSError, sqlite3.Error) as error:
                said = error.with_hint if isinstance(error, StrettoError) else error
                _log.warning("triggers: %s", said)
            await asyncio.sleep(_TICK_SECONDS)

    async def look(self) -> None:
        """Record what is due now, and start what is queued."""
        await self._with_store(self._record_due)
        await self._start_queued()

    async def recover(self) -> None:
        """Go on with the runs that were started here and that nobody drives any more."""
        fires = await self._with_store(lambda store: store.fires(status="started"))
        for fire in fires:
            with suppress(StrettoError):
                await self._go_on(fire)

    def _record_due(self, store: TriggerStore) -> None:
        now = self._wall()
        if now < self._last_now:  # somebody has set the clock back
            self._watched.clear()
        self._last_now = now
        triggers = store.all()
        for trigger in triggers:
            watched = self._watched.setdefault(trigger.name, _Watched())
            try:
                self._record_one(store, trigger, watched, now)
                watched.fault = ""
            except Exception as error:  # one that cannot be looked at must not stop the others
                said = error.message if isinstance(error, StrettoError) else repr(error)
                if watched.fault != said:  # told once, not twice a second
                    _log.warning("%s %s: %s", trigger.kind, trigger.name, said)
                watched.fault = said
        for name in set(self._watched) - {each.name for each in triggers}:
            del self._watched[name]

    def _record_one(
        self, store: TriggerStore, trigger: Trigger, watched: _Watched, now: float
    ) -> None:
        if trigger.is_paused:
            return
        if trigger.kind == "schedule":
            self._record_schedule(store, trigger, watched, now)
        elif trigger.kind == "folder":
            self._record_files(store, trigger, watched, now)

    def _record_schedule(
        self, store: TriggerStore, trigger: Trigger, watched: _Watched, now: float
    ) -> None:
        is_same = watched.of == replace(trigger, decided_until=0.0)
        if is_same and now < watched.next_at:
            return
        schedule = CronSchedule(trigger.cron, trigger.zone)
        found = due(schedule, trigger.missed, trigger.decided_until, now)
        zone = ZoneInfo(trigger.zone)
        fires = []
        for each in found.fires:
            # The key is the moment, whatever the zone calls it.
            key = datetime.fromtimestamp(each.at, UTC).isoformat()
            fire = new_fire(trigger, key, each.at, now)
            fires.append(fire if each.is_run else replace(fire, status="skipped", why=each.why))
            if not each.is_run:
                local = datetime.fromtimestamp(each.at, zone).isoformat()
                _log.warning("schedule %s: the fire of %s was %s", trigger.name, local, each.why)
        store.record(trigger.name, fires, decided_until=found.until)
        watched.of = replace(trigger, decided_until=0.0)
        watched.next_at = next(next_fires(schedule, found.until), float("inf"))

    def _record_files(
        self, store: TriggerStore, trigger: Trigger, watched: _Watched, now: float
    ) -> None:
        found = versions_in(Path(trigger.folder), trigger.pattern)
        seen = store.seen(trigger.name)
        ready = watched.folder.settled(trigger, found, seen, time.monotonic())
        fires = [self._file_fire(trigger, *file, now) for file in sorted(ready.items())]
        for each in fires:
            if each.status == "failed":
                _log.warning("folder %s: %s: %s", trigger.name, each.key, each.why)
        gone = [name for name in seen if name not in found]
        if ready or gone:
            store.record_files(trigger, fires, ready, gone)

    def _file_fire(self, trigger: Trigger, name: str, version: str, now: float) -> TriggerFire:
        fire = new_fire(trigger, f"{name}@{version}", now, now)
        if version.startswith(NOT_TEXT):
            why = "its name is not UTF-8, and no input can hold it: rename the file"
            return replace(fire, status="failed", why=why)
        return replace(fire, inputs={trigger.input: self._path(trigger, name)})

    def _path(self, trigger: Trigger, name: str) -> str:
        project = self._engine.project.settings.project.resolve()
        path = Path(trigger.folder) / name
        return str(path.relative_to(project) if path.is_relative_to(project) else path)

    async def _start_queued(self) -> None:
        queued = await self._with_store(
            lambda store: store.fires(status="queued", limit=_MOST_STARTED + _MOST_QUEUED)
        )
        triggers = (
            {each.name: each for each in await self._with_store(TriggerStore.all)} if queued else {}
        )
        waiting: dict[str, int] = {}
        started = 0
        for fire in queued:
            if started == _MOST_STARTED:  # the next look goes on with the rest
                return
            trigger = triggers.get(fire.trigger)
            if trigger is None:
                continue
            if trigger.name in waiting:
                waiting[trigger.name] += 1
                if waiting[trigger.name] > _MOST_QUEUED:
                    await self._settle(fire, "skipped", f"{_MOST_QUEUED:,} wait already")
                continue
            if await self._is_ready(trigger, fire):
                await self._start(trigger, fire)
                started += 1
            elif trigger.overlap == "queue":
                waiting[trigger.name] = 1

    async def _is_ready(self, trigger: Trigger, fire: TriggerFire) -> bool:
        """By its policy for overlaps: whether its run may start now. One that may never is settled."""
        if trigger.overlap == "allow" or fire.key.startswith("now:"):
            return True
        runs = await self._engine.runs_of()
        if await runs.is_known(RunId(fire.run_id)):  # it was started, and not settled
            return True
        active = await self._active(trigger)
        if not active:
            return True
        if trigger.overlap == "skip":
            await self._settle(fire, "skipped", f"its last run {active[0]} had not ended")
        elif trigger.overlap == "cancel-previous":
            for id in active:
                with suppress(StrettoError):  # it may end at this moment
                    await self._open_run(id).cancel(f"{trigger.name} has fired again")
            return True
        return False

    async def _active(self, trigger: Trigger) -> list[RunId]:
        fires = await self._with_store(
            lambda store: store.fires(trigger.name, "started", _LOOKED_AT)
        )
        runs = await self._engine.runs_of()
        found = []
        for fire in fires:
            row = await runs.row(RunId(fire.run_id))
            if row is not None and row.ended_at is None:
                found.append(row.run_id)
        return found

    async def _start(self, trigger: Trigger, fire: TriggerFire) -> None:
        runs = await self._engine.runs_of()
        if await runs.is_known(RunId(fire.run_id)):  # a process died before it could say so
            await self._settle(fire, "started")
            with suppress(StrettoError):
                await self._go_on(fire)
            return
        request = RunRequest(
            trigger.workflow,
            {**trigger.inputs, **fire.inputs},
            permission=trigger.permission,
            owner=fire.owner,
            run_id=RunId(fire.run_id),
            trigger=f"{trigger.kind} {trigger.name}",
            kept=frozenset(fire.inputs),
        )
        try:
            prepared = await self._engine.prepare(request)
            await self._launch(prepared, None)
        except RefusedToOverwrite:
            await self._settle(fire, "started")
        except StrettoError as error:
            await self._settle(fire, "failed", error.with_hint)
        except Exception as error:  # a fault of ours with one fire must not stop the others
            _log.exception("%s %s: run %s", fire.kind, fire.trigger, fire.run_id)
            await self._settle(fire, "failed", f"{type(error).__name__}: {error}")
        else:
            await self._settle(fire, "started")

    async def _go_on(self, fire: TriggerFire) -> None:
        run = self._open_run(RunId(fire.run_id))
        if await run.status() == "interrupted":
            await run.resume()

    async def _settle(self, fire: TriggerFire, status: str, why: str = "") -> None:
        why = self._engine.project.redactor.text(why)[:LONGEST_WHY]
        await self._with_store(lambda store: store.settle(fire, status, why))
        if status != "started":
            _log.warning("%s %s: run %s %s: %s", fire.kind, fire.trigger, fire.run_id, status, why)
        self._tell(replace(fire, status=status, why=why))


@contextmanager
def _alone(home: Path, project: Path) -> Iterator[bool]:
    """Whether no other process fires the triggers of this project now. The kernel gives the lock back
    when a process dies."""
    mark = sha256(str(project).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    make_private(home / "locks")
    lock = os.open(home / "locks" / f"triggers-{mark}", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(lock)
