"""Could this agent work here? In: its definition and the settings. Out: Lacks, with their fixes.

Nothing here is a fault of the file: the same agent may work on another machine.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import cast

from stretto.adapters.models.cli.names import AskedCommand, cli_fault, read_name
from stretto.adapters.models.model_names import Fault, Meant, check_name, meaning
from stretto.adapters.tools.mcp_config import read_servers
from stretto.adapters.tools.search_hosts import search_fault
from stretto.assembly.chosen import Chosen
from stretto.assembly.project import Project
from stretto.assembly.subagents import may_run_command, search_endpoint
from stretto.cli.default_model import default_model
from stretto.plan.postures import tools_of
from stretto.problems.errors import StrettoError
from stretto.recipe.model import Agent
from stretto.toolnames.filters import tool_fault
from stretto.vocabulary.names import did_you_mean
from stretto.vocabulary.tools import tool_name
from stretto.workspaces.sandbox.find import NoSandbox, Setting, find_sandbox


@dataclass(frozen=True, slots=True)
class Lack:
    says: str
    fix: str = ""


class Fitness:
    """Asks this machine each question once, however many agents there are."""

    def __init__(self, project: Project) -> None:
        self._settings = project.settings
        self._environ = project.environ
        self._project = project

    def lacks(self, agent: Agent) -> tuple[Lack, ...]:
        tools = tools_of(agent)
        names = {tool_name(tool) for tool in tools}
        return (
            *self._of_models(agent),
            *self._of_tools(tools),
            *(self._of_search(agent) if "WebSearch" in names else ()),
            *(self._of_bash if "Bash" in names else ()),
        )

    def _of_models(self, agent: Agent) -> Iterator[Lack]:
        for name in filter(None, (agent.model, *agent.fallback_models)):
            if name.startswith("cli:"):
                yield from self._of_cli(name)
            elif (fault := check_name(name, self._environ)) is not None:
                yield Lack(fault.says, fault.hint)
            elif isinstance(meant := meaning(name, self._environ), Meant) and meant.note:
                yield Lack(meant.note)

    def _of_cli(self, name: str) -> Iterator[Lack]:
        asked = read_name(name)
        if (
            said := cli_fault(name, self._environ.get("PATH"), self._settings.steps_write)
        ) is not None:
            yield Lack(said)
        elif isinstance(asked, AskedCommand) and not may_run_command(
            asked.words, Chosen(self._settings.model or ""), self._settings, self._environ
        ):
            fix = "allow it: --trust for a run, or cli_commands: in your own stretto.yaml"
            yield Lack(f"it would start the command '{asked.words[0]}', unconfined", fix)

    def _of_tools(self, tools: tuple[str, ...]) -> Iterator[Lack]:
        for tool in tools:
            # Another tool's file may list what only that one has.
            if (fault := tool_fault(tool)) is not None:
                yield Lack(fault.message, fault.hint)
        named = [tool_name(tool) for tool in tools]
        servers = [name.split("__")[1] for name in named if name.startswith("mcp__")]
        for server in dict.fromkeys(servers):
            yield from self._of_server(server)

    def _of_server(self, server: str) -> Iterator[Lack]:
        known = self._settings.mcp_servers
        if server not in known:
            fix = did_you_mean(server, known) or "name it under mcp_servers: in stretto.yaml"
            yield Lack(f"there is no MCP server '{server}'", fix)
            return
        for fault in read_servers({server: known[server]})[1]:
            yield Lack(f"mcp_servers.{server}: {fault.message}", fault.hint)
        if find_spec("mcp") is None:
            yield Lack("MCP needs a package that is not installed", "pip install 'stretto[mcp]'")

    def _of_search(self, agent: Agent) -> Iterator[Lack]:
        meant = meaning(agent.model, self._environ) if agent.model else Meant(None)
        if isinstance(meant, Fault) or (meant.name or "").startswith("cli:"):
            return  # the model's own fault is told already; a CLI brings its own search
        said = search_fault(
            meant.name or self._default, search_endpoint(self._settings), self._environ
        )
        if said is not None:
            yield Lack(said, "set search: {url: …} in stretto.yaml, or STRETTO_SEARCH_URL")

    @cached_property
    def _default(self) -> str | None:
        try:
            return default_model(self._project).name
        except StrettoError:
            return None  # stretto doctor says why

    @cached_property
    def _of_bash(self) -> tuple[Lack, ...]:
        if self._settings.sandbox == "off":
            return (Lack("the sandbox is off: Bash has all the rights of this user"),)
        found = find_sandbox(cast(Setting, self._settings.sandbox), self._settings.steps_write)
        if not isinstance(found, NoSandbox):
            return ()
        return (Lack(str(found), "; or ".join(each.fix for each in found.missing)),)
