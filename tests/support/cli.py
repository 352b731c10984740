"""`stretto` from outside, as users and scripts meet it. In: a folder and words. Out: what it said."""

import fcntl
import json
import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from support.warm_interpreter import can_fork, run_forked

ROOT = Path(__file__).parents[2]
TEMPLATES = (
    "compare-two",
    "content-pipeline",
    "fix-until-green",
    "iterative-refinement",
    "map-reduce",
    "multi-angle-analysis",
    "qualify-and-route",
    "review-this-repository",
    "write-with-approval",
)
# Everything that the package and the repository show to people.
SHIPPED = tuple(
    sorted(
        path
        for folder in ("src/stretto/bundled/templates", "src/stretto/bundled/workflows", "examples")
        for path in (ROOT / folder).iterdir()
        # x.script.yaml holds the replies of a scripted model to x.yaml: no recipe.
        if path.suffix in (".yaml", ".yml", ".json") and ".script" not in path.suffixes
    )
)
# Nothing here takes long; this only keeps a hanging command from hanging the tests.
_PATIENCE_SECONDS = 300
CTRL_C = "\x03"

# What `validate --json` says of recipes in which it finds nothing.
SOUND = {"ok": True, "warnings": []}

GOOD = """\
name: good
description: Look, then write, then check.
inputs:
  - name: topic
    required: true
  - {name: count, type: number, default: 3}
steps:
  - id: look
    subagent: researcher
    prompt: Find {{inputs.count}} facts about {{inputs.topic}}.
  - id: write
    subagent: writer
    prompt: "Write it up: {{steps.look.output}}"
  - id: check
    subagent: reviewer
    depends_on: [write]
    prompt: "Check {{steps.write.output}}"
"""
# Three mistakes, each on a line of its own.
BAD = """\
name: bad
steps:
  - id: a
    subagent: researchr
    prompt: x
    depend_on: [b]
  - id: b
    subagent: writer
    prompt: "{{steps.z.output}}"
"""


@dataclass(frozen=True, slots=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on stdout; anything else there is a failure."""
        value = json.loads(self.out)
        assert self.out.count("\n") == self.out.endswith("\n"), "one document is one line"
        return value


def environment(folder: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """A clean one: nothing of the developer's own settings reaches the command."""
    return {
        "PATH": os.defpath,
        "HOME": str(folder / "user"),
        "STRETTO_HOME": str(folder / "home"),
        "LANG": "C.UTF-8",
        "STRETTO_TRUST": "1",
        **(more or {}),
    }


def stretto(
    folder: Path,
    *words: str | Path,
    stdin: str | bytes = b"",
    env: Mapping[str, str] | None = None,
) -> Said:
    given = stdin.encode() if isinstance(stdin, str) else stdin
    told = [os.fspath(word) for word in words]
    if can_fork(env):
        warm = run_forked(told, folder, environment(folder, env), given, _PATIENCE_SECONDS)
        return Said(warm.code, warm.out.decode(), warm.err.decode())
    done = subprocess.run(
        [sys.executable, "-m", "stretto", *told],
        cwd=folder,
        env=environment(folder, env),
        input=given,
        capture_output=True,
        timeout=_PATIENCE_SECONDS,
    )
    return Said(done.returncode, done.stdout.decode(), done.stderr.decode())


def write(folder: Path, name: str, text: str | bytes) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


@cache
def schema() -> Any:
    return json.loads(stretto(ROOT, "schema").out)


@cache
def as_data(recipe: Path) -> Any:
    """A recipe as JSON, its keys as they are written: what an editor holds against the schema."""
    return stretto(ROOT, "show", recipe, "--json").json["recipe"]


def succeeded(said: Said) -> Any:
    assert said.code == 0, said
    assert said.json["ok"] is True
    assert said.err == ""
    return said.json


def refused(said: Said, kind: str) -> dict[str, Any]:
    """The one shape of an error with --json, and nothing beside it."""
    assert said.code == 2, said
    assert said.err == ""
    assert set(said.json) == {"ok", "error"}
    assert said.json["ok"] is False
    error = said.json["error"]
    assert set(error) == {"kind", "message", "details"}
    assert error["kind"] == kind, error
    assert error["message"]
    assert isinstance(error["details"], dict)
    for problem in error["details"].get("problems", ()):
        assert list(problem) == ["code", "file", "line", "column", "path", "message", "hint"]
    return error


def problems(said: Said, kind: str = "invalid_recipe") -> list[dict[str, Any]]:
    found = refused(said, kind)["details"]["problems"]
    assert found
    return found


def tree(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder, with what is in it; None for what is not a file."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def talk(
    folder: Path,
    words: Iterable[str],
    answers: Sequence[tuple[str, str]],
    env: Mapping[str, str] | None = None,
) -> tuple[int, str, list[str]]:
    """At a terminal: wait for each text, then type its answer. Out: exit code, all that was on
    the screen, and what was on it between each answer and the next text."""
    ours, theirs = pty.openpty()
    environ = environment(folder, {"TERM": "xterm", "NO_COLOR": "1", **(env or {})})
    child = subprocess.Popen(
        [sys.executable, "-m", "stretto", *words],
        cwd=folder,
        env=environ,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        # Its controlling terminal, or Ctrl-C would be a letter like any other.
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    screen, seen, between = "", 0, []
    try:
        for expected, answer in answers:
            while expected not in screen[seen:]:
                piece = _read(ours)
                assert piece, f"'{expected}' never came; the screen: {screen!r}"
                screen += piece
            between.append(screen[seen:])
            seen = len(screen)
            if answer == CTRL_C:
                _wait_until_it_reads(child.pid)
            os.write(ours, answer.encode())
        # On a busy machine the wait above is not enough: then somebody at a terminal presses again.
        if answers and answers[-1][1] == CTRL_C and not select.select([ours], [], [], 20)[0]:
            os.write(ours, CTRL_C.encode())
        while piece := _read(ours):
            screen += piece
        return child.wait(_PATIENCE_SECONDS), screen, between
    finally:
        os.close(ours)
        if child.poll() is None:
            child.kill()
            child.wait()


def _wait_until_it_reads(pid: int) -> None:
    """A signal that comes between a prompt and its read is not seen before the next key."""
    asleep, give_up_at = 0, time.monotonic() + _PATIENCE_SECONDS
    while asleep < 5 and time.monotonic() < give_up_at:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        asleep = asleep + 1 if state == "S" else 0
        time.sleep(0.02)


def _read(terminal: int) -> str:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    readable, _, _ = select.select([terminal], [], [], deadline - time.monotonic())
    assert readable, "nothing was said for too long"
    try:
        return os.read(terminal, 65536).decode("utf-8", "replace")
    except OSError:  # Linux: the other end has been closed
        return ""
