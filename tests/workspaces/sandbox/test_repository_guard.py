"""What a survey finds, and the guard that a killed process has left."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stretto.workspaces.sandbox.repository_guard import TopGuard, remove_left_guard

# Root lists every directory; without these two capabilities it obeys modes like anybody else.
AS_ANYBODY = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if not os.getuid() else []
FIND = (
    "import os, sys; from stretto.workspaces.sandbox.repository_guard import find_repositories\n"
    "fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECTORY)\n"
    "print(sorted('/'.join(names) for names in find_repositories(fd, [()])))"
)


@pytest.mark.skipif(
    bool(AS_ANYBODY) and shutil.which("setpriv") is None,
    reason="root lists every directory, and there is no setpriv",
)
def test_a_repository_in_a_directory_that_cannot_be_listed_is_found(tmp_path: Path) -> None:
    hidden = tmp_path / "a" / "hidden"
    (hidden / "deep" / ".git").mkdir(parents=True)
    hidden.chmod(0o311)
    words = [*AS_ANYBODY, sys.executable, "-c", FIND, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['a/hidden/deep/.git']"
    assert hidden.stat().st_mode & 0o777 == 0o311  # as its owner left it


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
