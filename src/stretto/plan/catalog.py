"""What a recipe may refer to besides itself: registered agents and known tools."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from stretto.problems import Problem
from stretto.recipe.model import Agent
from stretto.vocabulary.ids import AgentId
from stretto.vocabulary.tools import CHANGING_TOOLS, KNOWN_TOOLS


@dataclass(frozen=True, slots=True)
class Catalog:
    agents: Mapping[AgentId, Agent] = field(default_factory=dict)
    tools: Set[str] = KNOWN_TOOLS
    changing_tools: Set[str] = CHANGING_TOOLS  # those of `tools` that can change files
    broken: Mapping[AgentId, Problem] = field(default_factory=dict)  # files that cannot be read


EMPTY_CATALOG = Catalog()
