"""The versions of a saved recipe, from the terminal."""

import asyncio
from pathlib import Path

import pytest

from stretto import Stretto
from support.cli import stretto, write

FIRST = 'name: brief\nsteps: [{id: a, subagent: writer, prompt: "Write a poem on rain."}]\n'
SECOND = 'name: brief\nsteps: [{id: a, subagent: writer, prompt: "Summarise the minutes."}]\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a recipe that an agent saved twice."""
    (tmp_path / "workflows").mkdir()

    async def save() -> None:
        async with Stretto(tmp_path, home=tmp_path / "home") as w:
            await w.workflows.save(FIRST, emitted=True)
            await w.workflows.save(SECOND, emitted=True)

    asyncio.run(save())
    return tmp_path


def test_the_versions_are_listed_shown_and_restored(folder: Path) -> None:
    listed = stretto(folder, "show", "brief", "--versions", "--json").json["versions"]
    assert [(each["version"], each["current"], each["origin"]) for each in listed] == [
        (1, False, "emitted"),
        (2, True, "emitted"),
    ]
    assert "2 *" in stretto(folder, "show", "brief", "--versions").out
    shown = stretto(folder, "show", "brief", "--version", "1", "--json").json["version"]
    assert shown["text"] == FIRST
    assert FIRST.strip() in stretto(folder, "show", "brief", "--version", "1").out
    restored = stretto(folder, "restore", "brief", "--json").json
    assert (restored["version"], restored["replaced"]) == (3, 2)
    assert (folder / "workflows/brief.yaml").read_text(encoding="utf-8") == FIRST
    said = stretto(folder, "restore", "brief", "--version", "2").out
    assert said == "workflows/brief.yaml: restored as version 4; what it held is version 3\n"
    assert (folder / "workflows/brief.yaml").read_text(encoding="utf-8") == SECOND


def test_a_list_tells_emitted_recipes_from_written_ones(folder: Path) -> None:
    write(folder, "workflows/mine.yaml", FIRST.replace("name: brief", "name: mine"))
    origins = {
        each["name"]: each["origin"] for each in stretto(folder, "list", "--json").json["workflows"]
    }
    assert (origins["brief"], origins["mine"]) == ("emitted", "written")
    assert "project, emitted" in stretto(folder, "list").out


def test_a_version_that_is_not_there_is_told(folder: Path) -> None:
    for words in (
        ("show", "brief", "--version", "7"),
        ("restore", "brief", "--version", "7"),
        ("restore", "nothing"),
        ("show", "research-and-brief", "--versions"),
    ):
        said = stretto(folder, *words, "--json")
        assert (said.code, said.json["error"]["kind"]) == (2, "not_found"), words
    said = stretto(folder, "restore", "brief", "--version", "7")
    assert "it has 1 to 2" in said.err
