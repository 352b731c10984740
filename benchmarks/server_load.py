"""What `stretto serve` bears: runs accepted a second, and the memory of open streams.

    python benchmarks/server_load.py [--runs 500] [--streams 1000] [--clients 16] [--workers 1]

    accepted   POSTs a second that start a run of three steps without waiting for it, each durable
               before its answer, as a ratio to what the bare framework does: FastAPI on uvicorn that
               reads the same body and makes one durable commit in SQLite before it answers
    cpu        of the server for one such run until it has ended, and of the bare one for a request;
               unlike the rates it says little about the machine and what else it does
    streams    memory of the server with that many open streams of events

Both servers are processes of their own, and the same client asks both, one after the other.
"""

import argparse
import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from server_kills import Bench

BARE = """
import sqlite3, sys, uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

class Body(BaseModel):
    inputs: dict
    wait: bool

db = sqlite3.connect(sys.argv[1], isolation_level=None, check_same_thread=False)
db.execute("PRAGMA journal_mode = WAL")
db.execute("PRAGMA synchronous = FULL")
db.execute("CREATE TABLE runs (id INTEGER PRIMARY KEY, body TEXT)")
app = FastAPI()

@app.post("/run")
async def run(body: Body):
    db.execute("INSERT INTO runs (body) VALUES (?)", (body.model_dump_json(),))
    return {"ok": True}

uvicorn.run(app, port=int(sys.argv[2]), log_level="error")
"""
SCRIPT = "default: Done.\n"


async def ask(port: int, path: str, token: str, number: int, clients: int) -> float:
    """POSTs a second, by connections that are kept open."""
    left = iter(range(number))

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
            assert status in (b"200", b"202"), status
            length = 0
            while (line := await reader.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            await reader.readexactly(length)
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return number / (time.perf_counter() - began)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def bare_rate(folder: Path, number: int, clients: int) -> tuple[float, float]:
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
        asyncio.run(ask(port, "/run", "x", 50, clients))
        before = cpu_seconds(process.pid)
        rate = asyncio.run(ask(port, "/run", "x", number, clients))
        return rate, (cpu_seconds(process.pid) - before) / number
    finally:
        process.kill()
        process.wait()


def own_rate(bench: Bench, number: int, clients: int) -> tuple[float, float]:
    """Runs accepted a second; CPU seconds for each, until the last one has ended."""
    assert bench.process is not None
    port = int(bench.url.rpartition(":")[2])
    path = "/api/workflows/three/run"
    asyncio.run(ask(port, path, bench.token, 20, clients))
    wait_until_idle(bench)
    before = cpu_seconds(bench.process.pid)
    rate = asyncio.run(ask(port, path, bench.token, number, clients))
    wait_until_idle(bench)
    return rate, (cpu_seconds(bench.process.pid) - before) / number


def wait_until_idle(bench: Bench) -> None:
    while bench.ask("GET", "/api/runs?status=running&limit=1")["runs"]:
        time.sleep(0.2)


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
    body = {"inputs": {"n": "s"}, "wait": False}
    run = bench.ask("POST", "/api/workflows/three/run", json=body)["run_id"]
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stretto-server-load-") as name:
        folder = Path(name)
        bare, bare_cpu = bare_rate(folder, given.runs, given.clients)
        bench = Bench(folder, given.workers)
        (folder / "script.yaml").write_text(SCRIPT)
        bench.start()
        try:
            own, cpu = own_rate(bench, given.runs, given.clients)
            print(f"accepted  {own:,.0f} a second, bare {bare:,.0f}: ratio {own / bare:.2f}")
            print(f"cpu       {cpu * 1000:.2f} ms a run, bare {bare_cpu * 1000:.2f} ms a request")
            before, after = stream_memory(bench, given.streams)
            print(f"streams   {given.streams} open: {after:.0f} MiB, {before:.0f} before")
        finally:
            bench.kill()


if __name__ == "__main__":
    main()
