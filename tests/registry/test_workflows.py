"""Saved recipes by name: layers, shadowing, and files that come and go while we look."""

import time
from pathlib import Path

import pytest

from stretto.agents.agent_files import load_catalog
from stretto.registry.folders import Folder
from stretto.registry.workflows import BUNDLED, Entry, Workflows
from stretto.vocabulary.amounts import Limits
from support.recipes import CATALOG, catalog_of


def text(name: str = "news", prompt: str = "x", agent: str = "writer") -> str:
    return f"name: {name}\nsteps:\n  - {{id: a, subagent: {agent}, prompt: {prompt}}}\n"


def write(file: Path, content: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    return file


@pytest.fixture
def folders(tmp_path):
    return tmp_path / "user", tmp_path / "project"


@pytest.fixture
def workflows(folders):
    user, project = folders
    return Workflows((Folder(user, "user"), Folder(project, "project")), lambda: CATALOG)


def own(workflows: Workflows) -> dict[str, Entry]:
    return {entry.name: entry for entry in workflows.entries() if entry.layer != "bundled"}


def prompt_of(entry: Entry | None) -> str | None:
    assert entry is not None
    return entry.recipe.steps[0].instruction


def test_the_package_ships_recipes_that_are_good(tmp_path):
    entries = Workflows((), lambda: load_catalog((), tmp_path)).entries()
    assert [entry.name for entry in entries] == sorted(file.stem for file in BUNDLED.iterdir())
    assert {entry.layer for entry in entries} == {"bundled"}
    assert not any(entry.problems for entry in entries)


def test_folders_that_are_not_there_hold_nothing(workflows):
    assert own(workflows) == {}


def test_a_recipe_is_found_by_its_own_name_and_not_by_its_file_s(workflows, folders):
    file = write(folders[1] / "other.yaml", text("news"))
    entry = workflows.get("news")
    assert entry is not None
    assert (entry.file, entry.layer, entry.problems) == (file, "project", ())
    assert workflows.get("other") is None


@pytest.mark.parametrize("suffix", [".yaml", ".yml", ".json"])
def test_recipes_are_yaml_and_json_files(workflows, folders, suffix):
    content = text()
    if suffix == ".json":
        content = '{"name": "news", "steps": [{"id": "a", "subagent": "writer", "prompt": "x"}]}'
    write(folders[1] / f"news{suffix}", content)
    assert not own(workflows)["news"].problems


@pytest.mark.parametrize("name", [".hidden.yaml", "_draft.yaml", "notes.md", "news.yaml~", "yaml"])
def test_other_files_are_none(workflows, folders, name):
    write(folders[1] / name, text())
    (folders[1] / "folder.yaml").mkdir()
    assert own(workflows) == {}


def test_the_nearest_layer_wins(workflows, folders):
    bundled = next(iter(BUNDLED.iterdir())).stem
    assert workflows.get(bundled).layer == "bundled"
    write(folders[0] / "a.yaml", text(bundled, "user"))
    assert prompt_of(workflows.get(bundled)) == "user"
    nearest = write(folders[1] / "b.yaml", text(bundled, "project"))
    assert prompt_of(workflows.get(bundled)) == "project"
    assert [entry.name for entry in workflows.entries()].count(bundled) == 1
    nearest.unlink()
    assert workflows.get(bundled).layer == "user"


def test_entries_are_listed_by_name(workflows, folders):
    for name in ("zebra", "apple", "mango"):
        write(folders[1] / f"{name}.yaml", text(name))
    names = [entry.name for entry in workflows.entries()]
    assert names == sorted(names)


def test_a_file_that_appears_is_seen_without_a_restart(workflows, folders):
    assert workflows.get("news") is None
    write(folders[1] / "news.yaml", text())
    assert workflows.get("news") is not None


def test_a_file_that_changes_is_read_again(workflows, folders):
    file = write(folders[1] / "news.yaml", text(prompt="one"))
    assert prompt_of(workflows.get("news")) == "one"
    file.write_text(text(prompt="another"))
    assert prompt_of(workflows.get("news")) == "another"
    file.write_text(text("renamed"))
    assert workflows.get("news") is None
    assert workflows.get("renamed") is not None


def test_a_file_that_is_replaced_by_one_of_its_size_is_read_again(workflows, folders):
    file = write(folders[1] / "news.yaml", text(prompt="one"))
    assert prompt_of(workflows.get("news")) == "one"
    write(folders[1] / "new.tmp", text(prompt="two")).rename(file)
    assert prompt_of(workflows.get("news")) == "two"


def test_a_file_that_is_deleted_is_gone(workflows, folders):
    file = write(folders[1] / "news.yaml", text())
    assert workflows.get("news") is not None
    file.unlink()
    assert workflows.get("news") is None


def test_what_did_not_change_is_not_read_again(workflows, folders):
    write(folders[1] / "news.yaml", text())
    time.sleep(0.12)
    assert workflows.get("news").recipe is workflows.get("news").recipe


def test_a_broken_file_stays_listed_with_its_problems(workflows, folders):
    write(folders[1] / "good.yaml", text("good"))
    write(folders[1] / "syntax.yaml", "name: [\n")
    write(folders[1] / "unknown.yaml", text("unknown", agent="nobody"))
    (folders[1] / "bytes.yaml").write_bytes(b"name: \xff")
    write(folders[1] / "empty.yaml", "")
    entries = own(workflows)
    assert {name: [p.code for p in entry.problems] for name, entry in entries.items()} == {
        "bytes": ["RCP003"],
        "empty": ["RCP016"],
        "good": [],
        "syntax": ["RCP005"],
        "unknown": ["RCP108"],
    }
    assert [name for name, entry in entries.items() if entry.problems] == [
        "bytes",
        "empty",
        "syntax",
        "unknown",
    ]


def test_a_broken_file_that_is_mended_is_good(workflows, folders):
    file = write(folders[1] / "news.yaml", "name: [\n")
    assert workflows.get("news").problems
    file.write_text(text())
    assert not workflows.get("news").problems


def test_a_broken_file_still_shadows(workflows, folders):
    write(folders[0] / "news.yaml", text())
    write(folders[1] / "news.yaml", text(agent="nobody"))
    assert [problem.code for problem in workflows.get("news").problems] == ["RCP108"]


def test_two_files_of_one_name_in_one_folder_are_told(workflows, folders):
    first = write(folders[1] / "a.yaml", text(prompt="first"))
    second = write(folders[1] / "b.yaml", text(prompt="second"))
    one, other = (entry for entry in workflows.entries() if entry.name == "news")
    assert (one.file, one.problems) == (first, ())
    assert other.file == second
    (problem,) = other.problems
    assert problem.code == "RCP401"
    assert problem.message == f"'news' is the name of {first} already"
    assert (problem.file, problem.hint) == (str(second), "rename one of them")
    assert prompt_of(workflows.get("news")) == "first"
    first.unlink()
    assert prompt_of(workflows.get("news")) == "second"


def test_an_agent_that_appears_mends_a_recipe(folders):
    agents = {"writer": ["Read"]}
    workflows = Workflows((Folder(folders[1], "project"),), lambda: catalog_of(agents))
    write(folders[1] / "news.yaml", text(agent="newcomer"))
    assert workflows.get("news").problems
    agents["newcomer"] = []
    assert not workflows.get("news").problems


def test_the_user_s_limits_are_used(folders):
    write(folders[1] / "news.yaml", text())
    folder = (Folder(folders[1], "project"),)
    small = Workflows(folder, lambda: CATALOG, Limits(text_bytes=10))
    assert [problem.code for problem in small.get("news").problems] == ["RCP002"]


def test_files_are_shown_as_the_caller_says(folders):
    write(folders[1] / "news.yaml", "name: [\n")
    folder = (Folder(folders[1], "project"),)
    workflows = Workflows(folder, lambda: CATALOG, shown=lambda file: f"here/{file.name}")
    assert workflows.get("news").problems[0].file == "here/news.yaml"
