"""Which program is started: never one that a step could have put there."""

import os
from pathlib import Path

import pytest

from stretto.processes.programs import Writable, find_command, find_program, with_safe_path


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "workspace" / "bin").mkdir(parents=True)
    (tmp_path / "system").mkdir()
    program(tmp_path / "system" / "git")
    return tmp_path / "workspace"


def program(path: Path) -> Path:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def found(workspace: Path, *folders: Path | str) -> str | None:
    path = os.pathsep.join(map(str, (*folders, workspace.parent / "system")))
    return find_program("git", path, Writable((workspace,)))


def test_a_program_in_the_workspace_is_passed_over(workspace: Path) -> None:
    program(workspace / "bin" / "git")
    assert found(workspace, workspace / "bin") == str(workspace.parent / "system" / "git")


@pytest.mark.parametrize("folder", ["", ".", "bin", "./bin"])
def test_a_relative_entry_of_the_path_does_not_count(
    workspace: Path, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    program(workspace / "git")
    program(workspace / "bin" / "git")
    path = f"{folder}{os.pathsep}{workspace.parent / 'system'}"
    assert find_program("git", path) == str(workspace.parent / "system" / "git")


def test_a_link_into_the_workspace_is_passed_over(workspace: Path) -> None:
    program(workspace / "bin" / "git")
    elsewhere = workspace.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "git").symlink_to(workspace / "bin" / "git")
    assert found(workspace, elsewhere) == str(workspace.parent / "system" / "git")


def test_a_link_that_only_passes_through_the_workspace_is_passed_over(workspace: Path) -> None:
    # Where it ends is no step's, but a step can make it end elsewhere.
    (workspace / "bin" / "git").symlink_to(workspace.parent / "system" / "git")
    elsewhere = workspace.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "git").symlink_to("../workspace/bin/git")
    assert found(workspace, elsewhere) == str(workspace.parent / "system" / "git")


def test_a_folder_that_is_a_link_through_the_workspace_is_passed_over(workspace: Path) -> None:
    (workspace / "tools").symlink_to(workspace.parent / "system")
    (workspace.parent / "tools").symlink_to(workspace / "tools")
    only = str(workspace.parent / "tools")
    assert find_program("git", only) == f"{only}/git"
    assert find_program("git", only, Writable((workspace,))) is None


def test_a_workspace_that_is_itself_named_by_a_link_is_the_same_workspace(workspace: Path) -> None:
    program(workspace / "bin" / "git")
    alias = workspace.parent / "alias"
    alias.symlink_to(workspace)
    assert find_program("git", f"{alias}/bin", Writable((workspace,))) is None
    assert find_program("git", f"{workspace}/bin", Writable((alias,))) is None


def test_what_no_step_can_change_may_lie_in_the_workspace(workspace: Path) -> None:
    venv = workspace / ".venv" / "bin"
    venv.mkdir(parents=True)
    mine = program(venv / "git")
    writable = Writable((workspace,), (venv,))
    assert find_program("git", str(venv), writable) == str(mine)
    # But not by a way that a step can bend.
    (workspace / "way").symlink_to(venv)
    assert find_program("git", str(workspace / "way"), writable) is None


def test_the_path_that_is_handed_on_is_clean(workspace: Path) -> None:
    path = os.pathsep.join(["", ".", "bin", str(workspace / "bin"), "/usr/bin"])
    given = with_safe_path({"PATH": path, "HOME": "/h"}, Writable((workspace,)))
    assert given == {"PATH": "/usr/bin", "HOME": "/h"}
    assert with_safe_path({"HOME": "/h"}, Writable((workspace,))) == {"HOME": "/h"}


def test_a_command_may_be_named_by_its_path(workspace: Path) -> None:
    mine = program(workspace / "bin" / "answer")
    writable = Writable((workspace,))
    assert (
        find_command("./bin/answer", workspace, "/usr/bin", writable) == f"{workspace}/./bin/answer"
    )
    assert find_command(str(mine), workspace, "/usr/bin", writable) == str(mine)
    assert find_command("answer", workspace, str(mine.parent), writable) is None
    assert find_command("./bin/none", workspace, "/usr/bin", writable) is None
