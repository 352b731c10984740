"""The diff of an isolated writer: found, kept for good, and a patch that git applies."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from stretto.globs.glob import Glob, parse_glob
from stretto.problems.errors import NotFound
from stretto.workspaces.change import (
    ChangeSet,
    FileChange,
    find_changes,
    find_paths_outside,
    has_all_bytes,
    join_renames,
    open_changes,
)
from stretto.workspaces.content import BlobLost, Blobs, FileEntry
from stretto.workspaces.file_list import WorkspaceLimits, WorkspaceTooLarge
from stretto.workspaces.isolated_copy import isolate, remove_tree
from stretto.workspaces.patch import LARGEST_BINARY, Summary, render_patch, summarize
from support.trees import Tree, git, read_tree, write_tree

LINES = b"".join(b"line %d\n" % number for number in range(60))
FILES: Tree = {
    "a.txt": LINES,
    "b.bin": bytes(range(256)) * 10,
    "run.sh": (b"#!/bin/sh\n", 0o755),
    "gone.txt": b"bye",
    "old/name.txt": LINES + b"last\n",
    "link": "a.txt",
    "empty": b"",
    "thing": b"file\n",
    "place/x": b"x\n",
}


def changes_of(tmp_path: Path, edit: Callable[[Path], object], files: Tree = FILES) -> ChangeSet:
    workspace = write_tree(tmp_path / "ws", files)
    isolated = isolate(workspace, tmp_path / "home")
    edit(isolated.root)
    return find_changes(isolated, tmp_path / "artifact")


def glob(text: str) -> Glob:
    parsed = parse_glob(text)
    assert isinstance(parsed, Glob)
    return parsed


def do_everything(root: Path) -> None:
    (root / "a.txt").write_bytes(LINES.replace(b"line 7\n", b"seven\n").replace(b"line 50\n", b""))
    (root / "b.bin").write_bytes(bytes(range(255, -1, -1)) * 10)
    (root / "run.sh").chmod(0o644)
    (root / "gone.txt").unlink()
    (root / "new/deep").mkdir(parents=True)
    (root / "new/deep/f.txt").write_bytes(b"no newline")
    (root / "new/run").write_bytes(b"#!\n")
    (root / "new/run").chmod(0o755)
    (root / "new/empty").write_bytes(b"")
    (root / "new/zero.bin").write_bytes(b"\0" * 3000)
    (root / "old/name.txt").rename(root / "new/other.txt")
    (root / "new/other.txt").write_bytes((LINES + b"last\n").replace(b"line 3\n", b"three\n"))
    (root / "link").unlink()
    (root / "link").symlink_to("run.sh")
    (root / "thing").unlink()
    (root / "thing").mkdir()
    (root / "thing/in").write_bytes(b"side\n")
    shutil.rmtree(root / "place")
    (root / "place").symlink_to("a.txt")
    (root / "empty").write_bytes("é\r\nsmall".encode())
    (root / 'odd "name" \\ é\t.txt').write_bytes(b"\xff\xfe latin\n")
    (root / "with blank").write_bytes(b"x\n")
    (root / os.fsdecode(b"caf\xe9")).write_bytes(b"y\n")


def test_git_applies_the_patch_and_takes_it_back(tmp_path: Path) -> None:
    changes = changes_of(tmp_path, do_everything)
    target = write_tree(tmp_path / "target", FILES)
    git(target, "init", "-q")
    patch = render_patch(changes)
    git(target, "-c", "core.autocrlf=false", "apply", text=patch)
    done, meant = read_tree(target), read_tree(tmp_path / "home/root")
    assert {path: done[path] for path in done if not path.endswith("/")} == {
        path: meant[path] for path in meant if not path.endswith("/")
    }
    git(target, "apply", "--reverse", text=patch)
    assert read_tree(target) == read_tree(tmp_path / "ws")


def test_each_change_is_what_it_is(tmp_path: Path) -> None:
    changes = changes_of(tmp_path, do_everything)
    by_path = {change.path: change for change in changes.changes}
    assert by_path["new/other.txt"].renamed_from == "old/name.txt"
    assert "old/name.txt" not in by_path
    assert by_path["gone.txt"].after is None
    assert by_path["new/empty"].before is None
    assert by_path["link"].after is not None
    assert by_path["link"].after.kind == "link"
    run = by_path["run.sh"]
    assert run.before is not None
    assert run.after is not None
    assert (run.before.is_executable, run.after.is_executable) == (True, False)
    assert run.before.digest == run.after.digest
    blobs = Blobs(changes.objects)
    assert blobs.read(by_path["b.bin"].before.digest) == FILES["b.bin"]  # type: ignore[union-attr]
    assert changes.refused == ()


def join_texts(new: int, size: int) -> tuple[list[FileChange], int]:
    """One file removed and many made, all alike; how they are joined, and how much is read."""
    read = list[int]()

    def read_text(entry: FileEntry) -> bytes:
        read.append(entry.size)
        return b"x" * (size - 1) + b"\n"

    changes = [FileChange("old", FileEntry("file", 0o644, size, "old"), None)]
    for number in range(new):
        entry = FileEntry("file", 0o644, size, str(number))
        changes.append(FileChange(f"new{number}", None, entry))
    return join_renames(changes, read_text), sum(read)


def test_what_is_read_to_find_renames_is_bounded_and_then_none_is_found() -> None:
    joined, read = join_texts(new=40, size=300 * 1024)
    assert (len(joined), read) == (40, 41 * 300 * 1024)
    assert [change.renamed_from for change in joined].count("old") == 1
    joined, read = join_texts(new=2_499, size=300 * 1024)
    assert (len(joined), read) == (2_500, 0)


def test_a_diff_is_there_for_good_without_the_copy(tmp_path: Path) -> None:
    changes = changes_of(tmp_path, do_everything)
    patch, summary = render_patch(changes), summarize(changes)
    remove_tree(tmp_path / "home")
    remove_tree(tmp_path / "ws")
    again = open_changes(tmp_path / "artifact")
    assert again == changes
    assert render_patch(again) == patch
    assert summarize(again) == summary


def test_a_summary_counts_files_and_lines(tmp_path: Path) -> None:
    def edit(root: Path) -> None:
        (root / "a.txt").write_bytes(LINES.replace(b"line 7\n", b"seven\nand a half\n"))
        (root / "gone.txt").unlink()
        (root / "b.bin").write_bytes(b"\0")

    assert summarize(changes_of(tmp_path, edit)) == Summary(files=3, added=2, removed=2)


def test_an_unfinished_diff_is_not_there(tmp_path: Path) -> None:
    changes_of(tmp_path, do_everything)
    (tmp_path / "artifact/changes.json").unlink()
    with pytest.raises(NotFound):
        open_changes(tmp_path / "artifact")


def test_a_lost_byte_is_noticed(tmp_path: Path) -> None:
    changes = changes_of(tmp_path, do_everything)
    pack = changes.objects / "pack"
    content = bytearray(pack.read_bytes())
    content[len(content) // 2] ^= 1
    pack.write_bytes(content)
    with pytest.raises(BlobLost, match="damaged"):
        render_patch(changes)


def test_who_changes_nothing_leaves_an_empty_diff(tmp_path: Path) -> None:
    def touch(root: Path) -> None:
        (root / "a.txt").write_bytes(LINES)
        (root / "a.txt").chmod(0o664)  # another umask is no change
        (root / "empty folder").mkdir()

    changes = changes_of(tmp_path, touch)
    assert changes.changes == ()
    assert render_patch(changes) == b""


def test_what_is_ignored_is_no_part_of_it_unless_asked_for(tmp_path: Path) -> None:
    workspace = write_tree(tmp_path / "ws", {".gitignore": b"dist/\n*.log\n", "src/a.py": b""})
    isolated = isolate(workspace, tmp_path / "home", asked=["dist/**"])
    write_tree(
        isolated.root,
        {"x.log": b"", "src/__pycache__/a.pyc": b"", "dist/out.js": b"x", "src/b.py": b"b"},
    )
    changes = find_changes(isolated, tmp_path / "artifact")
    assert [change.path for change in changes.changes] == ["dist/out.js", "src/b.py"]


def test_a_rule_that_the_writer_adds_hides_no_file_that_was_there(tmp_path: Path) -> None:
    def edit(root: Path) -> None:
        (root / ".gitignore").write_bytes(b"*\n")
        (root / "a.txt").write_bytes(b"changed\n")

    assert [change.path for change in changes_of(tmp_path, edit).changes] == ["a.txt"]


def test_a_git_of_the_writers_own_is_no_part_of_it_and_its_files_are(tmp_path: Path) -> None:
    def edit(root: Path) -> None:
        git(root, "init", "-q")
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "mine")
        (root / "place/.git").mkdir()
        (root / "place/.git/config").write_bytes(b"[core]\n\tfsmonitor = evil\n")
        (root / "place/x").write_bytes(b"changed\n")
        write_tree(root, {"cloned/.git/HEAD": b"x", "cloned/y": b""})

    changes = changes_of(tmp_path, edit)
    assert [change.path for change in changes.changes] == ["cloned/y", "place/x"]
    assert [left.path for left in changes.left] == ["cloned/.git", "place/.git"]


def test_pipes_are_refused_and_links_kept_as_links(tmp_path: Path) -> None:
    def edit(root: Path) -> None:
        os.mkfifo(root / "pipe")
        (root / "gone.txt").unlink()
        os.mkfifo(root / "gone.txt")
        (root / "out").symlink_to("/etc/passwd")

    changes = changes_of(tmp_path, edit)
    assert [left.path for left in changes.refused] == ["gone.txt", "pipe"]
    assert [change.path for change in changes.changes] == ["out"]
    assert Blobs(changes.objects).read(changes.changes[0].after.digest) == b"/etc/passwd"  # type: ignore[union-attr]


def test_a_writer_that_fills_its_copy_is_stopped(tmp_path: Path) -> None:
    workspace = write_tree(tmp_path / "ws", {"a": b""})
    isolated = isolate(workspace, tmp_path / "home")
    write_tree(isolated.root, {f"f{number}": b"" for number in range(20)})
    with pytest.raises(WorkspaceTooLarge):
        find_changes(isolated, tmp_path / "artifact", WorkspaceLimits(files=10))


def test_paths_outside_the_write_set_are_named_and_renames_count_twice(tmp_path: Path) -> None:
    def edit(root: Path) -> None:
        (root / "a.txt").write_bytes(b"x")
        (root / "place/new").write_bytes(b"x")
        (root / "old/name.txt").rename(root / "place/name.txt")

    changes = changes_of(tmp_path, edit)
    assert find_paths_outside(changes, [glob("place/**")]) == ("a.txt", "old/name.txt")
    assert find_paths_outside(changes, [glob("**/*")]) == ()
    assert find_paths_outside(changes, []) == (
        "a.txt",
        "old/name.txt",
        "place/name.txt",
        "place/new",
    )


def test_a_large_binary_is_part_of_a_patch_and_only_named_for_readers(tmp_path: Path) -> None:
    content = os.urandom(LARGEST_BINARY + 1)

    def edit(root: Path) -> None:
        (root / "big.bin").write_bytes(content)
        (root / "a.txt").write_bytes(b"changed\n")

    changes = changes_of(tmp_path, edit)
    target = write_tree(tmp_path / "target", FILES)
    git(target, "apply", text=render_patch(changes))
    assert (target / "big.bin").read_bytes() == content
    assert (target / "a.txt").read_bytes() == b"changed\n"
    named = render_patch(changes, LARGEST_BINARY)
    assert b"Binary files /dev/null and b/big.bin differ\n" in named
    assert len(named) < 5000


def test_no_text_in_a_file_or_its_name_forges_another_part_of_a_patch(tmp_path: Path) -> None:
    evil = "x\ndiff --git a/.bashrc b/.bashrc\n"

    def edit(root: Path) -> None:
        (root / evil).parent.mkdir(parents=True, exist_ok=True)
        (root / evil).write_bytes(b"diff --git a/y b/y\n--- a/y\n+++ b/y\n")

    patch = render_patch(changes_of(tmp_path, edit))
    assert [line for line in patch.splitlines() if line.startswith(b"diff --git")] == [
        b'diff --git "a/x\\012diff --git a/.bashrc b/.bashrc\\012" '
        b'"b/x\\012diff --git a/.bashrc b/.bashrc\\012"'
    ]


CONTENT = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"", b"d"]), max_size=12).map(b"".join)


@settings(max_examples=25, deadline=None)
@given(CONTENT, CONTENT)
def test_git_applies_the_patch_of_any_text(
    tmp_path_factory: pytest.TempPathFactory, before: bytes, after: bytes
) -> None:
    folder = tmp_path_factory.mktemp("any")
    changes = changes_of(folder, lambda root: (root / "f").write_bytes(after), {"f": before})
    target = write_tree(folder / "target", {"f": before})
    patch = render_patch(changes)
    if patch:
        git(target, "apply", text=patch)
    assert (target / "f").read_bytes() == after


def close_much(root: Path) -> None:
    (root / "a.txt").write_bytes(LINES + b"more\n")
    (root / "a.txt").chmod(0)
    (root / "gone.txt").chmod(0o600)
    (root / "run.sh").chmod(0o500)
    (root / "new/deep").mkdir(parents=True)
    (root / "new/deep/f.txt").write_bytes(b"f\n")
    (root / "new/deep/f.txt").chmod(0)
    (root / "new/deep").chmod(0)
    (root / "new").chmod(0)
    (root / "place").chmod(0o300)


def test_what_a_writer_has_closed_to_itself_is_part_of_its_change(tmp_path: Path) -> None:
    changes = changes_of(tmp_path, close_much)
    assert [change.path for change in changes.changes] == ["a.txt", "new/deep/f.txt"]
    assert changes.refused == () == changes.left
    for change, content in zip(changes.changes, (LINES + b"more\n", b"f\n"), strict=True):
        assert change.after is not None
        assert change.after.mode == 0
        assert Blobs(changes.objects).read(change.after.digest) == content


def test_a_mode_that_no_merge_takes_is_told(tmp_path: Path) -> None:
    told = {each.path: each.why for each in changes_of(tmp_path, close_much).modes}
    assert sorted(told) == ["a.txt", "gone.txt", "run.sh"]
    assert told["gone.txt"].startswith("had the mode 0644 and was given 0600")


@pytest.mark.parametrize("mode", [0o755, 0o664, 0o666])
def test_a_mode_that_is_merged_or_that_a_umask_makes_is_not_told(tmp_path: Path, mode: int) -> None:
    changes = changes_of(tmp_path, lambda root: (root / "gone.txt").chmod(mode))
    assert changes.modes == ()


@pytest.mark.parametrize("index", [None, b"", b"{", b"[1]", b'{"a": 3}', b'{"a": [1]}', b"\xff"])
def test_a_change_whose_index_is_lost_or_damaged_says_so(
    tmp_path: Path, index: bytes | None
) -> None:
    changes = changes_of(tmp_path, do_everything)
    file = changes.objects / "index.json"
    file.unlink() if index is None else file.write_bytes(index)
    with pytest.raises(BlobLost, match="lacks the index of its bytes"):
        render_patch(changes)
    assert not has_all_bytes(changes)
