"""`stretto schedule` from outside: added, shown, fired, and killed at any moment."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support.cli import environment, refused, stretto, succeeded, write

FILES = 10


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "script.yaml", "default: ok\n")
    write(tmp_path, "stretto.yaml", "model: scripted:script.yaml\n")
    write(tmp_path, "workflows/w.yaml", "name: w\nsteps: [{id: a, subagent: writer, prompt: x}]\n")
    write(
        tmp_path,
        "workflows/f.yaml",
        "name: f\ninputs: [{name: file, type: file_path, required: true}]\n"
        "steps:\n"
        '  - {id: a, subagent: writer, prompt: "{{inputs.file}}"}\n'
        '  - {id: b, subagent: writer, prompt: "{{steps.a.output}}"}\n',
    )
    (tmp_path / "inbox").mkdir()
    return tmp_path


def test_triggers_are_changed_by_the_options_that_they_were_added_with(folder: Path) -> None:
    (folder / "second").mkdir()
    watch = ("--watch", "inbox", "--input-for-file", "file")
    succeeded(stretto(folder, "schedule", "add", "in", "f", *watch, "--json"))
    change = (
        "schedule",
        "change",
        "in",
        "--watch",
        "second",
        "--pattern",
        "*.md",
        "--settle",
        "5s",
    )
    made = succeeded(stretto(folder, *change, "--json"))["schedule"]
    assert (made["folder"], made["pattern"]) == (str(folder.resolve() / "second"), "*.md")
    assert (made["settle_seconds"], made["input"], made["overlap"]) == (5.0, "file", "queue")
    refused(stretto(folder, "schedule", "change", "in", "--cron", "0 1 * * *", "--json"), "usage")
    refused(stretto(folder, "schedule", "change", "nobody", "--json"), "not_found")
    assert stretto(folder, "schedule", "change", "in", "--overlap", "skip").out == "in: changed\n"


def test_a_schedule_is_added_shown_run_and_removed(folder: Path) -> None:
    add = ("schedule", "add", "nightly", "w", "--cron", "30 2 * * *", "--zone", "Europe/Berlin")
    assert succeeded(stretto(folder, *add, "--json"))["schedule"]["missed"] == "once"
    refused(stretto(folder, *add, "--json"), "exists")
    said = stretto(folder, "schedule", "add", "second", "w", "--cron", "@daily")
    assert "starts while one of these runs: stretto schedule run, stretto serve" in said.err
    assert stretto(folder, "schedule", "remove", "second").code == 0
    refused(stretto(folder, "schedule", "add", "x", "w", "--json"), "usage")
    refused(
        stretto(folder, "schedule", "add", "x", "nope", "--cron", "@daily", "--json"), "not_found"
    )
    refused(stretto(folder, "schedule", "add", "../x", "w", "--cron", "@daily", "--json"), "usage")
    coming = succeeded(stretto(folder, "schedule", "next", "nightly", "--count", "2", "--json"))
    assert [each[10:19] for each in coming["next"]] == ["T02:30:00"] * 2
    assert "Europe/Berlin" in stretto(folder, "schedule").out
    assert stretto(folder, "schedule", "run-now", "nightly").out == "ok\n"
    shown = succeeded(stretto(folder, "schedule", "show", "nightly", "--json"))
    assert [each["status"] for each in shown["fires"]] == ["started"]
    assert "(schedule nightly)" in stretto(folder, "runs").out
    assert "Started by: schedule nightly" in stretto(folder, "report").out
    assert "paused" in stretto(folder, "schedule", "pause", "nightly").out
    assert "paused" in stretto(folder, "schedule", "list").out
    assert stretto(folder, "schedule", "remove", "nightly").code == 0
    refused(stretto(folder, "schedule", "show", "nightly", "--json"), "not_found")


def test_a_run_that_cannot_start_now_is_on_record_as_failed_with_the_reason(folder: Path) -> None:
    assert stretto(folder, "schedule", "add", "daily", "w", "--cron", "@daily").code == 0
    write(folder, "stretto.yaml", "model: scripted:gone.yaml\n")
    said = stretto(folder, "schedule", "run-now", "daily")
    assert said.code != 0
    [fire] = succeeded(stretto(folder, "schedule", "show", "daily", "--json"))["fires"]
    assert (fire["status"], "gone.yaml" in fire["why"]) == ("failed", True)
    assert _runs(folder) == []


@pytest.mark.parametrize(
    ("words", "lost"),
    [
        (["--cron", "@daily", "--map", "topic=x"], "--map cannot be used with --cron"),
        (
            ["--cron", "@daily", "--existing", "--settle", "9s"],
            "--settle, --existing cannot be used with --cron",
        ),
        (
            ["--webhook", "--zone", "UTC", "--existing"],
            "--zone, --existing cannot be used with --webhook",
        ),
        (["--watch", "inbox", "--input-for-file", "file", "--missed", "all"], "--missed"),
    ],
)
def test_an_option_of_another_kind_of_trigger_is_refused(
    folder: Path, words: list[str], lost: str
) -> None:
    said = stretto(folder, "schedule", "add", "x", "f", *words, "--json")
    assert lost in refused(said, "usage")["message"]


def test_killed_at_any_moment_each_fire_starts_exactly_one_run(folder: Path) -> None:
    add = ("schedule", "add", "in", "f", "--watch", "inbox", "--input-for-file", "file")
    assert stretto(folder, *add, "--settle", "50ms", "--overlap", "allow").code == 0
    for number in range(FILES):
        write(folder, f"inbox/{number}.txt", "x")
    chance = random.Random(7)
    for _ in range(4):
        with _serving(folder) as child:
            time.sleep(chance.uniform(0.8, 2.0))
            child.send_signal(signal.SIGKILL)
    with _serving(folder) as child:
        give_up_at = time.monotonic() + 120
        while not _is_over(_runs(folder)) and time.monotonic() < give_up_at:
            time.sleep(0.3)
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 130
    runs = _runs(folder)
    assert [each["status"] for each in runs] == ["complete"] * FILES
    assert {each["trigger"] for each in runs} == {"folder in"}
    fires = succeeded(stretto(folder, "schedule", "show", "in", "--json"))["fires"]
    assert sorted(each["run_id"] for each in fires) == sorted(each["run_id"] for each in runs)


def _serving(folder: Path) -> "subprocess.Popen[bytes]":
    words = [sys.executable, "-m", "stretto", "schedule", "run"]
    return subprocess.Popen(
        words,
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _runs(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = stretto(folder, "runs", "--limit", "100", "--json").json["runs"]
    return found


def _is_over(runs: list[dict[str, Any]]) -> bool:
    return len(runs) == FILES and all(each["ended_at"] for each in runs)
