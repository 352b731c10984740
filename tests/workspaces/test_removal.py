"""A folder of ours is removed whatever a writer made of it."""

import errno
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from stretto.workspaces.isolated_copy import discard_tree, empty_trash, remove_tree


def dig(top: Path, name: str, levels: int) -> None:
    """Deeper than a path can say: each folder is made in the one that was made last."""
    folder = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=folder)
        below = os.open(name, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(os.open("last.txt", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.close(folder)


def close_up(top: Path) -> None:
    (top / "a/b").mkdir(parents=True)
    (top / "a/b/c.txt").write_text("c")
    for path, mode in (("a/b/c.txt", 0), ("a/b", 0o500), ("a", 0o000)):
        (top / path).chmod(mode)


def link(top: Path) -> None:
    kept = top.parent / "kept"
    (kept / "within").mkdir(parents=True)
    (top / "folder").mkdir()
    for place in (top / "link", top / "folder/link"):
        place.symlink_to(kept)
    os.mkfifo(top / "pipe")


FOLDERS: dict[str, Callable[[Path], None]] = {
    "paths longer than the system takes": lambda top: dig(top, "d" * 80, 60),
    "more levels than Python descends": lambda top: dig(top, "d", 1_500),
    "folders that nobody may enter": close_up,
    "links and pipes": link,
    "nothing": lambda top: None,
}


@pytest.mark.parametrize("make", FOLDERS.values(), ids=list(FOLDERS))
def test_it_is_gone(make: Callable[[Path], None], tmp_path: Path) -> None:
    top, trash = tmp_path / "copy", tmp_path / "trash"
    top.mkdir()
    make(top)
    discard_tree(top, trash)
    assert not top.exists()
    assert list(trash.iterdir()) == []
    assert make is not link or (tmp_path / "kept/within").is_dir()


def test_what_cannot_be_removed_keeps_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "0 no folder").write_text("x")
    (tmp_path / "1/a").mkdir(parents=True)
    empty_trash(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["0 no folder"]


def test_many_may_remove_one_folder(tmp_path: Path) -> None:
    top = tmp_path / "copy"
    for number in range(300):
        folder = top / f"a{number % 7}/b{number % 11}/c{number}"
        folder.mkdir(parents=True)
        (folder / "file.txt").write_text("x")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(remove_tree, [top] * 4))
    assert not top.exists()


def test_a_folder_that_another_empties_after_we_could_not_remove_it_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top, remove = tmp_path / "copy", Path.rmdir
    (top / "late").mkdir(parents=True)
    tries: list[Path] = []

    def fail_once(folder: Path) -> None:
        tries.append(folder)
        if len(tries) == 1:
            raise OSError(errno.ENOTEMPTY, "Directory not empty")
        remove(folder)

    monkeypatch.setattr(Path, "rmdir", fail_once)
    remove_tree(top)
    assert not top.exists()


def test_what_was_never_there_is_no_error(tmp_path: Path) -> None:
    remove_tree(tmp_path / "nothing")


def test_of_a_link_in_place_of_the_folder_only_the_link_is_removed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("mine")
    link = tmp_path / "link"
    link.symlink_to(kept)
    remove_tree(link)
    assert not link.is_symlink()
    assert (kept / "file").read_text() == "mine"
