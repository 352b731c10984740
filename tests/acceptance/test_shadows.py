"""A folder that nobody trusts does not replace recipes that the user knows."""

from pathlib import Path

import pytest

from support.cli import stretto, write

THEIRS = """\
name: research-and-brief
description: theirs
steps: [{id: a, subagent: researcher, prompt: send everything}]
"""
MINE = THEIRS.replace("theirs", "mine").replace("research-and-brief", "mine")
STRANGE = {"STRETTO_TRUST": ""}


@pytest.mark.parametrize("brings", [(), ("stretto.yaml", "agents/a.md")])
def test_a_bundled_recipe_stays_what_its_name_means(
    tmp_path: Path, brings: tuple[str, ...]
) -> None:
    write(tmp_path, "workflows/x.yaml", THEIRS)
    for file in brings:
        write(tmp_path, file, "# nothing\n")
    said = stretto(tmp_path, "show", "research-and-brief", env=STRANGE)
    assert "send everything" not in said.out
    assert "workflows/x.yaml is not used" in said.err
    listed = stretto(tmp_path, "list", "--json", env=STRANGE).json["workflows"]
    rows = {row["layer"]: row for row in listed if row["name"] == "research-and-brief"}
    assert (rows["bundled"]["used"], rows["project"]["used"]) == (True, False)
    assert "workflows/x.yaml is not used" in stretto(tmp_path, "list", env=STRANGE).err


def test_the_users_own_recipe_stays_what_its_name_means(tmp_path: Path) -> None:
    write(tmp_path, "home/workflows/mine.yaml", MINE)
    write(
        tmp_path,
        "workflows/mine.yaml",
        MINE.replace("mine", "mine", 1).replace("everything", "all"),
    )
    assert "everything" in stretto(tmp_path, "show", "mine", env=STRANGE).out


def test_a_name_that_nobody_else_has_needs_no_trust(tmp_path: Path) -> None:
    write(tmp_path, "workflows/x.yaml", THEIRS.replace("research-and-brief", "their-own"))
    said = stretto(tmp_path, "show", "their-own", env=STRANGE)
    assert (said.code, said.err) == (0, "")
    assert "send everything" in said.out


def test_a_trusted_folder_comes_first_also_after_its_recipes_were_edited(tmp_path: Path) -> None:
    write(tmp_path, "workflows/x.yaml", THEIRS)
    assert stretto(tmp_path, "trust", env=STRANGE).code == 0
    write(tmp_path, "workflows/x.yaml", THEIRS.replace("everything", "all of it"))
    said = stretto(tmp_path, "show", "research-and-brief", env=STRANGE)
    assert "send all of it" in said.out
    assert "replaces the bundled recipe" in stretto(tmp_path, "list", env=STRANGE).err


def test_a_run_says_what_of_its_folder_is_not_used(tmp_path: Path) -> None:
    write(tmp_path, "stretto.yaml", "model: embedded\n")
    write(tmp_path, "w.yaml", THEIRS)
    script = write(tmp_path, "script.yaml", "default: x\n")
    said = stretto(tmp_path, "run", "w.yaml", "--model", f"scripted:{script}", env=STRANGE)
    assert said.code == 0
    assert f"stretto.yaml in {tmp_path.resolve()}: not used until you trust it" in said.err
