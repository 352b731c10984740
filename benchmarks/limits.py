"""What Stretto is measured against: how fast a graph of steps can be run at all. In: a Shape.

plain      asyncio, a task a step, nothing kept
durable    the same, and SQLite (WAL, synchronous=FULL, one writer thread, group commit): the row
           of a start is committed before its step runs, the row of an end no later than the start
           of whoever waited for it. Nothing is planned, checked, keyed or counted.
in_turns   the same again, by hand: whatever ended meanwhile is written as one, so that a thousand
           steps wait for one future. Nobody writes it so for one graph; it is the floor.

All of them put the prompts together, as whoever runs a step must: in plain Python, from a dict of
what was said so far.
"""

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

from shapes import Shape


async def work(step: str, prompt: str) -> str:
    return f"{step} is done."


class _Graph:
    """Counters of what each step still waits for, and what those that ended said."""

    def __init__(self, shape: Shape) -> None:
        self.said: dict[str, str] = {}
        self.unmet = {step: len(befores) for step, befores in shape.befores.items()}
        self.dependents: dict[str, list[str]] = {step: [] for step in shape.befores}
        for step, befores in shape.befores.items():
            for before in befores:
                self.dependents[before].append(step)
        self.left = shape.steps

    def roots(self) -> list[str]:
        return [step for step, unmet in self.unmet.items() if not unmet]

    def end(self, step: str, said: str) -> list[str]:
        """Whoever can start now."""
        self.said[step] = said
        self.left -= 1
        ready = []
        for dependent in self.dependents[step]:
            self.unmet[dependent] -= 1
            if not self.unmet[dependent]:
                ready.append(dependent)
        return ready


async def plain(shape: Shape) -> None:
    graph = _Graph(shape)
    all_ended = asyncio.Event()
    tasks: set[asyncio.Task[None]] = set()

    async def run(step: str) -> None:
        said = await work(step, shape.prompt(step, graph.said))
        for ready in graph.end(step, said):
            tasks.add(asyncio.create_task(run(ready)))
        if not graph.left:
            all_ended.set()

    for root in graph.roots():
        tasks.add(asyncio.create_task(run(root)))
    await all_ended.wait()


async def durable(shape: Shape, file: Path) -> None:
    graph = _Graph(shape)
    writer = _Writer(file)
    all_ended = asyncio.Event()
    tasks: set[asyncio.Task[None]] = set()

    async def run(step: str) -> None:
        """Its start is durable."""
        said = await work(step, shape.prompt(step, graph.said))
        ready = graph.end(step, said)
        await start([_ended(step, said)], ready)
        if not graph.left:
            all_ended.set()

    async def start(rows: list[str], ready: Sequence[str]) -> None:
        await writer.append([*rows, *map(_started, ready)])
        for step in ready:
            tasks.add(asyncio.create_task(run(step)))

    await start([], graph.roots())
    await all_ended.wait()
    await asyncio.gather(*tasks)
    writer.close()


async def in_turns(shape: Shape, file: Path) -> None:
    graph = _Graph(shape)
    writer = _Writer(file)
    ended: list[tuple[str, str]] = []
    is_any = asyncio.Event()
    tasks: set[asyncio.Task[None]] = set()

    async def run(step: str) -> None:
        ended.append((step, await work(step, shape.prompt(step, graph.said))))
        is_any.set()

    async def start(rows: list[str], ready: Sequence[str]) -> None:
        await writer.append([*rows, *map(_started, ready)])
        for step in ready:
            tasks.add(asyncio.create_task(run(step)))

    await start([], graph.roots())
    while graph.left:
        await is_any.wait()
        is_any.clear()
        batch = ended[:]
        ended.clear()
        rows = [_ended(step, said) for step, said in batch]
        await start(rows, [ready for step, said in batch for ready in graph.end(step, said)])
    writer.close()


def _started(step: str) -> str:
    return f'{{"type":"started","step":"{step}"}}'


def _ended(step: str, said: str) -> str:
    return f'{{"type":"ended","step":"{step}","output":"{said}"}}'


class _Writer:
    def __init__(self, file: Path) -> None:
        self._db = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY, event TEXT)")
        self._loop = asyncio.get_running_loop()
        self._queue = SimpleQueue[tuple[list[str], asyncio.Future[None]] | None]()
        self._thread = Thread(target=self._work)
        self._thread.start()

    def append(self, rows: list[str]) -> "asyncio.Future[None]":
        done = self._loop.create_future()
        self._queue.put((rows, done))
        return done

    def _work(self) -> None:
        while (first := self._queue.get()) is not None:
            batch = [first]
            while not self._queue.empty() and (other := self._queue.get()) is not None:
                batch.append(other)
            self._db.execute("BEGIN IMMEDIATE")
            rows = [(row,) for rows, _ in batch for row in rows]
            self._db.executemany("INSERT INTO events (event) VALUES (?)", rows)
            self._db.execute("COMMIT")
            self._loop.call_soon_threadsafe(self._resolve, batch)

    @staticmethod
    def _resolve(batch: "list[tuple[list[str], asyncio.Future[None]]]") -> None:
        for _, done in batch:
            done.set_result(None)

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()
        self._db.close()
