"""Make the tools of one attempt: those that its agent lists, and no others.

A tool that delegates is never made, whatever the list says. Where a step may not write, the tools
that change files are left out; Bash stays, in a sandbox where nothing can be written.

The function that makes a built-in tool is found by its entry point, and imported when the tool is
first made: pydantic and HTTP are slow to import, and a recipe that is only checked needs neither.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from stretto.adapters.tools.files import Files
from stretto.adapters.tools.mcp_config import McpServer
from stretto.adapters.tools.mcp_connection import START_SECONDS
from stretto.adapters.tools.mcp_servers import McpServers
from stretto.adapters.tools.outcomes import unusable
from stretto.adapters.tools.search_endpoint import SearchEndpoint, hosts_search, search_fault
from stretto.globs.glob import Glob
from stretto.ports.runner import AttemptRequest
from stretto.ports.tool import Reach, Tool
from stretto.processes.programs import NOWHERE, Writable
from stretto.registry.entry_points import own_points
from stretto.toolnames.filters import CommandFilter, DomainFilter, ListedTool, read_listed
from stretto.vocabulary.names import CHANGING_TOOLS, KNOWN_TOOLS, LOAD_PLAYBOOK, tool_name
from stretto.workspaces.paths import PathRefused

if TYPE_CHECKING:
    from stretto.adapters.tools.bash import FindShell, ShellSettings
    from stretto.adapters.tools.functions import AnyFunctionTool
    from stretto.workspaces.sandbox.sandbox import NoSandbox, Sandbox, Setting


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
    sandbox: "Setting" = "auto"
    carry: tuple[str, ...] = ()  # folders that Bash sees in a writer's copy
    mcp_start_seconds: float = START_SECONDS
    protected: tuple[str, ...] = ()  # what no tool may change, from the workspace on
    hidden: tuple[str, ...] = ()  # what no tool may read or change


class StandardToolbox:
    """One for each run that is driven here. Its attempts share the MCP servers, until `close`."""

    def __init__(
        self,
        settings: ToolSettings,
        environ: Mapping[str, str],
        find_shell: "FindShell | None" = None,
        functions: "Mapping[str, AnyFunctionTool] | None" = None,
        load_playbook: Callable[[AttemptRequest], Tool] | None = None,
        on_server: Callable[[str], None] | None = None,
    ) -> None:
        """`functions`: tools made of Python functions, by the name that agents list.
        `load_playbook`: makes the tool of that name for an attempt that was told of playbooks.
        `on_server` hears the name of each MCP server before it is asked for its tools."""
        self._load_playbook = load_playbook
        self._settings = settings
        self._environ = environ
        self._functions = functions or {}
        self._find_shell = find_shell or self._find_sandbox
        self._mcp = McpServers(
            settings.mcp_servers,
            environ,
            settings.project,
            settings.mcp_start_seconds,
            writable=settings.writable,
            on_server=on_server,
        )

    def _find_sandbox(self) -> "Sandbox | NoSandbox":
        from stretto.workspaces.sandbox.sandbox import find_sandbox

        return find_sandbox(self._settings.sandbox, self._settings.writable)

    @asynccontextmanager
    async def open(self, request: AttemptRequest) -> AsyncIterator[Mapping[str, Tool]]:
        """Only what the agent may have is in the mapping, whatever the model asks for later."""
        listed = [each for each in read_listed(request.tools) if self._is_offered(each, request)]
        remote = [e.name for e in listed if e.name.startswith("mcp__") and e.fault is None]
        tools = await self._mcp.offer(remote, request.may_write) if remote else {}
        with ExitStack() as open_files:
            for each in listed:
                if each.name not in remote and (tool := self._make(each, request, open_files)):
                    tools[each.name] = tool
            yield tools

    async def close(self) -> None:
        await self._mcp.close()

    def _is_offered(self, each: ListedTool, request: AttemptRequest) -> bool:
        if request.may_write or each.name == "Bash":
            return True
        function = self._functions.get(each.name)
        changes = function.spec.changes_files if function else each.name in CHANGING_TOOLS
        return not changes

    def _make(
        self, listed: ListedTool, request: AttemptRequest, open_files: ExitStack
    ) -> Tool | None:
        """None if there is no such tool, or the model's provider has it."""
        name = listed.name
        if listed.fault is not None:
            return unusable(name, f"{listed.fault.message}; {listed.fault.hint}")
        if name == LOAD_PLAYBOOK and request.loadable and self._load_playbook:
            return self._load_playbook(request)
        if name in self._functions:
            return self._functions[name]
        if name == "WebFetch":
            return self._web_fetch(listed)
        if name == "WebSearch":
            return self._web_search(request.model)
        if name not in KNOWN_TOOLS:
            return None
        if not request.workspace:
            return unusable(name, "this step has no workspace")
        if name == "Bash":
            return self._bash(listed, request)
        try:
            return self._file_tool(listed, request, open_files)
        except PathRefused as refused:
            return unusable(name, f"the workspace cannot be opened: {refused.message}")

    def _file_tool(
        self, listed: ListedTool, request: AttemptRequest, open_files: ExitStack
    ) -> Tool:
        globs = [each for each in listed.filters if isinstance(each, Glob)]
        files = open_files.enter_context(Files(self.reach(request), globs))
        return _built_in(listed.name, files)

    def _bash(self, listed: ListedTool, request: AttemptRequest) -> Tool:
        commands = [each for each in listed.filters if isinstance(each, CommandFilter)]
        return _built_in("Bash", self.reach(request), self.shell_settings(request), commands)

    def shell_settings(self, request: AttemptRequest) -> "ShellSettings":
        """Of the commands of one attempt."""
        from stretto.adapters.tools.bash import ShellSettings

        names = self._settings.bash_environment
        inherited = {name: self._environ[name] for name in names if name in self._environ}
        # An agent that may fetch pages by a tool may fetch them by a command as well.
        network = self._settings.bash_network or any(
            tool_name(tool) in ("WebFetch", "WebSearch") for tool in request.tools
        )
        return ShellSettings(self._find_shell, inherited, network)

    def _web_fetch(self, listed: ListedTool) -> Tool:
        from stretto.adapters.tools.web_client import WebClient

        domains = tuple(each for each in listed.filters if isinstance(each, DomainFilter))
        client = WebClient(allow_private=self._settings.allow_private)
        return _built_in("WebFetch", client, domains)

    def _web_search(self, model: str | None) -> Tool | None:
        endpoint = self._settings.search
        if hosts_search(model, self._environ):
            return None
        fault = search_fault(model, endpoint, self._environ)
        if fault is not None or endpoint is None:
            return unusable("WebSearch", fault or "no search is set up")
        return _built_in("WebSearch", endpoint, self._environ)

    def reach(self, request: AttemptRequest) -> Reach:
        return Reach(
            Path(request.workspace),
            request.may_write,
            request.read_set,
            request.write_set,
            self._settings.protected,
            Path(request.origin) if request.origin else None,
            self._settings.carry if request.origin else (),
            self._settings.hidden,
        )


def _built_in(name: str, *given: object) -> Tool:
    return cast(Tool, own_points("stretto.tools")[name].load()(*given))
