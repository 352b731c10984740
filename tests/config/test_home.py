"""What is the user's own is made for the user alone, whoever makes it first."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import stretto
from stretto.config.home import make_private
from stretto.config.settings import load_settings

FIRST = [
    ["trust"],
    ["init", "new"],
    ["run", "r.yaml", "--model", "scripted:s.yaml"],
    ["run", "r.yaml", "--model", "scripted:s.yaml", "--detach"],
    ["models", "use", "openai:gpt-5"],
    ["runs"],
]


@pytest.mark.parametrize("words", FIRST, ids=" ".join)
def test_whatever_comes_first_makes_a_home_that_nobody_else_reads(
    words: list[str], tmp_path: Path
) -> None:
    (tmp_path / "stretto.yaml").write_text("permission: auto\n")
    (tmp_path / "r.yaml").write_text(
        "name: r\nsteps:\n  - id: a\n    agent: writer\n    input: hi\n"
    )
    (tmp_path / "s.yaml").write_text("default: hello\n")
    home = tmp_path / "user" / "deep" / "home"
    environ = {"PATH": os.defpath, "HOME": str(tmp_path / "user"), "STRETTO_HOME": str(home)}
    before = os.umask(0o022)
    try:
        command = [sys.executable, "-m", "stretto", *words]
        done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True)
    finally:
        os.umask(before)
    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    for below in home.rglob("*"):
        assert below.stat().st_mode & 0o077 == 0 or below.is_file(), below


def test_nobody_makes_a_private_folder_in_another_way() -> None:
    for file in Path(stretto.__file__).parent.rglob("*.py"):
        for call in re.findall(r"mkdir\([^)]*\)", file.read_text()):
            assert not ("parents" in call and "0o700" in call), (file, call)


def test_a_folder_that_is_there_keeps_its_mode_and_a_file_is_none(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir(mode=0o755)
    make_private(tmp_path / "shared" / "a" / "b")
    assert stat.S_IMODE((tmp_path / "shared").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "shared" / "a").stat().st_mode) == 0o700
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        make_private(tmp_path / "file")


@pytest.mark.parametrize(
    ("project", "is_in_home"), [("", True), ("user", True), ("user/work", False), ("else", False)]
)
def test_a_home_and_what_holds_it_are_known(
    project: str, is_in_home: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("user/work", "else"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    settings = load_settings(tmp_path / project, {"STRETTO_HOME": str(tmp_path / "else" / "home")})
    assert settings.is_in_home is is_in_home


def test_our_own_folder_is_no_workspace(tmp_path: Path) -> None:
    assert load_settings(tmp_path, {"STRETTO_HOME": str(tmp_path)}).is_in_home
