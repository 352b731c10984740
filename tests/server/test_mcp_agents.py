"""A real CLI agent, Gemini's, uses `stretto mcp`: its model calls for a workflow, which then runs."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.cli import ROOT, environment, stretto
from support.fake_apis import FakeApi, serving
from support.mcp_client import write_project

PROGRAM = ROOT / ".venv" / "clis" / "node_modules" / ".bin" / "gemini"


@pytest.mark.skipif(not PROGRAM.exists() or not shutil.which("node"), reason="no Gemini CLI")
def test_a_real_agent_runs_a_workflow(tmp_path: Path) -> None:
    folder = write_project(tmp_path)
    server = {
        "command": sys.executable,
        "args": ["-m", "stretto", "mcp", "--model", "scripted:script.yaml"],
        "env": environment(folder),
        "trust": True,
    }
    settings = {
        "mcpServers": {"stretto": server},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
    }
    (tmp_path / "user" / ".gemini").mkdir(parents=True)
    (tmp_path / "user" / ".gemini" / "settings.json").write_text(json.dumps(settings))
    api = FakeApi("mcp_stretto_brief", {"topic": "tea"})
    with serving(api):
        done = subprocess.run(
            [PROGRAM, "--skip-trust", "-m", "gemini-2.5-flash", "-y", "-p", "Run the brief."],
            cwd=folder,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path / "user"),
                "GEMINI_API_KEY": "no-key",
                "GOOGLE_GEMINI_BASE_URL": api.url,
                "NO_COLOR": "1",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
        )
    offered = {name for name in api.offered if "stretto" in name or name == "brief"}
    assert offered, sorted(api.offered)
    assert "It is 42." in done.stdout, (done.stdout[-2000:], done.stderr[-2000:])
    runs = stretto(folder, "runs", "--json").json["runs"]
    assert [(each["workflow"], each["status"], each["trigger"]) for each in runs] == [
        ("brief", "complete", "mcp stdio")
    ], (offered, done.stderr[-2000:])
