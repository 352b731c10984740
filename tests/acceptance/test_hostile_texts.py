"""A folder, recipes and journals of somebody who hopes for your terminal. In: bytes that a terminal
obeys. Out: none of them, whatever the command."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from support.background_runs import MODEL
from support.cli import environment, stretto, talk, write
from support.warm_interpreter import run_forked

# Clear the screen, write to the clipboard, set the title; C1; turn text around; hide it.
EVIL = "\x1b[2J\x1b]52;c;ZXZpbA==\x07\x1b]0;owned\x07\x9b31m\x85\u202egnp\u2066\u200b\ufeff\u2028"
# As files of ours may hold it: those refuse what is no printable character in YAML.
SUBTLE = "a\u202egnp\u2066x\u200b\u200e\u2028z"
# What nothing shows that people read.
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff]")  # fmt: skip
# What not even an answer for a program holds: that is exact but for what a terminal obeys.
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
QUOTED = json.dumps(SUBTLE)
RECIPE = f"""\
name: {QUOTED}
description: {QUOTED}
inputs: [{{name: t, description: {QUOTED}, default: {QUOTED}}}]
steps:
  - {{id: a, subagent: researcher, prompt: {QUOTED}}}
  - {{id: b, subagent: writer, gate: human, prompt: "{{{{steps.a.output}}}} {{{{inputs.t}}}}"}}
"""
BROKEN = f"name: broken\nsteps:\n  - {{id: a, subagent: {QUOTED}, prompt: x, {QUOTED}: 1}}\n"
# A script cannot hold the rest either: a model says it, and the journal keeps it as an escape.
MARK = "MODELSAID"
SAID = json.dumps(MARK + SUBTLE)
SCRIPT = f"replies: {{a: {SAID}, b: {{fail: {SAID}}}}}\n"


def name(text: str) -> str:
    return text.replace("/", "").replace("\0", "")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    folder = tmp_path / f"dir{name(EVIL)}"
    write(folder, "stretto.yaml", f"model: {QUOTED}\n")
    write(folder, f"workflows/one{name(EVIL)}.yaml", RECIPE)
    write(folder, f"workflows/two{name(EVIL)}.yaml", BROKEN)
    write(folder, f"agents/x{name(EVIL)}.md", f"---\ndescription: {QUOTED}\n---\n{SUBTLE}\n")
    write(folder, f"agents/y{name(EVIL)}.md", f"---\n{QUOTED}: 1\n---\n")
    write(folder, "script.yaml", SCRIPT)
    return folder


def run(folder: Path, words: list[str], trust: str) -> tuple[bytes, bytes]:
    """stdout and stderr."""
    env = environment(folder.parent, {"STRETTO_TRUST": trust})
    done = run_forked(words, folder, env, b"", 120)
    return done.out, done.err


def check(said: bytes, words: object, never: re.Pattern[str] = HIDDEN) -> None:
    text = said.decode()  # and it is UTF-8
    found = never.search(text)
    assert found is None, (words, text[max(0, found.start() - 60) : found.end() + 20])


def check_both(said: tuple[bytes, bytes], words: object) -> None:
    for stream in said:
        check(stream, words)


@pytest.mark.parametrize("trust", ["", "1"])
@pytest.mark.parametrize("form", [[], ["--json"]])
@pytest.mark.parametrize(
    "words",
    [
        ["list"], ["trust", "--list"], ["trust", "--forget"], ["validate"], ["agents"],
        ["agents", "check"], ["agents", "show", EVIL], ["show", SUBTLE], ["show", EVIL], ["plan", SUBTLE],
        ["explain", SUBTLE], ["graph", SUBTLE], ["run", EVIL], ["run", "--x" + EVIL], [EVIL],
        ["report", EVIL], ["events", EVIL], ["resume", EVIL], ["retry", EVIL], ["cancel", EVIL],
        ["approve", EVIL, EVIL], ["diff", EVIL, EVIL], ["watch", EVIL], ["runs"],
        ["run", SUBTLE, "-i", EVIL], ["run", SUBTLE, "--model", EVIL], ["new", EVIL],
        ["validate", f"nowhere{EVIL}.yaml"], ["models", "use", EVIL],
    ],
    ids=lambda words: re.sub(r"[^\w -]", "", " ".join(words))[:40],
)  # fmt: skip
def test_no_command_lets_it_through(
    hostile: Path, words: list[str], form: list[str], trust: str
) -> None:
    check_both(run(hostile, [word.replace("\0", "") for word in words] + form, trust), words)


# Their stdout is the answer, for a program: `harmless`, not `visible`.
ANSWERING = ("run", "approve", "resume", "retry", "fork", "watch", "output")


def test_runs_of_it_are_shown_as_text(hostile: Path) -> None:
    said = run(hostile, ["run", SUBTLE, "--json", *MODEL], "1")
    check_both(said, "run")
    run_id = json.loads(said[0].splitlines()[-1])["run_id"]
    answer = run(hostile, ["approve", run_id, "b"], "1")
    check(answer[0], "approve", OBEYED)
    check(answer[1], "approve")
    with sqlite3.connect(hostile.parent / "home" / "runs.db") as db:
        swap = (MARK, json.dumps(EVIL)[1:-1])
        assert db.execute("UPDATE events SET event = replace(event, ?, ?)", swap).rowcount > 5
    db.close()
    for words in (
        ["resume", run_id], ["run", SUBTLE, *MODEL], ["runs"], ["runs", "--json"], ["runs", SUBTLE],
        ["report", run_id], ["report", run_id, "--json"], ["report", run_id, "--format", "html"],
        ["events", run_id], ["logs", run_id], ["logs", run_id, "a"], ["logs", run_id, "--json"],
        ["output", run_id, "a"], ["output", run_id, "a", "--json"], ["watch", run_id],
        ["plan", "--run", run_id], ["retry", run_id], ["retry", run_id, "--report"],
        ["diff", run_id, run_id], ["resume", run_id], ["fork", run_id, "--from", "b"],
    ):  # fmt: skip
        out, err = run(hostile, words, "1")
        is_answer = words[0] in ANSWERING and not {"--json", "--report"} & set(words)
        check(out, words, OBEYED if is_answer else HIDDEN)
        check(err, words)


def test_an_answer_for_a_program_is_exact_but_for_what_a_terminal_obeys(hostile: Path) -> None:
    out, _ = run(hostile, ["run", SUBTLE, "-q", *MODEL], "1")
    assert out == b""  # it waits at the gate
    out, _ = run(hostile, ["output", "last", "a"], "1")
    assert out.decode() == f"{MARK}a\ufffdgnp\ufffdx\u200b\u200e\u2028z\n"


def test_the_trust_question_is_asked_in_plain_text(hostile: Path) -> None:
    home = {
        "STRETTO_HOME": str(hostile.parent / "home"),
        "STRETTO_TRUST": "",
        "HOME": str(hostile.parent),
    }
    _, screen, _ = talk(hostile, ["list"], [("Trust this folder", "n\n")], home)
    assert "\ufffd" in screen
    assert HIDDEN.search(screen.replace("\r\n", "\n")) is None, screen


def test_the_live_view_draws_text(hostile: Path) -> None:
    home = {"STRETTO_HOME": str(hostile.parent / "home"), "HOME": str(hostile.parent)}
    _, screen, _ = talk(
        hostile, ["run", SUBTLE, *MODEL], [("[l]ater", "no\n"), ("Why not?", "hostile\n")], home
    )
    ours = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", screen)  # the view's own movements
    assert "\x1b]" not in screen  # of which none is a command to the terminal
    assert "\x1b[2J" not in screen
    assert HIDDEN.search(ours) is None, ours


def test_a_bug_is_shown_as_text_too(tmp_path: Path) -> None:
    code = (
        "import sys; from stretto.cli import main, commands\n"
        f"def broken(*a, **k): raise RuntimeError({EVIL!r})\n"
        "commands.commands.main = broken\n"
        "main.main(['list'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env=environment(tmp_path), cwd=tmp_path
    )
    assert b"RuntimeError" in done.stderr
    check(done.stderr, "traceback")


def test_a_secret_is_not_shown_either(tmp_path: Path) -> None:
    said = stretto(tmp_path, "show", "no-canary-123456", env={"MY_TOKEN": "canary-123456"})
    assert "canary-123456" not in said.out + said.err
    assert "[redacted]" in said.err


def test_a_patch_is_byte_for_byte_for_programs_and_text_for_a_terminal(tmp_path: Path) -> None:
    from stretto.cli import terminal

    ours, theirs = os.pipe()
    with os.fdopen(theirs, "w", encoding="utf-8") as stream:
        before, sys.stdout = sys.stdout, stream
        try:
            terminal.print_bytes(b"+\x1b[2J\xff\n")
        finally:
            sys.stdout = before
    assert os.read(ours, 100) == b"+\x1b[2J\xff\n"
    os.close(ours)
