"""The SQLite file of a store: opened for one writer and many readers, and brought up to date."""

import errno
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from stretto.adapters.clock import SystemClock, boot_name, elapsed
from stretto.config.home import make_private
from stretto.ports.journal import JournalFull
from stretto.problems.errors import StrettoError

# One script a version: never change one that was released. No statement may hold a semicolon.
MIGRATIONS = (
    """
    CREATE TABLE runs (
        id INTEGER PRIMARY KEY,
        run_id TEXT NOT NULL UNIQUE,
        fence INTEGER NOT NULL,
        owner TEXT, -- null: nobody drives it
        leased_until REAL NOT NULL,
        workflow TEXT,
        status TEXT,
        started_at REAL, -- null: leased, but nothing has happened yet
        ended_at REAL
    ) STRICT;
    CREATE INDEX runs_by_start ON runs (started_at DESC, id DESC);
    CREATE TABLE events (
        run INTEGER NOT NULL REFERENCES runs (id),
        seq INTEGER NOT NULL,
        event TEXT NOT NULL,
        PRIMARY KEY (run, seq)
    ) STRICT
    """,
    """
    CREATE TABLE mailbox (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        run_id TEXT NOT NULL,
        event TEXT NOT NULL
    ) STRICT;
    CREATE TABLE kept_outputs (
        key TEXT PRIMARY KEY,
        run_id TEXT NOT NULL,
        output TEXT NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE boots (
        name TEXT PRIMARY KEY,
        began_at REAL NOT NULL -- by the wall clock of whoever came first
    ) STRICT, WITHOUT ROWID
    """,
    # Which runs use a large value is kept, so that what no run uses any more can be found.
    """
    CREATE TABLE large_values (
        id INTEGER PRIMARY KEY,
        digest TEXT NOT NULL UNIQUE,
        value TEXT NOT NULL
    ) STRICT;
    CREATE TABLE large_value_uses (
        digest TEXT NOT NULL,
        run INTEGER NOT NULL REFERENCES runs (id),
        PRIMARY KEY (digest, run)
    ) STRICT, WITHOUT ROWID
    """,
)
_CACHE_KIB = 16 * 1024  # at most; SQLite's own choice is 2 MiB
_LOCK_SECONDS = 10.0  # how long to wait for another process that writes


_DAMAGED = "the file is damaged: keep a copy of it and of what lies beside it, then move it away"
# By SQLite's primary result codes. Every other error of SQLite is told as JournalFull.
_HINTS = {
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_READONLY: "the file, or the folder it lies in, may not be written",
    sqlite3.SQLITE_CANTOPEN: "the file, or the folder it lies in, cannot be opened",
    sqlite3.SQLITE_PERM: "the file may not be opened",
}


def roll_back(db: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):  # it may be rolled back already, by a full disk for one
        db.execute("ROLLBACK")


def explain_error(error: Exception) -> Exception:
    if not isinstance(error, sqlite3.Error | OSError):
        return error
    said = f"the journal cannot be written: {error}"
    code = getattr(error, "sqlite_errorcode", None)
    if isinstance(error, OSError) and error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
        # What SQLite itself opens and writes has a code; this is the folder of the journal.
        hint = "make the folder writable, or name another one: STRETTO_HOME, or home= in Python"
        told: StrettoError = StrettoError(said, hint=hint)
        told.__cause__ = error
        return told
    if code is not None and code & 0xFF in _HINTS:
        told = StrettoError(said, hint=_HINTS[code & 0xFF])
    else:
        told = JournalFull(
            said, hint="check the disk's space and health; events that were acknowledged are safe"
        )
    told.__cause__ = error
    return told


def open_for_writing(path: Path) -> sqlite3.Connection:
    """The writer's connection, to a file that is made if need be and brought up to date."""
    make_private(path.parent)
    # Only when it is new: closing a file that SQLite has open elsewhere would drop its locks.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    db = connect(path)
    try:
        _use_wal(db)
        db.execute("PRAGMA synchronous = FULL")
        # The plan of a large recipe is one row of megabytes: what does not fit is written twice.
        db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        db.execute("PRAGMA foreign_keys = ON")
        _migrate(db, path)
    except BaseException:
        db.close()
        raise
    return db


def take_in_wal(db: sqlite3.Connection) -> bool:
    """Copy the WAL into the database itself, without waiting for anybody. Whether all of it is
    there now, and synced: False while another connection reads an older state."""
    try:
        is_busy, pages, taken = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.Error:  # a full disk, say
        return False
    return not is_busy and pages == taken


def lease_clock(db: sqlite3.Connection) -> Callable[[], float]:
    """The clock that leases are counted by: the seconds since the boot, which nobody can set, on
    top of the time of the boot as the first process after it noted it. So all processes agree."""
    if not (name := boot_name()):
        return SystemClock().now
    known = "SELECT began_at FROM boots WHERE name = ?"
    if db.execute(known, (name,)).fetchone() is None:
        began = "INSERT INTO boots VALUES (?, ?) ON CONFLICT (name) DO NOTHING"
        db.execute(began, (name, time.time() - elapsed()))
    began_at = float(db.execute(known, (name,)).fetchone()[0])
    return lambda: began_at + elapsed()


def connect(path: Path, check_same_thread: bool = True) -> sqlite3.Connection:
    # isolation_level=None: transactions begin where we say so.
    return sqlite3.connect(
        path,
        timeout=_LOCK_SECONDS,
        isolation_level=None,
        check_same_thread=check_same_thread,
    )


def _use_wal(db: sqlite3.Connection) -> None:
    # Two processes that make one file at once may deadlock here, and SQLite then does not wait.
    give_up_at = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() > give_up_at:
                raise
            time.sleep(0.01)


def _check_version(db: sqlite3.Connection, path: Path, version: int) -> None:
    """Raises StrettoError unless the file has just the tables of this version."""
    hint = "move it away, with its -wal and -shm, or set STRETTO_HOME to another folder"
    if version > len(MIGRATIONS):
        said = f"the journal {path} was written by a newer Stretto (version {version})"
        raise StrettoError(said, hint=f"update Stretto; or {hint}")
    with closing(sqlite3.connect(":memory:")) as wanted:
        wanted.executescript(";".join(MIGRATIONS[:version]))
        if _columns(wanted) != _columns(db):
            said = f"{path} is the journal of another version of Stretto, or no journal of Stretto"
            raise StrettoError(said, hint=hint)


def _columns(db: sqlite3.Connection) -> list[tuple[str, str]]:
    sql = """
        SELECT tables.name, columns.name FROM sqlite_master tables
        JOIN pragma_table_info(tables.name) columns
        WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite_%' ORDER BY 1, 2
        """
    return db.execute(sql).fetchall()


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    db.execute("BEGIN IMMEDIATE")  # two processes may open a new file at once
    try:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        _check_version(db, path, version)
        for script in MIGRATIONS[version:]:
            for statement in script.split(";"):
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        db.execute("COMMIT")
    except BaseException:
        roll_back(db)
        raise
