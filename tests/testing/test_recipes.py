"""The recipe test runner that authors use."""

import time
from pathlib import Path

import pytest

from make import RECIPES, flat
from weft.problems.errors import InvalidInputs, InvalidRecipe, InvalidUsage
from weft.schedule.result import output_of
from weft.testing.recipes import run_recipe
from weft.testing.script import Reply, Script
from weft.vocabulary.statuses import RunStatus


def test_a_recipe_runs_with_the_default_answer() -> None:
    state = run_recipe(flat("{id: a, subagent: researcher, prompt: look}"))
    assert state.status is RunStatus.COMPLETE
    assert output_of(state) == "An answer from the script."


def test_a_file_runs_with_inputs_and_replies_by_step() -> None:
    script = "replies: {gather: sources, angles: three, brief: A brief.}"
    state = run_recipe(RECIPES / "research-and-brief.yaml", {"topic": "looms"}, script)
    assert output_of(state) == "A brief."


def test_a_script_may_be_a_value_or_a_file(tmp_path: Path) -> None:
    recipe = flat("{id: a, subagent: researcher, prompt: look}")
    assert output_of(run_recipe(recipe, script=Script((Reply("by value"),)))) == "by value"
    file = tmp_path / "replies.yaml"
    file.write_text("default: by file")
    assert output_of(run_recipe(recipe, script=file)) == "by file"


def test_an_hour_of_backoff_runs_in_milliseconds() -> None:
    recipe = flat(
        "{id: a, subagent: researcher, prompt: x, retry: {max_attempts: 100, backoff: exponential}}"
    )
    before = time.monotonic()
    state = run_recipe(recipe, script="replies: {a: {fail: busy, retry_after: 1m}}")
    assert time.monotonic() - before < 10
    assert state.status is RunStatus.FAILED
    assert state.started_at is not None
    assert state.now - state.started_at == 99 * 60


def test_the_same_seed_gives_the_same_delays_and_another_seed_others() -> None:
    recipe = flat(
        "{id: a, subagent: researcher, prompt: x, retry: {max_attempts: 5, backoff: linear}}"
    )
    ends = [run_recipe(recipe, script="replies: {a: {fail: no}}", seed=s).now for s in (1, 1, 2)]
    assert ends[0] == ends[1] != ends[2]


def test_a_recipe_that_waits_for_a_person_comes_back_as_it_waits() -> None:
    state = run_recipe(flat("{id: a, subagent: researcher, gate: human, prompt: look}"))
    assert state.status is RunStatus.WAITING
    assert list(state.awaiting_approval) == ["a"]


def test_agents_of_ones_own_are_found_in_the_folders_named(tmp_path: Path) -> None:
    (tmp_path / "poet.md").write_text("---\nname: poet\ndescription: Rhymes.\n---\nRhyme.\n")
    recipe = flat("{id: a, subagent: poet, prompt: x}")
    assert run_recipe(recipe, agents=[tmp_path]).status is RunStatus.COMPLETE
    with pytest.raises(InvalidRecipe):
        run_recipe(recipe)


def test_what_cannot_run_is_refused_before_it_runs() -> None:
    with pytest.raises(InvalidRecipe):
        run_recipe("name: x\nsteps: []")
    with pytest.raises(InvalidInputs, match="topic"):
        run_recipe(RECIPES / "research-and-brief.yaml")
    with pytest.raises(InvalidUsage, match="the script cannot be used"):
        run_recipe(flat("{id: a, subagent: researcher, prompt: x}"), script="answers: 1")
