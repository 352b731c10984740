"""An agent over ACP: a real process, a real conversation."""

import asyncio
import shlex
import sys
from pathlib import Path

import pytest

from stretto.adapters.models.cli.acp import answer_permission
from stretto.adapters.models.cli.cli_spec import LaunchRequest
from stretto.adapters.models.cli.runner import CliRunner
from stretto.ports.runner import AttemptResult, Failure, Success
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json
from support.cli_agents import (
    READING,
    WRITING,
    Watching,
    attempt,
    is_alive,
    pids_in,
    run,
)

AGENT = Path(__file__).parents[3] / "support" / "acp_agent.py"


def _model(*words: str) -> str:
    return "cli:acp:" + shlex.join([sys.executable, str(AGENT), *words])


def _asked(
    workspace: Path, *words: str, may_write: bool = False, max_turns: int | None = None
) -> tuple[AttemptResult, Watching]:
    watching = Watching()
    tools = WRITING if may_write else READING
    request = attempt(
        _model(*words), workspace, tools=tools, may_write=may_write, max_turns=max_turns
    )
    return run(request, watching), watching


def test_an_agent_is_asked_and_answers(tmp_path: Path) -> None:
    result, watching = _asked(tmp_path, "talk", may_write=True)
    assert isinstance(result, Success)
    assert result.output == "You said How many?, I am in mode default"
    assert result.usage == watching.spent == Usage(11, 7, 0.0, 1)
    assert watching.spoken == result.output
    assert not result.warnings


def test_a_reader_is_put_into_a_mode_that_only_reads(tmp_path: Path) -> None:
    result, _ = _asked(tmp_path, "modes")
    assert isinstance(result, Success)
    assert str(result.output).endswith("in mode plan")
    assert not result.warnings


def test_where_there_is_no_such_mode_the_result_says_so(tmp_path: Path) -> None:
    result, _ = _asked(tmp_path, "talk")
    assert isinstance(result, Success)
    assert "offers no read-only mode" in result.warnings[0]


def test_a_writer_may_write_in_the_workspace_and_only_this_once(tmp_path: Path) -> None:
    result, watching = _asked(tmp_path, "write", "new.txt", may_write=True)
    assert isinstance(result, Success)
    assert result.output == "I was told: yes"
    assert (tmp_path / "new.txt").exists()
    (call,) = watching.calls
    assert (call.tool, call.verdict, call.arguments) == ("edit", "ok", {"path": "new.txt"})


def test_a_writer_may_not_write_elsewhere(tmp_path: Path) -> None:
    work, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    work.mkdir()
    elsewhere.mkdir()
    (work / "link").symlink_to(elsewhere)
    for path in (str(elsewhere / "a"), "../elsewhere/a", "link/a"):
        result, watching = _asked(work, "write", path, may_write=True)
        assert isinstance(result, Success)
        assert result.output == "I was told: no"
        assert watching.calls[0].verdict == "error"
    assert not list(elsewhere.iterdir())


def test_a_reader_may_not_write(tmp_path: Path) -> None:
    result, _ = _asked(tmp_path, "write", "new.txt")
    assert isinstance(result, Success)
    assert result.output == "I was told: no"
    assert not (tmp_path / "new.txt").exists()


def test_it_is_given_none_of_our_files(tmp_path: Path) -> None:
    result, _ = _asked(tmp_path, "files", may_write=True)
    assert isinstance(result, Success)
    assert result.output == "-32601"


def test_who_is_not_logged_in_has_failed(tmp_path: Path) -> None:
    result, _ = _asked(tmp_path, "login")
    assert isinstance(result, Failure)
    assert result.kind == "permanent"
    assert "is not logged in: Authentication required" in result.error


def test_who_speaks_another_version_has_failed(tmp_path: Path) -> None:
    result, _ = _asked(tmp_path, "future")
    assert isinstance(result, Failure)
    assert "another version of ACP" in result.error


def test_who_dies_says_why(tmp_path: Path) -> None:
    result, _ = _asked(tmp_path, "die")
    assert isinstance(result, Failure)
    assert "ended with exit code 4 before it answered: a bad day" in result.error


def test_what_does_not_speak_acp_at_all_has_failed(tmp_path: Path) -> None:
    result = run(attempt("cli:acp:echo hello", tmp_path))
    assert isinstance(result, Failure)
    assert "ended with exit code 0 before it answered" in result.error


def test_at_its_own_cap_what_there_is_is_kept(tmp_path: Path) -> None:
    result, _ = _asked(tmp_path, "cap", may_write=True)
    assert isinstance(result, Success)
    assert result.output == "half an answer"
    assert result.warnings == ("max turns reached; the answer so far was kept",)


def test_turns_are_counted_for_it(tmp_path: Path) -> None:
    result, watching = _asked(tmp_path, "loop", may_write=True, max_turns=3)
    assert isinstance(result, Success)
    assert "max turns reached" in result.warnings[0]
    assert len(watching.calls) == 3


def test_cancelling_ends_the_agent(tmp_path: Path) -> None:
    async def cancelled() -> None:
        runner = CliRunner(lambda _: True)
        request = attempt(_model("sleep"), tmp_path)
        task = asyncio.create_task(runner.run(request, Watching()))
        while not (tmp_path / "pid").exists():
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert not is_alive(*pids_in([tmp_path / "pid"]))


def test_an_agent_that_the_user_has_not_allowed_is_refused(tmp_path: Path) -> None:
    result = run(attempt(_model("talk"), tmp_path), may_run=False)
    assert isinstance(result, Failure)
    assert result.kind == "refused"


OPTIONS: list[Json] = [
    {"optionId": "a", "kind": "allow_always"},
    {"optionId": "y", "kind": "allow_once"},
    {"optionId": "n", "kind": "reject_once"},
]


@pytest.mark.parametrize(
    ("call", "tools", "chosen"),
    [
        ({"kind": "read"}, READING, "y"),
        ({"kind": "search"}, READING, "y"),
        ({"kind": "think"}, (), "y"),
        ({"kind": "read"}, (), "n"),
        ({"kind": "edit"}, READING, "n"),
        ({"kind": "execute"}, ("Read", "Write"), "n"),
        ({"kind": "execute"}, WRITING, "y"),
        ({"kind": "switch_mode"}, WRITING, "n"),
        ({"kind": "other", "title": "write"}, WRITING, "y"),
        ({"kind": "other", "title": "shell"}, ("Write",), "n"),
        ({"kind": "other", "title": "launch missiles"}, WRITING, "n"),
        ({"title": "tree · src"}, READING, "y"),
        ({}, WRITING, "n"),
        ({"kind": "edit", "rawInput": {"file_path": "src/a.py"}}, WRITING, "y"),
        ({"kind": "edit", "rawInput": {"file_path": "/etc/passwd"}}, WRITING, "n"),
        ({"kind": "move", "rawInput": {"path": "a", "destination": "../b"}}, WRITING, "n"),
    ],
)
def test_what_is_asked_is_answered_by_what_is_listed(
    tmp_path: Path, call: dict[str, Json], tools: tuple[str, ...], chosen: str
) -> None:
    said = answer_permission({"toolCall": call, "options": OPTIONS}, frozenset(tools), tmp_path)
    assert said == {"outcome": {"outcome": "selected", "optionId": chosen}}


def test_a_bash_that_is_limited_to_some_commands_is_not_given_over_acp(tmp_path: Path) -> None:
    def order(*tools: str) -> LaunchRequest:
        return LaunchRequest(
            attempt(_model("talk"), tmp_path, tools=tools, may_write=True), "", tmp_path
        )

    assert order("Read", "Bash(git diff:*)").tools_over_acp == {"Read"}
    assert order("Read", "Bash").tools_over_acp == {"Read", "Bash"}
    assert order("Bash", "Bash(git diff:*)").tools_over_acp == {"Bash"}


def test_a_question_without_the_right_answer_is_called_off(tmp_path: Path) -> None:
    asked: dict[str, Json] = {"toolCall": {"kind": "read"}, "options": OPTIONS[:1]}
    assert answer_permission(asked, frozenset(READING), tmp_path) == {
        "outcome": {"outcome": "cancelled"}
    }
