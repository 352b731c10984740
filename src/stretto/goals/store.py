"""The goals of one user in one SQLite file: what was asked, what happened, and who drives each.

Every change is one transaction and is durable when the call returns. Who drives a goal has leased
it; every append shows the fence of its lease, so that of two processes one alone goes on.
"""

import hmac
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from stretto.config.database import open_database, transaction
from stretto.goals.goal import (
    GoalEnded,
    GoalEvent,
    GoalReopened,
    GoalSpec,
    GoalStanding,
    GoalState,
    decode_event,
    decode_spec,
    encode_goal,
    fold,
)
from stretto.ports.journal import Fenced, Leased
from stretto.problems.errors import NotFound, PlanNotAccepted, StrettoError
from stretto.text.short import did_you_mean

LEASE_SECONDS = 30.0
# One script a version: never change one that was released. No statement may hold a semicolon.
_MIGRATIONS = (
    """
    CREATE TABLE goals (
        id TEXT PRIMARY KEY,
        made_at REAL NOT NULL,
        spec TEXT NOT NULL, -- JSON
        state TEXT NOT NULL,
        worked REAL NOT NULL, -- seconds, as the last renewal of a lease said it
        fence INTEGER NOT NULL,
        owner TEXT, -- null: nobody drives it
        boot TEXT NOT NULL, -- whose clock the lease is counted by
        leased_until REAL NOT NULL,
        renewed_at REAL NOT NULL, -- the date, for a lease of another boot or machine
        clear_by TEXT -- who wants it cleared, as long as another process drives it
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE goal_events (
        goal TEXT NOT NULL REFERENCES goals (id),
        seq INTEGER NOT NULL,
        event TEXT NOT NULL, -- JSON
        PRIMARY KEY (goal, seq)
    ) STRICT, WITHOUT ROWID
    """,
    # Of the spec: a goal holds a command that a person has named, and nobody else may put one there.
    "ALTER TABLE goals ADD COLUMN seal TEXT NOT NULL DEFAULT ''",
)
_LEASE = "owner, boot, leased_until, renewed_at"
_DAMAGED = "keep a copy of it, then move it away: the goals in it are lost, their runs are not"


class GoalLeased(Leased):
    """Another process drives the goal."""

    def __init__(self, id: str, by: str) -> None:
        StrettoError.__init__(
            self,
            f"goal {id} is driven by {by.partition(' (')[0]}",
            hint=f"stretto goal show {id} says how it stands; stretto goal clear {id} ends it",
        )


class GoalFenced(Fenced):
    """Another process has taken the goal over."""

    def __init__(self, id: str) -> None:
        StrettoError.__init__(
            self,
            f"goal {id} is no longer driven from here",
            hint=f"another process took it over: stretto goal show {id}",
        )


@dataclass(frozen=True, slots=True)
class GoalOwner:
    """A process that drives goals, and the clock that leases are counted by."""

    name: str
    is_dead: Callable[[str], bool]
    boot: str  # clocks of two boots cannot be compared
    elapsed: Callable[[], float]
    now: Callable[[], float]
    secret: Callable[[], bytes]  # with which specs are sealed


@dataclass(frozen=True, slots=True)
class StoredGoal:
    standing: GoalStanding
    is_driven: bool
    worked: float
    clear_by: str | None


class GoalStore:
    """For one thread at a time."""

    def __init__(self, db: sqlite3.Connection, owner: GoalOwner) -> None:
        self._db = db
        self._owner = owner

    @classmethod
    def open(cls, file: Path, owner: GoalOwner) -> Self:
        """Raises StrettoError."""
        db = open_database(file, _MIGRATIONS, _DAMAGED)
        db.execute("PRAGMA synchronous = FULL")
        return cls(db, owner)

    def close(self) -> None:
        self._db.close()

    def add(self, id: str, spec: GoalSpec, made_at: float) -> None:
        written = encode_goal(spec)
        with transaction(self._db, "the goals"):
            self._db.execute(
                "INSERT INTO goals VALUES (?, ?, ?, ?, 0, 0, NULL, '', 0, 0, NULL, ?)",
                (id, made_at, written, GoalState.ACTIVE, self._seal(id, written)),
            )

    def check_seal(self, id: str) -> None:
        """Raises PlanNotAccepted where the goal is not as it was set: it may hold any command."""
        for spec, seal in self._read("SELECT spec, seal FROM goals WHERE id = ?", (id,)):
            if not hmac.compare_digest(
                str(seal).encode("utf-8", "replace"), self._seal(id, spec).encode()
            ):
                hint = f"read it (stretto goal show {id}), then set it again"
                raise PlanNotAccepted(f"goal {id} was changed since it was set", hint=hint)

    def _seal(self, id: str, spec: str) -> str:
        return hmac.new(self._owner.secret(), f"goal {id}\n{spec}".encode(), sha256).hexdigest()

    def ids(self) -> list[str]:
        """Newest first."""
        rows = self._read("SELECT id FROM goals ORDER BY made_at DESC, id DESC", ())
        return [id for (id,) in rows]

    def get(self, id: str) -> StoredGoal:
        """Raises NotFound."""
        sql = f"SELECT spec, made_at, worked, clear_by, {_LEASE} FROM goals WHERE id = ?"
        rows = self._read(sql, (id,))
        if not rows:
            raise self._unknown(id)
        spec, made_at, worked, clear_by, *lease = rows[0]
        written = self._read("SELECT event FROM goal_events WHERE goal = ? ORDER BY seq", (id,))
        try:
            events = [decode_event(text) for (text,) in written]
            standing = fold(id, decode_spec(spec), made_at, events)
        except ValueError as error:
            said = f"goal {id} cannot be read: {error}"
            raise StrettoError(said, hint="a newer Stretto may have written it") from error
        return StoredGoal(standing, self._holder(*lease) is not None, worked, clear_by)

    def _unknown(self, id: str) -> NotFound:
        hint = did_you_mean(id, self.ids()) or "stretto goal list shows them"
        return NotFound(f"there is no goal '{id}'", hint=hint)

    def lease(self, id: str) -> int:
        """The fence. Raises GoalLeased while another driver may be alive, and NotFound."""
        with transaction(self._db, "the goals"):
            row = self._db.execute(f"SELECT {_LEASE} FROM goals WHERE id = ?", (id,)).fetchone()
            if row is not None and (holder := self._holder(*row)) is not None:
                raise GoalLeased(id, holder)
            rows = self._db.execute(
                "UPDATE goals SET fence = fence + 1, owner = ?, boot = ?, leased_until = ?, "
                "renewed_at = ? WHERE id = ? RETURNING fence",
                (self._owner.name, self._owner.boot, *self._until(), id),
            ).fetchall()
        if not rows:
            raise self._unknown(id)
        return int(rows[0][0])

    def renew(self, id: str, fence: int, worked: float) -> str | None:
        """Out: who wants the goal cleared. Raises GoalFenced."""
        with transaction(self._db, "the goals"):
            rows = self._db.execute(
                "UPDATE goals SET leased_until = ?, renewed_at = ?, worked = max(worked, ?) "
                "WHERE id = ? AND fence = ? AND owner IS NOT NULL RETURNING clear_by",
                (*self._until(), worked, id, fence),
            ).fetchall()
        if not rows:
            raise GoalFenced(id)
        found: str | None = rows[0][0]
        return found

    def release(self, id: str, fence: int, worked: float) -> None:
        with transaction(self._db, "the goals"):
            self._db.execute(
                "UPDATE goals SET owner = NULL, worked = max(worked, ?) WHERE id = ? AND fence = ?",
                (worked, id, fence),
            )

    def append(self, id: str, fence: int, event: GoalEvent) -> None:
        """Durable when it returns. Raises GoalFenced."""
        with transaction(self._db, "the goals"):
            rows = self._db.execute(
                "UPDATE goals SET worked = max(worked, ?) "
                "WHERE id = ? AND fence = ? AND owner IS NOT NULL RETURNING id",
                (event.worked, id, fence),
            ).fetchall()
            if not rows:
                raise GoalFenced(id)
            self._db.execute(
                "INSERT INTO goal_events SELECT ?, 1 + coalesce(max(seq), 0), ? "
                "FROM goal_events WHERE goal = ?",
                (id, encode_goal(event), id),
            )
            if isinstance(event, GoalEnded | GoalReopened):
                state = event.state if isinstance(event, GoalEnded) else GoalState.ACTIVE
                self._db.execute(
                    "UPDATE goals SET state = ?, clear_by = NULL WHERE id = ?", (state, id)
                )

    def ask_to_clear(self, id: str, by: str) -> None:
        """Ask the process that drives the goal to clear it; it looks when it renews its lease."""
        with transaction(self._db, "the goals"):
            self._db.execute(
                "UPDATE goals SET clear_by = ? WHERE id = ? AND state = ?",
                (by, id, GoalState.ACTIVE),
            )

    def _holder(self, owner: str | None, boot: str, until: float, renewed_at: float) -> str | None:
        """The process that drives the goal, if it may be alive."""
        mine = self._owner
        if owner is None or mine.is_dead(owner):
            return None
        if boot and boot == mine.boot:
            return owner if until > mine.elapsed() else None
        # Of another boot, or on a machine that shares this folder: only the date can tell.
        return owner if abs(mine.now() - renewed_at) < LEASE_SECONDS else None

    def _until(self) -> tuple[float, float]:
        return self._owner.elapsed() + LEASE_SECONDS, self._owner.now()

    def _read(self, sql: str, given: tuple[object, ...]) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(sql, given).fetchall()
        except sqlite3.Error as error:
            raise StrettoError(f"the goals cannot be read: {error}", hint=_DAMAGED) from error
