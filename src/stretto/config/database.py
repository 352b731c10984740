"""A SQLite file in the user's own folder: opened for the user alone, brought up to date, and locked briefly.

Every change is one transaction, so a process that is killed leaves the state before it or the state
after it, and of two processes one waits for the other.
"""

import errno
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from stretto.config.home import make_private
from stretto.problems.errors import DiskFull, StrettoError

_LOCK_SECONDS = 10.0
_MAKE_ROOM = "make room on its disk; nothing of what was written before is lost"


def is_full(error: BaseException) -> bool:
    """Whether it was for want of room."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL


def open_database(
    file: Path, migrations: Sequence[str], if_damaged: str = ""
) -> sqlite3.Connection:
    """`migrations`: one script a version; no statement may hold a semicolon. `if_damaged`: what the
    user should do about a file that is no database. Raises StrettoError."""
    try:
        make_private(file.parent)
        # For the user alone from its first byte on.
        with suppress(FileExistsError):
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        db = sqlite3.connect(file, timeout=_LOCK_SECONDS, isolation_level=None)
        try:
            _prepare(db, file, migrations)
        except BaseException:
            db.close()
            raise
    except (sqlite3.Error, OSError) as error:
        said = getattr(error, "strerror", None) or str(error)
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        is_damaged = code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
        hint = if_damaged if is_damaged else ""
        if is_full(error):
            raise DiskFull(f"{file} cannot be used: {said}", hint=_MAKE_ROOM) from error
        raise StrettoError(f"{file} cannot be used: {said}", hint=hint) from error
    return db


@contextmanager
def transaction(db: sqlite3.Connection, what: str) -> Iterator[None]:
    """One transaction. `what` it changes, for the StrettoError where the file cannot be written."""
    try:
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("COMMIT")
    except BaseException as error:
        with suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        if is_full(error):
            raise DiskFull(f"{what} cannot be written: {error}", hint=_MAKE_ROOM) from error
        if isinstance(error, sqlite3.Error):
            raise StrettoError(f"{what} cannot be written: {error}") from error
        raise


def _prepare(db: sqlite3.Connection, file: Path, migrations: Sequence[str]) -> None:
    give_up_at = time.monotonic() + _LOCK_SECONDS
    while True:  # of two processes that make one file, SQLite lets the second fail at once
        try:
            db.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() > give_up_at:
                raise
            time.sleep(0.01)
    db.execute("PRAGMA foreign_keys = ON")
    if db.execute("PRAGMA user_version").fetchone() == (len(migrations),):
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version > len(migrations):
            raise StrettoError(f"{file} was written by a newer Stretto (version {version})")
        for script in migrations[version:]:
            for statement in script.split(";"):
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {len(migrations)}")
        db.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise
