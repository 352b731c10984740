"""The official MCP client at `stretto mcp`. In: a folder with recipes and a script. Out: a client."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from stretto.assembly.project import Project
from stretto.assembly.surface import Surface
from stretto.server.mcp_calls import McpOptions
from stretto.server.mcp_server import McpEndpoint
from support.cli import environment, write

MODES = ("legacy", "auto")  # the handshake of 2025 and before, and the protocol of 2026
RECIPES = {
    "brief": """\
name: brief
description: Look, then write.
inputs:
  - {name: topic, required: true, description: what it is about}
  - {name: tone, enum: [plain, formal], default: plain}
  - {name: count, type: number, default: 3}
  - {name: extra, type: json}
steps:
  - {id: look, subagent: researcher, prompt: "Find {{inputs.count}} facts about {{inputs.topic}}."}
  - {id: write, subagent: writer, prompt: "{{inputs.tone}} {{steps.look.output}}"}
output: "{{steps.write.output}}"
""",
    "task": """\
name: task
steps:
  - {id: a, subagent: writer, prompt: x}
""",
    "gated": """\
name: gated
steps:
  - {id: a, subagent: researcher, prompt: look}
  - {id: g, subagent: writer, gate: human, depends_on: [a], prompt: "{{steps.a.output}}"}
""",
    "slow": """\
name: slow
steps:
  - {id: late, subagent: writer, prompt: x}
""",
    "broken": "name: broken\nsteps: [{id: a, subagent: nobody, prompt: x}]\n",
}
# The step of `slow` never ends by itself within a test.
STUCK = "default: ok\nreplies: {late: {reply: late, delay: 10m}}\n"


def write_project(folder: Path, script: str = "default: ok\n") -> Path:
    for name, text in RECIPES.items():
        write(folder, f"workflows/{name}.yaml", text)
    write(folder, "script.yaml", script)
    return folder


def parameters(folder: Path, *words: str) -> StdioServerParameters:
    command = ["-m", "stretto", "mcp", "--model", "scripted:script.yaml", *words]
    return StdioServerParameters(
        command=sys.executable, args=command, env=environment(folder), cwd=folder
    )


@asynccontextmanager
async def connected(
    folder: Path, *words: str, mode: str = "legacy", **more: Any
) -> AsyncIterator[Client]:
    async with Client(parameters(folder, *words), mode=mode, cache=None, **more) as client:
        yield client


@asynccontextmanager
async def connected_here(
    folder: Path, options: McpOptions | None = None, **more: Any
) -> AsyncIterator[Client]:
    """The same without a process: the client calls the server in this one."""
    chosen = replace(options or McpOptions(), model=f"scripted:{folder / 'script.yaml'}")
    async with (
        Surface(lambda found: Project(found or folder, environment(folder))) as stretto,
        Client(McpEndpoint(stretto, chosen).server, mode="legacy", cache=None, **more) as client,
    ):
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The answer of a call that succeeds; the text and the structure say the same."""
    result = await client.call_tool(tool, arguments)
    answer = json.loads(result.content[0].text)
    assert not result.is_error, answer
    assert result.structured_content == answer
    return answer


async def refused(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    answer = json.loads(result.content[0].text)
    assert result.is_error, answer
    assert result.structured_content == answer
    assert answer["ok"] is False
    assert set(answer["error"]) == {"kind", "message", "details"}
    return answer["error"]


async def until(condition: Callable[[], Awaitable[Any]], seconds: float = 120) -> Any:
    async with asyncio.timeout(seconds):
        while not (found := await condition()):
            await asyncio.sleep(0.05)
    return found
