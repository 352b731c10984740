"""How near the SQLite journal comes to what the disk allows. Prints latencies, rates, ratios.

    PYTHONPATH=src python benchmarks/journal.py [directory]

The bare limit writes finished text with plain sqlite3: WAL, synchronous=FULL, one writer thread,
group commit. Ours also encodes the events, checks the fence and numbers the rows. Both write the
same bytes, and they take turns round by round, so that a moody disk is moody to both.
"""

import asyncio
import sqlite3
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from queue import SimpleQueue
from statistics import median
from threading import Thread

from weft.adapters.stores.sqlite import SqliteJournal
from weft.events.codec import encode
from weft.events.model import AttemptSucceeded
from weft.vocabulary.ids import RunId, StepId
from weft.vocabulary.usage import Usage

ROUNDS = 15
SEQUENTIAL = 200  # appends a round
APPENDERS = 1_000
EACH = 5  # appends of one appender, a round

EVENT = AttemptSucceeded(
    at=1767225600.123456,
    step=StepId("review"),
    part="",
    attempt=1,
    output="All is well with the draft.",
    usage=Usage(1234, 567, 0.0123, 3),
    model="a-provider:a-model",
)
TEXT = encode(EVENT)
Append = Callable[[int], Awaitable[None]]


def bare_connection(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, event TEXT NOT NULL) STRICT")
    return db


class BareWriter:
    """The limit: nothing but a queue, a thread and a transaction."""

    def __init__(self, path: Path) -> None:
        self.db = bare_connection(path)
        self.loop = asyncio.get_running_loop()
        self.queue = SimpleQueue[tuple[str, asyncio.Future[None]] | None]()
        self.thread = Thread(target=self.work)
        self.thread.start()

    async def append(self, _: int) -> None:
        done = self.loop.create_future()
        self.queue.put((TEXT, done))
        await done

    def work(self) -> None:
        while (first := self.queue.get()) is not None:
            batch = [first]
            while not self.queue.empty() and (other := self.queue.get()) is not None:
                batch.append(other)
            self.db.execute("BEGIN IMMEDIATE")
            rows = [(text,) for text, _ in batch]
            self.db.executemany("INSERT INTO events (event) VALUES (?)", rows)
            self.db.execute("COMMIT")
            self.loop.call_soon_threadsafe(self.resolve, batch)

    def resolve(self, batch: list[tuple[str, asyncio.Future[None]]]) -> None:
        for _, done in batch:
            done.set_result(None)

    def close(self) -> None:
        self.queue.put(None)
        self.thread.join()
        self.db.close()


async def one_by_one(append: Append) -> list[float]:
    seconds = []
    for _ in range(SEQUENTIAL):
        begun = time.perf_counter()
        await append(0)
        seconds.append(time.perf_counter() - begun)
    return seconds


async def all_at_once(append: Append) -> float:
    async def appender(number: int) -> None:
        for _ in range(EACH):
            await append(number)

    begun = time.perf_counter()
    await asyncio.gather(*(appender(number) for number in range(APPENDERS)))
    return time.perf_counter() - begun


def in_this_thread(db: sqlite3.Connection) -> list[float]:
    seconds = []
    for _ in range(SEQUENTIAL):
        begun = time.perf_counter()
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO events (event) VALUES (?)", (TEXT,))
        db.execute("COMMIT")
        seconds.append(time.perf_counter() - begun)
    return seconds


async def measure(directory: Path) -> None:
    journal = await SqliteJournal.open(directory / "ours.db")
    runs = [RunId(f"run-{number}") for number in range(APPENDERS)]
    fences = await asyncio.gather(*(journal.lease(run, "benchmark", 3600) for run in runs))
    bare, alone = BareWriter(directory / "bare.db"), bare_connection(directory / "alone.db")

    async def ours(number: int) -> None:
        await journal.append(runs[number], (EVENT,), fence=fences[number])

    no_thread, bare_one, ours_one, bare_all, ours_all = [], [], [], [], []
    for _ in range(ROUNDS):
        no_thread += in_this_thread(alone)
        bare_one += await one_by_one(bare.append)
        ours_one += await one_by_one(ours)
        bare_all.append(await all_at_once(bare.append))
        ours_all.append(await all_at_once(ours))
    bare.close()
    alone.close()
    await journal.close()
    show_sequential(no_thread, bare_one, ours_one)
    show_concurrent(bare_all, ours_all)


def show_sequential(no_thread: list[float], bare: list[float], ours: list[float]) -> None:
    print("one writer, one append after another")
    limit = median(bare)
    for name, seconds in (
        ("bare, no thread", no_thread),
        ("bare, one writer thread", bare),
        ("weft", ours),
    ):
        middle = median(seconds)
        tail = sorted(seconds)[len(seconds) * 99 // 100]
        print(
            f"  {name:24} {1 / middle:8,.0f} appends/s   median {middle * 1e6:5.0f} µs"
            f"   p99 {tail * 1e6:6.0f} µs   {middle / limit:5.2f} × the limit"
        )


def show_concurrent(bare: list[float], ours: list[float]) -> None:
    print(f"{APPENDERS:,} appenders at once, each its own run")
    limit = median(bare)
    for name, seconds in (("bare, one writer thread", bare), ("weft", ours)):
        middle = median(seconds)
        rate = APPENDERS * EACH / middle
        print(
            f"  {name:24} {rate:8,.0f} appends/s   {middle / limit:5.2f} × the limit"
            f"   best round {min(seconds) / min(bare):5.2f} ×"
        )


def main() -> None:
    where = sys.argv[1] if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory(dir=where) as directory:
        asyncio.run(measure(Path(directory)))


if __name__ == "__main__":
    main()
