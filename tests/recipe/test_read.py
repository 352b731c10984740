import pytest

from stretto.recipe.read import read_recipe, read_recipe_file
from stretto.vocabulary.amounts import Limits
from support.recipes import recipe_of

TEXT = "name: x\nsteps:\n  - {id: a, subagent: writer, prompt: y}\n"


def test_text_bytes_and_files_are_read_alike(tmp_path):
    file = tmp_path / "x.yaml"
    file.write_text(TEXT)
    for recipe in (read_recipe(TEXT), read_recipe(TEXT.encode()), read_recipe_file(file)):
        assert recipe.problems == ()
        assert [step.id for step in recipe.steps] == ["a"]


def test_a_recipe_always_comes_back_and_its_problems_are_inside(tmp_path):
    for recipe in (read_recipe("]"), read_recipe_file(tmp_path / "none.yaml"), read_recipe("")):
        assert recipe.steps == ()
        assert len(recipe.problems) == 1


def test_a_recipe_that_cannot_be_read_is_called_after_its_file(tmp_path):
    assert read_recipe_file(tmp_path / "news.yaml").name == "news"
    assert read_recipe("[", "a/brief.yml").name == "brief"


def test_what_can_be_read_is_read_although_something_else_cannot():
    recipe = read_recipe(f"timeout: soon\nwhat: 1\n{TEXT}  - [no, step]\n  - {{id: b}}\n")
    assert {problem.code for problem in recipe.problems} == {"RCP110", "RCP101", "RCP103"}
    assert [step.id for step in recipe.steps] == ["a", "b"]


def test_limits_are_obeyed():
    assert read_recipe(TEXT, limits=Limits(text_bytes=10)).problems[0].code == "RCP002"
    assert read_recipe(TEXT, limits=Limits(depth=2)).problems[0].code == "RCP008"
    assert read_recipe(TEXT, limits=Limits(nodes=5)).problems[0].code == "RCP009"


@pytest.mark.parametrize("key", ["inputs", "parameters", "agents"])
def test_a_key_with_nothing_behind_it_may_mean_none(key):
    recipe = recipe_of(f"{key}:\n{TEXT}")
    assert recipe.inputs == ()
    assert recipe.agents == {}
