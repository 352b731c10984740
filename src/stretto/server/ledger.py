"""What a server remembers beside the journal, in ~/.stretto/server.db: tokens, sessions, keys of requests.

Tokens and session ids are kept as digests: who reads the file cannot log in with what is in it.
"""

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stretto.config.database import open_database, transaction

_FILE = "server.db"
_MOST_LINKS = 100
_IF_DAMAGED = "move it away: named tokens, sessions and the keys of requests are lost, runs are not"
# One script a version: never change one that was released.
_MIGRATIONS = (
    """
    CREATE TABLE tokens (
        name TEXT PRIMARY KEY,
        role TEXT NOT NULL,
        digest TEXT NOT NULL UNIQUE,
        at REAL NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE sessions (
        digest TEXT PRIMARY KEY,
        credential TEXT NOT NULL, -- the digest of the token that it was opened with
        csrf TEXT NOT NULL,
        expires_at REAL NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE requests (
        owner TEXT NOT NULL,
        key TEXT NOT NULL,
        content TEXT NOT NULL, -- the digest of what was asked
        run_id TEXT NOT NULL,
        at REAL NOT NULL,
        PRIMARY KEY (owner, key)
    ) STRICT, WITHOUT ROWID
    """,
    # Runs that began elsewhere, and that a server has gone on with.
    "CREATE TABLE adopted (run_id TEXT PRIMARY KEY, at REAL NOT NULL) STRICT, WITHOUT ROWID",
    """
    ALTER TABLE tokens ADD COLUMN owner TEXT NOT NULL DEFAULT '';
    ALTER TABLE tokens ADD COLUMN expires_at REAL; -- null: never
    UPDATE tokens SET owner = name
    """,
    # Not in memory: the workers of one server share them.
    """
    CREATE TABLE links (
        digest TEXT PRIMARY KEY,
        credential TEXT NOT NULL,
        expires_at REAL NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE failures (address TEXT NOT NULL, at REAL NOT NULL) STRICT;
    CREATE INDEX failures_by_address ON failures (address, at)
    """,
)


@dataclass(frozen=True, slots=True)
class NamedToken:
    name: str
    role: str
    digest: str
    at: float
    owner: str  # to whom the runs belong that are started with it
    expires_at: float | None = None  # None: never


@dataclass(frozen=True, slots=True)
class StoredSession:
    digest: str
    credential: str
    csrf: str
    expires_at: float


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A request with an Idempotency-Key: what it asked for, and the run that it is about."""

    owner: str
    key: str
    content: str
    run_id: str
    at: float


class ServerLedger:
    """For one thread at a time."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def version(self) -> int:
        """Another number after another connection has changed something."""
        return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    def tokens(self) -> list[NamedToken]:
        rows = self._db.execute(
            "SELECT name, role, digest, at, owner, expires_at FROM tokens ORDER BY name"
        )
        return [NamedToken(*row) for row in rows]

    def add_token(self, token: NamedToken) -> bool:
        """False: there is one of this name."""
        row = (token.name, token.role, token.digest, token.at, token.owner, token.expires_at)
        with transaction(self._db, "the tokens"):
            added = """
                INSERT INTO tokens (name, role, digest, at, owner, expires_at)
                VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING
                """
            return self._db.execute(added, row).rowcount == 1

    def remove_token(self, name: str) -> bool:
        with transaction(self._db, "the tokens"):
            return self._db.execute("DELETE FROM tokens WHERE name = ?", (name,)).rowcount == 1

    def sessions(self, now: float) -> list[StoredSession]:
        rows = self._db.execute(
            "SELECT digest, credential, csrf, expires_at FROM sessions WHERE expires_at > ?", (now,)
        )
        return [StoredSession(*row) for row in rows]

    def add_session(self, session: StoredSession, now: float) -> None:
        row = (session.digest, session.credential, session.csrf, session.expires_at)
        with transaction(self._db, "the sessions"):
            self._db.execute("DELETE FROM sessions WHERE expires_at <= ?", (now,))
            self._db.execute("INSERT INTO sessions VALUES (?, ?, ?, ?)", row)

    def remove_session(self, digest: str) -> None:
        with transaction(self._db, "the sessions"):
            self._db.execute("DELETE FROM sessions WHERE digest = ?", (digest,))

    def remove_sessions(self, credentials: Collection[str] | None = None) -> int:
        """How many there were: those opened with these tokens, or all."""
        with transaction(self._db, "the sessions"):
            if credentials is None:
                return self._db.execute("DELETE FROM sessions").rowcount
            sql = "DELETE FROM sessions WHERE credential = ?"
            return sum(self._db.execute(sql, (each,)).rowcount for each in credentials)

    def add_link(self, digest: str, credential: str, expires_at: float, now: float) -> None:
        """The oldest go where there are too many."""
        with transaction(self._db, "the login links"):
            self._db.execute("DELETE FROM links WHERE expires_at <= ?", (now,))
            oldest = "DELETE FROM links WHERE digest NOT IN (SELECT digest FROM links ORDER BY expires_at DESC LIMIT ?)"
            self._db.execute(oldest, (_MOST_LINKS - 1,))
            self._db.execute("INSERT INTO links VALUES (?, ?, ?)", (digest, credential, expires_at))

    def take_link(self, digest: str, now: float) -> str | None:
        """The credential for which it was made; it counts once."""
        with transaction(self._db, "the login links"):
            taken = "DELETE FROM links WHERE digest = ? AND expires_at > ? RETURNING credential"
            found = self._db.execute(taken, (digest, now)).fetchall()
        return str(found[0][0]) if found else None

    def remove_links(self, credentials: Collection[str]) -> None:
        with transaction(self._db, "the login links"):
            for each in credentials:
                self._db.execute("DELETE FROM links WHERE credential = ?", (each,))

    def failures(self, address: str, since: float, until: float) -> int:
        """How many wrong tokens came from there. None counts that seems to be of the future."""
        sql = "SELECT count(*) FROM failures WHERE address = ? AND at > ? AND at <= ?"
        return int(self._db.execute(sql, (address, since, until)).fetchone()[0])

    def note_failure(self, address: str, at: float, forget_before: float) -> None:
        with transaction(self._db, "the wrong tokens"):
            self._db.execute("DELETE FROM failures WHERE at < ? OR at > ?", (forget_before, at))
            self._db.execute("INSERT INTO failures VALUES (?, ?)", (address, at))

    def keep_request(self, request: KeyedRequest, forget_before: float) -> KeyedRequest:
        """The request that was kept first under this key: this one, or an earlier one."""
        row = (request.owner, request.key, request.content, request.run_id, request.at)
        with transaction(self._db, "the keys of requests"):
            self._db.execute("DELETE FROM requests WHERE at < ?", (forget_before,))
            kept = "INSERT INTO requests VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
            self._db.execute(kept, row)
            found = (
                "SELECT owner, key, content, run_id, at FROM requests WHERE owner = ? AND key = ?"
            )
            return KeyedRequest(*self._db.execute(found, row[:2]).fetchone())

    def forget_request(self, request: KeyedRequest) -> None:
        """Unless a later request keeps the key by now."""
        row = (request.owner, request.key, request.run_id)
        with transaction(self._db, "the keys of requests"):
            forgotten = "DELETE FROM requests WHERE owner = ? AND key = ? AND run_id = ?"
            self._db.execute(forgotten, row)

    def adopted(self) -> set[str]:
        """Runs that began elsewhere and that a server has gone on with, and goals that one drove."""
        return {run_id for (run_id,) in self._db.execute("SELECT run_id FROM adopted")}

    def adopt(self, run_id: str, at: float, forget_before: float) -> None:
        with transaction(self._db, "the runs and goals that this server drives"):
            self._db.execute("DELETE FROM adopted WHERE at < ?", (forget_before,))
            self._db.execute("INSERT OR REPLACE INTO adopted VALUES (?, ?)", (run_id, at))

    def close(self) -> None:
        self._db.close()


@contextmanager
def open_ledger(home: Path) -> Iterator[ServerLedger]:
    """Raises StrettoError where its file cannot be used."""
    ledger = ServerLedger(open_database(home / _FILE, _MIGRATIONS, _IF_DAMAGED))
    try:
        yield ledger
    finally:
        ledger.close()
