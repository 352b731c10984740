"""Runs that are killed, stopped, cancelled, watched and left to the background."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.background_runs import (
    CHAIN,
    GATED,
    MODEL,
    STUCK,
    eventually,
    journal,
    lines,
    running,
    started,
    statuses,
    stuck,
)
from support.cli import stretto, write

# Less than the 30 seconds of a lease: nobody waits for the lease of a dead process.
SOON_SECONDS = 25


def test_after_kill_9_resume_goes_on_at_once_and_repeats_nothing_that_ended(
    tmp_path: Path,
) -> None:
    with stuck(tmp_path) as (child, run_id):
        busy = stretto(tmp_path, "resume", run_id, "--json", *MODEL)
        assert (busy.code, busy.json["error"]["kind"]) == (5, "leased")
        child.kill()
        child.wait()
    assert stretto(tmp_path, "runs", "--json").json["runs"][0]["status"] == "interrupted"
    write(tmp_path, "script.yaml", "default: ok")
    before = time.monotonic()
    said = stretto(tmp_path, "resume", "--json", *MODEL)  # it is found without its name
    assert time.monotonic() - before < SOON_SECONDS
    assert said.code == 0, said
    report = lines(said)[-1]
    assert (report["run_id"], report["status"], report["resumed"]) == (run_id, "complete", True)
    assert started(journal(tmp_path, run_id)) == ["a", "b", "b", "c"]
    assert stretto(tmp_path, "report", run_id, "--json").json == report


# A process that is sent a signal just as it begins to load a module.
WHILE_LOADING = """
import os, sys
from stretto.cli.main import main
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), {number})
sys.meta_path.insert(0, Finder())
main(["runs"])
"""


@pytest.mark.parametrize("module", ["click", "stretto.cli.commands", "stretto.problems.errors"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_modules_are_loaded_ends_it_with_one_line(
    tmp_path: Path, module: str, number: signal.Signals
) -> None:
    code = WHILE_LOADING.format(module=module, number=int(number))
    said = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=tmp_path, env={**os.environ, "STRETTO_HOME": str(tmp_path / "home")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    expected = "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
    assert (said.returncode, said.stderr) == (130, f"{expected}\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_it_cleanly_and_says_how_to_go_on(
    tmp_path: Path, number: signal.Signals
) -> None:
    write(tmp_path, "recipe.yaml", CHAIN)
    write(tmp_path, "script.yaml", STUCK)
    with running(tmp_path, "run", "recipe.yaml", *MODEL) as child:
        assert child.stderr is not None
        assert any("b running" in line for line in child.stderr)
        child.send_signal(number)
        _, err = child.communicate(timeout=SOON_SECONDS)
    assert child.returncode == 130
    assert "Traceback" not in err
    (command,) = [
        line.partition("stretto ")[2] for line in err.splitlines() if "stretto resume" in line
    ]
    write(tmp_path, "script.yaml", "default: ok")
    said = stretto(tmp_path, *command.split()[:2])
    assert said.code == 0, said
    assert "1 of 3 steps had ended" in said.err


def test_a_cancel_from_elsewhere_stops_it_and_keeps_what_ended(tmp_path: Path) -> None:
    with stuck(tmp_path) as (child, run_id):
        assert stretto(tmp_path, "cancel", run_id, "--reason", "enough").code == 0
        out, _ = child.communicate(timeout=SOON_SECONDS)
    assert child.returncode == 1
    report = stretto(tmp_path, "report", run_id, "--json").json
    assert report["status"] == "cancelled"
    assert statuses(report) == {"a": "succeeded", "b": "cancelled", "c": "cancelled"}
    assert "enough" in out
    assert stretto(tmp_path, "cancel", run_id).code == 2


def test_a_killed_run_can_be_cancelled(tmp_path: Path) -> None:
    with stuck(tmp_path) as (child, run_id):
        child.kill()
        child.wait()
    assert stretto(tmp_path, "cancel", run_id).code == 0
    assert stretto(tmp_path, "report", run_id, "--json").json["status"] == "cancelled"


def test_detached_it_goes_on_alone_and_can_be_watched_and_cancelled(tmp_path: Path) -> None:
    write(tmp_path, "recipe.yaml", CHAIN)
    write(tmp_path, "script.yaml", STUCK)
    said = stretto(tmp_path, "run", "recipe.yaml", "--detach", "--json", *MODEL)
    assert said.code == 0, said
    run_id = said.json["run_id"]
    try:
        with (
            running(tmp_path, "watch", run_id, "--json") as watcher,
            running(tmp_path, "events", run_id, "--follow") as follower,
        ):
            assert watcher.stdout is not None
            assert follower.stdout is not None
            assert "run_started" in watcher.stdout.readline()
            assert "run_started" in follower.stdout.readline()
            assert stretto(tmp_path, "cancel", run_id).code == 0
            watched, _ = watcher.communicate(timeout=SOON_SECONDS)
            followed, _ = follower.communicate(timeout=SOON_SECONDS)
    finally:
        eventually(tmp_path, run_id, "cancelled")
    assert '"type": "report"' in watched.splitlines()[-1]
    assert '"cancelled"' in watched.splitlines()[-1]
    assert "run_ended" in followed.splitlines()[-1]


def test_watching_a_run_that_was_killed_ends_with_what_it_had_done(tmp_path: Path) -> None:
    with stuck(tmp_path) as (child, run_id):
        child.kill()
        child.wait()
    before = time.monotonic()
    said = stretto(tmp_path, "watch", run_id, "--json")
    assert time.monotonic() - before < SOON_SECONDS
    assert lines(said)[-1]["status"] == "interrupted"
    assert lines(said)[-1]["next"] == [f"stretto resume {run_id}"]
    assert said.code == stretto(tmp_path, "events", run_id, "--follow").code == 1


def test_a_gate_is_opened_while_its_siblings_are_at_work(tmp_path: Path) -> None:
    recipe = GATED.replace("steps:", "steps:\n  - {id: slow, subagent: researcher, prompt: x}")
    write(tmp_path, "recipe.yaml", recipe)
    write(tmp_path, "script.yaml", "default: ok\nreplies: {slow: {reply: ok, delay: 4s}}")
    with running(tmp_path, "run", "recipe.yaml", *MODEL) as child:
        assert child.stderr is not None
        run_id = child.stderr.readline().split()[1]
        assert any("awaiting approval" in line for line in child.stderr)
        said = stretto(tmp_path, "approve", run_id, "g")
        assert "no process drives" not in said.out
        _, err = child.communicate(timeout=SOON_SECONDS)
    assert child.returncode == 0, err
    assert err.index("g    succeeded") < err.index("slow succeeded")


@pytest.mark.parametrize("words", [("--json",), ()], ids=["json", "text"])
@pytest.mark.parametrize(
    ("third", "code", "status"),
    [("ok", 0, "complete"), ("{fail: no}", 1, "partial")],
    ids=["complete", "partial"],
)
def test_a_run_whose_reader_leaves_goes_on_to_its_end(
    tmp_path: Path, words: tuple[str, ...], third: str, code: int, status: str
) -> None:
    """`stretto run … | head -1`"""
    script = f"default: ok\nreplies:\n  b: {{reply: ok, delay: 500ms}}\n  c: {third}\n"
    write(tmp_path, "recipe.yaml", CHAIN)
    write(tmp_path, "script.yaml", script)
    with running(tmp_path, "run", "recipe.yaml", *words, *MODEL) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert (child.stdout if words else child.stderr).readline()
        child.stdout.close()
        if not words:
            child.stderr.close()
        assert child.wait(60) == code
        assert not words or child.stderr.read() == ""
        child.stderr.close()
        child.stdout = child.stderr = None  # there is nothing left to collect
    listed = stretto(tmp_path, "runs", "--json").json["runs"]
    assert [row["status"] for row in listed] == [status]
    assert started(journal(tmp_path, listed[0]["run_id"])) == ["a", "b", "c"]


def test_a_gate_is_reached_and_told_of_although_nobody_reads(tmp_path: Path) -> None:
    write(tmp_path, "recipe.yaml", GATED)
    write(tmp_path, "script.yaml", "replies: {a: {reply: ok, delay: 500ms}}")
    with running(tmp_path, "run", "recipe.yaml", *MODEL) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stderr.readline()
        child.stdout.close()
        assert child.wait(60) == 3
        assert "stretto approve" in child.stderr.read()
        child.stdout = None


def test_a_step_that_kills_its_process_three_times_is_given_up(tmp_path: Path) -> None:
    with stuck(tmp_path) as (child, run_id):
        child.kill()
        child.wait()
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGKILL):  # a stop is not a crash
        with running(tmp_path, "resume", run_id, "--json", *MODEL) as child:
            assert child.stdout is not None
            while '"attempt_started"' not in child.stdout.readline():
                pass
            child.send_signal(number)
            child.wait(30)
    said = stretto(tmp_path, "resume", run_id, "--json", *MODEL)
    step = lines(said)[-1]["steps"]["b"]
    assert step["status"] == "failed"
    assert step["error"] == "the process died 3 times while this step was running"
    write(tmp_path, "script.yaml", "default: ok")
    assert stretto(tmp_path, "retry", run_id, "--from", "b", *MODEL).code == 0


def test_a_run_that_cannot_be_resumed_keeps_no_other_from_it(tmp_path: Path) -> None:
    run_ids = []
    for script in ("first.yaml", "second.yaml"):
        write(tmp_path, "recipe.yaml", CHAIN)
        write(tmp_path, script, STUCK)
        with running(
            tmp_path, "run", "recipe.yaml", "--json", "--model", f"scripted:{script}"
        ) as child:
            run_ids.append(_kill_at_b(child))
    (tmp_path / "first.yaml").unlink()
    write(tmp_path, "second.yaml", "default: ok")
    said = stretto(tmp_path, "resume")
    assert (said.code, said.out) == (2, "ok\n"), said
    assert f"run {run_ids[0]} is not resumed: " in said.err
    assert "first.yaml" in said.err
    found = {
        row["run_id"]: row["status"] for row in stretto(tmp_path, "runs", "--json").json["runs"]
    }
    assert found == {run_ids[0]: "interrupted", run_ids[1]: "complete"}
    again = stretto(tmp_path, "resume", "--json")
    assert (again.code, again.json["error"]["kind"]) == (2, "not_ready")


def _kill_at_b(child: "subprocess.Popen[str]") -> str:
    """The id of its run, once step b is at work and the process is killed."""
    run_id = ""
    for line in child.stdout or ():
        event = json.loads(line)
        run_id = run_id or event["run_id"]
        if event["type"] == "attempt_started" and event["attempt"]["step"] == "b":
            break
    child.kill()
    child.wait()
    return run_id
