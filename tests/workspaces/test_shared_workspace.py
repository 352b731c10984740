"""What was written in a workspace that nobody declared."""

import os
import time
from pathlib import Path

import pytest

from stretto.workspaces.shared_workspace import StatSnapshot, find_undeclared_paths, snapshot_stats
from support.trees import Tree, write_tree

TREE: Tree = {
    "src/a.py": b"a",
    "docs/b.md": b"b",
    "link": "src",
    ".git/index": b"",
    "node_modules/x/y.js": b"",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "work", TREE)


def test_a_look_sees_files_and_links_but_nothing_through_them(workspace: Path) -> None:
    snapshot = snapshot_stats(workspace)
    assert set(snapshot.stamps) == {"src/a.py", "docs/b.md", "link"}
    assert snapshot.is_whole
    status = (workspace / "src/a.py").stat()
    stamp = (status.st_ctime_ns, status.st_mtime_ns, 1, status.st_ino, status.st_mode)
    assert snapshot.stamps["src/a.py"] == stamp


def test_a_file_that_was_made_executable_has_changed(workspace: Path) -> None:
    before = snapshot_stats(workspace)
    (workspace / "src/a.py").chmod(0o755)
    assert find_undeclared_paths(before, snapshot_stats(workspace), ()) == ("src/a.py",)


def test_what_changed_appeared_or_went_and_was_declared_by_nobody_is_named(workspace: Path) -> None:
    before = snapshot_stats(workspace)
    assert find_undeclared_paths(before, snapshot_stats(workspace), ()) == ()
    (workspace / "src/a.py").write_bytes(b"changed")
    (workspace / "new").mkdir()
    (workspace / "new/c").write_bytes(b"")
    (workspace / "docs/b.md").unlink()
    (workspace / "link").unlink()
    (workspace / "link").symlink_to("docs")
    after = snapshot_stats(workspace)
    assert find_undeclared_paths(before, after, ()) == ("docs/b.md", "link", "new/c", "src/a.py")
    assert find_undeclared_paths(before, after, ("src/**", "docs/*.md")) == ("link", "new/c")
    assert find_undeclared_paths(before, after, ("**",)) == ()


def test_a_file_put_in_anothers_place_is_seen_though_size_and_time_are_kept(
    workspace: Path,
) -> None:
    before = snapshot_stats(workspace)
    status = (workspace / "src/a.py").stat()
    other = workspace / "src" / "other"
    other.write_bytes(b"z")
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    os.replace(other, workspace / "src/a.py")
    assert find_undeclared_paths(before, snapshot_stats(workspace), ()) == ("src/a.py",)


def test_a_change_is_seen_though_its_time_is_set_back(workspace: Path) -> None:
    before = snapshot_stats(workspace)
    status = (workspace / "src/a.py").stat()
    time.sleep(0.02)  # longer than a tick of the file system's clock
    (workspace / "src/a.py").write_bytes(b"z")
    os.utime(workspace / "src/a.py", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert find_undeclared_paths(before, snapshot_stats(workspace), ()) == ("src/a.py",)


def test_gits_own_and_what_tools_make_are_not_watched(workspace: Path) -> None:
    before = snapshot_stats(workspace)
    (workspace / ".git/index").write_bytes(b"changed")
    (workspace / "node_modules/x/y.js").write_bytes(b"changed")
    assert find_undeclared_paths(before, snapshot_stats(workspace), ()) == ()


def test_of_a_workspace_not_seen_whole_only_what_both_looks_saw_is_compared() -> None:
    before = StatSnapshot({"a": (1, 1, 1), "b": (1, 1, 2)}, is_whole=False)
    after = StatSnapshot({"a": (2, 1, 1), "c": (1, 1, 3)}, is_whole=False)
    assert find_undeclared_paths(before, after, ()) == ("a",)


def test_a_look_stops_at_its_limit(workspace: Path) -> None:
    snapshot = snapshot_stats(workspace, most=3)
    assert not snapshot.is_whole
    assert len(snapshot.stamps) <= 3


def test_where_case_does_not_count_another_spelling_declares_it_too(workspace: Path) -> None:
    before = snapshot_stats(workspace, is_case_ignored=True)
    (workspace / "Src2").mkdir()
    (workspace / "Src2" / "A").write_bytes(b"")
    after = snapshot_stats(workspace, is_case_ignored=True)
    assert find_undeclared_paths(before, after, ("src2/**",)) == ()
    assert find_undeclared_paths(
        before, snapshot_stats(workspace, is_case_ignored=False), ("x",)
    ) == ("Src2/A",)


def test_a_workspace_that_is_gone_has_nothing_in_it(tmp_path: Path) -> None:
    assert snapshot_stats(tmp_path / "missing") == StatSnapshot({})
