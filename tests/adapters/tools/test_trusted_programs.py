"""What a trusted MCP server runs from inside the workspace is not for writers to change."""

import asyncio
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from adapters.tools.test_toolbox import needs_sandbox, request, using
from stretto.adapters.tools.toolbox import StandardToolbox
from stretto.assembly.subagents import tool_settings
from stretto.config.settings import Settings, load_settings
from stretto.config.trust import TrustStore
from stretto.ports.tool import Tool
from stretto.workspaces.change import find_changes, why_inadmissible
from stretto.workspaces.isolated_copy import isolate
from stretto.workspaces.protected import Protected

SERVER = Path(__file__).parents[2] / "support" / "plain_mcp.py"
TAMPERED = "import pathlib; pathlib.Path('PWNED').touch()\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "servers").mkdir(parents=True)
    (folder / "agents").mkdir()
    (folder / "agents" / "a.md").write_text("Be good.\n")
    shutil.copy(SERVER, folder / "servers" / "mail.py")
    (folder / "servers" / "helper.py").write_text("x = 1\n")
    servers = (
        f"mcp_servers:\n  mail: {{command: {sys.executable}, args: [-ISu, servers/mail.py]}}\n"
    )
    (folder / "stretto.yaml").write_text(servers)
    TrustStore(load(folder).home).trust(folder, load(folder).digest)
    return folder


def load(project: Path) -> Settings:
    return load_settings(project, {"STRETTO_HOME": str(project.parent / "home")})


def call(project: Path, tool: str, **arguments: str) -> str:
    settings = tool_settings(load(project))

    async def work(tools: Mapping[str, Tool]) -> str:
        return (await tools[tool].call(arguments, "k")).text

    tools = ("Write", "Edit", "Bash", "mcp__mail__x")
    return using(request(tools, project, True, ("**",)), work, settings, dict(os.environ))


def test_a_trusted_server_answers(project: Path) -> None:
    assert load(project).is_trusted
    assert "Error" not in call(project, "mcp__mail__x")


@pytest.mark.parametrize("file", ["servers/mail.py", "servers/helper.py", "servers/new.py"])
def test_a_change_of_what_it_runs_is_asked_about(project: Path, file: str) -> None:
    (project / file).write_text(TAMPERED)
    assert not load(project).is_trusted
    assert load(project).mcp_servers == {}


def test_a_server_whose_script_changed_during_the_run_is_not_started(project: Path) -> None:
    settings = tool_settings(load(project))

    async def run() -> str:
        toolbox = StandardToolbox(settings, dict(os.environ))
        (project / "servers" / "mail.py").write_text(TAMPERED)  # after the run began
        try:
            async with toolbox.open(request(("mcp__mail__x",), project)) as tools:
                return (await tools["mcp__mail__x"].call({}, "k")).text
        finally:
            await toolbox.close()

    assert "changed since you trusted" in asyncio.run(run())
    assert not (project / "PWNED").exists()


@pytest.mark.parametrize(
    "path",
    ["servers/mail.py", "servers/new.py", "stretto.yaml", "agents/b.md", "SERVERS/mail.py", "./stretto.yaml"],
)  # fmt: skip
def test_the_file_tools_refuse_it(project: Path, path: str) -> None:
    assert "trusted" in call(project, "Write", file_path=path, content="x")
    assert load(project).is_trusted


@needs_sandbox
@pytest.mark.parametrize(
    "command",
    [
        "echo x > servers/mail.py",
        "echo x > servers/new.py",
        "rm servers/mail.py",
        "rm -r servers",
        "mv servers old",
        "echo x >> stretto.yaml",
        "rm agents/a.md; echo x > agents/b.md",
    ],
)
def test_a_command_cannot_change_it(project: Path, command: str) -> None:
    call(project, "Bash", command=command)
    assert load(project).is_trusted


@needs_sandbox
def test_the_rest_of_the_workspace_is_as_writable_as_before(project: Path) -> None:
    call(project, "Bash", command="echo x > README.md; mkdir src && echo y > src/a.py")
    assert (project / "src" / "a.py").read_text() == "y\n"


def test_a_change_of_it_is_not_merged(project: Path) -> None:
    copy = isolate(project, project.parent / "copy")
    (copy.root / "servers" / "mail.py").write_text(TAMPERED)
    (copy.root / "README.md").write_text("x")
    changes = find_changes(copy, project.parent / "change")
    refused = why_inadmissible(changes, ("**",), Protected(load(project).protected))
    assert refused is not None
    assert refused.paths == ("servers/mail.py",)


@pytest.mark.parametrize(
    "words",
    [
        "command: servers/mail.py",
        "command: ./servers/mail.py",
        "command: node, args: [--require=servers/mail.py]",
        "command: python, args: [-m, servers.mail]",
        'command: sh, args: [-c, "exec python servers/mail.py --x"]',
        "command: python, args: [mail.py], cwd: servers",
        "command: python, args: [-c, pass], env: {PYTHONPATH: servers}",
        "command: npm, args: [--prefix, servers, start]",
    ],
)
def test_however_a_server_names_its_files_they_are_watched(project: Path, words: str) -> None:
    (project / "stretto.yaml").write_text(f"mcp_servers:\n  mail: {{{words}}}\n")
    before = load(project).digest
    (project / "servers" / "mail.py").write_text(TAMPERED)
    assert load(project).digest != before


def test_the_users_own_server_does_not_run_a_strangers_file(project: Path) -> None:
    home = project.parent / "home"
    (home / "stretto.yaml").write_text((project / "stretto.yaml").read_text())
    stranger = project.parent / "stranger"
    shutil.copytree(project / "servers", stranger / "servers")
    settings = load(stranger)
    assert not settings.is_trusted
    assert settings.mcp_servers == {}
