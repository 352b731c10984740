"""Streams that are closed, full or left by their reader, and signals while somebody waits."""

import fcntl
import os
import pty
import select
import shlex
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from support.background_runs import CHAIN, GATED, MODEL, STUCK, running, stuck
from support.cli import Said, environment, stretto, write

STRETTO = f"{shlex.quote(sys.executable)} -m stretto"
CLOSED = (">&-", "2>&-", ">&- 2>&-", ">&- 2>&- <&-")
FULL = (">/dev/full", "2>/dev/full", ">/dev/full 2>/dev/full")
GONE = ("| head -c 5 >&2", "| true", "2>&1 >&- | true")


def shell(folder: Path, line: str) -> Said:
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return Said(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("as_json", ["", "--json"])
@pytest.mark.parametrize("streams", [*CLOSED, *FULL, *GONE])
def test_a_run_goes_to_its_end_and_its_code_whoever_listens(
    tmp_path: Path, streams: str, as_json: str
) -> None:
    write(tmp_path, "recipe.yaml", CHAIN)
    write(tmp_path, "script.yaml", "replies: {a: ok, b: ok, c: {fail: broken}}")
    said = shell(tmp_path, f"{STRETTO} run recipe.yaml {as_json} {' '.join(MODEL)} {streams}")
    assert "Traceback" not in said.err + said.out
    (row,) = stretto(tmp_path, "runs", "--json").json["runs"]
    assert row["status"] in ("partial", "failed")
    assert said.code == 1
    if streams == ">/dev/full":
        assert said.err.endswith("the output could not be written: No space left on device\n")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("finished")
    write(folder, "recipe.yaml", CHAIN)
    write(folder, "script.yaml", "default: ok")
    assert stretto(folder, "run", "recipe.yaml", *MODEL).code == 0
    return folder, stretto(folder, "runs", "--json").json["runs"][0]["run_id"]


@pytest.mark.parametrize("words", ["runs", "runs --json", "report RUN", "events RUN --follow",
                                   "report RUN --format json", "watch RUN", "validate recipe.yaml"])  # fmt: skip
def test_what_only_prints_says_that_it_could_not(finished: tuple[Path, str], words: str) -> None:
    folder, run_id = finished
    line = f"{STRETTO} {words.replace('RUN', run_id)}"
    for streams in (*CLOSED, "2>/dev/full", *GONE):
        said = shell(folder, f"{line} {streams}")
        assert "Traceback" not in said.err + said.out
        assert said.code == 0, (streams, said)
    full = shell(folder, f"{line} >/dev/full")
    assert "could not be written: No space left on device" in full.err
    assert full.code == (0 if words.startswith(("watch", "validate")) else 1)


def test_a_closed_stream_never_leads_into_a_file_of_ours(tmp_path: Path) -> None:
    write(tmp_path, "recipe.yaml", CHAIN)
    write(tmp_path, "script.yaml", "default: ok")
    for _ in range(2):
        shell(tmp_path, f"{STRETTO} run recipe.yaml {' '.join(MODEL)} <&- >&- 2>&-")
    assert [row["status"] for row in stretto(tmp_path, "runs", "--json").json["runs"]] == [
        "complete", "complete"]  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("words", [("watch",), ("events", "--follow")])
def test_a_signal_ends_watching_with_a_word_and_not_the_run(
    tmp_path: Path, words: tuple[str, ...], number: signal.Signals
) -> None:
    with stuck(tmp_path, STUCK) as (child, run_id):
        with running(tmp_path, words[0], run_id, *words[1:]) as watching:
            heard = watching.stderr if words[0] == "watch" else watching.stdout
            assert heard is not None
            heard.readline()
            watching.send_signal(number)
            _, err = watching.communicate(timeout=30)
        assert watching.returncode == 130
        assert f"the run continues: stretto {words[0]} {run_id}" in err
        assert f"ended by {number.name}" in err
        assert child.poll() is None


def test_ctrl_c_ends_watching_with_the_command_that_goes_on(tmp_path: Path) -> None:
    with stuck(tmp_path, STUCK) as (child, run_id):
        with running(tmp_path, "watch") as watching:
            assert watching.stderr is not None
            watching.stderr.readline()  # which run it is
            watching.stderr.readline()  # what that run does: it is watched now
            watching.send_signal(signal.SIGINT)
            _, err = watching.communicate(timeout=30)
        assert watching.returncode == 130
        assert f"the run continues: stretto watch {run_id}" in err
        assert "interrupted" not in err
        assert child.poll() is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_at_a_gate_leaves_it_waiting_and_says_how_to_go_on(
    tmp_path: Path, number: signal.Signals
) -> None:
    write(tmp_path, "recipe.yaml", GATED)
    write(tmp_path, "script.yaml", "default: ok")
    ours, theirs = pty.openpty()
    environ = environment(tmp_path, {"TERM": "xterm", "NO_COLOR": "1"})
    child = subprocess.Popen(
        [sys.executable, "-m", "stretto", "run", "recipe.yaml", *MODEL],
        cwd=tmp_path, env=environ, stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    screen = _read(ours, until="[l]ater")
    child.send_signal(number)
    screen += _read(ours)
    assert child.wait(30) == 130
    (row,) = stretto(tmp_path, "runs", "--json").json["runs"]
    assert row["status"] == "waiting"
    # A decision continues the run; to resume it without one would only ask again.
    assert f"stretto approve {row['run_id']} g" in screen
    assert f"stretto reject {row['run_id']} g" in screen
    os.close(ours)


@pytest.mark.parametrize(
    ("recipe", "script", "seen", "status"),
    [(CHAIN, STUCK, "b running", "interrupted"), (GATED, "default: ok", "[l]ater", "waiting")],
)
def test_a_terminal_that_is_closed_ends_the_process_and_the_run_can_be_resumed(
    tmp_path: Path, recipe: str, script: str, seen: str, status: str
) -> None:
    write(tmp_path, "recipe.yaml", recipe)
    write(tmp_path, "script.yaml", script)
    ours, theirs = pty.openpty()
    environ = environment(tmp_path, {"TERM": "xterm", "NO_COLOR": "1"})
    child = subprocess.Popen(
        [sys.executable, "-m", "stretto", "run", "recipe.yaml", *MODEL],
        cwd=tmp_path, env=environ, stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(theirs)
    assert seen in " ".join(_read(ours, until=seen).split())
    os.close(ours)  # SIGHUP, and from now on every write fails
    assert child.wait(30) == 130
    (row,) = stretto(tmp_path, "runs", "--json").json["runs"]
    assert row["status"] == status


def _read(terminal: int, until: str = "\0") -> str:
    said, give_up_at = "", time.monotonic() + 30
    while until not in said and time.monotonic() < give_up_at:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                said += os.read(terminal, 65_536).decode(errors="replace")
            except OSError:  # nobody has it open any more
                break
    return said
