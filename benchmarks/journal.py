"""How near the SQLite journal comes to what the disk allows. Prints latencies, rates, ratios.

    PYTHONPATH=src python benchmarks/journal.py [directory]

The bare limit is plain sqlite3: WAL, synchronous=FULL, one writer thread, group commit. It writes
the same events in the same words, but checks no fence, numbers no rows and has no index. A second
one is given its text ready-made, to show what encoding costs. All take turns round by round, so
that a moody disk is moody to all.
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

from stretto.adapters.stores.sqlite import SqliteJournal
from stretto.events.attempts import AttemptId
from stretto.events.codec import encode
from stretto.events.model import AttemptSucceeded
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.names import RunId, StepId

WARM_UP = 5  # rounds, until every WAL file has reached its size and is written over from then on
ROUNDS = 15
SEQUENTIAL = 200  # appends a round
APPENDERS = 1_000
EACH = 5  # appends of one appender, a round
LIMIT = "bare, one writer thread"

EVENT = AttemptSucceeded(
    at=1767225600.123456,
    attempt=AttemptId(StepId("review"), 1),
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
        await self.put(encode(EVENT))

    async def append_ready(self, _: int) -> None:
        await self.put(TEXT)

    def put(self, text: str) -> "asyncio.Future[None]":
        done = self.loop.create_future()
        self.queue.put((text, done))
        return done

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

    def ours(number: int) -> Awaitable[None]:
        return journal.append(runs[number], (EVENT,), fence=fences[number])

    names = ("bare, no thread", "bare, text ready-made", LIMIT, "stretto")
    ways = (bare.append_ready, bare.append, ours)
    one: dict[str, list[float]] = {name: [] for name in names}
    many: dict[str, list[float]] = {name: [] for name in names[1:]}
    for number in range(WARM_UP + ROUNDS):
        if number == WARM_UP:
            for seconds in (*one.values(), *many.values()):
                seconds.clear()
        one[names[0]] += in_this_thread(alone)
        for name, append in zip(names[1:], ways, strict=True):
            one[name] += await one_by_one(append)
        for name, append in zip(names[1:], ways, strict=True):
            many[name].append(await all_at_once(append) / APPENDERS / EACH)
    bare.close()
    alone.close()
    await journal.close()
    show("one writer, one append after another", one)
    show(f"{APPENDERS:,} appenders at once, each its own run", many)


def show(title: str, measured: dict[str, list[float]]) -> None:
    print(title)
    limit = measured[LIMIT]
    for name, seconds in measured.items():
        middle = median(seconds)
        print(
            f"  {name:24} {1 / middle:8,.0f} appends/s   {middle * 1e6:6.1f} µs"
            f"   {middle / median(limit):5.2f} of the limit"
            f"   (best tenth: {tenth(seconds) / tenth(limit):.2f})"
        )


def tenth(seconds: list[float]) -> float:
    """The best tenth is what remains when the machine had nothing else to do."""
    return sorted(seconds)[len(seconds) // 10]


def main() -> None:
    where = sys.argv[1] if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory(dir=where) as directory:
        asyncio.run(measure(Path(directory)))


if __name__ == "__main__":
    main()
