"""Plans as JSON: those of the shipped recipes come back equal, and what is no plan is refused."""

import json
from pathlib import Path

import pytest
from msgspec import Raw

from stretto.plan.build import build
from stretto.plan.catalog import Catalog
from stretto.plan.claims import ConflictIndex
from stretto.plan.model import Plan, decode_plan, encode_plan
from stretto.problems.errors import StrettoError
from stretto.recipe.model import Agent
from stretto.recipe.read import read_recipe, read_recipe_file
from stretto.templates.template import Template
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import AgentId

EXAMPLES = Path(__file__).parents[2] / "examples"
RECIPES = [
    "multi-criteria-lead-scoring.yaml",
    "research-and-brief.yaml",
    "research-to-proposal.yaml",
    "threat-brief.yaml",
    "code-review.yaml",
    "structural-review.json",
]


class AnyAgent(dict[AgentId, Agent]):
    """A catalog in which every agent is registered."""

    def __init__(self, prompt: str) -> None:
        self.prompt = prompt

    def get(self, id: AgentId, otherwise: object = None) -> Agent:
        return Agent(id, prompt=self.prompt, tools=("Read", "Write"))


def text_of(plan: Plan) -> str:
    return bytes(encode_plan(plan)).decode()


def plan_of(text: str, prompt: str = "You work.") -> Plan:
    plan = build(read_recipe(text), Catalog(AnyAgent(prompt)))
    assert isinstance(plan, Plan), plan
    return plan


PLAN = """
name: small
inputs: {topic: {}}
steps:
  - id: a
    agent: writer
    prompt: "Write on {{inputs.topic}}"
    when: inputs.topic != ''
    write_set: ["src/**", "docs"]
  - id: b
    parallel: [{agent: x}, {agent: y}]
    wait: 1
    prompt: go
"""


@pytest.mark.parametrize("name", RECIPES)
def test_the_plan_of_an_example_comes_back_equal(name: str) -> None:
    plan = build(read_recipe_file(EXAMPLES / name), Catalog(AnyAgent("Be {{brief}}.")))
    assert isinstance(plan, Plan), plan
    again = decode_plan(encode_plan(plan))
    assert again == plan
    for mine, theirs in zip(plan.steps, again.steps, strict=True):
        assert (mine.claims, mine.work, mine.when) == (theirs.claims, theirs.work, theirs.when)


def test_claims_are_not_stored_but_follow_from_the_sets() -> None:
    plan = plan_of(PLAN)
    stored = encode_plan(plan)
    assert b"claims" not in bytes(stored)
    again = decode_plan(stored)
    assert [glob.text for glob in again.steps[0].claims.writes] == ["src/**", "docs"]
    both = ConflictIndex([step.claims for step in (*plan.steps, *again.steps)])
    assert both.conflicts(0, 2)


def test_the_kinds_of_work_are_told_by_the_words_of_a_recipe() -> None:
    works = [step["work"] for step in json.loads(text_of(plan_of(PLAN)))["steps"]]
    assert [work["kind"] for work in works] == ["delegation", "parallel"]


def test_braces_in_the_prompt_of_a_registered_agent_stay_text() -> None:
    for prompt in ("Say {{ inputs.topic }}", "{{", "\\{{", ""):
        again = decode_plan(encode_plan(plan_of(PLAN, prompt)))
        assert again.agents[AgentId("writer")].prompt == Template.verbatim(prompt)


SHORT = """
{"id": "a", "index": 0, "edges": {},
 "work": {"kind": "delegation", "brief": {"agent": "writer", "instruction": "Go."}}}
"""
READER = "name: t\nsteps: [{id: a, agent: writer, prompt: Go., posture: read_only}]"


def test_what_most_steps_are_is_not_stored() -> None:
    assert json.loads(text_of(plan_of(READER)))["steps"] == [json.loads(SHORT)]


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ((), [], "Expected `object`, got `array`"),
        (("name",), 3, "Expected `str`, got `int` - at `$.name`"),
        (("width",), True, "Expected `int`, got `bool` - at `$.width`"),
        (("colour",), "red", "Object contains unknown field `colour`"),
        (("steps", 0, "colour"), "red", "unknown field `colour` - at `$.steps[0]`"),
        (("dialect",), "loud", "Invalid enum value 'loud' - at `$.dialect`"),
        (("steps", 0, "is_gated"), "no", "Expected `bool`, got `str` - at `$.steps[0].is_gated`"),
        (("steps", 0, "timeout_seconds"), "1", "at `$.steps[0].timeout_seconds`"),
        (("steps", 0, "work", "kind"), "os.system", "Invalid value 'os.system' - at `$.steps[0]"),
        (("steps", 0, "work", "kind"), "Plan", "Invalid value 'Plan' - at `$.steps[0].work.kind`"),
        (
            ("steps", 0, "when"),
            "1 +",
            "no expression: expected a value, found the end - at `$.steps[0",
        ),
        (("steps", 0, "work", "brief", "instruction"), "{{ a b", "no template: this '{{'"),
        (
            ("steps", 0, "work", "brief", "instruction"),
            {"verbatim": 3},
            "must be text - at `$.steps[0]",
        ),
        (("steps", 0, "write_set", 1), "../up", "no glob: '../up' leaves"),
        (("steps", 1, "work", "wait"), "some", "Invalid enum value 'some' - at `$.steps[1].work"),
        (("steps", 0), {}, "missing required field `id` - at `$.steps[0]`"),
        (("inputs", 0, "at"), [None], "at `$.inputs[0].at[0]`"),
    ],
)
def test_what_is_no_plan_is_refused_and_says_where(
    path: tuple[str | int, ...], value: Json, says: str
) -> None:
    whole: Json = json.loads(text_of(plan_of(PLAN)))
    root: dict[str, Json] = {"plan": whole}
    part: Json = root
    for key in ("plan", *path)[:-1]:
        part = part[key]  # type: ignore[index]
    part[("plan", *path)[-1]] = value  # type: ignore[index]
    with pytest.raises(StrettoError, match="this stored plan cannot be read: ") as refused:
        decode_plan(Raw(json.dumps(root["plan"])))
    assert says in str(refused.value)
