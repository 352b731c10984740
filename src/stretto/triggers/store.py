"""Triggers and what they have fired, in ~/.stretto/triggers.db. Secrets of webhooks are in it, so it is the
user's alone (0600).

A fire is recorded with the id of the run that it will start, once: the pair of trigger and key is
unique. So a process that starts runs may die at any moment, and the next one knows which runs are
still to be started.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from stretto.config.database import open_database, transaction
from stretto.problems.errors import NotFound, RefusedToOverwrite
from stretto.text.short import did_you_mean
from stretto.triggers.arrivals import WINDOW_SECONDS
from stretto.triggers.trigger import Trigger, TriggerFire
from stretto.vocabulary.json_value import Json

_FILE = "triggers.db"
_IF_DAMAGED = "move it away: schedules, webhooks and watched folders are lost, runs are not"
_KEPT = 20_000  # fires of one trigger that are kept
# Younger fires are all kept: a delivery may be sent again for as long as its timestamp is accepted.
_REFUSED_SECONDS = 3 * WINDOW_SECONDS
_COLUMNS = (
    "name", "kind", "workflow", "inputs", "cron", "zone", "missed", "overlap", "folder", "pattern",
    "settle_seconds", "input", "mapping", "hook", "permission", "is_paused", "created_at",
    "decided_until",
)  # fmt: skip
_FIRE_COLUMNS = "f.trigger, t.kind, f.key, f.run_id, f.due_at, f.at, f.status, f.why, f.inputs, f.owner, f.starter"
# One script a version: never change one that was released.
_MIGRATIONS = (
    """
    CREATE TABLE triggers (
        project TEXT NOT NULL,
        name TEXT NOT NULL,
        kind TEXT NOT NULL,
        workflow TEXT NOT NULL,
        inputs TEXT NOT NULL,
        cron TEXT NOT NULL,
        zone TEXT NOT NULL,
        missed TEXT NOT NULL,
        overlap TEXT NOT NULL,
        folder TEXT NOT NULL,
        pattern TEXT NOT NULL,
        settle_seconds REAL NOT NULL,
        input TEXT NOT NULL,
        mapping TEXT NOT NULL,
        hook TEXT NOT NULL,
        permission TEXT,
        is_paused INTEGER NOT NULL,
        created_at REAL NOT NULL,
        decided_until REAL NOT NULL,
        secret TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (project, name)
    ) STRICT;
    CREATE UNIQUE INDEX triggers_by_hook ON triggers (hook) WHERE hook != '';
    CREATE TABLE fires (
        project TEXT NOT NULL,
        trigger TEXT NOT NULL,
        key TEXT NOT NULL,
        run_id TEXT NOT NULL UNIQUE,
        due_at REAL NOT NULL,
        at REAL NOT NULL,
        status TEXT NOT NULL,
        why TEXT NOT NULL,
        inputs TEXT NOT NULL,
        UNIQUE (project, trigger, key),
        FOREIGN KEY (project, trigger) REFERENCES triggers (project, name) ON DELETE CASCADE
    ) STRICT;
    CREATE INDEX fires_by_status ON fires (project, status);
    CREATE TABLE seen (
        project TEXT NOT NULL,
        trigger TEXT NOT NULL,
        path TEXT NOT NULL,
        version TEXT NOT NULL,
        PRIMARY KEY (project, trigger, path),
        FOREIGN KEY (project, trigger) REFERENCES triggers (project, name) ON DELETE CASCADE
    ) STRICT;
    CREATE TABLE notices (
        run_id TEXT NOT NULL,
        step TEXT NOT NULL,
        key TEXT NOT NULL,
        about TEXT NOT NULL, -- asked | reminder | lapsed
        channel TEXT NOT NULL, -- webhook | command
        text TEXT NOT NULL,
        at REAL NOT NULL,
        tries INTEGER NOT NULL DEFAULT 0,
        next_at REAL NOT NULL,
        sent_at REAL,
        fault TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (run_id, step, key, about, channel)
    ) STRICT
    """,
    "ALTER TABLE fires ADD COLUMN owner TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE fires ADD COLUMN starter TEXT NOT NULL DEFAULT ''",
)


class TriggerStore:
    """The triggers of one project. Used in one thread at a time."""

    def __init__(self, db: sqlite3.Connection, project: str) -> None:
        self.db = db
        self._project = project

    def all(self) -> list[Trigger]:
        sql = f"SELECT {', '.join(_COLUMNS)} FROM triggers WHERE project = ? ORDER BY name"
        return [_trigger(row) for row in self.db.execute(sql, (self._project,))]

    def named(self, name: str) -> Trigger:
        """Raises NotFound."""
        triggers = {each.name: each for each in self.all()}
        if name not in triggers:
            hint = did_you_mean(name, triggers) or "stretto schedule list shows them"
            raise NotFound(
                f"there is no schedule, webhook or watched folder '{name[:100]}'", hint=hint
            )
        return triggers[name]

    def hooked(self, hook: str) -> tuple[Trigger, str] | None:
        """The webhook at an address, and its secret."""
        sql = f"SELECT {', '.join(_COLUMNS)}, secret FROM triggers WHERE project = ? AND hook = ?"
        row = self.db.execute(sql, (self._project, hook)).fetchone() if hook else None
        return (_trigger(row[:-1]), row[-1]) if row else None

    def add(
        self, trigger: Trigger, secret: str = "", seen: Mapping[str, str] | None = None
    ) -> None:
        """Raises RefusedToOverwrite."""
        values = {**_values(trigger), "project": self._project, "secret": secret}
        names = ", ".join(values)
        marks = ", ".join(f":{name}" for name in values)
        with transaction(self.db, "the triggers"):
            sql = f"INSERT INTO triggers ({names}) VALUES ({marks}) ON CONFLICT DO NOTHING"
            if not self.db.execute(sql, values).rowcount:
                hint = f"choose another name, or: stretto schedule remove {trigger.name}"
                raise RefusedToOverwrite(f"there is a '{trigger.name}' already", hint=hint)
            self._see(trigger.name, seen or {})

    def change(self, trigger: Trigger, seen: Mapping[str, str] | None = None) -> None:
        """The same one, set otherwise: what it has fired stays on record, and so does its secret.
        `seen`: what a folder holds from which on files count; None: they count as before."""
        values = {**_values(trigger), "project": self._project}
        changes = ", ".join(f"{name} = :{name}" for name in _COLUMNS if name != "name")
        with transaction(self.db, "the triggers"):
            sql = f"UPDATE triggers SET {changes} WHERE project = :project AND name = :name"
            self.db.execute(sql, values)
            if seen is not None:
                sql = "DELETE FROM seen WHERE project = ? AND trigger = ?"
                self.db.execute(sql, (self._project, trigger.name))
                self._see(trigger.name, seen)

    def remove(self, name: str) -> None:
        with transaction(self.db, "the triggers"):
            sql = "DELETE FROM triggers WHERE project = ? AND name = ?"
            self.db.execute(sql, (self._project, name))

    def set_paused(self, name: str, is_paused: bool, now: float) -> None:
        """A schedule makes up for nothing after a pause. Files that arrived during it fire then."""
        with transaction(self.db, "the triggers"):
            sql = "UPDATE triggers SET is_paused = ?, decided_until = ? WHERE project = ? AND name = ?"
            self.db.execute(sql, (is_paused, now, self._project, name))

    def set_secret(self, name: str, secret: str) -> None:
        with transaction(self.db, "the triggers"):
            sql = "UPDATE triggers SET secret = ? WHERE project = ? AND name = ?"
            self.db.execute(sql, (secret, self._project, name))

    def record(
        self,
        name: str,
        fires: Iterable[TriggerFire],
        decided_until: float | None = None,
    ) -> list[TriggerFire]:
        """Put the fires on record; returns those that were not there before."""
        with transaction(self.db, "the triggers"):
            if self._is_gone(name):
                return []
            new = self._put_fires(name, fires)
            if decided_until is not None:
                sql = "UPDATE triggers SET decided_until = ? WHERE project = ? AND name = ?"
                self.db.execute(sql, (decided_until, self._project, name))
        return new

    def record_files(
        self,
        trigger: Trigger,
        fires: Iterable[TriggerFire],
        seen: Mapping[str, str],
        gone: Sequence[str],
    ) -> None:
        """Record what one look at a watched folder has found; nothing, if the trigger watches
        another folder or other files by now."""
        with transaction(self.db, "the triggers"):
            sql = "SELECT folder, pattern, input FROM triggers WHERE project = ? AND name = ?"
            now = self.db.execute(sql, (self._project, trigger.name)).fetchone()
            if now != (trigger.folder, trigger.pattern, trigger.input):
                return
            self._put_fires(trigger.name, fires)
            self._see(trigger.name, seen)
            rows = [(self._project, trigger.name, path) for path in gone]
            sql = "DELETE FROM seen WHERE project = ? AND trigger = ? AND path = ?"
            self.db.executemany(sql, rows)

    def _put_fires(self, name: str, fires: Iterable[TriggerFire]) -> list[TriggerFire]:
        new: list[TriggerFire] = []
        for each in fires:
            row = (
                self._project, name, each.key, each.run_id, each.due_at, each.at, each.status,
                each.why, json.dumps(dict(each.inputs)), each.owner, each.starter,
            )  # fmt: skip
            sql = "INSERT INTO fires VALUES (?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING"
            new += [each] if self.db.execute(sql, row).rowcount else []
        if new:
            self._forget_old(name, before=new[-1].at - _REFUSED_SECONDS)
        return new

    def _is_gone(self, name: str) -> bool:
        sql = "SELECT 1 FROM triggers WHERE project = ? AND name = ?"
        return self.db.execute(sql, (self._project, name)).fetchone() is None

    def _see(self, name: str, seen: Mapping[str, str]) -> None:
        rows = [(self._project, name, path, version) for path, version in seen.items()]
        self.db.executemany("INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?)", rows)

    def _forget_old(self, name: str, before: float) -> None:
        sql = """
            DELETE FROM fires WHERE project = :project AND trigger = :name AND status != 'queued'
            AND at < :before AND due_at < (SELECT due_at FROM fires WHERE project = :project AND trigger = :name
                ORDER BY due_at DESC LIMIT 1 OFFSET :kept)
        """
        given = {"project": self._project, "name": name, "before": before, "kept": _KEPT}
        self.db.execute(sql, given)

    def seen(self, name: str) -> dict[str, str]:
        sql = "SELECT path, version FROM seen WHERE project = ? AND trigger = ?"
        return dict(self.db.execute(sql, (self._project, name)))

    def settle(self, fire: TriggerFire, status: str, why: str = "") -> None:
        """Say what became of a fire."""
        with transaction(self.db, "the triggers"):
            sql = "UPDATE fires SET status = ?, why = ?, starter = '' WHERE run_id = ?"
            self.db.execute(sql, (status, why, fire.run_id))

    def fires(
        self, name: str | None = None, status: str = "", limit: int = 100
    ) -> list[TriggerFire]:
        """Newest first; queued ones oldest first."""
        order = "f.due_at, f.at, f.rowid" if status == "queued" else "f.due_at DESC, f.rowid DESC"
        sql = f"""
            SELECT {_FIRE_COLUMNS} FROM fires f
            JOIN triggers t ON t.project = f.project AND t.name = f.trigger
            WHERE f.project = :project AND (:name IS NULL OR f.trigger = :name)
            AND (:status = '' OR f.status = :status) ORDER BY {order} LIMIT :limit
        """
        given = {"project": self._project, "name": name, "status": status, "limit": limit}
        return [_fire(row) for row in self.db.execute(sql, given)]


@contextmanager
def open_triggers(home: Path, project: Path) -> Iterator[TriggerStore]:
    """Raises StrettoError."""
    db = open_database(home / _FILE, _MIGRATIONS, _IF_DAMAGED)
    try:
        yield TriggerStore(db, str(project))
    finally:
        db.close()


def has_triggers(home: Path) -> bool:
    return (home / _FILE).exists()


def _values(trigger: Trigger) -> dict[str, Any]:
    found = {name: getattr(trigger, name) for name in _COLUMNS}
    for name in ("inputs", "mapping"):
        found[name] = json.dumps(dict(found[name]))
    return found


def _trigger(row: Sequence[Any]) -> Trigger:
    found: dict[str, Any] = dict(zip(_COLUMNS, row, strict=True))
    inputs: dict[str, Json] = json.loads(found["inputs"])
    found |= {"inputs": inputs, "mapping": json.loads(found["mapping"])}
    return Trigger(**{**found, "is_paused": bool(found["is_paused"])})


def _fire(row: Sequence[Any]) -> TriggerFire:
    names = (each.name for each in fields(TriggerFire))
    found: dict[str, Any] = dict(zip(names, row, strict=True))
    return TriggerFire(**{**found, "inputs": json.loads(found["inputs"])})
