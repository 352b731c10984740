"""Events as they happen: a snapshot, then every event once, across readers, restarts and processes."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from server.conftest import RECIPES, SCRIPTS
from server.test_runs import HELLO, started, until
from stretto.server import streams
from stretto.server.service import Service
from support.cli import stretto
from support.served import PATIENCE_SECONDS, Served, served


def messages(response: httpx2.Response) -> Iterator[dict[str, Any]]:
    found: dict[str, Any] = {}
    for line in response.iter_lines():
        if not line:
            if "event" in found:
                yield found
            found = {}
            continue
        key, _, value = line.partition(": ")
        if key in ("id", "event"):
            found[key] = value
        elif key == "data":
            found["data"] = json.loads(value)


def follow(client: httpx2.Client, run: str, **headers: str) -> list[dict[str, Any]]:
    with client.stream("GET", f"/api/runs/{run}/events", headers=headers) as response:
        assert response.status_code == 200, response.read()
        return list(messages(response))


def test_a_stream_begins_with_a_snapshot_and_ends_with_the_run(server: Served) -> None:
    client = server.client()
    run = started(client, "gated")
    until(client, run, "waiting")
    found: list[dict[str, Any]] = []

    def read() -> None:
        found.extend(follow(server.client(), run))

    reader = threading.Thread(target=read)
    reader.start()
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while "stretto_event_streams 1" not in client.get("/metrics").text:
        assert time.monotonic() < give_up_at
        time.sleep(0.05)
    client.post(f"/api/runs/{run}/steps/act/approve")
    reader.join(PATIENCE_SECONDS)
    snapshot, *events, last = found
    assert snapshot["event"] == "snapshot"
    assert snapshot["data"]["status"] == "waiting"
    assert int(snapshot["id"]) == snapshot["data"]["cursor"]
    numbers = [int(each["id"]) for each in events]
    assert numbers == list(range(int(snapshot["id"]) + 1, numbers[-1] + 1))
    assert (last["event"], last["data"]) == ("end", {"status": "complete"})
    assert events[-1]["event"] == "run_ended"


def test_last_event_id_goes_on_without_a_gap_or_a_repeat(server: Served) -> None:
    client = server.client()
    run = client.post("/api/workflows/greet/run", json=HELLO).json()["run_id"]
    with client.stream("GET", f"/api/runs/{run}/events?after=0") as response:
        every = [each["id"] for each in messages(response) if "id" in each]
    assert every == [str(n) for n in range(1, len(every) + 1)]
    for cut in range(1, len(every)):
        rest = follow(client, run, **{"Last-Event-ID": str(cut)})
        assert [each["id"] for each in rest if "id" in each] == every[cut:]
        assert rest[-1]["event"] == "end"
    done = client.get(f"/api/runs/{run}/events", headers={"Last-Event-ID": every[-1]})
    assert done.status_code == 204


@pytest.mark.parametrize("place", ["x", "-1", "99999", "9" * 40, "1.5"])
def test_a_place_that_is_none_is_refused(server: Served, place: str) -> None:
    client = server.client()
    run = client.post("/api/workflows/greet/run", json=HELLO).json()["run_id"]
    answer = client.get(f"/api/runs/{run}/events", headers={"Last-Event-ID": place})
    assert answer.status_code == 422


def test_a_run_of_another_process_is_streamed(server: Served) -> None:
    env = {"STRETTO_MODEL": f"scripted:{server.folder / 'script.yaml'}"}
    said = stretto(server.folder, "run", "greet", "-i", "whom=Bo", "--json", env=env)
    run = json.loads(said.out.splitlines()[-1])["run_id"]
    found = follow(server.client(), run, **{"Last-Event-ID": "1"})
    assert [each["event"] for each in found][-2:] == ["run_ended", "end"]


def test_a_reader_that_does_not_read_is_dropped_with_a_notice(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "_SLOW_SECONDS", 0.3)
    client = server.client()
    big = {"whom": "x" * 3_000_000}
    run = client.post("/api/workflows/greet/run", json={"inputs": big}).json()["run_id"]
    port = urlsplit(server.url).port
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(PATIENCE_SECONDS)
        connection.connect(("127.0.0.1", port))
        head = f"GET /api/runs/{run}/events?after=0 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        connection.sendall(f"{head}Authorization: Bearer {server.token}\r\n\r\n".encode())
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while "stretto_event_streams 1" not in client.get("/metrics").text:
            assert time.monotonic() < give_up_at
        while "stretto_event_streams 0" not in client.get("/metrics").text:
            assert time.monotonic() < give_up_at
            time.sleep(0.05)
        read = b""
        while piece := connection.recv(2**20):
            read += piece
            if b"event: dropped" in read:
                break
    assert b"event: dropped" in read
    assert b"Last-Event-ID" in read


def test_a_stream_goes_on_with_the_next_server_and_misses_nothing(tmp_path: Path) -> None:
    for name, text in SCRIPTS.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    env = {"STRETTO_MODEL": f"scripted:{tmp_path / 'script.yaml'}"}
    with served(tmp_path, RECIPES, env) as first:
        client = first.client()
        run = started(client, "gated")
        until(client, run, "waiting")
        seen: list[dict[str, Any]] = []
        reader = threading.Thread(
            target=lambda: seen.extend(follow(first.client(), run, **{"Last-Event-ID": "1"}))
        )
        reader.start()
        while "stretto_event_streams 1" not in client.get("/metrics").text:
            time.sleep(0.05)
    reader.join(PATIENCE_SECONDS)
    assert seen[-1]["event"] == "closing"
    last = next(each["id"] for each in reversed(seen) if "id" in each)
    with served(tmp_path, RECIPES, env) as second:
        client = second.client()
        client.post(f"/api/runs/{run}/steps/act/approve")
        until(client, run, "complete")
        rest = follow(client, run, **{"Last-Event-ID": last})
    numbers = [int(each["id"]) for each in (*seen, *rest) if "id" in each]
    assert numbers == list(range(2, numbers[-1] + 1))


def test_a_stream_whose_events_cannot_be_read_by_a_fault_of_ours_ends_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def page(**asked: int) -> None:
        raise RuntimeError("no such column")

    stretto: Any = SimpleNamespace(open=lambda run_id: SimpleNamespace(page=page))

    async def read() -> list[bytes]:
        service = Service(stretto, *[None] * 3)  # type: ignore[arg-type]
        async with asyncio.timeout(5):
            return [piece async for piece in streams.stream(service, "r", 0, None, False)]

    last = asyncio.run(read())[-1]
    assert last.startswith(b"event: fault")
    assert b"no such column" not in last
    assert "no such column" in caplog.text
