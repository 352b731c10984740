"""What one transaction writes: events, leases, messages and cached outputs."""

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, repeat
from typing import TypeAlias

from stretto.adapters.stores.sqlite_file import roll_back
from stretto.events.model import Event, RunEnded, RunResumed, RunStarted
from stretto.ports.journal import Fenced, Leased
from stretto.problems.errors import RefusedToOverwrite, StrettoError
from stretto.vocabulary.names import RunId
from stretto.vocabulary.statuses import RunStatus

_LISTED = (RunStarted, RunResumed, RunEnded)  # what the list of runs is made of
_ROWS_AT_ONCE = 100
_RUNS_AT_ONCE = 50
REMOVED = "removed"  # the status of a run of which nothing else is left
_FORGET = (
    # The newest row of all keeps its number, empty: the next event would be given it again, and whoever
    # asks for what is new after that number would miss it.
    """
    UPDATE events SET seq = 0, event = ''
    WHERE run = :run AND rowid = (SELECT max(rowid) FROM events)
    """,
    "DELETE FROM events WHERE run = :run AND seq > 0",
    """
    DELETE FROM large_values WHERE digest IN (SELECT digest FROM large_value_uses WHERE run = :run)
    AND NOT EXISTS (SELECT 1 FROM large_value_uses others
        WHERE others.digest = large_values.digest AND others.run != :run)
    """,
    "DELETE FROM large_value_uses WHERE run = :run",
    "DELETE FROM kept_outputs WHERE run_id = :run_id",
    "DELETE FROM mailbox WHERE run_id = :run_id",
    """
    UPDATE runs SET owner = NULL, status = :removed, workflow = NULL, started_at = NULL,
        ended_at = NULL WHERE id = :run
    """,
)
BeginRun: TypeAlias = tuple[RunId, str, float, float, Event, str]  # what `begin_run` takes
_LONGEST_LEASE_SECONDS = 86_400
# Before the machine was started again, or on another one, time was counted by another clock. What
# seems to last for more than a day then was leased by a clock that went wrong, and is over.
IN_FORCE = (
    f"owner IS NOT NULL AND leased_until > :now AND leased_until <= :now + {_LONGEST_LEASE_SECONDS}"
)


@dataclass(slots=True)
class _Held:
    id: int
    fence: int
    last_seq: int


class Ledger:
    """The writer's side of the file, used between `begin` and `commit`.

    It remembers the runs that it appends to, so that an append costs one row and no question. What
    it remembers holds until another connection writes, which SQLite tells by `data_version`.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        note: Callable[[Mapping[RunId, int]], None] = lambda last: None,
    ) -> None:
        """`note`: is told the last event of each run that a commit has appended to."""
        self._db = db
        self._note = note
        self._last: dict[RunId, int] = {}  # by run, of those that this transaction appends to
        self._held: dict[RunId, _Held] = {}
        self._new: dict[RunId, _Held] = {}  # entered by this transaction, and not yet begun
        self._rows: list[tuple[int, int, str]] = []  # not yet inserted
        self._version: int | None = None

    def begin(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        (version,) = self._db.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self._held.clear()
            self._version = version

    def commit(self) -> None:
        self._insert()
        self._db.execute("COMMIT")
        if self._last:
            self._note(self._last)
            self._last.clear()

    def roll_back(self) -> None:
        self._rows.clear()
        self._held.clear()
        self._new.clear()
        self._last.clear()
        roll_back(self._db)

    def append(
        self,
        run_id: RunId,
        fence: int,
        events: Sequence[Event],
        rows: Sequence[str],
        large: Sequence[tuple[str, str]] = (),
    ) -> None:
        """`large`: digests and values that the rows refer to. In one transaction with them."""
        run = self._find(run_id, fence)
        for digest, value in large:
            self._keep_large(run.id, digest, value)
        self._rows += zip(repeat(run.id), count(run.last_seq + 1), rows, strict=False)
        run.last_seq += len(rows)
        self._last[run_id] = run.last_seq
        for event in events:
            if isinstance(event, _LISTED):
                self._list(run.id, event)

    def begin_new(self, begun: Iterable[BeginRun]) -> None:
        """Enter runs that begin in this transaction, as far as nobody has had them before: `begin_run`
        then finds them entered. All in one statement, because sqlite3 gives the interpreter up for
        each, and among busy threads it gets it back late."""
        wanted = [
            (run_id, owner, now + seconds, first.workflow, RunStatus.RUNNING.value, first.at)
            for run_id, owner, now, seconds, first, _ in begun
            if isinstance(first, RunStarted)
        ]
        for at in range(0, len(wanted), _RUNS_AT_ONCE):
            some = wanted[at : at + _RUNS_AT_ONCE]
            places = ", ".join(["(?, 1, ?, ?, ?, ?, ?)"] * len(some))
            sql = f"""
                INSERT INTO runs (run_id, fence, owner, leased_until, workflow, status, started_at)
                VALUES {places} ON CONFLICT (run_id) DO NOTHING RETURNING run_id, id
                """
            for run_id, id in self._db.execute(sql, [*chain.from_iterable(some)]).fetchall():
                self._new[RunId(run_id)] = _Held(id, 1, 0)

    def begin_run(
        self, run_id: RunId, owner: str, now: float, seconds: float, first: Event, row: str
    ) -> int:
        if (new := self._new.pop(run_id, None)) is not None:
            self._held[run_id] = new
            self._rows.append((new.id, 1, row))
            self._last[run_id] = new.last_seq = 1
            return new.fence
        run = self._lease_known(run_id, owner, now, seconds)
        self._held[run_id] = run  # as yet it has no event
        self.append(run_id, run.fence, (first,), (row,))
        return run.fence

    def _lease_known(self, run_id: RunId, owner: str, now: float, seconds: float) -> _Held:
        """Lease a run that others may have leased. Raises RefusedToOverwrite if it has begun."""
        begun = "SELECT 1 FROM runs WHERE run_id = ? AND (started_at IS NOT NULL OR status = ?)"
        if self._db.execute(begun, (run_id, REMOVED)).fetchone() is not None:
            raise RefusedToOverwrite(f"there is a run {run_id} already")
        return self._take(run_id, owner, now, seconds)

    def lease(self, run_id: RunId, owner: str, now: float, seconds: float) -> int:
        return self._take(run_id, owner, now, seconds).fence

    def _take(self, run_id: RunId, owner: str, now: float, seconds: float) -> _Held:
        held = f"""
            SELECT owner, leased_until FROM runs
            WHERE run_id = :run_id AND owner != :owner AND {IN_FORCE}
            """
        asked = {"run_id": run_id, "owner": owner, "now": now}
        if (row := self._db.execute(held, asked).fetchone()) is not None:
            raise Leased(run_id, row[0], row[1] - now)
        self._held.pop(run_id, None)
        self._new.pop(run_id, None)
        take = """
            INSERT INTO runs (run_id, fence, owner, leased_until) VALUES (?, 1, ?, ?)
            ON CONFLICT (run_id) DO UPDATE
            SET fence = fence + 1, owner = excluded.owner, leased_until = excluded.leased_until
            RETURNING id, fence
            """
        ((id, fence),) = self._db.execute(take, (run_id, owner, now + seconds)).fetchall()
        return _Held(id, fence, 0)

    def renew(self, run_id: RunId, fence: int, until: float) -> None:
        run = self._find(run_id, fence)
        self._db.execute("UPDATE runs SET leased_until = ? WHERE id = ?", (until, run.id))

    def release(self, run_id: RunId, fence: int) -> None:
        self._held.pop(run_id, None)
        sql = "UPDATE runs SET owner = NULL WHERE run_id = ? AND fence = ?"
        self._db.execute(sql, (run_id, fence))

    def forget(self, run_id: RunId, fence: int) -> None:
        """The row stays, without anything but its id: who finds the run missing in the journal then
        knows that it was not lost."""
        run = self._find(run_id, fence)
        self._insert()
        self._held.pop(run_id, None)
        self._last.pop(run_id, None)
        for sql in _FORGET:
            self._db.execute(sql, {"run": run.id, "run_id": run_id, "removed": REMOVED})

    def send(self, run_id: RunId, event: str) -> None:
        self._db.execute("INSERT INTO mailbox (run_id, event) VALUES (?, ?)", (run_id, event))

    def acknowledge(self, numbers: Sequence[int]) -> None:
        self._db.executemany("DELETE FROM mailbox WHERE number = ?", [(n,) for n in numbers])

    def keep(self, key: str, run_id: str, output: str) -> None:
        sql = "INSERT OR REPLACE INTO kept_outputs VALUES (?, ?, ?)"
        self._db.execute(sql, (key, run_id, output))

    def _keep_large(self, run: int, digest: str, value: str) -> None:
        """Raises StrettoError where an answer that is reused was removed with its run meanwhile."""
        if value:
            sql = "INSERT OR IGNORE INTO large_values (digest, value) VALUES (?, ?)"
            self._db.execute(sql, (digest, value))
        elif not self._db.execute(
            "SELECT 1 FROM large_values WHERE digest = ?", (digest,)
        ).fetchone():
            raise StrettoError(
                f"the large output {digest[:12]} was removed with the run that made it",
                hint="stretto resume goes on: the step is done again",
            )
        self._db.execute("INSERT OR IGNORE INTO large_value_uses VALUES (?, ?)", (digest, run))

    def _find(self, run_id: RunId, fence: int) -> _Held:
        run = self._held.get(run_id) or self._look_up(run_id)
        if run is None or run.fence != fence:
            raise Fenced(run_id, fence)
        return run

    def _look_up(self, run_id: RunId) -> _Held | None:
        self._insert()  # or the last seq would not be the last
        sql = """
            SELECT id, fence, (SELECT coalesce(max(seq), 0) FROM events WHERE run = runs.id)
            FROM runs WHERE run_id = ? AND owner IS NOT NULL
            """
        row = self._db.execute(sql, (run_id,)).fetchone()
        if row is None:
            return None
        return self._held.setdefault(run_id, _Held(*row))

    def _insert(self) -> None:
        # Many rows a statement: sqlite3 gives the interpreter up once for each, and has to wait
        # for its turn to get it back. Not all rows in one, for each length is prepared and kept.
        for at in range(0, len(self._rows), _ROWS_AT_ONCE):
            rows = self._rows[at : at + _ROWS_AT_ONCE]
            places = ", ".join(["(?, ?, ?)"] * len(rows))
            self._db.execute(f"INSERT INTO events VALUES {places}", [*chain.from_iterable(rows)])
        self._rows.clear()

    def _list(self, run: int, event: RunStarted | RunResumed | RunEnded) -> None:
        match event:
            case RunStarted():
                sql = "UPDATE runs SET workflow = ?, status = ?, started_at = ? WHERE id = ?"
                self._db.execute(sql, (event.workflow, RunStatus.RUNNING.value, event.at, run))
            case RunResumed():
                sql = "UPDATE runs SET status = ?, ended_at = NULL WHERE id = ?"
                self._db.execute(sql, (RunStatus.RUNNING.value, run))
            case RunEnded():
                sql = "UPDATE runs SET status = ?, ended_at = ? WHERE id = ?"
                self._db.execute(sql, (str(event.status), event.at, run))
                # Messages that were sent too late cannot be acted on any more.
                late = "DELETE FROM mailbox WHERE run_id = (SELECT run_id FROM runs WHERE id = ?)"
                self._db.execute(late, (run,))
