"""The recipe test runner that authors use."""

import time
from pathlib import Path
from typing import Any

import pytest

from stretto.adapters.models.scripted import Reply, Script
from stretto.problems.errors import InvalidInputs, InvalidRecipe, InvalidUsage
from stretto.testing.recipes import run_recipe
from support.recipes import RECIPES, flat


def test_a_recipe_runs_with_the_default_answer() -> None:
    report = run_recipe(flat("{id: a, subagent: researcher, prompt: look}"))
    assert report.status == "complete"
    assert report.output == "An answer from the script."


def test_a_file_runs_with_inputs_and_replies_by_step() -> None:
    script = "replies: {gather: sources, angles: three, brief: A brief.}"
    report = run_recipe(RECIPES / "research-and-brief.yaml", {"topic": "looms"}, script)
    assert report.output == "A brief."


def test_a_script_may_be_a_value_or_a_file(tmp_path: Path) -> None:
    recipe = flat("{id: a, subagent: researcher, prompt: look}")
    assert run_recipe(recipe, script=Script((Reply("by value"),))).output == "by value"
    file = tmp_path / "replies.yaml"
    file.write_text("default: by file")
    assert run_recipe(recipe, script=file).output == "by file"


def test_a_recipe_and_a_script_may_be_dicts() -> None:
    recipe = {"name": "r", "steps": [{"id": "a", "subagent": "researcher", "prompt": "look"}]}
    assert run_recipe(recipe, script={"replies": {"a": "by dict"}}).output == "by dict"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"recipe": 5}, "a recipe cannot be an int"),
        ({"recipe": {"name": Path("x")}}, "the recipe holds a value that is not JSON"),
        ({"script": 5}, "a script cannot be an int"),
        ({"script": {"default": {1, 2}}}, "the script holds a value that is not JSON"),
        ({"agents": {"score": len}}, "agents must be a list of folders"),
        ({"agents": "agents"}, "agents must be a list of folders"),
    ],
)
def test_an_argument_of_another_kind_is_named(wrong: dict[str, Any], message: str) -> None:
    recipe = flat("{id: a, subagent: researcher, prompt: look}")
    with pytest.raises(InvalidUsage, match=message):
        run_recipe(**{"recipe": recipe, **wrong})


def test_an_hour_of_backoff_runs_in_milliseconds() -> None:
    recipe = flat(
        "{id: a, subagent: researcher, prompt: x, retry: {max_attempts: 100, backoff: exponential}}"
    )
    before = time.monotonic()
    report = run_recipe(recipe, script="replies: {a: {fail: busy, retry_after: 1m}}")
    assert time.monotonic() - before < 10
    assert report.status == "failed"
    assert report.duration_seconds == 99 * 60


def test_the_same_seed_gives_the_same_delays_and_another_seed_others() -> None:
    recipe = flat(
        "{id: a, subagent: researcher, prompt: x, retry: {max_attempts: 5, backoff: linear}}"
    )
    ends = [run_recipe(recipe, script="replies: {a: {fail: no}}", seed=s).as_of for s in (1, 1, 2)]
    assert ends[0] == ends[1] != ends[2]


def test_a_recipe_that_waits_for_a_person_comes_back_as_it_waits() -> None:
    report = run_recipe(flat("{id: a, subagent: researcher, gate: human, prompt: look}"))
    assert report.status == "waiting"
    assert report.steps["a"].status == "awaiting approval"


def test_agents_of_ones_own_are_found_in_the_folders_named(tmp_path: Path) -> None:
    (tmp_path / "poet.md").write_text("---\nname: poet\ndescription: Rhymes.\n---\nRhyme.\n")
    recipe = flat("{id: a, subagent: poet, prompt: x}")
    assert run_recipe(recipe, agents=[tmp_path]).status == "complete"
    with pytest.raises(InvalidRecipe):
        run_recipe(recipe)


def test_what_cannot_run_is_refused_before_it_runs() -> None:
    with pytest.raises(InvalidRecipe):
        run_recipe("name: x\nsteps: []")
    with pytest.raises(InvalidInputs, match="topic"):
        run_recipe(RECIPES / "research-and-brief.yaml")
    with pytest.raises(InvalidUsage, match="the script cannot be used"):
        run_recipe(flat("{id: a, subagent: researcher, prompt: x}"), script="answers: 1")


HELD = """
name: held
agents: {scorer: {prompt: Score., validation: {rules: ["Must include score field"]}}}
steps:
  - id: a
    agent: scorer
    prompt: go
    on_failure: skip
    output: {schema: {type: object, required: [score]}}
"""


@pytest.mark.parametrize(
    "reply", ["no JSON", "'{\"points\": 1}'", "{reply: {points: 1}}", "{reply: [1]}"]
)
def test_a_scripted_answer_is_held_to_schema_and_rules(reply: str):
    report = run_recipe(HELD, script=f"replies: {{a: {reply}}}")
    assert report.steps["a"].attempts[-1].failure == "validation"


def test_a_scripted_answer_that_fits_is_parsed_like_any_other():
    assert run_recipe(HELD, script="default: '{\"score\": 1}'").output == {"score": 1}


def test_a_raw_answer_is_given_as_it_is():
    report = run_recipe(HELD, script="replies: {a: {reply: no JSON, raw: true}}")
    assert report.output == "no JSON"


def test_a_rule_that_only_a_judge_could_decide_is_a_warning():
    recipe = HELD.replace("Must include score field", "Be kind to the reader")
    report = run_recipe(recipe, script="default: {reply: {score: 1}}")
    assert report.warnings == ("a: the rule 'Be kind to the reader' was not checked",)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("b", "its steps: a"), ("A", "did you mean 'a'?"), ("a/x", "its parts: none")],
)
def test_a_reply_for_a_step_that_is_not_there_is_a_problem(name: str, hint: str):
    with pytest.raises(InvalidUsage) as refused:
        run_recipe(HELD, script=f"replies: {{{name}: x}}")
    assert refused.value.hint == hint


def test_parts_that_a_step_has_may_be_named():
    recipe = """
name: parts
steps:
  - {id: p, parallel: [{agent: writer, prompt: x, output_key: one}, {agent: writer, prompt: y}]}
  - {id: l, loop: {agent: writer, validator: reviewer}, prompt: x}
  - {id: m, map: {over: "[1]", agent: writer, reduce: writer}}
"""
    replies = "p/one: x, p/writer: x, l/try.1: x, l/check.1: x, m/item.0.stage.0: x, m/reduce: x"
    run_recipe(recipe, script=f"default: ok\nreplies: {{{replies}}}")


def test_a_month_of_waiting_takes_no_time_either():
    recipe = flat("{id: a, subagent: researcher, prompt: x}")
    before = time.monotonic()
    report = run_recipe(recipe, script="default: {reply: x, delay: 30d}")
    assert (report.status, report.duration_seconds) == ("complete", 30 * 86_400)
    assert time.monotonic() - before < 10
