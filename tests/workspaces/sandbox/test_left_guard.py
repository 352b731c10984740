"""The empty `.git` that guards a plain folder, when the process that made it was killed."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from stretto.workspaces.sandbox.repository_guard import TopGuard, remove_left_guard


@pytest.fixture
def folder_fd(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def killed_guard(folder_fd: int) -> None:
    """As after kill -9: the system closes what a process held, and nothing more happens."""
    child = os.fork()
    if child == 0:
        TopGuard(folder_fd)
        os._exit(0)
    os.waitpid(child, 0)


def test_what_a_killed_process_has_left_is_removed(tmp_path: Path, folder_fd: int) -> None:
    killed_guard(folder_fd)
    assert (tmp_path / ".git").is_dir()
    remove_left_guard(tmp_path)
    assert not (tmp_path / ".git").exists()


def test_a_guard_that_somebody_holds_stays(tmp_path: Path, folder_fd: int) -> None:
    guard = TopGuard(folder_fd)
    remove_left_guard(tmp_path)
    assert (tmp_path / ".git").is_dir()
    guard.close()
    assert not (tmp_path / ".git").exists()


def test_an_empty_folder_of_the_users_stays(tmp_path: Path, folder_fd: int) -> None:
    (tmp_path / ".git").mkdir()
    remove_left_guard(tmp_path)
    TopGuard(folder_fd).close()
    assert (tmp_path / ".git").is_dir()


def test_a_repository_that_was_made_of_it_stays(tmp_path: Path, folder_fd: int) -> None:
    killed_guard(folder_fd)
    (tmp_path / ".git/HEAD").write_text("ref: refs/heads/main\n")
    remove_left_guard(tmp_path)
    assert (tmp_path / ".git/HEAD").exists()


def test_a_folder_without_one_is_as_it_was(tmp_path: Path) -> None:
    remove_left_guard(tmp_path)
    remove_left_guard(tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []
