"""`stretto list` and `stretto show`: saved recipes, layer over layer."""

from pathlib import Path
from typing import Any

import pytest

from support.cli import BAD, GOOD, problems, refused, stretto, succeeded, tree, write

PLAIN = {"type": "string", "required": False, "default": None, "description": "", "enum": []}
OWN = GOOD.replace("name: good", "name: research-and-brief")


def listed(folder: Path) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in succeeded(stretto(folder, "list", "--json"))["workflows"]}


def test_the_bundled_recipes_are_always_there(tmp_path: Path) -> None:
    rows = listed(tmp_path)
    assert {"research-and-brief", "threat-brief"} <= set(rows)
    assert {row["layer"] for row in rows.values()} == {"bundled"}
    assert all(row["ok"] and row["steps"] for row in rows.values())
    assert tree(tmp_path) == {}, "asking must not make files"


def test_the_nearest_layer_wins(tmp_path: Path) -> None:
    write(tmp_path, "home/workflows/mine.yaml", OWN)
    assert listed(tmp_path)["research-and-brief"]["layer"] == "user"
    write(tmp_path, "workflows/mine.yaml", OWN)
    row = listed(tmp_path)["research-and-brief"]
    assert row["layer"] == "project"
    assert row["file"] == "workflows/mine.yaml"
    assert row["inputs"] == [
        {**PLAIN, "name": "topic", "required": True},
        {**PLAIN, "name": "count", "type": "number", "default": 3},
    ]


def test_the_name_in_the_file_counts_and_not_the_files_own(tmp_path: Path) -> None:
    write(tmp_path, "workflows/other.yaml", GOOD)
    assert "good" in listed(tmp_path)
    assert stretto(tmp_path, "explain", "good").code == 0
    assert stretto(tmp_path, "explain", "other").code == 2


def test_the_project_is_found_from_a_folder_inside_it(tmp_path: Path) -> None:
    write(tmp_path, "stretto.yaml", "workflows: {dir: flows}\n")
    write(tmp_path, "flows/good.yaml", GOOD)
    inside = tmp_path / "src" / "deep"
    inside.mkdir(parents=True)
    assert listed(inside)["good"]["layer"] == "project"


def test_the_environment_can_name_the_folder(tmp_path: Path) -> None:
    write(tmp_path, "elsewhere/good.yaml", GOOD)
    said = stretto(tmp_path, "list", "--json", env={"STRETTO_WORKFLOWS_DIR": "elsewhere"})
    assert "good" in [row["name"] for row in succeeded(said)["workflows"]]


@pytest.mark.parametrize("content", [BAD, "", "[[[", "name: bad\0", "- a list"])
def test_a_broken_file_stays_listed_with_its_problems(tmp_path: Path, content: str) -> None:
    write(tmp_path, "workflows/bad.yaml", content)
    write(tmp_path, "workflows/good.yaml", GOOD)
    rows = listed(tmp_path)
    assert rows["good"]["ok"]
    assert rows["bad"]["ok"] is False
    assert rows["bad"]["problems"]
    text = stretto(tmp_path, "list")
    assert text.code == 0
    assert any("bad" in line and "problem" in line for line in text.out.splitlines())


def test_two_files_with_one_name_are_not_silently_one(tmp_path: Path) -> None:
    write(tmp_path, "workflows/a.yaml", GOOD)
    write(tmp_path, "workflows/b.yaml", GOOD)
    rows = succeeded(stretto(tmp_path, "list", "--json"))["workflows"]
    twins = [row for row in rows if row["name"] == "good"]
    assert [row["ok"] for row in twins] == [True, False]


def test_the_text_is_a_table_with_a_heading(tmp_path: Path) -> None:
    said = stretto(tmp_path, "list")
    assert (said.code, said.err) == (0, "")
    heading, *rows = said.out.splitlines()
    assert heading.split() == ["NAME", "FROM", "STEPS", "DESCRIPTION"]
    at = heading.index("FROM")
    assert all(row[at:].startswith("bundled") for row in rows)


def test_show_prints_the_text_as_it_is_written(tmp_path: Path) -> None:
    write(tmp_path, "workflows/good.yaml", "# a comment\n" + GOOD)
    said = stretto(tmp_path, "show", "good")
    assert (said.code, said.err) == (0, "")
    first, rest = said.out.split("\n", 1)
    assert "workflows/good.yaml" in first
    assert rest == "# a comment\n" + GOOD


def test_what_show_prints_is_the_recipe_again(tmp_path: Path) -> None:
    write(tmp_path, "again.yaml", stretto(tmp_path, "show", "research-and-brief").out)
    assert stretto(tmp_path, "validate", "again.yaml").code == 0


def test_show_in_json_has_the_recipe_as_data(tmp_path: Path) -> None:
    write(tmp_path, "workflows/good.yaml", GOOD)
    found = succeeded(stretto(tmp_path, "show", "good", "--json"))
    assert (found["workflow"], found["file"]) == ("good", "workflows/good.yaml")
    assert [step["id"] for step in found["recipe"]["steps"]] == ["look", "write", "check"]


def test_show_of_a_broken_recipe_shows_it_and_its_problems(tmp_path: Path) -> None:
    write(tmp_path, "workflows/bad.yaml", BAD)
    said = stretto(tmp_path, "show", "bad")
    assert said.code == 2
    assert BAD in said.out
    assert "did you mean 'researcher'?" in said.err


def test_show_of_what_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, "x.yaml", b"\xff\xfe\x00")
    assert problems(stretto(tmp_path, "show", "x.yaml", "--json"))
    refused(stretto(tmp_path, "show", "nope", "--json"), "not_found")


def test_a_file_is_shown_by_its_path(tmp_path: Path) -> None:
    write(tmp_path, "deep/down.yaml", GOOD)
    assert succeeded(stretto(tmp_path, "show", "deep/down.yaml", "--json"))["workflow"] == "good"
