"""Python functions as tools and as agents: given to Stretto, or brought by an installed package.

They are part of the catalog, so that a recipe which names them is checked like any other; their
code is part of the identity of the run, so that an answer is reused only while it is the same.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from stretto.agents.agent_files import read_agent_file
from stretto.assembly.arguments import check_callable
from stretto.assembly.plugins import Plugins
from stretto.plan.catalog import EMPTY_CATALOG, Catalog
from stretto.problems import Problem
from stretto.problems.errors import InvalidConfig, InvalidUsage
from stretto.recipe.model import Agent
from stretto.registry.entry_points import own_points
from stretto.vocabulary.models import FUNCTION_MODEL, is_function
from stretto.vocabulary.names import KNOWN_TOOLS, AgentId, tool_name

if TYPE_CHECKING:
    from stretto.adapters.tools.functions import AnyFunctionTool
    from stretto.agents.functions import AnsweringRunner, FunctionAgents
    from stretto.plan.model import Plan


class Functions:
    def __init__(
        self,
        tools: "Mapping[str, AnyFunctionTool]",
        agents: Mapping[str, Callable[..., object]],
        plugins: Plugins,
        own_agent: Callable[[str], Callable[..., object] | None] = lambda name: None,
    ) -> None:
        """`own_agent`: the function of Stretto itself that works as an agent of this name."""
        self.tools: Mapping[str, AnyFunctionTool] = _Tools(tools, plugins)
        self.given_agents = frozenset(map(AgentId, agents))
        self._agents = dict(agents)  # and those of packages, once a recipe has named them
        self._read: FunctionAgents | None = None  # their signatures; None where one has come since
        self._plugins = plugins
        self._own_agent = own_agent

    def add_to(self, catalog: Catalog) -> Catalog:
        return structs.replace(
            catalog,
            agents=_Agents(self, catalog.agents),
            tools=self.tool_names,
            changing_tools=_ChangingTools(catalog.changing_tools, self.tools),
        )

    @property
    def tool_names(self) -> Set[str]:
        return _ToolNames(own_points("stretto.tools").keys(), self.tools)

    @property
    def agent_names(self) -> Set[str]:
        return {*self._agents, *self._plugins.added("stretto.agents")}

    def agent(self, name: str) -> Callable[..., object] | Path | None:
        """The function that works as this agent, or the file by which a package defines it."""
        if name not in self._agents and (own := self._own_agent(name)):
            self._add(name, own)
        if name not in self._agents and self._plugins.adds("stretto.agents", name):
            found: Callable[..., object] | Path = self._plugins.load("stretto.agents", name)
            if isinstance(found, Path):
                return found
            self._add(name, found)
        return self._agents.get(name)

    def _add(self, name: str, function: Callable[..., object]) -> None:
        self._agents[name], self._read = function, None

    def problems(self, plan: "Plan") -> tuple[Problem, ...]:
        """What a plan needs of this program and does not get, as when it is resumed elsewhere."""
        tools, agents = dict[Problem, None](), plan.agents.values()
        for agent in agents:
            for name in map(tool_name, agent.tools):
                if name not in KNOWN_TOOLS and name[:5] != "mcp__" and name not in self.tools:
                    tools[_missing_tool(agent.id, name)] = None
        if not self._agents and not any(is_function(agent.model) for agent in agents):
            return tuple(tools)
        for agent in agents:
            if is_function(agent.model):
                self.agent(agent.model.removeprefix(FUNCTION_MODEL))
        return (*self._read_agents().problems(plan), *tools)

    def identity_of(self, tool: str) -> str:
        """Empty for a tool that is no function."""
        name = tool_name(tool)
        return self.tools[name].identity if name in self.tools else ""

    def run_by(self, others: "AnsweringRunner") -> "AnsweringRunner":
        """The runner that calls functions itself and leaves all other agents to `others`."""
        if not self._agents:
            return others
        from stretto.agents.functions import FunctionRunner

        return FunctionRunner(self._read_agents(), others)

    def _read_agents(self) -> "FunctionAgents":
        from stretto.agents.functions import FunctionAgents

        if self._read is None:
            self._read = FunctionAgents(self._agents)
        return self._read


class _Tools(Mapping[str, "AnyFunctionTool"]):
    """The tools that the caller gave, and those of packages, looked up when they are asked for."""

    def __init__(self, given: "Mapping[str, AnyFunctionTool]", plugins: Plugins) -> None:
        self._tools = dict(given)
        self._plugins = plugins

    def __getitem__(self, name: str) -> "AnyFunctionTool":
        if name not in self._tools:
            if not self._plugins.adds("stretto.tools", name):
                raise KeyError(name)
            from stretto.adapters.tools.functions import FunctionTool

            found = self._plugins.load("stretto.tools", name)
            is_tool = isinstance(found, FunctionTool)
            self._tools[name] = found if is_tool else FunctionTool(found, name=name)
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._tools, *self._plugins.added("stretto.tools"))))

    def __len__(self) -> int:
        return len(list(iter(self)))


class _ToolNames(Set[str]):
    """The names of all tools; a name is looked for among those of packages last."""

    def __init__(self, known: Set[str], tools: "Mapping[str, AnyFunctionTool]") -> None:
        self._known = known
        self._tools = tools

    def __contains__(self, name: object) -> bool:
        return name in self._known or name in self._tools

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._known, *self._tools)))

    def __len__(self) -> int:
        return len(list(iter(self)))


class _ChangingTools(_ToolNames):
    """The names of the tools that can change files."""

    def __contains__(self, name: object) -> bool:
        is_added = isinstance(name, str) and name in self._tools
        return name in self._known or (is_added and self._changes(str(name)))

    def __iter__(self) -> Iterator[str]:
        return iter((*self._known, *filter(self._changes, self._tools)))

    def _changes(self, name: str) -> bool:
        return self._tools[name].spec.changes_files


class _Agents(Mapping[AgentId, Agent]):
    """Functions that were given, then the agents of files, then those of packages."""

    def __init__(self, functions: Functions, others: Mapping[AgentId, Agent]) -> None:
        self._functions = functions
        self._others = others

    def __getitem__(self, id: AgentId) -> Agent:
        if id not in self._functions.given_agents and id in self._others:
            return self._others[id]
        found = self._functions.agent(id)
        if found is None:
            raise KeyError(id)
        if isinstance(found, Path):
            read = read_agent_file(found, tools=self._functions.tool_names)
            if read.agent is None:
                said = f"the agent '{id}', which an installed package adds, cannot be used"
                raise InvalidConfig(said, read.problems)
            return structs.replace(read.agent, id=id)
        from stretto.agents.functions import FunctionAgents

        return FunctionAgents({id: found}).add_to(EMPTY_CATALOG).agents[id]

    def __iter__(self) -> Iterator[AgentId]:
        names = map(AgentId, sorted(self._functions.agent_names))
        return iter(dict.fromkeys((*names, *self._others)))

    def __len__(self) -> int:
        return len(list(iter(self)))


def read_tools(tools: Iterable[Callable[..., object]]) -> "dict[str, AnyFunctionTool]":
    """A plain function is taken as `@tool` would take it. Raises InvalidUsage."""
    tools = tuple(tools)
    if not tools:
        return {}
    from stretto.adapters.tools.functions import FunctionTool

    given = [check_callable("a tool", each) for each in tools]
    made = [each if isinstance(each, FunctionTool) else FunctionTool(each) for each in given]
    by_name = {each.name: each for each in made}
    if len(by_name) < len(made):
        raise InvalidUsage("two of the tools have the same name", hint="@tool(name=...) names one")
    return by_name


def check_agents(agents: Mapping[str, Callable[..., object]]) -> None:
    """Raises InvalidUsage for what cannot be an agent."""
    if agents:
        from stretto.agents.functions import FunctionAgents

        FunctionAgents(agents)


def _missing_tool(agent: str, tool: str) -> Problem:
    return Problem(
        "RUN009",
        f"agent '{agent}' uses the tool '{tool}', a Python function which is not given here",
        hint="start and resume this run from the program that gives it: Stretto(tools=[…])",
    )
