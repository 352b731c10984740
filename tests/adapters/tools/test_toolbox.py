"""The toolbox: exactly the tools of the list, made for what the step may touch."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from stretto.adapters.tools.mcp_config import McpServer
from stretto.adapters.tools.search_endpoint import SearchEndpoint
from stretto.adapters.tools.toolbox import StandardToolbox, ToolSettings
from stretto.events.attempts import AttemptId
from stretto.ports.runner import AttemptRequest
from stretto.ports.tool import Tool, Toolbox, ToolOutcome
from stretto.toolnames.filters import tool_fault
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import KNOWN_TOOLS, AgentId, StepId
from stretto.workspaces.sandbox.sandbox import NoSandbox, explain_not_installed, find_sandbox
from support.toolbench import tree

SANDBOX = find_sandbox("auto")
needs_sandbox = pytest.mark.skipif(isinstance(SANDBOX, NoSandbox), reason=str(SANDBOX))
EVERYTHING = tuple(sorted(KNOWN_TOOLS))
DELEGATING = (
    "task",
    "task_batch",
    "run_workflow",
    "save_workflow",
    "Task",
    "Agent",
    "Task(x)",
    "TASK",
)

T = TypeVar("T")


def request(
    tools: tuple[str, ...],
    workspace: Path | str = "",
    may_write: bool = False,
    write_set: tuple[str, ...] = (),
    read_set: tuple[str, ...] = ("**/*",),
    model: str | None = None,
) -> AttemptRequest:
    return AttemptRequest(
        run_id="r", attempt=AttemptId(StepId("s"), 1), agent=AgentId("a"), instructions="",
        prompt="", model=model, tools=tools, max_turns=None, format=None, schema=None, rules=(),
        workspace=str(workspace), may_write=may_write, read_set=read_set, write_set=write_set,
    )  # fmt: skip


def using(
    asked: AttemptRequest,
    work: Callable[[Mapping[str, Tool]], Awaitable[T]],
    settings: ToolSettings | None = None,
    environ: Mapping[str, str] | None = None,
) -> T:
    async def run() -> T:
        toolbox = StandardToolbox(
            settings or ToolSettings(Path.cwd()), environ or {}, partial(find_sandbox, "auto")
        )
        port: Toolbox = toolbox
        try:
            async with port.open(asked) as tools:
                return await work(tools)
        finally:
            await toolbox.close()

    return asyncio.run(run())


def names(asked: AttemptRequest, settings: ToolSettings | None = None) -> set[str]:
    async def listed(tools: Mapping[str, Tool]) -> set[str]:
        assert all(name == tool.spec.name for name, tool in tools.items())
        return set(tools)

    return using(asked, listed, settings)


def called(
    asked: AttemptRequest, name: str, settings: ToolSettings | None = None, **arguments: Json
) -> ToolOutcome:
    return using(asked, lambda tools: tools[name].call(arguments, "k"), settings)


def test_a_writer_gets_every_tool_that_a_recipe_may_list(tmp_path: Path) -> None:
    asked = request(EVERYTHING, tmp_path, may_write=True, write_set=("**",))
    assert names(asked) == set(KNOWN_TOOLS)


def test_a_reader_gets_no_tool_that_changes_files_but_bash(tmp_path: Path) -> None:
    assert names(request(EVERYTHING, tmp_path)) == {
        "Read", "Glob", "Grep", "WebFetch", "WebSearch", "Bash",
    }  # fmt: skip


def test_only_what_is_listed_is_made(tmp_path: Path) -> None:
    assert names(request(("Read", "Nonsense", ""), tmp_path)) == {"Read"}
    assert names(request((), tmp_path)) == set()


@pytest.mark.parametrize("may_write", [True, False])
def test_nothing_that_delegates_is_ever_made(tmp_path: Path, may_write: bool) -> None:
    server = McpServer("task", command="x")
    settings = ToolSettings(Path.cwd(), mcp_servers={"task": server})
    asked = request((*DELEGATING, "Read"), tmp_path, may_write)
    assert names(asked, settings) == {"Read"}


def test_a_recipe_that_passes_its_check_lists_what_can_be_made(tmp_path: Path) -> None:
    for name in KNOWN_TOOLS:
        assert tool_fault(name, KNOWN_TOOLS) is None
        assert names(request((name,), tmp_path, may_write=True)) == {name}


def test_the_sets_of_the_step_bind_the_file_tools(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    asked = request(("Read", "Write"), tmp_path, True, ("out/**",), ("docs",))
    assert called(asked, "Read", file_path="secret").verdict == "refused"
    assert called(asked, "Write", file_path="a", content="x").verdict == "refused"
    assert called(asked, "Write", file_path="out/a", content="x").verdict == "ok"
    assert tree(tmp_path) == {"secret": b"x", "out/a": b"x"}


def test_a_filter_narrows_a_file_tool(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("x")
    (tmp_path / "a.py").write_text("x")
    asked = request(("Read(*.md)", "Read(docs/**)", "Glob"), tmp_path)
    assert called(asked, "Read", file_path="a.md").verdict == "ok"
    told = called(asked, "Read", file_path="a.py")
    assert told.verdict == "refused"
    assert told.text.endswith("**/* (and of that only *.md, docs/**)")
    assert called(asked, "Glob", pattern="*").text == "a.md\na.py"


@needs_sandbox
def test_a_filter_narrows_bash_and_bash_alone_does_not(tmp_path: Path) -> None:
    asked = request(("Bash(echo a:*)", "Bash(true)"), tmp_path)
    assert called(asked, "Bash", command="echo a b && true").text == "a b"
    assert called(asked, "Bash", command="echo b").verdict == "refused"
    asked = request(("Bash(echo a:*)", "Bash"), tmp_path)
    assert called(asked, "Bash", command="echo b").text == "b"


@needs_sandbox
def test_a_reader_runs_commands_that_cannot_write(tmp_path: Path) -> None:
    asked = request(("Bash",), tmp_path, may_write=False, write_set=("**",))
    told = called(asked, "Bash", command="touch a && echo made")
    assert told.verdict != "ok"
    assert tree(tmp_path) == {}


@pytest.mark.parametrize(
    "written", ["Bash(a; b)", "Bash()", "WebFetch(x)", "WebFetch(domain:)", "Read(../x)", "Read([",
                "WebSearch(x)", "Glob(/etc)"],
)  # fmt: skip
def test_a_filter_that_is_not_understood_lets_nothing_through(tmp_path: Path, written: str) -> None:
    asked = request((written,), tmp_path, may_write=True)
    told = called(asked, written.split("(")[0], command="true", url="x", file_path="x", query="x")
    assert told.verdict == "refused"
    assert f"the filter of '{written}' cannot be used: " in told.text


def test_without_a_workspace_there_are_no_files(tmp_path: Path) -> None:
    asked = request(("Read", "Bash", "WebFetch"))
    assert names(asked) == {"Read", "Bash", "WebFetch"}
    for name in ("Read", "Bash"):
        told = called(asked, name, file_path="/etc/passwd", command="ls")
        assert told.text == "Refused: this step has no workspace"
    gone = request(("Read",), tmp_path / "gone")
    assert "the workspace cannot be opened" in called(gone, "Read", file_path="a").text


def test_without_a_sandbox_bash_says_so(tmp_path: Path) -> None:
    async def run() -> ToolOutcome:
        missing = NoSandbox((explain_not_installed(),))
        toolbox = StandardToolbox(ToolSettings(tmp_path), {}, lambda: missing)
        async with toolbox.open(request(("Bash",), tmp_path)) as tools:
            return await tools["Bash"].call({"command": "true"}, "k")

    assert asyncio.run(run()).verdict == "refused"


def test_who_searches_depends_on_the_model_and_the_settings(tmp_path: Path) -> None:
    hosted = request(("WebSearch",), model="anthropic:claude-sonnet-5-5")
    assert names(hosted) == set(), "the runner passes the provider's own"
    told = called(request(("WebSearch",), model="ollama:x"), "WebSearch", query="x")
    assert (told.verdict, "does not search by itself" in told.text) == ("refused", True)
    settings = ToolSettings(tmp_path, search=SearchEndpoint("http://127.0.0.1:9/"))
    told = called(request(("WebSearch",), model="ollama:x"), "WebSearch", settings, query="x")
    assert (told.verdict, "could not be asked" in told.text) == ("error", True)


def test_only_the_named_variables_reach_commands(tmp_path: Path) -> None:
    settings = ToolSettings(tmp_path, bash_environment=("SEEN", "ABSENT"), sandbox="off")

    async def run() -> ToolOutcome:
        toolbox = StandardToolbox(settings, {"SEEN": "yes", "HIDDEN": "s3cret"})
        async with toolbox.open(request(("Bash",), tmp_path)) as tools:
            return await tools["Bash"].call({"command": "env"}, "k")

    told = asyncio.run(run())
    assert "SEEN=yes" in told.text
    assert "s3cret" not in told.text
    assert "ABSENT" not in told.text


def test_the_tools_of_mcp_servers_are_among_them(tmp_path: Path) -> None:
    program = str(Path(__file__).parents[2] / "support" / "plain_mcp.py")
    server = McpServer("plain", command=sys.executable, args=("-ISu", program))
    settings = ToolSettings(tmp_path, mcp_servers={"plain": server})
    asked = request(("Read", "mcp__plain__x"), tmp_path)
    assert names(asked, settings) == {"Read", "mcp__plain__x"}
    assert called(asked, "mcp__plain__x", settings).text.startswith("x ")


def test_what_an_attempt_held_open_is_closed_when_it_ends(tmp_path: Path) -> None:
    async def run() -> ToolOutcome:
        toolbox = StandardToolbox(ToolSettings(tmp_path), {})
        async with toolbox.open(request(("Read",), tmp_path)) as tools:
            pass
        return await tools["Read"].call({"file_path": "a"}, "k")

    assert asyncio.run(run()).verdict == "error"


def test_every_tool_says_how_it_recovers(tmp_path: Path) -> None:
    async def specs(tools: Mapping[str, Tool]) -> dict[str, tuple[bool, str, bool]]:
        return {
            name: (tool.spec.changes_files, tool.spec.recovery, tool.spec.needs_network)
            for name, tool in tools.items()
        }

    settings = ToolSettings(tmp_path, search=SearchEndpoint("http://127.0.0.1:9/"))
    assert using(request(EVERYTHING, tmp_path, True, ("**",)), specs, settings) == {
        "Read": (False, "idempotent", False),
        "Glob": (False, "idempotent", False),
        "Grep": (False, "idempotent", False),
        "WebFetch": (False, "idempotent", True),
        "WebSearch": (False, "idempotent", True),
        "Write": (True, "idempotent", False),
        "Edit": (True, "in_doubt", False),
        "MultiEdit": (True, "in_doubt", False),
        "NotebookEdit": (True, "in_doubt", False),
        "Bash": (True, "in_doubt", False),
    }


def test_models_are_shown_exactly_these_descriptions_and_schemas(tmp_path: Path) -> None:
    async def specs(tools: Mapping[str, Tool]) -> dict[str, Json]:
        return {
            name: {
                "description": tool.spec.description,
                "parameters": dict(tool.spec.parameters),
            }
            for name, tool in tools.items()
        }

    settings = ToolSettings(tmp_path, search=SearchEndpoint("http://127.0.0.1:9/"))
    shown = using(request(EVERYTHING, tmp_path, True, ("**",)), specs, settings)
    assert shown == json.loads((Path(__file__).parent / "tool_specs.json").read_text())


def test_importing_the_toolbox_imports_nothing_slow() -> None:
    code = (
        "import sys, stretto.adapters.tools.toolbox\n"
        "print([m for m in ('mcp', 'httpx2', 'httpcore2', 'pydantic', 'anyio') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
