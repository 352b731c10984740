"""Any command: it reads the prompt, prints the answer, and never outlives the attempt."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stretto.adapters.models.cli.runner import CliRunner
from stretto.ports.runner import AttemptResult, Failure, Success
from support.cli_agents import (
    Watching,
    attempt,
    is_alive,
    pids_in,
    run,
    script,
    wait_until,
)

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="needs /proc to see who is alive"
)


def test_a_command_reads_the_prompt_and_prints_the_answer(tmp_path: Path) -> None:
    result = run(attempt("cli:cat", tmp_path, prompt="How many?\n", instructions="Count."))
    assert result == Success("Count.\n\nHow many?", model="cli:cat")


def test_the_words_of_a_command_are_its_words_and_no_shell_reads_them(tmp_path: Path) -> None:
    result = run(attempt("cli:printf '%s|' '$HOME' 'a b' ';ls'", tmp_path))
    assert isinstance(result, Success)
    assert result.output == "$HOME|a b|;ls|"


def test_a_command_works_in_the_workspace(tmp_path: Path) -> None:
    assert run(attempt("cli:pwd", tmp_path)).output == str(tmp_path)  # type: ignore[union-attr]


def test_without_a_workspace_a_command_works_in_an_empty_folder_that_is_gone_afterwards() -> None:
    result = run(attempt("cli:sh -c 'pwd; ls -A | wc -l'"))
    assert isinstance(result, Success)
    folder, count = str(result.output).split()
    assert count == "0"
    assert folder != os.getcwd()
    assert not Path(folder).exists()


def test_a_workspace_that_is_gone_is_an_error(tmp_path: Path) -> None:
    result = run(attempt("cli:cat", tmp_path / "gone"))
    assert isinstance(result, Failure)
    assert result.error == "cli:cat cannot be started: No such file or directory"


def test_a_command_sees_three_variables_and_those_that_the_user_lists(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": "/h", "LANG": "C", "OPENAI_API_KEY": "s3cret"}
    environ |= {"MINE": "yes", "OTHER": "no", "XDG_CONFIG_HOME": "/x", "HTTPS_PROXY": "p"}
    result = run(attempt("cli:env", tmp_path), environ=environ, passes=("MINE",))
    assert isinstance(result, Success)
    names = {line.split("=")[0] for line in str(result.output).splitlines()}
    # A shell or the C library may set some of its own.
    assert names & environ.keys() == {"PATH", "HOME", "LANG", "MINE"}


def test_a_command_that_the_user_has_not_allowed_is_refused(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    result = run(attempt(f"cli:touch {mark}", tmp_path), may_run=False)
    assert isinstance(result, Failure)
    assert result.kind == "refused"
    assert "'touch' is not among those that the user has allowed" in result.error
    assert not mark.exists()


def test_a_command_that_fails_says_why(tmp_path: Path) -> None:
    crash = script(tmp_path, "crash", "echo half; echo 'no such luck' >&2; exit 3")
    result = run(attempt(f"cli:{crash}", tmp_path))
    assert isinstance(result, Failure)
    assert result.kind == "error"
    assert result.error == f"{crash} ended with exit code 3: no such luck"


def test_of_a_long_complaint_the_end_is_kept(tmp_path: Path) -> None:
    moan = script(tmp_path, "moan", "seq 1 200000 >&2; exit 1")
    result = run(attempt(f"cli:{moan}", tmp_path))
    assert isinstance(result, Failure)
    assert result.error.endswith("199999\n200000")
    assert len(result.error) < 3_000


def test_a_command_that_dies_of_a_signal_has_failed(tmp_path: Path) -> None:
    result = run(attempt(f"cli:{script(tmp_path, 'die', 'kill -SEGV $$')}", tmp_path))
    assert isinstance(result, Failure)
    assert "exit code 139" in result.error


def test_a_command_that_prints_nothing_has_not_answered(tmp_path: Path) -> None:
    result = run(attempt("cli:true", tmp_path))
    assert isinstance(result, Failure)
    assert result.kind == "empty"


def test_a_command_that_never_reads_a_long_prompt_holds_up_nobody(tmp_path: Path) -> None:
    result = run(attempt("cli:echo 42", tmp_path, prompt="x" * 3_000_000))
    assert result == Success("42", model="cli:echo 42")


def test_a_flood_is_stopped(tmp_path: Path) -> None:
    began = time.monotonic()
    result = run(attempt("cli:yes", tmp_path))
    assert isinstance(result, Failure)
    assert "printed more than 4 MB" in result.error
    assert time.monotonic() - began < 60


def test_bytes_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    result = run(attempt(r"cli:printf 'a\377b'", tmp_path))
    assert isinstance(result, Success)
    assert result.output == "a\N{REPLACEMENT CHARACTER}b"


def test_a_command_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    result = run(attempt("cli:cladue", tmp_path))
    assert isinstance(result, Failure)
    assert result.error == "there is no command 'cladue' on PATH; did you mean 'claude'?"


def test_a_file_that_cannot_be_executed_is_an_error(tmp_path: Path) -> None:
    broken = script(tmp_path, "broken", "")
    broken.write_text("#!/no/such/interpreter\n")
    result = run(attempt(f"cli:{broken}", tmp_path))
    assert isinstance(result, Failure)
    assert "cannot be started: No such file or directory" in result.error


async def _cancelled(model: str, workspace: Path, once: Path) -> float:
    """How long the attempt took to stop."""
    runner = CliRunner(lambda _: True)
    task = asyncio.create_task(runner.run(attempt(model, workspace), Watching()))
    while not once.exists():
        await asyncio.sleep(0.02)
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return time.monotonic() - began


@needs_proc
def test_cancelling_ends_a_slow_command_at_once(tmp_path: Path) -> None:
    slow = script(
        tmp_path, "slow", "trap 'touch told; exit' TERM; echo $$ > pid; while :; do sleep 0.1; done"
    )
    took = asyncio.run(_cancelled(f"cli:{slow}", tmp_path, tmp_path / "pid"))
    assert not is_alive(*pids_in([tmp_path / "pid"]))
    assert (tmp_path / "told").exists()
    assert took < 60  # it was told, and did not have to be killed


@needs_proc
def test_a_command_that_ignores_term_is_killed_two_seconds_later(tmp_path: Path) -> None:
    deaf = script(tmp_path, "deaf", "trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done")
    took = asyncio.run(_cancelled(f"cli:{deaf}", tmp_path, tmp_path / "pid"))
    assert not is_alive(*pids_in([tmp_path / "pid"]))
    assert took > 1.9


@needs_proc
def test_a_grandchild_dies_too_even_one_that_has_left_the_group(tmp_path: Path) -> None:
    family = script(
        tmp_path,
        "family",
        "sh -c 'echo $$ > child; exec sleep 60' &\n"
        "setsid sh -c 'echo $$ > daemon; exec sleep 60' &\n"
        "while [ ! -s child ] || [ ! -s daemon ]; do sleep 0.02; done; touch ready; sleep 60",
    )
    asyncio.run(_cancelled(f"cli:{family}", tmp_path, tmp_path / "ready"))
    child, daemon = pids_in([tmp_path / "child", tmp_path / "daemon"])
    assert not is_alive(child)
    assert not is_alive(daemon)


@needs_proc
def test_what_a_command_leaves_running_neither_delays_the_answer_nor_lives_on(
    tmp_path: Path,
) -> None:
    leaving = script(
        tmp_path,
        "leaving",
        "setsid sh -c 'echo $$ > daemon; exec sleep 60' &\n"
        "while [ ! -s daemon ]; do sleep 0.02; done; echo 42",
    )
    began = time.monotonic()
    assert run(attempt(f"cli:{leaving}", tmp_path)).output == "42"  # type: ignore[union-attr]
    assert time.monotonic() - began < 50  # and not the 60 that it sleeps
    assert not is_alive(*pids_in([tmp_path / "daemon"]))


ASKING = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from support.cli_agents import Watching, attempt
from stretto.adapters.models.cli.runner import CliRunner
from pathlib import Path
request = attempt(sys.argv[2], Path(sys.argv[3]))
asyncio.run(CliRunner(lambda _: True).run(request, Watching()))
"""


@needs_proc
def test_a_command_dies_with_whoever_asked(tmp_path: Path) -> None:
    slow = script(
        tmp_path, "slow", "sh -c 'echo $$ > child; exec sleep 60' & echo $$ > pid; sleep 60"
    )
    tests = str(Path(__file__).parents[3])
    words = [sys.executable, "-c", ASKING, tests, f"cli:{slow}", str(tmp_path)]
    with subprocess.Popen(words) as asker:
        pids = pids_in([tmp_path / "pid", tmp_path / "child"])
        asker.send_signal(signal.SIGKILL)
    assert wait_until(lambda: not any(map(is_alive, pids)))


def test_two_attempts_run_side_by_side(tmp_path: Path) -> None:
    async def both() -> list[AttemptResult]:
        runner = CliRunner(lambda _: True)
        meet = script(tmp_path, "meet", "touch $1; while [ ! -e $2 ]; do sleep 0.02; done; echo $1")
        asked = (f"cli:{meet} a b", f"cli:{meet} b a")
        attempts = (runner.run(attempt(each, tmp_path), Watching()) for each in asked)
        return await asyncio.wait_for(asyncio.gather(*attempts), 10)

    assert [result.output for result in asyncio.run(both())] == ["a", "b"]  # type: ignore[union-attr]
