"""A server whose disk is full: it says so, does nothing by halves, and goes on once there is room."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from support.served import served

HELLO = "name: hello\nsteps: [{id: a, subagent: writer, prompt: Hi}]\n"
KEY = {"Idempotency-Key": "k"}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    words = ["mount", "-t", "tmpfs", "-o", "size=6m,mode=0700", "tmpfs", tmp_path]
    mounted = subprocess.run(words, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted: {mounted.stderr.strip()}")
    yield tmp_path
    subprocess.run(["umount", "--lazy", tmp_path], check=True)


def fill(disk: Path) -> Path:
    file = disk / "fill"
    descriptor = os.open(file, os.O_CREAT | os.O_WRONLY)
    try:
        with suppress(OSError):
            while True:
                os.write(descriptor, bytes(1024))
    finally:
        os.close(descriptor)
    return file


def test_a_full_disk_is_507_by_every_way_and_no_500(small_disk: Path) -> None:
    (small_disk / "script.yaml").write_text("default: Hello!\n")
    env = {"STRETTO_MODEL": f"scripted:{small_disk / 'script.yaml'}"}
    with served(small_disk, {"hello": HELLO}, env) as found:
        client = found.client()
        run = "/api/workflows/hello/run"
        assert client.post(run, json={}).status_code == 200
        filler = fill(small_disk)
        answers = [
            client.post(run, json={}),
            client.post(run, json={"wait": False}, headers=KEY),
            client.put("/api/workflows/other", json={"recipe": HELLO.replace("hello", "other")}),
            client.put("/api/workflows/hello", json={"recipe": HELLO + "\n" * 20_000}),
            client.post("/api/session/link"),
            client.post(
                "/api/schedules", json={"name": "s", "workflow": "hello", "cron": "@daily"}
            ),
        ]
        told = [(each.status_code, each.json()["error"]["kind"]) for each in answers]
        assert set(told) <= {(507, "disk_full"), (507, "journal_full")}, told
        assert (
            found.stranger(headers={"Authorization": "Bearer x"}).get("/api/runs").status_code
            == 401
        )
        assert client.get("/api/runs").status_code == 200
        filler.unlink()
        assert client.post(run, json={}, headers=KEY).json()["status"] == "complete"
        assert len(client.get("/api/runs").json()["runs"]) == 2
