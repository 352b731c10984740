"""Make the tools of one attempt. In: what its agent lists. Out: those tools by name, no others.

A tool that delegates is never made, whatever the list says. Where a step may not write, the tools
that change files are left out; Bash stays, in a sandbox where nothing can be written.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.adapters.tools.bash import BashSettings, FindShell
from stretto.adapters.tools.making import Kit, make
from stretto.adapters.tools.mcp import McpServers
from stretto.adapters.tools.mcp_config import McpServer
from stretto.adapters.tools.mcp_connection import START_SECONDS
from stretto.adapters.tools.unusable import unusable
from stretto.adapters.tools.web_search import SearchEndpoint
from stretto.ports.runner import AttemptRequest
from stretto.ports.tool import Reach, Tool
from stretto.processes.programs import NOWHERE, Writable
from stretto.toolnames.filters import ListedTool, read_listed
from stretto.vocabulary.tools import CHANGING_TOOLS, tool_name
from stretto.workspaces.paths import PathRefused
from stretto.workspaces.sandbox.sandbox import Setting, find_sandbox

if TYPE_CHECKING:
    from stretto.adapters.tools.functions import AnyFunctionTool


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """What the user has set for tools."""

    project: Path  # where MCP servers are started
    writable: Writable = NOWHERE  # where no program of the host is taken from
    search: SearchEndpoint | None = None
    mcp_servers: Mapping[str, McpServer] = field(default_factory=dict)
    allow_private: frozenset[str] = frozenset()  # host:port that WebFetch may ask besides
    bash_environment: tuple[str, ...] = ()  # names of variables that commands are given
    bash_network: bool = False
    sandbox: Setting = "auto"
    carry: tuple[str, ...] = ()  # folders that Bash sees in a writer's copy
    mcp_start_seconds: float = START_SECONDS
    protected: tuple[str, ...] = ()  # what no tool may change, from the workspace on
    hidden: tuple[str, ...] = ()  # nor read


class StandardToolbox:
    """One for a process. MCP servers are shared between its attempts, until `close`."""

    def __init__(
        self,
        settings: ToolSettings,
        environ: Mapping[str, str],
        find_shell: FindShell | None = None,
        functions: "Mapping[str, AnyFunctionTool] | None" = None,
    ) -> None:
        """`functions`: tools made of Python functions, by the name that agents list."""
        self._settings = settings
        self._functions = functions or {}
        self._environ = environ
        inherited = {n: environ[n] for n in settings.bash_environment if n in environ}
        self._bash = BashSettings(
            find_shell or partial(find_sandbox, settings.sandbox, settings.writable), inherited
        )
        self._mcp = McpServers(
            settings.mcp_servers,
            environ,
            settings.project,
            settings.mcp_start_seconds,
            writable=settings.writable,
        )

    @asynccontextmanager
    async def open(self, request: AttemptRequest) -> AsyncIterator[Mapping[str, Tool]]:
        """What the model asks for is not known here: only what it may have is in the mapping."""
        listed = [each for each in read_listed(request.tools) if self._is_offered(each, request)]
        remote = [e.name for e in listed if e.name.startswith("mcp__") and e.fault is None]
        tools = await self._mcp.offer(remote, request.may_write) if remote else {}
        with ExitStack() as held:
            kit = self._kit(request, held)
            for each in listed:
                if each.name in self._functions and each.fault is None:
                    tools[each.name] = self._functions[each.name]
                elif each.name not in remote and (made := _made(each, kit)) is not None:
                    tools[each.name] = made
            yield tools

    async def close(self) -> None:
        await self._mcp.close()

    def _is_offered(self, each: ListedTool, request: AttemptRequest) -> bool:
        if request.may_write or each.name == "Bash":
            return True
        function = self._functions.get(each.name)
        changes = function.spec.changes_files if function else each.name in CHANGING_TOOLS
        return not changes

    def _has_network(self, request: AttemptRequest) -> bool:
        """An agent that may fetch pages by a tool may fetch them by a command as well."""
        return self._settings.bash_network or any(
            tool_name(tool) in ("WebFetch", "WebSearch") for tool in request.tools
        )

    def _kit(self, request: AttemptRequest, held: ExitStack) -> Kit:
        reach = Reach(
            Path(request.workspace),
            request.may_write,
            request.read_set,
            request.write_set,
            self._settings.protected,
            Path(request.origin) if request.origin else None,
            self._settings.carry if request.origin else (),
            self._settings.hidden,
        )
        return Kit(
            reach=reach if request.workspace else None,
            model=request.model,
            bash=replace(self._bash, network=self._has_network(request)),
            search=self._settings.search,
            allow_private=self._settings.allow_private,
            environ=self._environ,
            held=held,
        )


def _made(each: ListedTool, kit: Kit) -> Tool | None:
    try:
        return make(each, kit)
    except PathRefused as refused:
        return unusable(each.name, f"the workspace cannot be opened: {refused.message}")
