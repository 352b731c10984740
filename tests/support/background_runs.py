"""Runs from outside. In: a folder, a recipe, a script. Out: what `stretto run` said, or a process."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.cli import Said, environment, stretto, write

MODEL = ("--model", "scripted:script.yaml")
CHAIN = """\
name: chain
steps:
  - {id: a, subagent: researcher, prompt: look}
  - {id: b, subagent: writer, prompt: "write {{steps.a.output}}"}
  - {id: c, subagent: reviewer, prompt: "check {{steps.b.output}}"}
"""
GATED = """\
name: gated
steps:
  - {id: a, subagent: researcher, prompt: look}
  - {id: g, subagent: writer, gate: human, depends_on: [a], prompt: "{{steps.a.output}}"}
"""
# The second step never ends by itself within a test.
STUCK = "default: ok\nreplies: {b: {reply: late, delay: 10m}}\n"


def run(
    folder: Path, recipe: str, script: str = "default: ok", *words: str, stdin: str = ""
) -> Said:
    write(folder, "recipe.yaml", recipe)
    write(folder, "script.yaml", script)
    return stretto(folder, "run", "recipe.yaml", *MODEL, *words, stdin=stdin)


def lines(said: Said) -> list[dict[str, Any]]:
    return [json.loads(line) for line in said.out.splitlines()]


def ran(folder: Path, recipe: str, script: str = "default: ok", *words: str) -> dict[str, Any]:
    """The report of a run that was asked for as JSON."""
    said = run(folder, recipe, script, "--json", *words)
    assert said.err == "", said
    report = lines(said)[-1]
    assert report["type"] == "report", report
    return report


def statuses(report: dict[str, Any]) -> dict[str, str]:
    return {id: step["status"] for id, step in report["steps"].items()}


@contextmanager
def running(folder: Path, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """Killed at the end, if it still runs then."""
    child = subprocess.Popen(
        [sys.executable, "-m", "stretto", *words],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield child
    finally:
        if child.poll() is None:
            child.kill()
        child.communicate()


@contextmanager
def stuck(folder: Path, script: str = STUCK) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A run of CHAIN whose step b is at work and will be for long, and its id."""
    write(folder, "recipe.yaml", CHAIN)
    write(folder, "script.yaml", script)
    with running(folder, "run", "recipe.yaml", "--json", *MODEL) as child:
        run_id = ""
        for line in child.stdout or ():
            event = json.loads(line)
            run_id = run_id or event["run_id"]
            if event["type"] == "attempt_started" and event["attempt"]["step"] == "b":
                break
        yield child, run_id


def journal(folder: Path, run_id: str) -> list[dict[str, Any]]:
    return lines(stretto(folder, "events", run_id))


def started(events: list[dict[str, Any]]) -> list[str]:
    return [event["attempt"]["step"] for event in events if event["type"] == "attempt_started"]


def eventually(folder: Path, run_id: str, status: str) -> None:
    for _ in range(100):
        rows = stretto(folder, "runs", "--json").json["runs"]
        if any(row["run_id"] == run_id and row["status"] == status for row in rows):
            return
        time.sleep(0.1)
    raise AssertionError(f"run {run_id} is not {status}: {rows}")


def await_call(folder: Path, workflow: str) -> None:
    """Until the newest run of that name has on record that it asks a model, within a budget."""
    give_up_at = time.monotonic() + 60
    while time.monotonic() < give_up_at:
        runs = stretto(folder, "runs", "--json").json["runs"]
        ids = [each["run_id"] for each in runs if each["workflow"] == workflow]
        if any("usage_noted" in stretto(folder, "events", id).out for id in ids):
            return
        time.sleep(0.1)
    raise AssertionError(f"no run of {workflow} asks a model")
