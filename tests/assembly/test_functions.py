"""Functions in the catalog, in the identity of a run, and where they are missing."""

from collections.abc import Callable
from pathlib import Path

from stretto.adapters.tools.functions import FunctionTool
from stretto.assembly.functions import Functions
from stretto.assembly.plugins import Plugins
from stretto.plan.build import Problems, build
from stretto.plan.catalog import EMPTY_CATALOG, Catalog
from stretto.plan.model import Plan
from stretto.recipe.model import Agent
from stretto.recipe.read import read_recipe
from stretto.vocabulary.names import CHANGING_TOOLS, AgentId
from support.assembled import settings_of

RECIPE = """
name: r
agents: {x: {prompt: Go., tools: [lookup, Read]}}
steps:
  - {id: a, subagent: x, prompt: go}
  - {id: b, subagent: score, prompt: go}
"""


def lookup(word: str) -> str:
    return word


def score(prompt: str) -> str:
    """Count the points."""
    return prompt


def functions(tools: bool = True, agents: bool = True, read_only: bool = True) -> Functions:
    made = {"lookup": FunctionTool(lookup, read_only=read_only)} if tools else {}
    given: dict[str, Callable[..., object]] = {"score": score} if agents else {}
    return Functions(made, given, Plugins(settings_of(Path("/nonexistent"))))


def plan_with(known: Functions) -> Plan:
    built = build(read_recipe(RECIPE), known.add_to(EMPTY_CATALOG))
    assert not isinstance(built, Problems)
    return built


def test_a_catalog_knows_given_functions_beside_what_it_had() -> None:
    catalog = functions().add_to(Catalog({AgentId("x"): Agent(AgentId("x"))}))
    assert {"lookup", "Read", "Bash"} <= set(catalog.tools)
    assert "lookup" in catalog.tools
    assert "lookip" not in catalog.tools
    assert set(catalog.agents) == {"score", "x"}
    assert catalog.agents[AgentId("score")].model == "python:score"
    assert catalog.agents[AgentId("score")].role == "Count the points."


def test_a_given_function_wins_over_a_file_of_the_same_name() -> None:
    filed = Agent(AgentId("score"), role="of a file")
    catalog = functions().add_to(Catalog({AgentId("score"): filed}))
    assert catalog.agents[AgentId("score")].role == "Count the points."


def test_a_function_that_writes_makes_its_agent_a_writer() -> None:
    assert plan_with(functions(read_only=True)).steps[0].posture == "read_only"
    changing = functions(read_only=False).add_to(EMPTY_CATALOG).changing_tools
    assert set(changing) == {*CHANGING_TOOLS, "lookup"}
    assert "Read" not in changing


def test_what_a_plan_needs_and_does_not_get_is_named() -> None:
    plan = plan_with(functions())
    assert functions().problems(plan) == ()
    (tool,) = functions(tools=False).problems(plan)
    assert "agent 'x' uses the tool 'lookup'" in tool.message
    (agent,) = functions(agents=False).problems(plan)
    assert "python:score" in agent.message


def test_the_identity_of_a_tool_is_its_code() -> None:
    assert functions().identity_of("lookup").startswith("lookup ")
    assert functions().identity_of("Read") == ""
    assert functions(tools=False).identity_of("lookup") == ""
