"""Several processes at one address: what one of them knows, all of them know."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from support.benchmarks import load_benchmark
from support.cli import environment, stretto

GATED = "name: gated\nsteps: [{id: act, subagent: writer, gate: human, prompt: x}]\n"
HELLO = {"inputs": {"n": "1"}, "wait": False}
PATIENCE_SECONDS = 60


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Any]:
    found = load_benchmark("server_kills").Bench(tmp_path, workers=3)
    (tmp_path / "workflows" / "gated.yaml").write_text(GATED)
    found.start()
    yield found
    if found.process.poll() is None:
        found.process.terminate()
        assert found.process.wait(PATIENCE_SECONDS) == 0
    found.process.stdout.close()


def asked(bench: Any, method: str, path: str, **more: Any) -> httpx2.Response:
    """By a new connection, so by any of the workers."""
    headers = {"Authorization": f"Bearer {bench.token}", **more.pop("headers", {})}
    url = f"{bench.url}{path}"
    return httpx2.request(method, url, headers=headers, timeout=60, trust_env=False, **more)


def workers_of(bench: Any) -> list[int]:
    pid = bench.process.pid
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_key_sent_to_all_of_them_begins_one_run_and_one_answer_to_a_gate_counts(
    bench: Any,
) -> None:
    def begin(number: int) -> str:
        key = {"Idempotency-Key": f"key-{number // 6}"}
        answer = asked(bench, "POST", "/api/workflows/three/run", json=HELLO, headers=key)
        return str(answer.json()["run_id"])

    with ThreadPoolExecutor(12) as threads:
        ids = list(threads.map(begin, range(60)))
    assert [len({*ids[at : at + 6]}) for at in range(0, 60, 6)] == [1] * 10
    assert len(set(ids)) == 10
    for _ in range(5):
        run = asked(bench, "POST", "/api/workflows/gated/run", json={}).json()["run_id"]

        def approve(_: int, run: str = run) -> int:
            return asked(bench, "POST", f"/api/runs/{run}/steps/act/approve").status_code

        with ThreadPoolExecutor(4) as threads:
            assert sorted(threads.map(approve, range(4))) == [200, 409, 409, 409]


def test_streams_sessions_and_limits_are_right_whichever_of_them_answers(bench: Any) -> None:
    run = asked(bench, "POST", "/api/workflows/three/run", json=HELLO).json()["run_id"]

    def events(_: int) -> list[str]:
        text = asked(bench, "GET", f"/api/runs/{run}/events?after=0").text
        return [line for line in text.splitlines() if line.startswith("id: ")]

    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(events, range(6)))
    assert found == [[f"id: {seq}" for seq in range(1, len(found[0]) + 1)]] * 6
    path = asked(bench, "POST", "/api/session/link").json()["path"]
    opened = httpx2.get(f"{bench.url}{path}", trust_env=False)
    cookie = opened.headers["set-cookie"].split(";")[0]
    for _ in range(10):
        assert httpx2.get(f"{bench.url}{path}", trust_env=False).status_code in (401, 429)
        session = httpx2.get(
            f"{bench.url}/api/session", headers={"Cookie": cookie}, trust_env=False
        )
        assert session.json()["role"] == "admin"
    guess = {"Authorization": "Bearer guess"}
    answer = httpx2.get(f"{bench.url}/api/runs", headers=guess, trust_env=False)
    assert answer.status_code == 429
    assert started(bench) == 1


def started(bench: Any) -> int:
    """How many runs the workers count in all, once the one that began the run has left its figures."""
    for _ in range(300):
        text = asked(bench, "GET", "/metrics").text
        found = re.search(r"^stretto_runs_started_total (\d+)", text, re.M)
        if found and int(found[1]):
            return int(found[1])
        time.sleep(0.1)
    return 0


def test_a_worker_that_dies_is_replaced_and_its_runs_go_on(bench: Any) -> None:
    ids = [
        asked(bench, "POST", "/api/workflows/three/run", json=HELLO).json()["run_id"]
        for _ in range(20)
    ]
    before = workers_of(bench)
    os.kill(before[0], signal.SIGKILL)
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while True:
        statuses = {bench.ask("GET", f"/api/runs/{run}")["status"] for run in ids}
        if statuses == {"complete"} and len(workers_of(bench)) == 3:
            break
        assert time.monotonic() < give_up_at, statuses
        time.sleep(0.2)
    assert before[0] not in workers_of(bench)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_is_left_once_the_parent_has_ended(bench: Any, number: signal.Signals) -> None:
    before = workers_of(bench)
    bench.process.send_signal(number)
    assert bench.process.wait(PATIENCE_SECONDS) == (0 if number == signal.SIGINT else -9)
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while any(is_serving(pid) for pid in before):
        assert time.monotonic() < give_up_at
        time.sleep(0.05)


def is_serving(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_mcp_needs_no_session_where_any_of_them_may_answer(bench: Any) -> None:
    mcp = pytest.importorskip("mcp")
    from mcp.client.streamable_http import streamable_http_client

    async def call(_: int) -> str:
        headers = {"Authorization": f"Bearer {bench.token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as client,
            streamable_http_client(f"{bench.url}/mcp", http_client=client) as (read, write, *_),
            mcp.ClientSession(read, write) as session,
        ):
            await session.initialize()
            assert "three" in str((await session.list_tools()).tools)
            arguments = {"name": "three", "inputs": {"n": "1"}}
            answer = await session.call_tool("run_workflow", arguments)
            return str(answer.structured_content["status"])

    async def all_at_once() -> list[str]:
        return list(await asyncio.gather(*map(call, range(6))))

    assert asyncio.run(all_at_once()) == ["complete"] * 6


def test_a_store_of_one_process_has_no_workers(tmp_path: Path) -> None:
    said = stretto(tmp_path, "serve", "--workers", "2", env={"STRETTO_STORE": "memory"})
    assert said.code == 2
    assert "fenced leases" in said.err
    assert "sqlite" in said.err


TWINS = """
from stretto.adapters.stores.sqlite import SqliteJournal

async def shy(home):
    store = await SqliteJournal.open(home / "twins.db")
    return Shy(store)

async def open_to_all(home):
    return await SqliteJournal.open(home / "twins.db")

class Shy:
    def __init__(self, store):
        self._store = store
    def __getattr__(self, name):
        if name == "is_shared":
            raise AttributeError(name)
        return getattr(self._store, name)
"""


def test_a_store_of_another_package_says_whether_several_processes_share_it(
    tmp_path: Path,
) -> None:
    metadata = tmp_path / "site" / "twins-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata.parent / "twins.py").write_text(TWINS)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: twins\nVersion: 1.0\n")
    points = "[stretto.stores]\nshy = twins:shy\nopen_to_all = twins:open_to_all\n"
    (metadata / "entry_points.txt").write_text(points)
    folder = tmp_path / "project"
    (folder / "workflows").mkdir(parents=True)
    env = environment(folder, {"PYTHONPATH": str(metadata.parent)})
    words = [sys.executable, "-m", "stretto", "serve", "--port", "0", "--workers", "2"]

    refused = subprocess.run(
        words, cwd=folder, env={**env, "STRETTO_STORE": "shy"}, capture_output=True, timeout=60
    )
    assert (refused.returncode, b"'shy' does not say" in refused.stderr) == (2, True)

    Path(env["STRETTO_HOME"]).mkdir(exist_ok=True)
    (Path(env["STRETTO_HOME"]) / "stretto.yaml").write_text("store: open_to_all\n")
    with subprocess.Popen(words, cwd=folder, env=env, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"Stretto is at")
        process.terminate()
        assert process.wait(PATIENCE_SECONDS) == 0
    assert (Path(env["STRETTO_HOME"]) / "twins.db").exists()
    assert not (Path(env["STRETTO_HOME"]) / "runs.db").exists()


def test_a_port_that_is_in_use_is_refused_to_workers_too(bench: Any, tmp_path: Path) -> None:
    port = bench.url.rpartition(":")[2]
    for workers in ("1", "2"):
        said = stretto(tmp_path, "serve", "--port", port, "--workers", workers)
        assert (said.code, "cannot be used" in said.err) == (2, True), said.err


def test_the_settings_say_where_the_server_is_and_options_say_otherwise(
    bench: Any, tmp_path: Path
) -> None:
    port = bench.url.rpartition(":")[2]
    (tmp_path / "stretto.yaml").write_text(f"server: {{port: {port}, workers: 2}}\n")
    said = stretto(tmp_path, "serve")
    assert (said.code, f"port {port} cannot be used" in said.err) == (2, True), said.err
    said = stretto(tmp_path, "serve", "link", env={"STRETTO_TOKEN": bench.token})
    assert said.out.startswith(f"http://127.0.0.1:{port}/login?code="), said.err
    said = stretto(tmp_path, "serve", "--host", "0.0.0.0", "--port", "0")
    assert (said.code, "reached from other machines" in said.err) == (2, True)
