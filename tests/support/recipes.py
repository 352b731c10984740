"""Recipes and what becomes of them, for tests. In: text. Out: Recipe, Plan or problems."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from stretto.plan.build import DEFAULT_WIDTH, Problems, build
from stretto.plan.catalog import Catalog
from stretto.plan.inputs import Misfit
from stretto.plan.model import Plan, PlannedStep
from stretto.problems import Problem
from stretto.recipe.model import Agent, Recipe
from stretto.recipe.read import read_recipe
from stretto.vocabulary.amounts import DEFAULT_LIMITS, Limits
from stretto.vocabulary.names import AgentId, StepId


class Shelf:
    """Recipes that `workflow:` steps can name, as text by name; no file is read."""

    def __init__(self, **texts: str) -> None:
        self.texts = texts

    def find(self, named: str, user: Recipe, outermost: Recipe) -> Recipe | Misfit:
        name = named.removesuffix(".yaml")
        if name not in self.texts:
            return Misfit("RCP143", f"there is no workflow '{named}'", "")
        return read_recipe(self.texts[name], f"{name}.yaml")

    def identity(self, recipe: Recipe) -> str:
        return recipe.source.file


RECIPES = Path(__file__).parents[1] / "recipes"
_READING = ("Read", "Glob", "Grep")
_CHANGING = ("Read", "Write", "Edit", "Bash")


def catalog_of(tools: Mapping[str, Sequence[str]]) -> Catalog:
    """Registered agents by their ids, each with its tools."""
    agents = (Agent(AgentId(id), prompt="Do it.", tools=tuple(has)) for id, has in tools.items())
    return Catalog({agent.id: agent for agent in agents})


# Readers and writers as the package ships them, without depending on its files.
CATALOG = catalog_of(
    {
        "researcher": _READING,
        "writer": _READING,
        "reviewer": _READING,
        "threat_scanner": _READING,
        "vuln_analyst": _READING,
        "intel_reporter": _READING,
        "worker": _CHANGING,
        "default": _CHANGING,
    }
)


def recipe_of(text: str | bytes, file: str = "", limits: Limits = DEFAULT_LIMITS) -> Recipe:
    """A recipe that could be read without a problem."""
    recipe = read_recipe(text, file, limits)
    assert recipe.problems == (), recipe.problems
    return recipe


def built(
    text: str | bytes,
    file: str = "",
    catalog: Catalog = CATALOG,
    limits: Limits = DEFAULT_LIMITS,
    width: int = DEFAULT_WIDTH,
) -> Plan | Problems:
    return build(read_recipe(text, file, limits), catalog, limits, width)


def plan_of(
    text: str | bytes,
    file: str = "",
    catalog: Catalog = CATALOG,
    limits: Limits = DEFAULT_LIMITS,
    width: int = DEFAULT_WIDTH,
) -> Plan:
    plan = built(text, file, catalog, limits, width)
    assert not isinstance(plan, Problems), plan.problems
    return plan


def problems_of(
    text: str | bytes,
    file: str = "",
    catalog: Catalog = CATALOG,
    limits: Limits = DEFAULT_LIMITS,
) -> tuple[Problem, ...]:
    """Everything that is wrong with it, in the order of the file; () when nothing is."""
    plan = built(text, file, catalog, limits)
    return plan.problems if isinstance(plan, Problems) else ()


def problem_of(text: str | bytes, file: str = "", catalog: Catalog = CATALOG) -> Problem:
    """The one thing that is wrong with it."""
    problems = problems_of(text, file, catalog)
    assert len(problems) == 1, problems
    return problems[0]


def under_caret(problem: Problem) -> str:
    """The words that the caret underlines."""
    if problem.place is None:
        return ""
    start = problem.place.column - 1
    return problem.source_line[start : start + problem.place.width]


def flat(*steps: str, head: str = "") -> str:
    """A flat recipe: `head` on lines of its own, each step as what stands behind its '- '."""
    lines = ["name: test", *head.strip("\n").splitlines(), "steps:"]
    for step in steps:
        first, *rest = step.strip("\n").splitlines()
        lines += [f"  - {first}", *(f"    {line}" for line in rest)]
    return "\n".join([*lines, ""])


def edges_of(plan: Plan) -> dict[str, list[tuple[str, str]]]:
    """Each step's id, with what it waits for and why."""
    return {step.id: list(step.edges.items()) for step in plan.steps}


def step_of(plan: Plan, id: str) -> PlannedStep:
    return plan.step(StepId(id))
