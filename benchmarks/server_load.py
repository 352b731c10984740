"""What `stretto serve` bears: runs accepted a second, and its memory with many streams and many ended runs.

    python benchmarks/server_load.py [--runs 400] [--rounds 5] [--streams 1000] [--ended 0]
                                     [--clients 16] [--workers 1] [--folder DIR]

    accepted   POSTs a second that start a run of three steps without waiting for it, each durable
               before its answer, as a ratio to what the bare framework does: FastAPI on uvicorn that
               reads the same body and makes one durable commit in SQLite before it answers
    cpu        of the server for one such run until all are answered, of the bare one for a request, and
               their ratio; unlike the rates it says little about the machine and what else it does
    ended      runs a second from the first request until the last run has ended
    kept       with --ended N: the same after N more runs, and the memory before and after them
    listed     with --ended N: CPU of the server for GET /api/runs, after and before
    streams    memory of the server with that many open streams of events

Both servers are processes of their own with the same settings of uvicorn, on the same disk. One client
asks both, in turns: each round asks one and then the other, and the ratio is the median of the rounds'
own. When a burst is answered, another process looks into the journal: a run that is not in it then, with
how it began, or one id for two requests, ends the benchmark.
"""

import argparse
import asyncio
import json
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from server_kills import Bench

# As `stretto serve` sets uvicorn up. What it answers is as long as an answer of ours.
BARE = """
import socket, sqlite3, sys, uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

class Body(BaseModel):
    inputs: dict
    wait: bool

db = sqlite3.connect(sys.argv[1], isolation_level=None, check_same_thread=False)
db.execute("PRAGMA journal_mode = WAL")
db.execute("PRAGMA synchronous = FULL")
db.execute("CREATE TABLE runs (id INTEGER PRIMARY KEY, body TEXT)")
app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, telemetry={"tracing": False})

@app.post("/run", status_code=202)
async def run(body: Body):
    id = db.execute("INSERT INTO runs (body) VALUES (?)", (body.model_dump_json(),)).lastrowid
    return {"ok": True, "run_id": f"20261118-000000-{id:010}", "status": "running"}

bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
bound.bind(("127.0.0.1", int(sys.argv[2])))
config = uvicorn.Config(
    app, log_config=None, access_log=False, lifespan="on", ws="none",
    server_header=False, proxy_headers=False, backlog=2048,
)
uvicorn.Server(config).run(sockets=[bound])
"""
SCRIPT = "default: Done.\n"
START = "/api/workflows/three/run"


@dataclass(frozen=True)
class Burst:
    rate: float  # answers a second
    cpu: float  # seconds of the server for one of them, until all were answered
    ended: float  # a second, until the last had ended


async def ask(port: int, path: str, token: str, number: int, clients: int) -> list[str]:
    """The ids that were answered, by connections that are kept open."""
    left, found = iter(range(number)), list[str]()

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for n in left:
            body = b'{"inputs": {"n": "%d"}, "wait": false}' % n
            head = (
                f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}"
                f"\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            status = (await reader.readline()).split()[1]
            assert status == b"202", status
            length = 0
            while (line := await reader.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            found.append(json.loads(await reader.readexactly(length))["run_id"])
        writer.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    assert len(set(found)) == number, "one id was given to two requests"
    return found


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def bare_server(folder: Path) -> Iterator[tuple[int, int]]:
    """Its process and its port."""
    port = free_port()
    (folder / "bare.py").write_text(BARE)
    words = [sys.executable, str(folder / "bare.py"), str(folder / "bare.db"), str(port)]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    try:
        give_up_at = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                assert time.monotonic() < give_up_at
                time.sleep(0.1)
        asyncio.run(ask(port, "/run", "x", 50, 16))
        yield process.pid, port
    finally:
        process.kill()
        process.wait()


def bare_burst(pid: int, port: int, number: int, clients: int) -> Burst:
    cpu, began = cpu_seconds(pid), time.perf_counter()
    asyncio.run(ask(port, "/run", "x", number, clients))
    rate = number / (time.perf_counter() - began)
    return Burst(rate, (cpu_seconds(pid) - cpu) / number, rate)


def own_burst(bench: Bench, number: int, clients: int) -> Burst:
    assert bench.process is not None
    pid, port = bench.process.pid, int(bench.url.rpartition(":")[2])
    cpu, began = cpu_seconds(pid), time.perf_counter()
    ids = asyncio.run(ask(port, START, bench.token, number, clients))
    rate = number / (time.perf_counter() - began)
    cpu = (cpu_seconds(pid) - cpu) / number
    check_journal(bench, ids)
    wait_until_idle(bench)
    return Burst(rate, cpu, number / (time.perf_counter() - began))


def check_journal(bench: Bench, ids: list[str]) -> None:
    """Each has its first event there, as another process reads the file."""
    sql = """
        SELECT run_id FROM runs JOIN events ON events.run = runs.id
        WHERE seq = 1 AND event LIKE '{"type":"run_started"%'
        """
    with closing(sqlite3.connect(f"file:{bench.folder}/home/runs.db?mode=ro", uri=True)) as db:
        missing = set(ids) - {run for (run,) in db.execute(sql)}
    assert not missing, f"answered, and not in the journal: {missing}"


def wait_until_idle(bench: Bench) -> None:
    while bench.ask("GET", "/api/runs?status=running&limit=1")["runs"]:
        time.sleep(0.05)


def cpu_seconds(pid: int) -> float:
    """Of the process and its workers."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(cpu_seconds(int(child)) for child in children)


async def open_streams(port: int, run: str, token: str, number: int) -> list[asyncio.StreamWriter]:
    async def one() -> asyncio.StreamWriter:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"GET /api/runs/{run}/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        writer.write(f"{head}Authorization: Bearer {token}\r\n\r\n".encode())
        assert b"200" in await reader.readline()
        await reader.readuntil(b"event: snapshot")
        return writer

    found: list[asyncio.StreamWriter] = []
    for _ in range(0, number, 50):
        found += await asyncio.gather(*(one() for _ in range(min(50, number - len(found)))))
    return found


def memory_mib(pid: int) -> float:
    """Of the process and its workers."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    own = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    return own + sum(memory_mib(int(child)) for child in children)


def stream_memory(bench: Bench, number: int) -> tuple[float, float]:
    """Of the server before, and with the streams open."""
    (bench.folder / "script.yaml").write_text("default: {reply: Done., delay: 600s}\n")
    run = bench.ask("POST", START, json={"inputs": {"n": "s"}, "wait": False})["run_id"]
    assert bench.process is not None
    before = memory_mib(bench.process.pid)

    async def measure() -> float:
        port = int(bench.url.rpartition(":")[2])
        writers = await open_streams(port, run, bench.token, number)
        assert bench.process is not None
        found = memory_mib(bench.process.pid)
        for writer in writers:
            writer.close()
        return found

    return before, asyncio.run(measure())


def compare(title: str, bench: Bench, bare: tuple[int, int], given: argparse.Namespace) -> None:
    pairs = []
    for _ in range(given.rounds):
        other = bare_burst(*bare, given.runs, given.clients)
        pairs.append((own_burst(bench, given.runs, given.clients), other))
    own_rate, bare_rate = (median(each.rate for each in side) for side in zip(*pairs, strict=True))
    ratio = median(own.rate / other.rate for own, other in pairs)
    ended = median(own.ended for own, _ in pairs)
    own_cpu, bare_cpu = (median(each.cpu for each in side) for side in zip(*pairs, strict=True))
    print(f"{title:<9} {own_rate:,.0f} a second, bare {bare_rate:,.0f}: ratio {ratio:.2f}")
    print(
        f"cpu       {own_cpu * 1000:.2f} ms a run, bare {bare_cpu * 1000:.2f}: "
        f"ratio {bare_cpu / own_cpu:.2f}"
    )
    print(f"ended     {ended:,.0f} a second", flush=True)


def list_cpu(bench: Bench, number: int = 40) -> float:
    """CPU seconds of the server for one page of the newest runs."""
    assert bench.process is not None
    before = cpu_seconds(bench.process.pid)
    for _ in range(number):
        assert len(bench.ask("GET", "/api/runs?limit=50")["runs"]) == 50
    return (cpu_seconds(bench.process.pid) - before) / number


def end_many(bench: Bench, bare: tuple[int, int], given: argparse.Namespace) -> None:
    assert bench.process is not None
    pid, listed = bench.process.pid, list_cpu(bench)
    before = memory_mib(pid)
    for at in range(0, given.ended, 500):
        own_burst(bench, min(500, given.ended - at), given.clients)
    compare("kept", bench, bare, given)
    print(
        f"memory    {before:.0f} MiB before, {memory_mib(pid):.0f} after {given.ended:,} more runs"
    )
    print(f"listed    {list_cpu(bench) * 1000:.1f} ms of CPU, {listed * 1000:.1f} before")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--ended", type=int, default=0)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--folder", help="where both keep their files; a disk that syncs, to be fair"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stretto-load-", dir=given.folder) as name:
        folder = Path(name)
        bench = Bench(folder, given.workers)
        (folder / "script.yaml").write_text(SCRIPT)
        bench.start()
        try:
            with bare_server(folder) as bare:
                own_burst(bench, 50, given.clients)
                compare("accepted", bench, bare, given)
                if given.ended:
                    end_many(bench, bare, given)
            before, after = stream_memory(bench, given.streams)
            print(f"streams   {given.streams} open: {after:.0f} MiB, {before:.0f} before")
        finally:
            bench.kill()


if __name__ == "__main__":
    main()
