"""Python functions that the calling program gives as tools and as agents.

They are part of the catalog, so that a recipe which names them is checked like any other; their
code is part of the identity of the run, so that an answer is reused only while it is the same.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stretto.plan.catalog import Catalog
from stretto.problems import Problem
from stretto.problems.errors import InvalidUsage
from stretto.vocabulary.tools import KNOWN_TOOLS, tool_name

if TYPE_CHECKING:
    from stretto.adapters.tools.functions import AnyFunctionTool
    from stretto.agents.functions import AnsweringRunner, FunctionAgents
    from stretto.plan.model import Plan


@dataclass(frozen=True, slots=True)
class Functions:
    tools: "Mapping[str, AnyFunctionTool]" = field(default_factory=dict)
    agents: "FunctionAgents | None" = None

    def add_to(self, catalog: Catalog) -> Catalog:
        if self.tools:
            changing = {name for name, tool in self.tools.items() if tool.spec.changes_files}
            catalog = replace(
                catalog,
                tools=catalog.tools | set(self.tools),
                changing_tools=catalog.changing_tools | changing,
            )
        return self.agents.add_to(catalog) if self.agents else catalog

    def problems(self, plan: "Plan") -> tuple[Problem, ...]:
        """What a plan needs of this program and does not get, as when it is resumed elsewhere."""
        from stretto.agents.functions import FunctionAgents

        agents = self.agents or FunctionAgents({})
        missing = dict[Problem, None]()
        for agent in plan.agents.values():
            for name in map(tool_name, agent.tools):
                if name not in KNOWN_TOOLS and name not in self.tools and name[:5] != "mcp__":
                    missing[_missing_tool(agent.id, name)] = None
        return (*agents.problems(plan), *missing)

    def identity_of(self, tool: str) -> str:
        """Empty for a tool that is no function."""
        found = self.tools.get(tool_name(tool))
        return found.identity if found else ""

    def run_by(self, others: "AnsweringRunner") -> "AnsweringRunner":
        """The runner that calls functions itself and leaves all other agents to `others`."""
        if not self.agents:
            return others
        from stretto.agents.functions import FunctionRunner

        return FunctionRunner(self.agents, others)


NO_FUNCTIONS = Functions()


def read_functions(
    tools: Iterable[Callable[..., object]], agents: Mapping[str, Callable[..., object]]
) -> Functions:
    """A plain function among `tools` is taken as `@tool` would take it. Raises InvalidUsage."""
    tools = tuple(tools)
    if not tools and not agents:
        return NO_FUNCTIONS
    from stretto.adapters.tools.functions import FunctionTool
    from stretto.agents.functions import FunctionAgents

    made = [each if isinstance(each, FunctionTool) else FunctionTool(each) for each in tools]
    by_name = {each.name: each for each in made}
    if len(by_name) < len(made):
        raise InvalidUsage("two of the tools have the same name", hint="@tool(name=...) names one")
    return Functions(by_name, FunctionAgents(agents) if agents else None)


def _missing_tool(agent: str, tool: str) -> Problem:
    return Problem(
        "RUN009",
        f"agent '{agent}' uses the tool '{tool}', a Python function which is not given here",
        hint="start and resume this run from the program that gives it: Stretto(tools=[…])",
    )
