"""The tools of MCP servers, which agents list as `mcp__server__tool`.

`mcp__server` and `mcp__server__*` stand for all tools that the server's allowlist lets through. A call
of a tool that its server marks as read-only may be repeated; every other call is in doubt.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.adapters.tools.files import has_surrogates
from stretto.adapters.tools.mcp_config import McpServer
from stretto.adapters.tools.mcp_connection import START_SECONDS, McpConnection, McpFailed
from stretto.adapters.tools.outcomes import outcome, unusable
from stretto.ports.tool import Tool, ToolOutcome, ToolSpec
from stretto.processes.programs import NOWHERE, Writable
from stretto.text.short import cut_middle, listed
from stretto.vocabulary.json_value import Json

if TYPE_CHECKING:
    from mcp_types import CallToolResult, Tool as RemoteTool

CALL_SECONDS = 120.0
_MOST_DESCRIPTION = 2_000
_MOST_SCHEMA = 100_000
_ANY_OBJECT: Mapping[str, Json] = {"type": "object"}
# Characters that some provider does not accept in the name of a tool.
_UNUSABLE_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class McpTool:
    spec: ToolSpec
    remote_name: str
    connection: McpConnection
    timeout_seconds: float = CALL_SECONDS

    async def call(self, arguments: Mapping[str, Json], key: str) -> ToolOutcome:
        if has_surrogates(json.dumps(arguments, ensure_ascii=False)):
            return outcome(
                "Error: an argument holds a lone surrogate, which cannot be written as UTF-8",
                "error",
            )
        try:
            result = await self.connection.call(self.remote_name, arguments, self.timeout_seconds)
        except McpFailed as failed:
            return outcome(f"Error: {failed}", "error")
        # In a thread: a server may answer with a hundred thousand blocks.
        text = await asyncio.to_thread(_text_of, result)
        return outcome(text, "error" if result.is_error else "ok")


class McpServers:
    """The MCP servers of one toolbox, by name."""

    def __init__(
        self,
        servers: Mapping[str, McpServer],
        environ: Mapping[str, str],
        project: Path,
        start_seconds: float = START_SECONDS,
        call_seconds: float = CALL_SECONDS,
        writable: Writable = NOWHERE,
        on_server: Callable[[str], None] | None = None,
    ) -> None:
        self._on_server = on_server
        self._servers = servers
        self._environ = environ
        self._project = project
        self._start_seconds = start_seconds
        self._writable = writable
        self._call_seconds = call_seconds
        self._connections: dict[str, McpConnection] = {}

    async def offer(self, written: Iterable[str], may_write: bool) -> dict[str, Tool]:
        """The tools that these names stand for."""
        wanted: dict[str, list[str]] = {}
        for name in written:
            server, _, tool = name.removeprefix("mcp__").partition("__")
            wanted.setdefault(server, []).append(tool or "*")
        offered: dict[str, Tool] = {}
        for server, tools in wanted.items():
            offered.update(await self._offer_server(server, tools, may_write))
        return offered

    async def close(self) -> None:
        connections, self._connections = self._connections, {}
        for connection in connections.values():
            await connection.close()

    async def _offer_server(
        self, server: str, wanted: list[str], may_write: bool
    ) -> dict[str, Tool]:
        if server not in self._servers:
            known = listed(self._servers) or "none"
            why = f"there is no MCP server '{server}' in the settings; there are: {known}"
            return _unusable(server, wanted, why)
        connection = self._connection(server)
        if self._on_server is not None:
            self._on_server(server)
        try:
            remote = await connection.tools()
        except McpFailed as failed:
            return _unusable(server, wanted, str(failed))
        allowed = {
            _usable_name(tool.name): tool for tool in remote if connection.server.allows(tool.name)
        }
        names = list(allowed) if "*" in wanted else list(dict.fromkeys(map(_usable_name, wanted)))
        if not names:
            why = (
                f"the MCP server '{server}' offers no tool, or its allowlist leaves all of them out"
            )
            return _unusable(server, wanted, why)
        missing = [name for name in names if name not in allowed]
        why = f"the MCP server '{server}' has no such tool, or its allowlist leaves it out"
        offered = _unusable(server, missing, why)
        for name in names:
            if name in allowed:
                offered[_full_name(server, name)] = self._make(connection, allowed[name], may_write)
        return offered

    def _connection(self, server: str) -> McpConnection:
        if server not in self._connections:
            self._connections[server] = McpConnection(
                self._servers[server],
                self._environ,
                self._project,
                self._start_seconds,
                self._writable,
            )
        return self._connections[server]

    def _make(self, connection: McpConnection, tool: "RemoteTool", may_write: bool) -> Tool:
        server = connection.server
        spec = _spec(server, tool)
        if spec.changes_files and not may_write:
            why = (
                f"{spec.name} is not marked as read-only by its server, and this step may not"
                f" write (the user may list it under mcp_servers.{server.name}.read_only)"
            )
            return unusable(spec.name, why)
        return McpTool(spec, tool.name, connection, self._call_seconds)


def _spec(server: McpServer, tool: "RemoteTool") -> ToolSpec:
    hints = tool.annotations
    is_read_only = bool(hints and hints.read_only_hint) or tool.name in server.read_only
    return ToolSpec(
        _full_name(server.name, _usable_name(tool.name)),
        cut_middle(tool.description or tool.name, _MOST_DESCRIPTION),
        _schema(tool),
        changes_files=not is_read_only,
        recovery="idempotent" if is_read_only else "in_doubt",
        needs_network=bool(server.url),
    )


def _schema(tool: "RemoteTool") -> Mapping[str, Json]:
    schema = tool.input_schema
    is_usable = schema.get("type") == "object" and len(json.dumps(schema)) <= _MOST_SCHEMA
    return schema if is_usable else _ANY_OBJECT


def _unusable(server: str, tools: Iterable[str], why: str) -> dict[str, Tool]:
    names = [
        f"mcp__{server}" if tool == "*" else _full_name(server, _usable_name(tool))
        for tool in tools
    ]
    return {name: unusable(name, why, "error") for name in names}


def _full_name(server: str, tool: str) -> str:
    return f"mcp__{server}__{tool}"


def _usable_name(name: str) -> str:
    return _UNUSABLE_CHARACTERS.sub("_", name)


def _text_of(result: "CallToolResult") -> str:
    parts = [_block_text(block.model_dump(mode="json", by_alias=True)) for block in result.content]
    if not parts and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n".join(parts) or "(the tool returned nothing)"


def _block_text(block: Mapping[str, Json]) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "image" | "audio" as kind, "mimeType": mime, "data": str(encoded)}:
            return f"[{kind} {mime}, about {len(encoded) * 3 // 4:,} bytes, left out]"
        case {"type": "resource", "resource": {"uri": uri, "text": str(text)}}:
            return f"{uri}:\n{text}"
        case {"type": "resource", "resource": {"uri": uri}}:
            return f"[{uri}: not text, left out]"
        case {"type": "resource_link", "uri": uri}:
            return f"[see {uri}]"
        case _:
            return f"[{block.get('type')}: left out]"
