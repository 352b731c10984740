"""Clocks that are set, machines that sleep: timers fire in time, and nobody drives a run twice."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from acceptance.test_over_http import over_http
from stretto.testing.openai_script import Asked, Said, ServerAnswer, ToolCall
from stretto.testing.openai_server import serving
from support.background_runs import MODEL, journal, lines, running, started
from support.cli import environment, stretto, write

DAY = 86_400
ONE = """
name: one
agents: {helper: {prompt: Help., tools: [Read]}}
steps:
  - {id: a, agent: helper, prompt: "Say something."}
"""
TIMED = """
name: timed
agents: {slow: {prompt: Be slow., timeout: 2s}}
steps:
  - {id: late, subagent: slow, prompt: x, on_failure: inline}
  - {id: again, subagent: researcher, prompt: x, retry: {max_attempts: 2, backoff: none}}
"""
SCRIPT = """
replies:
  late: {reply: never, delay: 10h}
  again: [{fail: busy, kind: unavailable, retry_after: 2s}, {reply: ok}]
"""
# `stretto`, with a wall clock that somebody sets as soon as the first attempt has started.
SET_CLOCK = """
import sys, time
from stretto.cli.main import main
from stretto.execution import driver
seconds, words, real, started = float(sys.argv[1]), sys.argv[2:], time.time, driver._start_event
def set_clock(command, now):
    time.time = lambda: real() + seconds
    return started(command, now)
driver._start_event = set_clock
main(words)
"""


@pytest.mark.parametrize("seconds", [-DAY, DAY])
def test_timers_and_durations_do_not_follow_a_wall_clock_that_is_set(
    tmp_path: Path, seconds: int
) -> None:
    write(tmp_path, "recipe.yaml", TIMED)
    write(tmp_path, "script.yaml", SCRIPT)
    words = ["run", "recipe.yaml", "--json", *MODEL]
    done = subprocess.run(
        [sys.executable, "-c", SET_CLOCK, str(seconds), *words],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
    )
    report = lines(stretto(tmp_path, "events", _only_run(tmp_path)))
    assert done.returncode in (0, 1), done.stderr
    kinds = [event["type"] for event in report]
    assert kinds[-1] == "run_ended"
    assert kinds.count("timer_fired") == 2
    said = stretto(tmp_path, "report", _only_run(tmp_path), "--json").json
    assert "timed out after 2s" in said["steps"]["late"]["error"]
    assert 2 <= said["duration_seconds"] < 60
    assert all(0 <= step["duration_seconds"] < 60 for step in said["steps"].values())


def _only_run(folder: Path) -> str:
    (row,) = stretto(folder, "runs", "--json").json["runs"]
    return str(row["run_id"])


@pytest.mark.parametrize("seconds", [-DAY, DAY])
def test_a_driven_run_is_not_taken_over_by_whose_clock_is_wrong(
    tmp_path: Path, seconds: int
) -> None:
    write(tmp_path, "recipe.yaml", ONE)
    write(tmp_path, "script.yaml", "default: {reply: late, delay: 10m}")
    with running(tmp_path, "run", "recipe.yaml", "--json", *MODEL) as child:
        assert child.stdout is not None
        while '"attempt_started"' not in child.stdout.readline():
            pass
        shifted = f"import time; real = time.time; time.time = lambda: real() + {seconds}\n"
        code = f"{shifted}from stretto.cli.main import main\nmain()"
        words = ["resume", _only_run(tmp_path), "--json", *MODEL]
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert '"kind": "leased"' in done.stdout, done
        assert child.poll() is None


def test_a_process_that_was_stopped_past_its_lease_has_no_more_effects(tmp_path: Path) -> None:
    write(tmp_path, "recipe.yaml", ONE)
    write(tmp_path, "note.txt", "words")
    asked: list[str] = []
    first: list[subprocess.Popen[str]] = []

    def script(question: Asked) -> ServerAnswer:
        asked.append(str(question.messages[-1]["content"]))
        if len(asked) > 1:
            return Said("from the second")
        # It gets a call to carry out, but is stopped before it can read it.
        os.kill(first[0].pid, signal.SIGSTOP)
        return Said("", tool_calls=(ToolCall("Read", {"file_path": "note.txt"}),))

    with serving(script) as server:
        more = {"STRETTO_LEASE_SECONDS": "1", "OPENAI_BASE_URL": server.url}
        more |= {"OPENAI_API_KEY": "sk-loopback-0123456789", "STRETTO_MODEL": "openai:scripted"}
        with _started(tmp_path, more) as child:
            first.append(child)
            _until(lambda: bool(asked))
            run_id = _only_run(tmp_path)
            resume = ("resume", run_id, "--json")
            _until(lambda: over_http(tmp_path, server.url, *resume, **more).code == 0)
            assert len(asked) == 2
            os.kill(child.pid, signal.SIGCONT)
            out, err = child.communicate(timeout=60)
    assert len(asked) == 2, asked
    assert "no longer driven from here" in err + out
    assert child.returncode == 1
    events = journal(tmp_path, run_id)
    assert started(events) == ["a", "a"]
    assert not [event for event in events if event["type"] == "tool_ended"]


def test_a_process_that_was_stopped_and_not_missed_goes_on(tmp_path: Path) -> None:
    write(tmp_path, "recipe.yaml", ONE)
    first: list[subprocess.Popen[str]] = []
    asked: list[Asked] = []

    def script(question: Asked) -> ServerAnswer:
        asked.append(question)
        os.kill(first[0].pid, signal.SIGSTOP)
        return Said("at last")

    with serving(script) as server:
        more = {"STRETTO_LEASE_SECONDS": "1", "OPENAI_BASE_URL": server.url}
        more |= {"OPENAI_API_KEY": "sk-loopback-0123456789", "STRETTO_MODEL": "openai:scripted"}
        with _started(tmp_path, more) as child:
            first.append(child)
            _until(lambda: bool(asked))
            time.sleep(2.5)  # longer than its lease
            os.kill(child.pid, signal.SIGCONT)
            out, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    assert '"status": "complete"' in out.splitlines()[-1]


def _started(folder: Path, more: dict[str, str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "stretto", "run", "recipe.yaml", "--json"],
        cwd=folder,
        env=environment(folder, more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _until(is_so: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < give_up_at
        time.sleep(0.1)
