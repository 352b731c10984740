"""`stretto new` and `stretto init`: what they write, and what they leave alone."""

import json
import re
import shlex
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from stretto.assembly.recipe_files import recipe_templates
from support.cli import (
    GOOD,
    SOUND,
    TEMPLATES,
    Said,
    as_data,
    refused,
    schema,
    stretto,
    succeeded,
    tree,
    write,
)

MODELINE = "# yaml-language-server: $schema="


def assert_fits_its_schema(file: Path) -> None:
    """Editors complete the file: its first line names a schema that is really there."""
    first = file.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith(MODELINE)
    beside = file.parent / first.removeprefix(MODELINE)
    assert beside.is_file()
    assert json.loads(beside.read_text(encoding="utf-8")) == schema()
    assert list(Draft7Validator(schema()).iter_errors(as_data(file))) == []


def test_new_without_a_template_lists_them_and_writes_nothing(tmp_path: Path) -> None:
    found = succeeded(stretto(tmp_path, "new", "--json"))["templates"]
    assert tuple(row["template"] for row in found) == TEMPLATES
    assert all(row["description"] for row in found)
    said = stretto(tmp_path, "new", "mine")
    assert said.code == 0
    assert all(name in said.out for name in TEMPLATES)
    assert tree(tmp_path) == {}


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_template_writes_a_recipe_that_validates(tmp_path: Path, template: str) -> None:
    found = succeeded(stretto(tmp_path, "new", "mine", "--template", template, "--json"))
    assert found["workflow"] == "mine"
    assert found["file"] == "workflows/mine.yaml"
    assert_fits_its_schema(tmp_path / found["file"])
    assert succeeded(stretto(tmp_path, "validate", found["file"], "--json")) == SOUND
    written = as_data(tmp_path / found["file"])
    assert written.get("workflow", written)["name"] == "mine", "not the template's name"


def test_no_prompt_of_a_template_puts_an_article_before_what_an_input_holds() -> None:
    texts = [file.read_text("utf-8") for file in recipe_templates().values()]
    assert not [text for text in texts if re.search(r"\ban? \{\{inputs\.", text)]


def test_without_a_name_the_template_gives_it(tmp_path: Path) -> None:
    assert succeeded(stretto(tmp_path, "new", "--template", "map-reduce", "--json"))["file"] == (
        "workflows/map-reduce.yaml"
    )


def test_the_folder_can_be_chosen_and_is_made(tmp_path: Path) -> None:
    words = ("new", "mine", "--template", "map-reduce", "--dir", "some/where", "--json")
    found = succeeded(stretto(tmp_path, *words))
    assert found["file"] == "some/where/mine.yaml"
    assert_fits_its_schema(tmp_path / "some/where/mine.yaml")


def test_the_projects_own_folder_is_used(tmp_path: Path) -> None:
    write(tmp_path, "stretto.yaml", "workflows: {dir: flows}\n")
    assert stretto(tmp_path, "new", "mine", "--template", "map-reduce").code == 0
    assert (tmp_path / "flows/mine.yaml").is_file()


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    stretto(tmp_path, "new", "mine", "--template", "map-reduce")
    write(tmp_path, "workflows/mine.yaml", GOOD)
    before = tree(tmp_path)
    again = ("new", "mine", "--template", "map-reduce", "--json")
    refused(stretto(tmp_path, *again), "exists")
    assert tree(tmp_path) == before


def test_force_overwrites(tmp_path: Path) -> None:
    write(tmp_path, "workflows/mine.yaml", GOOD)
    found = succeeded(
        stretto(tmp_path, "new", "mine", "--template", "map-reduce", "--force", "--json")
    )
    text = (tmp_path / found["file"]).read_text(encoding="utf-8")
    assert "name: mine" in text
    assert text != GOOD
    # The draft it was written to first is gone.
    names = sorted(path.name for path in (tmp_path / "workflows").iterdir())
    assert names == [".recipe.schema.json", "mine.yaml"]


@pytest.mark.parametrize(
    "name", ["../x", "a/b", "/tmp/x", "..", ".", "a b", "a.yaml", "-", "_x", "é", "a\nb", "$(id)"]
)
def test_a_bad_name_is_refused_and_nothing_written(tmp_path: Path, name: str) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    before = tree(tmp_path)
    refused(stretto(inside, "new", "--template", "map-reduce", "--json", "--", name), "usage")
    assert tree(tmp_path) == before


def test_an_unknown_template_is_refused_with_a_guess(tmp_path: Path) -> None:
    said = stretto(tmp_path, "new", "x", "--template", "mapreduce", "--json")
    assert refused(said, "usage")["details"]["hint"] == "did you mean 'map-reduce'?"
    refused(stretto(tmp_path, "new", "x", "--template", "../first", "--json"), "usage")
    assert tree(tmp_path) == {}


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "file", "x")
    before = tree(tmp_path)
    words = ("new", "x", "--template", "map-reduce", "--dir", "file/inside", "--json")
    refused(stretto(tmp_path, *words), "usage")
    refused(stretto(tmp_path, "init", "file", "--json"), "usage")
    assert tree(tmp_path) == before


def test_init_makes_a_project_that_works(tmp_path: Path) -> None:
    found = succeeded(stretto(tmp_path, "init", "--json"))
    assert found["wrote"] == ["stretto.yaml", "workflows/first.yaml"]
    assert found["kept"] == []
    assert_fits_its_schema(tmp_path / "workflows/first.yaml")
    assert succeeded(stretto(tmp_path, "validate", "--json")) == SOUND
    assert stretto(tmp_path, "plan", "first", "-i", "question=why?").code == 0


def test_init_says_what_it_wrote_and_what_comes_next(tmp_path: Path) -> None:
    said = stretto(tmp_path, "init")
    assert (said.code, said.err) == (0, "")
    assert "wrote stretto.yaml" in said.out
    assert "stretto plan first" in said.out
    assert said.out.rstrip().endswith('stretto run first -i question="Why is the sky blue?"')


def test_init_twice_changes_nothing(tmp_path: Path) -> None:
    stretto(tmp_path, "init")
    before = tree(tmp_path)
    found = succeeded(stretto(tmp_path, "init", "--json"))
    assert (found["wrote"], found["kept"]) == ([], ["stretto.yaml", "workflows/first.yaml"])
    assert tree(tmp_path) == before


def test_init_keeps_what_is_there(tmp_path: Path) -> None:
    write(tmp_path, "stretto.yaml", "model: mine\n")
    write(tmp_path, "workflows/other.yaml", GOOD)
    found = succeeded(stretto(tmp_path, "init", "--json"))
    assert found["kept"] == ["stretto.yaml"]
    assert (tmp_path / "stretto.yaml").read_text() == "model: mine\n"
    assert (tmp_path / "workflows/other.yaml").read_text() == GOOD


def test_init_makes_the_folder_it_is_given(tmp_path: Path) -> None:
    assert succeeded(stretto(tmp_path, "init", "a/new/one", "--json"))["wrote"]
    assert (tmp_path / "a/new/one/stretto.yaml").is_file()
    assert not (tmp_path / "stretto.yaml").exists()


def _run_as_it_stands(folder: Path, said: Said) -> Said:
    """The last line that a command printed, as a user would copy it."""
    write(folder, "script.yaml", "default: {reply: {score: 1}, raw: true}")
    words = shlex.split(said.out.splitlines()[-1])[1:]
    return stretto(folder, *words, "--model", "scripted:script.yaml")


@pytest.mark.parametrize("template", TEMPLATES)
def test_new_ends_with_a_run_command_that_works(tmp_path: Path, template: str) -> None:
    said = stretto(tmp_path, "new", "mine", "--template", template)
    ran = _run_as_it_stands(tmp_path, said)
    assert "run " in ran.err, ran
    assert " of mine started" in ran.err, ran


def test_init_ends_with_a_run_command_that_works(tmp_path: Path) -> None:
    ran = _run_as_it_stands(tmp_path, stretto(tmp_path, "init"))
    assert ran.code == 0, ran


def test_a_template_writes_files_behind_a_gate(tmp_path: Path) -> None:
    said = stretto(tmp_path, "new", "mine", "--template", "write-with-approval")
    ran = _run_as_it_stands(tmp_path, said)
    assert ran.code == 3, ran
    assert "stretto approve" in ran.err
