"""A connection to one MCP server, shared by all attempts of a toolbox.

The server is started when it is first needed, and again when it has died. A task of its own holds the
connection open, because the task that opens a connection must close it, and attempts come and go.
"""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.adapters.tools.mcp_config import McpServer, fill_variables
from stretto.processes.programs import NOWHERE, ProgramStart, Writable, find_command, with_safe_path
from stretto.vocabulary.json_value import Json

if TYPE_CHECKING:  # takes a second to import, and most runs have no MCP server
    from mcp import Client
    from mcp.client import Transport
    from mcp_types import CallToolResult, Tool

    from stretto.adapters.tools.mcp_transport import ServerState

START_SECONDS = 30.0
_STOP_SECONDS = 10.0
_MOST_PAGES = 100
_MOST_WORDS = 1_000
# What a program needs to run at all. All else it is given by its `env` in the settings.
_INHERITED = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TMPDIR", "USER")


class McpFailed(Exception):
    """The server cannot be used, or did not answer. The text says which and why."""


@dataclass(frozen=True, slots=True)
class _Live:
    client: "Client"
    tools: "tuple[Tool, ...]"


class McpConnection:
    def __init__(
        self,
        server: McpServer,
        environ: Mapping[str, str],
        project: Path,
        start_seconds: float = START_SECONDS,
        writable: Writable = NOWHERE,
    ) -> None:
        self.server = server
        self._environ = environ
        self._project = project
        self._start_seconds = start_seconds
        self._writable = writable
        self._lock = asyncio.Lock()
        self._owner: asyncio.Task[None] | None = None
        self._live: _Live | None = None
        self._leave = asyncio.Event()
        self._state: ServerState | None = None

    async def tools(self) -> "tuple[Tool, ...]":
        """What it offers. Raises McpFailed."""
        return (await self._connect()).tools

    async def call(
        self, tool: str, arguments: Mapping[str, Json], timeout_seconds: float
    ) -> "CallToolResult":
        """Raises McpFailed. A call that was cut off is not made again: it may have worked."""
        live = await self._connect()
        try:
            async with asyncio.timeout(timeout_seconds):
                return await live.client.call_tool(tool, dict(arguments))
        except TimeoutError:
            raise McpFailed(f"{self._named} did not answer in {timeout_seconds:g} s") from None
        except Exception as error:  # mcp, pydantic, anyio and httpx raise their own
            why = _describe(error)
            if not _is_closed(error):
                raise McpFailed(f"{self._named} answered with an error: {why}") from None
            await self._drop(live)
            raise McpFailed(
                f"{self._named} went away during the call: {self._with_last_words(why)}"
            ) from None

    async def close(self) -> None:
        async with self._lock:
            await self._stop()

    @property
    def _named(self) -> str:
        return f"the MCP server '{self.server.name}'"

    def _with_last_words(self, why: str) -> str:
        """If the server is a program: with what it printed last."""
        reasons = str(self._state) if self._state else ""
        return f"{why}; {reasons}" if reasons else why

    async def _connect(self) -> _Live:
        async with self._lock:
            if self._leave.is_set():
                await self._stop()
            if self._live is None:
                self._live = await self._start()
            return self._live

    async def _start(self) -> _Live:
        ready: asyncio.Future[_Live] = asyncio.get_running_loop().create_future()
        self._leave = asyncio.Event()
        self._owner = asyncio.create_task(self._hold_open(ready, self._leave))
        try:
            async with asyncio.timeout(self._start_seconds):
                return await asyncio.shield(ready)
        except BaseException as error:
            ready.cancel()
            if self._state is not None:
                self._state.is_stuck = True
            self._owner.cancel()
            why = f"it was not ready after {self._start_seconds:g} s"
            await self._stop()
            if isinstance(error, TimeoutError):
                raise McpFailed(
                    f"{self._named} did not start: {self._with_last_words(why)}"
                ) from None
            raise

    async def _hold_open(self, ready: "asyncio.Future[_Live]", leave: asyncio.Event) -> None:
        from mcp import Client

        try:
            async with Client(self._transport(leave), cache=None) as client:
                # mcp would check results by the schema that the server gives, with patterns that
                # the server chooses and that can keep the matcher busy for years.
                vars(client.session)["validate_tool_result"] = _accept_result
                ready.set_result(_Live(client, await _all_tools(client)))
                await leave.wait()
        except Exception as error:  # as above: any of four libraries may raise it
            if not ready.done():
                why = self._with_last_words(_describe(error))
                ready.set_exception(McpFailed(f"{self._named} did not start: {why}"))

    def _transport(self, leave: asyncio.Event) -> "Transport":
        from stretto.adapters.tools.mcp_transport import (
            ServerState,
            http_transport,
            stdio_transport,
        )

        server = self.server
        try:
            env = {name: fill_variables(text, self._environ) for name, text in server.env.items()}
            headers = {
                name: fill_variables(text, self._environ) for name, text in server.headers.items()
            }
        except KeyError as missing:
            raise McpFailed(f"the environment variable {missing.args[0]} is not set") from None
        if server.url:
            return http_transport(server.url, headers)
        if not server.is_unchanged():
            raise McpFailed(
                "its files changed since you trusted them; read them, then: stretto trust"
            )
        self._state = ServerState(is_gone=leave)
        inherited = {name: self._environ[name] for name in _INHERITED if name in self._environ}
        environment = with_safe_path({**inherited, **env}, self._writable)
        folder = self._project / server.cwd
        program = find_command(server.command, folder, environment.get("PATH"), self._writable)
        if program is None:
            raise McpFailed(_no_program(server.command))
        start = ProgramStart((program, *server.args), folder, environment, stdin_text=None)
        return stdio_transport(start, self._state)

    async def _drop(self, live: _Live) -> None:
        async with self._lock:
            # Another call may have noticed first and started the server again.
            if self._live is live:
                await self._stop()

    async def _stop(self) -> None:
        owner, self._owner, self._live = self._owner, None, None
        if owner is None:
            return
        self._leave.set()
        done, _ = await asyncio.wait([owner], timeout=_STOP_SECONDS)
        if not done:
            owner.cancel()
            await asyncio.wait([owner], timeout=_STOP_SECONDS)


async def _accept_result(tool: str, result: "CallToolResult") -> None:
    """A result is text for a model, whatever its form."""


async def _all_tools(client: "Client") -> "tuple[Tool, ...]":
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    return tuple(tools)


def _no_program(command: str) -> str:
    if os.sep in command:
        return f"{command}: No such file or directory, or no program"
    return (
        f"there is no program '{command}' on PATH outside the workspace; one that lies in the "
        "workspace must be named by its path"
    )


def _is_closed(error: Exception) -> bool:
    """Whether the connection can be used no more. An HTTP session that has ended is INVALID_REQUEST."""
    import anyio
    from mcp import MCPError
    from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST

    if isinstance(error, MCPError):
        return error.code in (CONNECTION_CLOSED, INVALID_REQUEST)
    return isinstance(error, anyio.ClosedResourceError | anyio.BrokenResourceError)


def _describe(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    return (str(error) or type(error).__name__)[:_MOST_WORDS]
