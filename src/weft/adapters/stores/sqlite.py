"""A store of journals in one SQLite file. In: events. Out: the same, after a crash too.

    append ─┐                  ┌ one thread ─────────────────┐
    append ─┼→ queue → batch → │ BEGIN, each change, COMMIT  │ → all futures at once
    lease  ─┘                  └─────────────────────────────┘

What is asked while one transaction commits goes into the next: many appends, one fsync. Reading
needs no queue, for in WAL mode readers and the writer never wait for each other.
"""

import asyncio
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import chain, count, repeat
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeAlias, TypeVar, TypeVarTuple, cast

from weft.events.codec import UnknownEvent, decode, encode
from weft.events.model import Event, RunEnded, RunResumed, RunStarted
from weft.ports.cache import KeptOutput
from weft.ports.journal import Fenced, JournalFull, Leased, RunRow, StoredEvent
from weft.ports.post import Message, Sayable
from weft.problems.errors import WeftError
from weft.vocabulary.ids import RunId
from weft.vocabulary.statuses import RunStatus

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
    CREATE TABLE post (
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
)
_LISTED = (RunStarted, RunResumed, RunEnded)  # what the list of runs is made of
_ROWS_AT_ONCE = 100
_LOCK_SECONDS = 10.0  # how long to wait for another process that writes

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")
# Who waits, which method of the ledger, and its arguments. A bare tuple: there are thousands.
_Request: TypeAlias = tuple[asyncio.Future[Any], Callable[..., object], tuple[Any, ...]]
_Outcomes: TypeAlias = list[tuple[asyncio.Future[Any], object]]


class SqliteJournal:
    """Open it with `await SqliteJournal.open(path)`; it belongs to the loop it was opened in."""

    def __init__(self, path: Path, writer: "_Writer", now: Callable[[], float]) -> None:
        self._path = path
        self._writer = writer
        self._now = now
        self._looking = asyncio.Lock()
        self._next_look: asyncio.Task[list[Message]] | None = None

    @classmethod
    async def open(cls, path: Path, now: Callable[[], float] = time.time) -> "SqliteJournal":
        writer = _Writer(path)
        await writer.start()
        return cls(path, writer, now)

    async def append(self, run_id: RunId, events: Sequence[Event], *, fence: int) -> None:
        # Here and not in the thread: what is not JSON fails before it meets its neighbours.
        rows = [encode(event) for event in events]
        await self._writer.submit(_Ledger.append, run_id, fence, events, rows)

    async def read(self, run_id: RunId, after: int = 0) -> list[StoredEvent]:
        return await self._in_reader(lambda db: _read(db, run_id, after))

    async def runs(self, limit: int = 50) -> list[RunRow]:
        return await self._in_reader(lambda db: _runs(db, limit))

    async def run(self, run_id: RunId) -> RunRow | None:
        return await self._in_reader(lambda db: _run(db, run_id))

    async def lease(self, run_id: RunId, owner: str, seconds: float) -> int:
        return await self._writer.submit(_Ledger.lease, run_id, owner, self._now(), seconds)

    async def renew(self, run_id: RunId, *, fence: int, seconds: float) -> None:
        await self._writer.submit(_Ledger.renew, run_id, fence, self._now() + seconds)

    async def release(self, run_id: RunId, *, fence: int) -> None:
        await self._writer.submit(_Ledger.release, run_id, fence)

    async def post(self, run_id: RunId, event: Sayable) -> None:
        await self._writer.submit(_Ledger.post, run_id, encode(event))

    async def posted(self) -> list[Message]:
        # Who asks while one look is under way shares the next: ten thousand runs that start
        # together need two looks.
        if self._next_look is None:
            self._next_look = asyncio.create_task(self._look())
        return list(await asyncio.shield(self._next_look))

    async def taken(self, numbers: Sequence[int]) -> None:
        await self._writer.submit(_Ledger.taken, numbers)

    async def keep(self, key: str, kept: KeptOutput) -> None:
        output = json.dumps(kept.output, separators=(",", ":"))
        await self._writer.submit(_Ledger.keep, key, kept.run_id, output)

    async def kept(self, key: str) -> KeptOutput | None:
        return await self._in_reader(lambda db: _kept(db, key))

    async def close(self) -> None:
        await self._writer.close()

    async def _look(self) -> list[Message]:
        async with self._looking:
            self._next_look = None
            return await self._in_reader(_posted)

    async def _in_reader(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        self._writer.check_open()

        def read() -> _T:
            # A connection of its own each time costs 0.2 ms, and there is none to be shared by
            # readers or left behind by them.
            try:
                with closing(_connect(self._path)) as db:
                    return work(db)
            except sqlite3.Error as error:
                raise WeftError(f"the journal {self._path} cannot be read: {error}") from error

        return await asyncio.to_thread(read)


class _Writer:
    """The one thread that writes.

    Handing over to it is a third of what a lone append costs, and still none is committed on the
    loop's thread: mostly that would take 0.2 ms, but 4 when the disk is busy, and seconds when
    another process holds the lock. SimpleQueue is the quickest way over that we measured.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._loop = asyncio.get_running_loop()
        self._queue = SimpleQueue[_Request | None]()  # None: no more will come
        self._opened: asyncio.Future[None] = self._loop.create_future()
        # A daemon: who forgets to close loses nothing that was acknowledged, and may still exit.
        self._thread = Thread(target=self._work, name="weft-journal", daemon=True)
        self._is_closed = False

    async def start(self) -> None:
        self._thread.start()
        try:
            await self._opened
        except BaseException:
            await self.close()
            raise

    def submit(
        self, change: "Callable[[_Ledger, *_Ts], _T]", *arguments: *_Ts
    ) -> asyncio.Future[_T]:
        self.check_open()
        done: asyncio.Future[_T] = self._loop.create_future()
        self._queue.put((done, change, arguments))
        return done

    def check_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("this journal is closed")

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        try:
            db = _open(self._path)
        except Exception as error:
            self._settle([(self._opened, _explained(error))])
            return
        self._settle([(self._opened, None)])
        ledger = _Ledger(db)
        with closing(db):
            for batch in self._batches():
                self._settle(_commit(ledger, batch))

    def _batches(self) -> Iterator[list[_Request]]:
        """All that is queued, each time; nothing is queued after None."""
        is_open = True
        while is_open:
            taken = [self._queue.get()]
            while not self._queue.empty():
                taken.append(self._queue.get())
            is_open = taken[-1] is not None
            if batch := [request for request in taken if request is not None]:
                yield batch

    def _settle(self, outcomes: _Outcomes) -> None:
        # All at once: waking the loop costs more than a row.
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(_resolve, outcomes)


def _resolve(outcomes: _Outcomes) -> None:
    for done, outcome in outcomes:
        if done.done():  # cancelled while it waited
            continue
        if isinstance(outcome, Exception):
            done.set_exception(outcome)
        else:
            done.set_result(outcome)


def _commit(ledger: "_Ledger", batch: Sequence[_Request]) -> _Outcomes:
    """What came of each: its result, or an exception. All in one transaction, if that can be."""
    try:
        ledger.begin()
    except sqlite3.Error as error:  # a lock, as a rule: it has been waited for long enough
        ledger.roll_back()
        return [(done, _explained(error)) for done, _, _ in batch]
    try:
        outcomes = [_outcome(ledger, request) for request in batch]
        ledger.commit()
    except Exception as error:
        ledger.roll_back()
        if len(batch) == 1:
            return [(batch[0][0], _explained(error))]
        # One of them may be at fault, or too large: by itself, each answers only for itself.
        return [outcome for request in batch for outcome in _commit(ledger, [request])]
    return outcomes


def _outcome(ledger: "_Ledger", request: _Request) -> tuple[asyncio.Future[Any], object]:
    done, change, arguments = request
    try:
        return done, change(ledger, *arguments)
    except WeftError as refused:  # and it has written nothing: changes look before they write
        return done, refused


def _roll_back(db: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):  # it may be rolled back already, by a full disk for one
        db.execute("ROLLBACK")


def _explained(error: Exception) -> Exception:
    if not isinstance(error, sqlite3.Error | OSError):
        return error
    full = JournalFull(
        f"the journal cannot be written: {error}",
        hint="see to the disk's space and health; what was acknowledged is safe",
    )
    full.__cause__ = error
    return full


def _open(path: Path) -> sqlite3.Connection:
    """The writer's connection, to a file that is made if need be and brought up to date."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Only when it is new: closing a file that SQLite has open elsewhere would drop its locks.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    db = _connect(path)
    try:
        _use_wal(db)
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
        _migrate(db, path)
    except BaseException:
        db.close()
        raise
    return db


def _connect(path: Path) -> sqlite3.Connection:
    # isolation_level=None: transactions begin where we say so.
    return sqlite3.connect(path, timeout=_LOCK_SECONDS, isolation_level=None)


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


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    db.execute("BEGIN IMMEDIATE")  # two processes may open a new file at once
    try:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version > len(MIGRATIONS):
            raise WeftError(f"the journal {path} was written by a newer Weft (version {version})")
        for script in MIGRATIONS[version:]:
            for statement in script.split(";"):
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        db.execute("COMMIT")
    except BaseException:
        _roll_back(db)
        raise


@dataclass(slots=True)
class _Held:
    id: int
    fence: int
    last_seq: int


class _Ledger:
    """The writer's side of the file, used between `begin` and `commit`.

    It remembers the runs that it appends to, so that an append costs one row and no question. What
    it remembers holds until another connection writes, which SQLite tells by `data_version`.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._held: dict[RunId, _Held] = {}
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

    def roll_back(self) -> None:
        self._rows.clear()
        self._held.clear()
        _roll_back(self._db)

    def append(
        self, run_id: RunId, fence: int, events: Sequence[Event], rows: Sequence[str]
    ) -> None:
        run = self._find(run_id, fence)
        self._rows += zip(repeat(run.id), count(run.last_seq + 1), rows)
        run.last_seq += len(rows)
        for event in events:
            if isinstance(event, _LISTED):
                self._list(run.id, event)

    def lease(self, run_id: RunId, owner: str, now: float, seconds: float) -> int:
        held = "SELECT owner, leased_until FROM runs WHERE run_id = ? AND owner != ?"
        row = self._db.execute(held, (run_id, owner)).fetchone()
        if row is not None and row[1] > now:
            raise Leased(run_id, row[0], row[1])
        self._held.pop(run_id, None)
        take = """
            INSERT INTO runs (run_id, fence, owner, leased_until) VALUES (?, 1, ?, ?)
            ON CONFLICT (run_id) DO UPDATE
            SET fence = fence + 1, owner = excluded.owner, leased_until = excluded.leased_until
            RETURNING fence
            """
        ((fence,),) = self._db.execute(take, (run_id, owner, now + seconds)).fetchall()
        return cast(int, fence)

    def renew(self, run_id: RunId, fence: int, until: float) -> None:
        run = self._find(run_id, fence)
        self._db.execute("UPDATE runs SET leased_until = ? WHERE id = ?", (until, run.id))

    def release(self, run_id: RunId, fence: int) -> None:
        self._held.pop(run_id, None)
        sql = "UPDATE runs SET owner = NULL WHERE run_id = ? AND fence = ?"
        self._db.execute(sql, (run_id, fence))

    def post(self, run_id: RunId, event: str) -> None:
        self._db.execute("INSERT INTO post (run_id, event) VALUES (?, ?)", (run_id, event))

    def taken(self, numbers: Sequence[int]) -> None:
        self._db.executemany("DELETE FROM post WHERE number = ?", [(n,) for n in numbers])

    def keep(self, key: str, run_id: str, output: str) -> None:
        sql = "INSERT OR REPLACE INTO kept_outputs VALUES (?, ?, ?)"
        self._db.execute(sql, (key, run_id, output))

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
                # What was posted too late is nobody's business any more.
                late = "DELETE FROM post WHERE run_id = (SELECT run_id FROM runs WHERE id = ?)"
                self._db.execute(late, (run,))


def _read(db: sqlite3.Connection, run_id: RunId, after: int) -> list[StoredEvent]:
    db.text_factory = bytes  # a torn row may not even be text
    sql = """
        SELECT seq, event FROM events
        WHERE run = (SELECT id FROM runs WHERE run_id = ?) AND seq > ? ORDER BY seq
        """
    return [StoredEvent(seq, _decoded(raw)) for seq, raw in db.execute(sql, (run_id, after))]


def _decoded(raw: bytes) -> Event | UnknownEvent:
    try:
        return decode(raw.decode())
    except UnicodeDecodeError:
        return UnknownEvent(raw.decode(errors="replace"), "is not UTF-8")


_ROWS_OF_RUNS = """
    SELECT run_id, workflow, status, started_at, ended_at,
        CASE WHEN owner IS NULL THEN NULL ELSE leased_until END, owner FROM runs
    WHERE started_at IS NOT NULL
    """


def _runs(db: sqlite3.Connection, limit: int) -> list[RunRow]:
    sql = f"{_ROWS_OF_RUNS} ORDER BY started_at DESC, id DESC LIMIT ?"
    return [RunRow(*row) for row in db.execute(sql, (limit,))]


def _run(db: sqlite3.Connection, run_id: RunId) -> RunRow | None:
    row = db.execute(f"{_ROWS_OF_RUNS} AND run_id = ?", (run_id,)).fetchone()
    return RunRow(*row) if row else None


def _posted(db: sqlite3.Connection) -> list[Message]:
    rows = db.execute("SELECT number, run_id, event FROM post ORDER BY number").fetchall()
    messages = [(number, run_id, decode(event)) for number, run_id, event in rows]
    return [Message(n, r, event) for n, r, event in messages if not isinstance(event, UnknownEvent)]


def _kept(db: sqlite3.Connection, key: str) -> KeptOutput | None:
    sql = "SELECT output, run_id FROM kept_outputs WHERE key = ?"
    row = db.execute(sql, (key,)).fetchone()
    return KeptOutput(json.loads(row[0]), row[1]) if row else None
