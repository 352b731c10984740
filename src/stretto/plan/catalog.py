"""What a recipe may refer to besides itself: registered agents, known tools, and postures."""

from collections.abc import Mapping, Set
from typing import Protocol

from msgspec import Struct, field

from stretto.plan.inputs import Misfit
from stretto.problems import Problem
from stretto.recipe.model import Agent, Posture, Recipe
from stretto.vocabulary.models import COMMAND_MODEL, works_unseen
from stretto.vocabulary.names import CHANGING_TOOLS, COMMAND_AGENT, KNOWN_TOOLS, AgentId, tool_name


class Recipes(Protocol):
    """Where the recipe is that a `workflow:` step names. Reading files is not for this room."""

    def find(self, named: str, user: Recipe, outermost: Recipe) -> Recipe | Misfit:
        """`user`: the recipe that names it, in a run of `outermost`."""

    def identity(self, recipe: Recipe) -> str:
        """Equal for one recipe, however it is named."""


class Catalog(Struct, frozen=True):
    agents: Mapping[AgentId, Agent] = field(default_factory=dict)
    tools: Set[str] = KNOWN_TOOLS
    changing_tools: Set[str] = CHANGING_TOOLS  # those of `tools` that can change files
    broken: Mapping[AgentId, Problem] = field(default_factory=dict)  # files that cannot be read
    recipes: Recipes | None = None


EMPTY_CATALOG = Catalog()
# To all that reads a plan, a command is the work of an agent that has Bash and asks no model.
COMMAND = Agent(
    COMMAND_AGENT, name="command", role="a shell command", tools=("Bash",), model=COMMAND_MODEL
)


def tools_of(agent: Agent) -> tuple[str, ...]:
    denied = {tool_name(tool) for tool in agent.disallowed_tools}
    return tuple(tool for tool in agent.tools if tool_name(tool) not in denied)


def posture_of(agent: Agent, changing: Set[str] = CHANGING_TOOLS) -> Posture:
    """`changing`: the names of the tools that change files."""
    if agent.posture:
        return agent.posture
    writes = any(tool_name(tool) in changing for tool in tools_of(agent))
    return "writer" if writes else "read_only"


def has_means_to_write(agent: Agent, model: str | None, changing: Set[str]) -> bool:
    """A tool that changes files, or one of an MCP server; programs and functions need none."""
    if works_unseen(model or "") or works_unseen(agent.model or ""):
        return True
    return any(tool_name(tool) in changing or tool.startswith("mcp__") for tool in tools_of(agent))
