"""Files that no tool touches, or reads unasked: repositories, our own folder, keys."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stretto.adapters.tools.read import read
from stretto.adapters.tools.search import glob, grep
from stretto.adapters.tools.write import edit, write
from stretto.config.settings import load_settings
from stretto.ports.tool import Reach
from support.toolbench import called, reach_of


@pytest.mark.parametrize("folder", ["", "sub/", "sub/r.git/"])
@pytest.mark.parametrize("last", ["HEAD", "objects/x", "refs/x"])
def test_files_do_not_add_up_to_a_repository(tmp_path: Path, folder: str, last: str) -> None:
    reach = reach_of(tmp_path)
    parts = ["HEAD", "config", "objects/x", "refs/x"]
    for part in (it for it in parts if it != last):
        made = called(write, reach, file_path=f"{folder}{part}", content="x")
        assert made.verdict == "ok", made.text
    told = called(write, reach, file_path=f"{folder}{last}", content="x")
    assert told.verdict == "refused"
    assert "would make a git repository" in told.text
    assert not (tmp_path / folder / last).exists()


@pytest.mark.parametrize("name", ["head", "Head"])
def test_nor_in_other_letters(tmp_path: Path, name: str) -> None:
    for part in ("objects", "refs"):
        (tmp_path / part).mkdir()
    assert called(write, reach_of(tmp_path), file_path=name, content="x").verdict == "refused"


def test_nor_to_one_whose_rest_lies_elsewhere(tmp_path: Path) -> None:
    reach = reach_of(tmp_path)
    assert called(write, reach, file_path="w/commondir", content="../g").verdict == "ok"
    assert called(write, reach, file_path="w/HEAD", content="x").verdict == "refused"


def test_a_bare_repository_is_as_closed_as_a_git_folder(tmp_path: Path) -> None:
    words = ["git", "init", "-q", "--bare", "fixtures/r.git"]
    subprocess.run(words, cwd=tmp_path, check=True)
    before = (tmp_path / "fixtures/r.git/config").read_text()
    reach = reach_of(tmp_path)
    for path in ("fixtures/r.git/config", "fixtures/r.git/hooks/post-checkout"):
        assert called(write, reach, file_path=path, content="x").verdict == "refused"
    edited = {"file_path": "fixtures/r.git/config", "old_string": "[core]", "new_string": "[evil]"}
    assert called(edit, reach, **edited).verdict == "refused"
    assert (tmp_path / "fixtures/r.git/config").read_text() == before


# --- our own folder and what we run


def own(workspace: Path, home: Path) -> Reach:
    """As a run has it, whose home is that."""
    settings = load_settings(workspace, {"STRETTO_HOME": str(home)})
    return Reach(
        workspace,
        may_write=True,
        write_set=("**/*",),
        protected=settings.protected,
        hidden=settings.hidden,
    )


@pytest.mark.parametrize("home", ["home", "deep/er/home"])
def test_our_folder_in_the_workspace_is_nobodys(tmp_path: Path, home: str) -> None:
    (tmp_path / home).mkdir(parents=True)
    (tmp_path / home / "trust.json").write_text("hush")
    (tmp_path / "way").symlink_to(home)
    reach = own(tmp_path, tmp_path / home)
    for path in (f"{home}/stretto.yaml", f"{home}/agents/x.md", f"{home}/new/deeper", home.upper()):
        assert called(write, reach, file_path=path, content="sandbox: off").verdict == "refused"
    for path in (f"{home}/trust.json", "way/trust.json", f"{tmp_path}/{home}/trust.json"):
        told = called(read, reach, file_path=path)
        assert (told.verdict, "hush" in told.text) == ("refused", False)
    assert "hush" not in called(grep, reach, pattern="hush", output_mode="content").text
    assert "trust.json" not in called(glob, reach, pattern="**/*").text


def test_the_usual_home_is_closed_even_where_another_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    reach = own(tmp_path, tmp_path.parent / "another")
    assert called(write, reach, file_path=".stretto/stretto.yaml", content="x").verdict == "refused"


def test_the_interpreter_and_what_is_installed_for_it_are_no_steps_to_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bin", "lib/python3/site-packages"):
        (tmp_path / ".venv" / name).mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    reach = own(tmp_path, tmp_path.parent / "home")
    for path in (".venv/bin/python", ".venv/bin/bwrap", ".venv/lib/python3/site-packages/click.py"):
        assert called(write, reach, file_path=path, content="x").verdict == "refused"
    assert called(write, reach, file_path=".venvs/notes", content="x").verdict == "ok"


def test_a_prefix_that_is_the_workspace_leaves_the_rest_of_it_writable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "pyvenv.cfg").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    reach = own(tmp_path, tmp_path.parent / "home")
    assert called(write, reach, file_path="bin/python", content="x").verdict == "refused"
    assert called(write, reach, file_path="pyvenv.cfg", content="x").verdict == "refused"
    assert called(write, reach, file_path="src/a.py", content="x").verdict == "ok"


def test_this_package_is_no_steps_to_change() -> None:
    repository = Path(__file__).parents[3]
    settings = load_settings(repository, {"STRETTO_HOME": "/nowhere"})
    assert "src/stretto" in settings.protected


# --- keys


def secretive(workspace: Path) -> None:
    for name in (".env", "tls/server.key", ".ssh/id_x", "deploy/credentials", "a.txt"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text("hush")
    (workspace / "innocent.txt").symlink_to(".env")


@pytest.mark.parametrize(
    "path", [".env", "tls/server.key", ".ssh/id_x", "deploy/credentials", "innocent.txt"]
)
def test_a_file_that_is_called_as_keys_are_is_not_read(tmp_path: Path, path: str) -> None:
    secretive(tmp_path)
    told = called(read, reach_of(tmp_path), file_path=path)
    assert (told.verdict, "hush" in told.text) == ("refused", False)
    assert "read_set names it" in told.text
    edited = called(edit, reach_of(tmp_path), file_path=path, old_string="hush", new_string="x")
    assert edited.verdict == "refused"


def test_nor_is_it_found_by_a_search(tmp_path: Path) -> None:
    secretive(tmp_path)
    reach = reach_of(tmp_path)
    assert called(grep, reach, pattern="hush").text.split() == ["a.txt"]
    assert called(grep, reach, pattern="hush", path=".env").text.split() != [".env"]


@pytest.mark.parametrize(
    ("read_set", "path", "verdict"),
    [
        ((".env",), ".env", "ok"),
        (("**/*", "tls/*.key"), "tls/server.key", "ok"),
        (("**/*", "tls/*.key"), ".env", "refused"),
        (("**/*", ".ssh/**"), ".ssh/id_x", "ok"),
        (("tls/*",), "tls/server.key", "refused"),
        (("**", "*"), ".env", "refused"),
    ],
)
def test_it_is_read_where_the_step_names_it(
    tmp_path: Path, read_set: tuple[str, ...], path: str, verdict: str
) -> None:
    secretive(tmp_path)
    assert called(read, reach_of(tmp_path, read_set=read_set), file_path=path).verdict == verdict


def test_a_second_name_of_a_file_with_keys_is_not_read_either(tmp_path: Path) -> None:
    secretive(tmp_path)
    (tmp_path / "notes.txt").hardlink_to(tmp_path / ".env")
    (tmp_path / "plain.txt").hardlink_to(tmp_path / "a.txt")
    told = called(read, reach_of(tmp_path), file_path="notes.txt")
    assert (told.verdict, "hush" in told.text) == ("refused", False)
    assert "second name of a file with keys" in told.text
    edited = called(edit, reach_of(tmp_path), file_path="notes.txt", old_string="h", new_string="x")
    assert edited.verdict == "refused"
    assert called(grep, reach_of(tmp_path), pattern="hush").text.split() == ["a.txt", "plain.txt"]
    named = reach_of(tmp_path, read_set=("**/*", ".env"))
    assert called(read, named, file_path="notes.txt").verdict == "ok"


def test_a_step_may_write_what_it_may_not_read(tmp_path: Path) -> None:
    assert called(write, reach_of(tmp_path), file_path=".env", content="A=b").verdict == "ok"
    assert os.listdir(tmp_path) == [".env"]
