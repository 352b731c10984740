"""The server as a process: how it ends, how the next one goes on, and what it says."""

import random
import signal
import subprocess
import time
from pathlib import Path

import httpx2
import pytest

from support.benchmarks import load_benchmark
from support.cli import stretto


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


def test_more_than_one_process_is_refused(tmp_path: Path) -> None:
    assert "one process" in stretto(tmp_path, "serve", "--workers", "2").err


def test_tokens_are_added_listed_and_revoked(tmp_path: Path) -> None:
    made = stretto(tmp_path, "serve", "token", "add", "ada", "--role", "operator", "--json").json
    assert len(made["token"]) > 30
    again = stretto(tmp_path, "serve", "token", "add", "ada", "--json")
    assert again.json["error"]["kind"] == "exists"
    listed = stretto(tmp_path, "serve", "token", "list", "--json").json["tokens"]
    assert [(each["name"], each["role"]) for each in listed] == [("ada", "operator")]
    assert made["token"] not in stretto(tmp_path, "serve", "token", "list").out
    assert stretto(tmp_path, "serve", "token", "revoke", "ada").code == 0
    assert stretto(tmp_path, "serve", "token", "revoke", "ada").code == 2


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
