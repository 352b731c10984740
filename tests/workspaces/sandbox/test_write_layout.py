import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from stretto.globs.glob import Glob, parse_glob
from stretto.workspaces.sandbox.repository_guard import find_repositories
from stretto.workspaces.sandbox.staged_copy import WriteLayout, lay_out


def globs(*texts: str) -> tuple[Glob, ...]:
    parsed = [parse_glob(text) for text in texts]
    assert all(isinstance(glob, Glob) for glob in parsed)
    return tuple(glob for glob in parsed if isinstance(glob, Glob))


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[int]:
    for name in ("src/deep", "docs", ".git", "vendor/lib/.git"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "README.md").write_text("read me")
    (tmp_path / "link").symlink_to(tmp_path / "docs")
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


def layout(workspace: int, *texts: str) -> WriteLayout:
    return lay_out(workspace, globs(*texts))


@pytest.mark.parametrize("text", ["src", "src/", "./src", "src/**", "src/**/*"])
def test_a_directory_that_is_covered_whole_is_mounted(workspace: int, text: str) -> None:
    found = layout(workspace, text)
    assert (found.whole, found.staged) == ((("src",),), ())


@pytest.mark.parametrize("text", ["**", "**/*", "."])
def test_the_workspace_may_be_covered_whole(workspace: int, text: str) -> None:
    assert layout(workspace, text).whole == ((),)


@pytest.mark.parametrize(
    ("text", "staged"),
    [
        ("src/*.py", ("src",)),
        ("README.md", ()),
        ("src/new/deeper/**", ("src",)),
        ("new", ()),
        ("**/*.py", ()),
        ("link", ()),
        ("link/a.md", ()),
        ("{docs,src}/*.md", ("docs",)),
    ],
)
def test_anything_else_is_staged_from_the_nearest_directory(
    workspace: int, text: str, staged: tuple[str, ...]
) -> None:
    found = layout(workspace, text)
    assert found.whole == ()
    assert found.staged[0] == staged


def test_what_lies_below_a_mounted_directory_is_not_staged_again(workspace: int) -> None:
    found = layout(workspace, "src/**", "src/deep", "src/*.py", "docs/*.md")
    assert (found.whole, found.staged) == ((("src",),), (("docs",),))


@pytest.mark.parametrize("text", [".git", ".git/**", ".GIT/config", "vendor/lib/.git/config"])
def test_nothing_in_a_repository_is_ever_laid_out(workspace: int, text: str) -> None:
    found = layout(workspace, text)
    assert (found.whole, found.staged) == ((), ())


def test_no_glob_covers_a_path_in_a_repository(workspace: int) -> None:
    found = layout(workspace, "**")
    assert found.covers(("src", "a.py"))
    assert not found.covers(("src", ".git", "config"))
    assert not found.covers((".Git",))


def test_every_repository_below_is_found_and_no_link_is_followed(
    workspace: int, tmp_path: Path
) -> None:
    (tmp_path / "around").symlink_to(tmp_path / "vendor")
    (tmp_path / "src/.git").write_text("gitdir: elsewhere")
    found = find_repositories(workspace, [()])
    assert found == {(".git",), ("src", ".git"), ("vendor", "lib", ".git")}
