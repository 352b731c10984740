"""Plans as JSON: those of the shipped recipes come back equal, and what is no plan is refused."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import Raw

from stretto.plan.build import build
from stretto.plan.catalog import Catalog
from stretto.plan.claims import ConflictIndex
from stretto.plan.codec import decode_plan, encode_plan
from stretto.plan.model import Plan
from stretto.problems.errors import StrettoError
from stretto.recipe.model import Agent
from stretto.recipe.read import read_recipe, read_recipe_file
from stretto.templates.template import Template
from stretto.vocabulary.ids import AgentId
from stretto.vocabulary.values import Json

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


def test_a_union_is_told_by_the_name_of_its_class() -> None:
    works = [step["work"] for step in json.loads(text_of(plan_of(PLAN)))["steps"]]
    assert [work["is"] for work in works] == ["PlannedDelegation", "PlannedParallel"]


def test_braces_in_the_prompt_of_a_registered_agent_stay_text() -> None:
    for prompt in ("Say {{ inputs.topic }}", "{{", "\\{{", ""):
        again = decode_plan(encode_plan(plan_of(PLAN, prompt)))
        assert again.agents[AgentId("writer")].prompt == Template(prompt, (prompt,))


# A step of a reader as it was stored when every field was written, and as it is stored now. Both
# stand in journals: if one of these fails, runs that were begun before cannot be resumed.
WRITTEN_OUT = """
{"id": "a", "index": 0, "type": "sequential", "work": {"is": "PlannedDelegation", "brief":
 {"agent": "writer", "told": "Go.", "style": "prompt", "gets_all_prior": false, "model": null,
  "retry": {"max_attempts": 1, "backoff": "none"}, "on_failure": null, "fallback": null}},
 "edges": [], "when": null, "timeout_seconds": null, "on_failure": "inline", "is_gated": false,
 "posture": "read_only", "read_set": ["**/*"], "write_set": [], "workspace_mode": "shared",
 "merge_back": "auto", "recovery": "rerun", "is_cached": false, "is_recovery_written": false,
 "output": {"store_as": null, "format": null, "schema": null}}
"""
SHORT = """
{"id": "a", "index": 0, "work": {"is": "PlannedDelegation", "brief": {"agent": "writer", "told": "Go."}},
 "edges": []}
"""
READER = "name: t\nsteps: [{id: a, agent: writer, prompt: Go., posture: read_only}]"


def test_what_most_steps_are_is_not_stored() -> None:
    assert json.loads(text_of(plan_of(READER)))["steps"] == [json.loads(SHORT)]


@pytest.mark.parametrize("stored", [WRITTEN_OUT, SHORT])
def test_a_step_is_read_as_it_was_stored_then_and_now(stored: str) -> None:
    plan = plan_of(READER)
    whole = json.loads(text_of(plan)) | {"steps": [json.loads(stored)]}
    assert decode_plan(Raw(json.dumps(whole))) == plan


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ((), [], "must be an object, not a list"),
        (("name",), 3, "name: must be text, not 3"),
        (("width",), True, "width: must be a whole number, not True"),
        (("colour",), "red", "unknown here: colour; is it from a newer Stretto?"),
        (("dialect",), "loud", "dialect: must be one of flat, wrapped, structural, not 'loud'"),
        (("steps", 0, "is_gated"), "no", "steps[0].is_gated: must be true or false, not 'no'"),
        (("steps", 0, "timeout_seconds"), "1", "steps[0].timeout_seconds: must be a number"),
        (
            ("steps", 0, "work", "is"),
            "os.system",
            "steps[0].work: 'is' must be one of PlannedDelegation, ",
        ),
        (
            ("steps", 0, "work", "is"),
            "Plan",
            "steps[0].work: 'is' must be one of PlannedDelegation, ",
        ),
        (("steps", 0, "when"), "1 +", "steps[0].when: is no expression: expected a value"),
        (("steps", 0, "work", "brief", "told"), "{{ a b", "told: is no template: this '{{'"),
        (("steps", 0, "write_set", 1), "../up", "write_set: is no glob: '../up' leaves"),
        (("steps", 1, "work", "wait"), "some", "wait: must be one of all, any, not 'some', or"),
        (("steps", 0), {}, "steps[0]: missing: id, index, work, edges"),
        (("inputs", 0, "at"), [None], "inputs[0].at[0]: must be text, not null, or"),
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


def test_importing_the_codec_builds_nothing() -> None:
    code = "import stretto.plan.codec as c; print(c._form.cache_info().currsize)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"
