"""What is read out of a drafter's answer, what it is told, and what a person must read."""

import pytest

from stretto.documents.document import read_text
from stretto.documents.node import plain
from stretto.lead.drafts import (
    DraftOrder,
    check_words,
    doubts,
    draft_recipe,
    recipe_text,
    verdict_on,
)
from stretto.plan.build import build
from stretto.plan.catalog import Catalog
from stretto.plan.model import Plan
from stretto.problems import Problem
from stretto.problems.errors import InvalidUsage
from stretto.recipe.model import Agent
from stretto.recipe.read import read_recipe
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import AgentId

YAML = "name: greet\nsteps:\n  - {id: a, subagent: writer, prompt: Greet.}\n"
DATA: Json = {"name": "greet", "steps": [{"id": "a", "subagent": "writer", "prompt": "Greet."}]}
WRITER = Agent(AgentId("writer"), role="writes", prompt="You write.")


@pytest.mark.parametrize(
    "answer",
    [
        YAML,
        f"```yaml\n{YAML}```",
        f"Sure, here it is:\n\n```yml\n{YAML}```\n\nTell me if …",
        f"Look at `x`:\n```\n{YAML}```",
        f"```yaml\n{YAML}",
        "1. This:\n\n   ```yaml\n   " + YAML.strip().replace("\n", "\n   ") + "\n   ```\n",
        f"Here is the recipe.\n\n{YAML}",
        YAML.replace("\n", "\r\n"),
        DATA,
        {"recipe": YAML},
        {"recipe": DATA},
        '```json\n{"name": "greet", "steps": [{"id": "a", "subagent": "writer", "prompt": "Greet."}]}\n```',
        '{"yaml": "name: greet\\nsteps:\\n  - {id: a, subagent: writer, prompt: Greet.}\\n"}',
    ],
)
def test_a_recipe_is_found_wherever_the_model_put_it(answer: Json) -> None:
    root = read_text(recipe_text(answer)).root
    assert root is not None
    assert plain(root) == DATA


@pytest.mark.parametrize(
    "answer", ["I cannot do that.", "", {"passed": True}, ["a"], 7, None, "```\nls\n```"]
)
def test_an_answer_without_a_recipe_is_told(answer: Json) -> None:
    assert recipe_text(answer) == ""
    verdict = verdict_on(answer, lambda text: ())
    assert verdict["passed"] is False
    assert "```yaml" in str(verdict["feedback"])


def test_an_answer_by_the_schema_is_a_chain_whose_steps_hand_on_what_they_gave() -> None:
    answer: Json = {
        "name": "Say Hello!",
        "steps": [
            {"agent": "writer", "does": "Greet {{x}}."},
            {"agent": "writer", "does": "Again."},
        ],
    }
    recipe = read_recipe(recipe_text(answer))
    assert recipe.name == "say-hello"
    built = build(recipe, Catalog({WRITER.id: WRITER}))
    assert isinstance(built, Plan), built
    assert [list(step.edges) for step in built.steps] == [[], ["1-writer"]]


def test_problems_are_told_as_a_person_sees_them_and_not_all_of_many() -> None:
    problems = [Problem("RCP104", f"number {n}") for n in range(30)]
    verdict = verdict_on(YAML, lambda text: problems)
    assert verdict["passed"] is False
    assert str(verdict["feedback"]).startswith("RCP104 number 0")
    assert str(verdict["feedback"]).endswith("… and 20 more")


def test_the_recipe_that_drafts_is_sound_and_keeps_the_braces_of_the_guide() -> None:
    guide = Agent(AgentId("drafter"), prompt="Write {{inputs.x}} and \\{{ this.")
    for is_constrained in (False, True):
        order = DraftOrder("do it", guide, {WRITER.id: WRITER}, 2, is_constrained)
        plan = plan_of(draft_recipe(order))
        assert plan.steps[0].type == "loop"
        told = plan.agents[AgentId("drafter")].prompt
        assert not told.references
        assert "- writer: writes" in told.text


@pytest.mark.parametrize(
    ("words", "repairs"), [("", 3), (" \n", 3), ("x" * 100_001, 3), ("x", 21), ("x", -1)]
)
def test_words_and_bounds_are_checked(words: str, repairs: int) -> None:
    with pytest.raises(InvalidUsage):
        check_words(words, repairs)


def test_what_a_person_must_read_is_listed() -> None:
    text = """\
name: odd
agents:
  shell: {role: r, prompt: p, tools: [Bash, Read]}
  other: {role: r, prompt: p, model: "cli:claude"}
  reader: {role: r, prompt: p, tools: [Read, Grep]}
steps:
  - {id: a, agent: shell, prompt: x}
  - {id: b, agent: other, prompt: x}
  - {id: c, agent: reader, prompt: x}
  - {id: d, run: "rm -rf build\\necho done"}
  - {id: e, loop: {agent: writer, validator: {run: make check}, max_iterations: 2}, prompt: x}
  - {id: f, agent: writer, model: "cli:codex", prompt: x}
  - {id: g, agent: writer, on_failure: "fallback:shell", prompt: x}
"""
    recipe = read_recipe(text)
    built = build(recipe, Catalog({WRITER.id: WRITER}))
    assert isinstance(built, Plan), built
    assert [(each.says, each.steps) for each in doubts(built)] == [
        ("step 'd' runs a command: rm -rf build …", ("d",)),
        ("step 'e' runs a command: make check", ("e",)),
        ("step 'f' asks another program: cli:codex", ("f",)),
        ("agent 'shell' gives itself Bash", ("a", "g")),
        ("agent 'other' is another program: cli:claude", ("b",)),
    ]


def plan_of(recipe: dict[str, Json]) -> Plan:
    import json

    built = build(read_recipe(json.dumps(recipe)), Catalog({WRITER.id: WRITER}))
    assert isinstance(built, Plan), built
    return built
