"""What `stretto schema` prints agrees with what is read."""

import json

import pytest
from jsonschema import Draft7Validator

from stretto.documents.document import read_file, read_text
from stretto.documents.node import plain
from stretto.recipe.grammar import recipe_schema
from support.recipes import RECIPES

VALIDATOR = Draft7Validator(recipe_schema())
GOOD = "name: x\nsteps:\n  - {id: a, subagent: writer, prompt: y}\n"


def errors(text: str) -> list[object]:
    root = read_text(text).root
    assert root is not None
    return list(VALIDATOR.iter_errors(plain(root)))


def test_the_schema_is_a_schema_and_json():
    Draft7Validator.check_schema(recipe_schema())
    assert json.loads(json.dumps(recipe_schema())) == recipe_schema()


@pytest.mark.parametrize("file", sorted(RECIPES.iterdir()), ids=lambda file: file.stem)
def test_the_printed_recipes_satisfy_it(file):
    root = read_file(file).root
    assert root is not None
    assert list(VALIDATOR.iter_errors(plain(root))) == []


@pytest.mark.parametrize(
    "text",
    [
        GOOD + "what: 1\n",
        "name: x\n",
        "name: x\nsteps: []\n",
        GOOD.replace("id: a, ", ""),
        GOOD.replace("prompt: y", "prompt: y, depend_on: b"),
        GOOD + "timeout: soon\n",
        GOOD + "max_concurrency: 0\n",
        "workflow:\n  name: x\n  steps: [{agent: a}]\n",
        "workflow: 5\n",
    ],
)
def test_what_cannot_be_read_does_not(text):
    assert errors(text)


def test_what_can_be_read_does():
    assert errors(GOOD) == []
