"""The server as a process: how it ends, how the next one goes on, and what it says."""

import functools
import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from stretto.server import guard, process
from support.benchmarks import load_benchmark
from support.cli import stretto
from support.served import served

FORM = "application/x-www-form-urlencoded"


def test_a_killed_server_loses_and_doubles_no_run(tmp_path: Path) -> None:
    harness = load_benchmark("server_kills")
    runs, kills = harness.QUICK
    figures = harness.try_kills(tmp_path, runs, kills, random.Random(3))
    assert figures.is_good, figures
    assert figures.kills == kills


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_within_two_seconds_with_a_stream_open(
    tmp_path: Path, number: signal.Signals
) -> None:
    bench = load_benchmark("server_kills").Bench(tmp_path)
    (tmp_path / "script.yaml").write_text("default: {reply: Done., delay: 600s}\n")
    bench.start()
    process: subprocess.Popen[str] = bench.process
    body = {"inputs": {"n": "1"}, "wait": False}
    run = bench.ask("POST", "/api/workflows/three/run", json=body)["run_id"]
    headers = {"Authorization": f"Bearer {bench.token}"}
    url = f"{bench.url}/api/runs/{run}/events"
    with httpx2.stream("GET", url, headers=headers, timeout=60, trust_env=False) as answer:
        lines = answer.iter_lines()
        assert "event: snapshot" in [next(lines) for _ in range(4)]
        process.send_signal(number)
        began = time.monotonic()
        rest = list(lines)
        process.wait(60)
        seconds = time.monotonic() - began
    process.stdout.close()
    assert "event: closing" in rest
    assert process.returncode == 0
    assert seconds < 10.0  # two, where the machine has nothing else to do
    env = {"STRETTO_HOME": str(tmp_path / "home")}
    assert stretto(tmp_path, "runs", "--json", env=env).json["runs"][0]["status"] == "interrupted"


GROW = """\
name: grow
inputs: [{name: evidence, default: none}]
steps:
  - {id: think, subagent: writer, prompt: "So far: {{inputs.evidence}}"}
  - {id: add, run: "echo $ID >> lines.txt", env: {ID: "{{run.id}}"}, write_set: [lines.txt], effect: idempotent, depends_on: think}
"""
GATED = """\
name: gated-grow
inputs: [{name: evidence, default: none}]
steps:
  - {id: add, run: echo x >> lines.txt, write_set: [lines.txt], gate: human}
"""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Any]:
    found = load_benchmark("server_kills").Bench(tmp_path)
    (tmp_path / "workflows" / "grow.yaml").write_text(GROW)
    (tmp_path / "workflows" / "gated-grow.yaml").write_text(GATED)
    found.start()
    yield found
    found.kill()


def goal_until(bench: Any, goal: str, *statuses: str) -> dict[str, Any]:
    give_up_at = time.monotonic() + 120
    while True:
        found: dict[str, Any] = bench.ask("GET", f"/api/goals/{goal}")["goal"]
        if found["status"] in statuses:
            return found
        assert time.monotonic() < give_up_at, found
        time.sleep(0.05)


def test_a_goal_goes_on_with_the_next_server_and_no_iteration_counts_twice(bench: Any) -> None:
    body = {"text": "Four lines", "verify": 'command:test "$(wc -l < lines.txt)" -ge 4'}
    goal = bench.ask("POST", "/api/goals", json={**body, "workflow": "grow"})["goal"]["id"]
    chance = random.Random(5)
    for _ in range(4):
        time.sleep(chance.uniform(0.2, 1.5))
        bench.kill()
        bench.start()
    found = goal_until(bench, goal, "achieved", "exhausted", "stalled")
    assert found["status"] == "achieved"
    numbers = [each["iteration"] for each in found["history"]]
    assert numbers == list(range(1, len(numbers) + 1))
    runs = [each["run_id"] for each in found["history"]]
    assert len(set(runs)) == len(runs)
    written = (bench.folder / "lines.txt").read_text().split()
    assert set(written) == set(runs)
    assert {row["run_id"] for row in bench.ask("GET", "/api/runs?limit=200")["runs"]} == set(runs)


def test_a_goal_that_waited_goes_on_once_a_person_has_decided(bench: Any) -> None:
    body = {"text": "A line", "verify": "command:test -s lines.txt", "workflow": "gated-grow"}
    goal = bench.ask("POST", "/api/goals", json=body)["goal"]["id"]
    run = goal_until(bench, goal, "waiting")["run_id"]
    bench.kill()
    bench.start()
    time.sleep(3)  # the next server has looked at it, and left it waiting
    assert goal_until(bench, goal, "waiting", "active")["run_id"] == run
    bench.ask("POST", f"/api/runs/{run}/steps/add/approve", json={})
    found = goal_until(bench, goal, "achieved")
    assert [each["run_id"] for each in found["history"]] == [run]


def test_a_goal_of_a_terminal_is_left_to_it(bench: Any) -> None:
    env = {"STRETTO_HOME": str(bench.folder / "home")}
    words = ("goal", "set", "A line", "--verify", "command:test -s lines.txt", "--json")
    said = stretto(bench.folder, *words, "--workflow", "gated-grow", env=env)
    goal, run = said.json["goal"]["id"], said.json["goal"]["run_id"]
    bench.ask("POST", f"/api/runs/{run}/steps/add/approve", json={})
    time.sleep(5)
    assert bench.ask("GET", f"/api/goals/{goal}")["goal"]["history"][0]["met"] is False


def test_tokens_are_added_listed_and_revoked(tmp_path: Path) -> None:
    options = ("--role", "operator", "--owner", "lea", "--expires", "30d")
    made = stretto(tmp_path, "serve", "token", "add", "ada", *options, "--json").json
    assert len(made["token"]) > 30
    assert made["expires_in_seconds"] == 30 * 86_400
    wrong = stretto(tmp_path, "serve", "token", "add", "bea", "--expires", "soon")
    assert (wrong.code, "30d" in wrong.err) == (2, True)
    again = stretto(tmp_path, "serve", "token", "add", "ada", "--json")
    assert again.json["error"]["kind"] == "exists"
    listed = stretto(tmp_path, "serve", "token", "list", "--json").json["tokens"]
    assert [(each["name"], each["role"], each["owner"]) for each in listed] == [
        ("ada", "operator", "lea")
    ]
    assert listed[0]["expires_at"] - listed[0]["at"] == 30 * 86_400
    assert made["token"] not in stretto(tmp_path, "serve", "token", "list").out
    assert stretto(tmp_path, "serve", "token", "revoke", "ada").code == 0
    assert stretto(tmp_path, "serve", "token", "revoke", "ada").code == 2
    assert stretto(tmp_path, "serve", "logout", "--json").json == {"ok": True, "sessions": 0}
    assert stretto(tmp_path, "serve", "logout", "nobody").code == 2


def test_the_log_as_json_tells_every_request_and_no_login_code(tmp_path: Path) -> None:
    import io
    import json
    import logging

    from stretto.server.process import write_log

    stream, root = io.StringIO(), logging.getLogger()
    before = (root.handlers[:], root.level)
    try:
        write_log(True, False, stream)
        from support.served import served

        with served(tmp_path) as server:
            server.stranger().get(server.login_url)
    finally:
        root.handlers[:], root.level = before
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    asked = [each for each in lines if each.get("path") == "/login"]
    assert asked[0]["status"] == 200
    assert "code=" not in stream.getvalue()


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: 127.0"])
def test_a_connection_that_sends_no_request_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    patient = functools.partial(process.with_patience, head_seconds=0.3)
    monkeypatch.setattr(process, "with_patience", patient)
    with served(tmp_path) as found:
        port = urlsplit(found.url).port
        with socket.create_connection(("127.0.0.1", port), timeout=20) as silent:
            silent.sendall(sent)
            assert silent.recv(100) == b""
        client = found.client()  # one that goes on asking keeps its connection
        give_up_at = time.monotonic() + 1.5
        while time.monotonic() < give_up_at:
            assert client.get("/healthz").status_code == 200
            time.sleep(0.05)


@pytest.mark.parametrize(
    "path", ["/login", "/hooks/x", "/api/validate", "/mcp", "/api/workflows/x/run"]
)
def test_a_body_that_does_not_come_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.3)
    with served(tmp_path) as found:
        port = urlsplit(found.url).port
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: {FORM}\r\n"
            f"Authorization: Bearer {found.token}\r\nContent-Length: 100\r\n\r\n{{"
        )
        if path != "/login":
            head = head.replace(FORM, "application/json")
        with socket.create_connection(("127.0.0.1", port), timeout=20) as slow:
            slow.sendall(head.encode())
            answer = slow.recv(10_000)
        assert answer.split()[1] in (b"408", b"404"), answer


def test_who_leaves_in_the_middle_of_a_body_is_no_fault_of_the_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with served(tmp_path) as found:
        port = urlsplit(found.url).port
        for path in ("/login", "/api/validate", "/mcp"):
            head = (
                f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: {FORM}\r\n"
                f"Authorization: Bearer {found.token}\r\nContent-Length: 100\r\n\r\n{{"
            )
            with socket.create_connection(("127.0.0.1", port), timeout=20) as leaver:
                leaver.sendall(head.encode())
                time.sleep(0.2)
        time.sleep(0.3)
    assert [each for each in caplog.records if each.levelname == "ERROR"] == []
