"""`stretto schema`: editors and `stretto validate` agree on what a recipe is."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator, ValidationError

from support.cli import GOOD, ROOT, SHIPPED, as_data, problems, schema, stretto, write


def misfits(recipe: object) -> list[ValidationError]:
    return list(Draft7Validator(schema()).iter_errors(recipe))


def test_it_is_a_draft_07_schema(tmp_path: Path) -> None:
    said = stretto(tmp_path, "schema")
    assert (said.code, said.err) == (0, "")
    printed = json.loads(said.out)
    assert printed["$schema"] == "http://json-schema.org/draft-07/schema#"
    Draft7Validator.check_schema(printed)
    assert stretto(tmp_path, "schema", "--json").json == printed


@pytest.mark.parametrize("recipe", SHIPPED, ids=lambda path: path.stem)
def test_everything_shipped_fits_the_schema(recipe: Path) -> None:
    assert misfits(as_data(recipe)) == []


def test_every_recipe_of_the_tests_that_is_valid_fits_the_schema(tmp_path: Path) -> None:
    files = [
        path
        for suffix in ("yaml", "yml", "json")
        for path in sorted((ROOT / "tests").rglob(f"*.{suffix}"))
        if ".script" not in path.suffixes
    ]
    for file in files:
        said = stretto(tmp_path, "show", file, "--json")
        if said.code == 0:
            assert misfits(said.json["recipe"]) == [], file


BASE = {"name": "x", "steps": [{"id": "a", "subagent": "writer", "prompt": "p"}]}
# Each a change to a good recipe: the path of what to set, and to what.
WRONG: dict[str, tuple[tuple[str | int, ...], Any]] = {
    "unknown key": (("stpes",), []),
    "unknown key of a step": (("steps", 0, "depend_on"), ["b"]),
    "steps are no list": (("steps",), {"a": {}}),
    "no steps": (("steps",), []),
    "a step is text": (("steps", 0), "a"),
    "an id with a blank": (("steps", 0, "id"), "a b"),
    "an id that is a list": (("steps", 0, "id"), ["a"]),
    "a prompt that is a list": (("steps", 0, "prompt"), ["p"]),
    "an unknown gate": (("steps", 0, "gate"), "robot"),
    "an unknown posture": (("steps", 0, "posture"), "wild"),
    "an unknown mode": (("steps", 0, "workspace_mode"), "cloud"),
    "an unknown policy": (("steps", 0, "on_failure"), "explode"),
    "an unknown type": (("steps", 0, "type"), "dance"),
    "a flag that is a word": (("steps", 0, "cache"), "yes"),
    "no width": (("max_concurrency",), 0),
    "a width in words": (("max_concurrency",), "four"),
    "an endless retry": (("steps", 0, "retry"), {"max_attempts": 0}),
    "an unknown backoff": (("steps", 0, "retry"), {"max_attempts": 2, "backoff": "never"}),
    "an unknown input type": (("inputs",), [{"name": "q", "type": "date"}]),
    "agents as a list": (("agents",), ["a"]),
    "an unknown key of an agent": (("agents",), {"a": {"promt": "x"}}),
    "a budget in words": (("budget",), {"usd": "much"}),
    "limits of its own": (("limits",), {"steps": 9}),
}


def with_change(path: tuple[str | int, ...], value: object) -> Any:
    recipe: Any = copy.deepcopy(BASE)
    place = recipe
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return recipe


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_does_not_fit_the_schema(name: str) -> None:
    assert misfits(with_change(*WRONG[name]))


def test_what_does_not_fit_the_schema_is_refused(tmp_path: Path) -> None:
    for name, change in WRONG.items():
        write(tmp_path, f"all/{name}.json", json.dumps(with_change(*change)))
    found = problems(stretto(tmp_path, "validate", "all", "--json"))
    assert {p["file"] for p in found} == {f"all/{name}.json" for name in WRONG}


@pytest.mark.parametrize("key", ["name", "steps"])
def test_what_is_missing_fits_neither(tmp_path: Path, key: str) -> None:
    recipe = {name: value for name, value in BASE.items() if name != key}
    write(tmp_path, "x.json", json.dumps(recipe))
    assert problems(stretto(tmp_path, "validate", "x.json", "--json"))
    if key == "steps":  # a name may also be `id`, or stand outside, which a schema leaves open
        assert misfits(recipe)


def test_a_recipe_may_name_its_schema(tmp_path: Path) -> None:
    write(tmp_path, "x.yaml", "$schema: ./recipe.schema.json\n" + GOOD)
    assert stretto(tmp_path, "validate", "x.yaml").code == 0
    assert misfits(as_data(tmp_path / "x.yaml")) == []
