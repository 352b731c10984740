"""A store of journals in one SQLite file.

Writing goes through one thread (sqlite_writer). Reading needs no queue, for in WAL mode readers
and the writer never wait for each other.
"""

import asyncio
import json
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from msgspec import UNSET, structs

from stretto.adapters.stores.sqlite_file import connect
from stretto.adapters.stores.sqlite_ledger import IN_FORCE, Ledger
from stretto.adapters.stores.sqlite_writer import Writer
from stretto.events.codec import UnknownEvent, decode, decode_value, encode, encode_apart
from stretto.events.model import AttemptSucceeded, Event
from stretto.ports.journal import (
    CachedOutput,
    ExternalEvent,
    Loss,
    Message,
    RunNews,
    RunRow,
    StoredEvent,
)
from stretto.problems.errors import StrettoError
from stretto.vocabulary.json_value import Json, Large
from stretto.vocabulary.names import RunId

_T = TypeVar("_T")
_REMAKE = "its run can be retried: what is missing is made again"
_MOST_READERS = 8
_SPEECH = '{"type":"model_spoke"'  # how such a row begins


class LargeValues:
    """Large values, read when they are used. Works as long as the file is there, also when the journal was closed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last: tuple[str, Json] = ("", None)  # a prompt often shows one value twice

    def __call__(self, digest: str) -> Json:
        known, value = self._last
        if known != digest:
            value = self._read(digest)
            self._last = (digest, value)
        return value

    def _read(self, digest: str) -> Json:
        sql = "SELECT value FROM large_values WHERE digest = ?"
        if not self._path.exists():  # to connect would make an empty one
            raise StrettoError(f"the journal {self._path} is not there any more")
        try:
            with closing(connect(self._path)) as db:
                row = db.execute(sql, (digest,)).fetchone()
        except sqlite3.Error as error:
            raise StrettoError(f"the journal {self._path} cannot be read: {error}") from error
        if row is None:
            raise StrettoError(
                f"the journal {self._path} lacks the large output {digest[:12]}", hint=_REMAKE
            )
        if sha256(row[0].encode()).hexdigest() != digest:
            raise StrettoError(
                f"the large output {digest[:12]} in {self._path} is damaged", hint=_REMAKE
            )
        return decode_value(row[0])


class Readers:
    """Connections that read, each for one thread at a time. Opening one costs more than most reads do,
    so a few are kept; one that failed is not."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: deque[sqlite3.Connection] = deque()
        self._is_closed = False

    @contextmanager
    def one(self) -> Iterator[sqlite3.Connection]:
        try:
            db = self._idle.pop()
        except IndexError:
            db = connect(self._path, check_same_thread=False)
        try:
            yield db
        except BaseException:
            db.close()
            raise
        db.text_factory = str
        if self._is_closed or len(self._idle) >= _MOST_READERS:
            db.close()
        else:
            self._idle.append(db)
            if self._is_closed:  # while it was put back
                self.close()

    def close(self) -> None:
        self._is_closed = True
        with suppress(IndexError):
            while True:
                self._idle.pop().close()


class SqliteJournal:
    """Open it with `await SqliteJournal.open(path)`; it belongs to the loop it was opened in."""

    is_shared = True

    def __init__(
        self, path: Path, writer: Writer, lease_time: Callable[[], float] | None = None
    ) -> None:
        self._path = path
        self._writer = writer
        self._lease_time = lease_time or writer.lease_time
        self._large = LargeValues(path)
        self._readers = Readers(path)
        self._looking = asyncio.Lock()
        self._next_look: asyncio.Task[list[Message]] | None = None

    @classmethod
    async def open(
        cls, path: Path, lease_time: Callable[[], float] | None = None
    ) -> "SqliteJournal":
        writer = Writer(path)
        await writer.start()
        return cls(path, writer, lease_time)

    async def append(
        self, run_id: RunId, events: Sequence[Event], *, fence: int
    ) -> Mapping[int, Large]:
        # Here and not in the thread: what is not JSON fails before it meets its neighbours.
        encoded = [encode_apart(event) for event in events]
        rows = [row for row, _, _ in encoded]
        large = {place: kept for place, (_, kept, _) in enumerate(encoded) if kept}
        values = [(kept.digest, encoded[place][2]) for place, kept in large.items()]
        await self._writer.submit(Ledger.append, run_id, fence, events, rows, values)
        return {place: replace(kept, read=self._large) for place, kept in large.items()}

    async def read(
        self, run_id: RunId, after: int = 0, *, with_speech: bool = True, limit: int | None = None
    ) -> list[StoredEvent]:
        most = -1 if limit is None else limit  # -1: all, for SQLite
        return await self._in_reader(
            lambda db: _read(db, run_id, after, with_speech, most, self._large)
        )

    async def first(self, run_id: RunId) -> Event | UnknownEvent | None:
        return await self._in_reader(lambda db: _first(db, run_id, self._large))

    async def runs(self, limit: int = 50, before: RunId | None = None) -> list[RunRow]:
        return await self._in_reader(lambda db: _runs(db, self._lease_time(), limit, before))

    async def unended(self) -> list[RunRow]:
        return await self._in_reader(lambda db: _unended_rows(db, self._lease_time()))

    async def run(self, run_id: RunId) -> RunRow | None:
        return await self._in_reader(lambda db: _run(db, self._lease_time(), run_id))

    async def news(self, after: int | None) -> RunNews:
        return await self._in_reader(lambda db: _news(db, after))

    async def lease(self, run_id: RunId, owner: str, seconds: float) -> int:
        return await self._writer.submit(Ledger.lease, run_id, owner, self._lease_time(), seconds)

    async def begin(self, run_id: RunId, owner: str, seconds: float, first: Event) -> int:
        row, now = encode(first), self._lease_time()
        return await self._writer.submit(Ledger.begin_run, run_id, owner, now, seconds, first, row)

    async def renew(self, run_id: RunId, *, fence: int, seconds: float) -> None:
        await self._writer.submit(Ledger.renew, run_id, fence, self._lease_time() + seconds)

    async def release(self, run_id: RunId, *, fence: int) -> None:
        await self._writer.submit(Ledger.release, run_id, fence)

    async def send(self, run_id: RunId, event: ExternalEvent) -> None:
        await self._writer.submit(Ledger.send, run_id, encode(event))

    async def pending(self) -> list[Message]:
        # Who asks while one look is under way shares the next: ten thousand runs that start
        # together need two looks.
        if self._next_look is None:
            self._next_look = asyncio.create_task(self._look())
        return list(await asyncio.shield(self._next_look))

    async def acknowledge(self, numbers: Sequence[int]) -> None:
        await self._writer.submit(Ledger.acknowledge, numbers)

    async def put(self, key: str, kept: CachedOutput) -> None:
        output = json.dumps(kept.output, separators=(",", ":"))
        await self._writer.submit(Ledger.keep, key, kept.run_id, output)

    async def get(self, key: str) -> CachedOutput | None:
        return await self._in_reader(lambda db: _find_kept(db, key))

    async def forget(self, run_id: RunId, *, fence: int) -> None:
        await self._writer.submit(Ledger.forget, run_id, fence)

    async def compact(self) -> None:
        def vacuum() -> None:
            # It needs the file for itself, and room for a second one: where it cannot have both, the
            # free pages are used again by the next runs.
            with suppress(sqlite3.Error), closing(connect(self._path)) as db:
                db.execute("VACUUM")

        self._writer.check_open()
        await asyncio.to_thread(vacuum)

    def losses(self) -> Sequence[Loss]:
        return self._writer.losses

    def __del__(self) -> None:  # of one that nobody closed
        self._readers.close()
        self._writer.end()

    async def close(self) -> None:
        self._readers.close()  # first: the last connection that closes empties the WAL
        await self._writer.close()

    async def _look(self) -> list[Message]:
        async with self._looking:
            self._next_look = None
            return await self._in_reader(_pending)

    async def _in_reader(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        self._writer.check_open()

        def read() -> _T:
            try:
                with self._readers.one() as db:
                    return work(db)
            except sqlite3.Error as error:
                raise StrettoError(f"the journal {self._path} cannot be read: {error}") from error

        return await asyncio.to_thread(read)


def _read(
    db: sqlite3.Connection,
    run_id: RunId,
    after: int,
    with_speech: bool,
    most: int,
    large: LargeValues,
) -> list[StoredEvent]:
    db.text_factory = bytes  # a torn row may not even be text
    silent = "" if with_speech else f"AND substr(event, 1, {len(_SPEECH)}) != '{_SPEECH}'"
    sql = f"""
        SELECT seq, event FROM events
        WHERE run = (SELECT id FROM runs WHERE run_id = ?) AND seq > ? {silent} ORDER BY seq LIMIT ?
        """
    rows = db.execute(sql, (run_id, after, most))
    return [StoredEvent(seq, _decode(raw, large)) for seq, raw in rows]


def _first(
    db: sqlite3.Connection, run_id: RunId, large: LargeValues
) -> Event | UnknownEvent | None:
    db.text_factory = bytes
    sql = "SELECT event FROM events WHERE run = (SELECT id FROM runs WHERE run_id = ?) AND seq = 1"
    row = db.execute(sql, (run_id,)).fetchone()
    return _decode(row[0], large) if row else None


def _decode(raw: bytes, large: LargeValues) -> Event | UnknownEvent:
    event = decode(raw)
    if isinstance(event, AttemptSucceeded) and event.output_at and event.output_bytes:
        output = Large(event.output_at, event.output_bytes, large)
        return structs.replace(event, output=output, output_at=UNSET, output_bytes=UNSET)
    return event


_ROWS_OF_RUNS = f"""
    SELECT run_id, workflow, status, started_at, ended_at,
        CASE WHEN {IN_FORCE} THEN owner END, owner IS NULL FROM runs
    WHERE started_at IS NOT NULL
    """


_BEFORE = "AND (started_at, id) < (SELECT started_at, id FROM runs WHERE run_id = :before)"


def _runs(db: sqlite3.Connection, now: float, limit: int, before: RunId | None) -> list[RunRow]:
    only = "" if before is None else _BEFORE
    sql = f"{_ROWS_OF_RUNS} {only} ORDER BY started_at DESC, id DESC LIMIT :limit"
    found = db.execute(sql, {"now": now, "limit": limit, "before": before})
    return [RunRow(*row) for row in found]


def _unended_rows(db: sqlite3.Connection, now: float) -> list[RunRow]:
    sql = f"{_ROWS_OF_RUNS} AND ended_at IS NULL ORDER BY started_at DESC, id DESC"
    return [RunRow(*row) for row in db.execute(sql, {"now": now})]


def _run(db: sqlite3.Connection, now: float, run_id: RunId) -> RunRow | None:
    sql = f"{_ROWS_OF_RUNS} AND run_id = :run_id"
    found = db.execute(sql, {"now": now, "run_id": run_id}).fetchall()
    return next((RunRow(*row) for row in found), None)


def _news(db: sqlite3.Connection, after: int | None) -> RunNews:
    """By the row ids of events, which grow with each event until the file is compacted."""
    (last,) = db.execute("SELECT coalesce(max(rowid), 0) FROM events").fetchone()
    if after is None or after == last:
        return RunNews(last, ())
    if after > last:
        return RunNews(last, (), is_whole=False)
    sql = f"""
        SELECT DISTINCT run_id FROM events JOIN runs ON runs.id = events.run
        WHERE events.rowid > ? AND events.rowid <= ? AND seq > 0
            AND substr(event, 1, {len(_SPEECH)}) != '{_SPEECH}'
        """
    return RunNews(last, tuple(RunId(row[0]) for row in db.execute(sql, (after, last))))


def _pending(db: sqlite3.Connection) -> list[Message]:
    db.text_factory = bytes  # what cannot be read must not hide what can
    rows = db.execute("SELECT number, run_id, event FROM mailbox ORDER BY number")
    return [
        Message(number, RunId(run_id.decode(errors="replace")), decode(event))
        for number, run_id, event in rows
    ]


def _find_kept(db: sqlite3.Connection, key: str) -> CachedOutput | None:
    sql = "SELECT output, run_id FROM kept_outputs WHERE key = ?"
    row = db.execute(sql, (key,)).fetchone()
    return CachedOutput(json.loads(row[0]), row[1]) if row else None
