"""A run whose tools did nothing says so, before it if that can be known, and in every form after."""

import json
import sys
from pathlib import Path

import pytest

from stretto.problems.errors import NotReady
from stretto.testing.openai_script import Said, ToolCall
from support.cli import ROOT, write
from support.happenings import over_http

PLAIN_MCP = ROOT / "tests/support/plain_mcp.py"
WRITER = """
name: writer
agents: {scribe: {prompt: Write., tools: [Write, Read]}}
steps: [{id: a, agent: scribe, prompt: go, write_set: [ok/**], workspace_mode: %s}]
"""


def serve_tools(folder: Path, told: object = None, *, code: str = "") -> None:
    args = ["-ISuc", code] if code else ["-ISu", str(PLAIN_MCP), json.dumps(told or {})]
    server = {"command": sys.executable, "args": args}
    write(folder, "stretto.yaml", json.dumps({"mcp_servers": {"plain": server}}))


def asking(*tools: str, posture: str = "read_only") -> str:
    return f"""
name: asking
agents: {{asker: {{prompt: Ask., tools: [{", ".join(tools)}]}}}}
steps: [{{id: a, agent: asker, prompt: go, posture: {posture}}}]
"""


@pytest.mark.parametrize("mode", ["isolated", "shared"])
def test_a_write_that_was_refused_is_in_every_form_of_the_report_and_in_the_exit_code(
    tmp_path: Path, mode: str
) -> None:
    call = ToolCall("Write", {"file_path": "stray.txt", "content": "x"})
    script = [Said("", tool_calls=(call,)), Said("I have written it.")]
    happened = over_http(tmp_path, WRITER % mode, script)
    assert happened.code == 1
    for form in happened.forms:
        assert "Write was refused" in str(form)
        assert "changed no file" in str(form)
    assert happened.forms[2]["steps"]["a"]["tool_calls"] == {"made": 1, "refused": 1, "failed": 0}


@pytest.mark.parametrize("mode", ["isolated", "shared"])
def test_a_writer_that_never_wrote_is_not_believed(tmp_path: Path, mode: str) -> None:
    happened = over_http(tmp_path, WRITER % mode, Said("I have edited the file."))
    assert any("made no tool call and changed no file" in w for w in happened.report.warnings)


@pytest.mark.parametrize("mode", ["isolated", "shared"])
def test_a_writer_that_wrote_has_nothing_to_say(tmp_path: Path, mode: str) -> None:
    call = ToolCall("Write", {"file_path": "ok/a.txt", "content": "x"})
    happened = over_http(tmp_path, WRITER % mode, [Said("", tool_calls=(call,)), Said("Done.")])
    assert (happened.code, happened.report.warnings) == (0, ())
    assert (tmp_path / "ok/a.txt").read_text() == "x"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys; sys.exit('dying words')", "dying words"),
        ("", "not marked as read-only"),
    ],
)
def test_a_step_that_can_use_none_of_its_tools_is_refused_before_the_run(
    tmp_path: Path, code: str, said: str
) -> None:
    serve_tools(tmp_path, code=code)
    with pytest.raises(NotReady) as refused:
        over_http(tmp_path, asking("mcp__plain__note"), Said("Noted."))
    (problem,) = refused.value.problems
    assert problem.code == "RUN007"
    assert said in problem.message


def test_a_tool_that_an_agent_goes_without_is_told_before_the_run_and_after(tmp_path: Path) -> None:
    serve_tools(tmp_path)
    happened = over_http(tmp_path, asking("mcp__plain__note", "Read"), Said("Noted."))
    assert any("goes without mcp__plain__note" in line for line in happened.said)
    assert any("mcp__plain__note cannot be used" in w for w in happened.report.warnings)


def test_a_server_that_dies_during_the_run_leaves_it_partial(tmp_path: Path) -> None:
    serve_tools(tmp_path, {"result": "!die"})
    script = [Said("", tool_calls=(ToolCall("mcp__plain__x", {}),)), Said("It says yes.")]
    happened = over_http(tmp_path, asking("mcp__plain__x"), script)
    assert (happened.report.status, happened.code) == ("partial", 1)
    assert any("mcp__plain__x failed" in warning for warning in happened.report.warnings)


def test_all_tools_of_a_server_count_as_one_name(tmp_path: Path) -> None:
    serve_tools(tmp_path)
    happened = over_http(tmp_path, asking("mcp__plain"), Said("Fine."))
    assert happened.said == ()
