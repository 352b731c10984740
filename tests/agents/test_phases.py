"""What takes longer than a moment is told, so that nobody has to guess whether a step is alive."""

import asyncio
import sys
from pathlib import Path

import pytest

from stretto.adapters.tools.mcp_config import McpServer
from stretto.adapters.tools.toolbox import ToolSettings
from stretto.agents import live_events
from stretto.agents.live_events import telling_phase
from stretto.events.model import PhaseLasted
from stretto.testing.openai_script import Said, ToolCall
from support.cli import ROOT
from support.subagents import Heard, play, request


@pytest.fixture(autouse=True)
def short_moment(monkeypatch):
    monkeypatch.setattr(live_events, "MOMENT_SECONDS", 0.05)


def phases(heard):
    return [event.phase for event in heard.events if isinstance(event, PhaseLasted)]


def waited(seconds, is_cut_short=False):
    async def main():
        heard = Heard()
        with telling_phase(request().attempt, heard, "sleeps") as timer:
            if is_cut_short:
                timer.cancel()
            await asyncio.sleep(seconds)
        await asyncio.sleep(0.1)
        return phases(heard)

    return asyncio.run(main())


def test_what_lasts_is_told_once():
    assert waited(0.2) == ["sleeps"]


def test_what_is_soon_over_is_not_told():
    assert waited(0.0) == []
    assert waited(0.2, is_cut_short=True) == []


def test_a_model_that_says_nothing_yet_is_waited_for():
    done = play(Said("Fine.", delay_seconds=0.3))
    assert "waits for the first word of openai:first" in phases(done.heard)
    assert type(done.heard.events[-1]) is not PhaseLasted


def test_a_tool_that_works_for_long_is_told_with_its_argument(tmp_path: Path):
    call = ToolCall("Bash", {"command": "sleep 0.4; echo done"})
    asked = request(tools=("Bash",), workspace=str(tmp_path), may_write=True)
    settings = ToolSettings(project=tmp_path, sandbox="off")
    done = play([Said("", tool_calls=(call,)), Said("Done.")], asked, tools=settings)
    assert "calls Bash sleep 0.4; echo done" in phases(done.heard)


def test_a_server_that_starts_slowly_is_named(tmp_path: Path):
    script = ROOT / "tests/support/plain_mcp.py"
    code = f"import runpy, sys, time; time.sleep(0.5); sys.argv = [{str(script)!r}, '{{}}']; " + (
        f"runpy.run_path({str(script)!r}, run_name='__main__')"
    )
    server = McpServer("notes", command=sys.executable, args=("-c", code))
    settings = ToolSettings(project=tmp_path, mcp_servers={"notes": server})
    asked = request(tools=("mcp__notes__add",), workspace=str(tmp_path))
    done = play(Said("Done."), asked, tools=settings)
    assert "starts the MCP server notes" in phases(done.heard)
