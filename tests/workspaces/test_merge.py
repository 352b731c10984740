"""Merge-back: three ways, all or nothing, and only what the writer may bring."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from stretto.workspaces.change import ChangeSet, find_changes, open_changes
from stretto.workspaces.isolated_copy import isolate, remove_tree
from stretto.workspaces.merge import Conflict, MergePlan, plan_merge, stays_inside
from stretto.workspaces.merge_state import Checkpoint, WorkspaceBusy, merge_lock, no_checkpoint
from stretto.workspaces.paths import PathRefused
from stretto.workspaces.rollback import recover_merges
from stretto.workspaces.transaction import (
    Merged,
    WorkspaceMoved,
    apply_locked,
    is_merged,
    merge_back,
)
from support.trees import Tree, git, read_tree, repository, write_tree

LINES = b"".join(b"line %d\n" % number for number in range(20))
FILES: Tree = {
    "a.txt": LINES,
    "b.txt": b"b\n",
    "run.sh": (b"#!/bin/sh\n", 0o755),
    "secret": (b"s\n", 0o600),
    "d/one.txt": b"one\n",
    "d/two.txt": b"two\n",
    "pic.bin": b"\0\1\2",
    "link": "b.txt",
}


class Writing:
    """A workspace, and writers that each work on a copy of it."""

    def __init__(self, folder: Path, files: Tree = FILES) -> None:
        self.folder = folder
        self.workspace = write_tree(folder / "ws", files)
        self.home = folder / "home"
        self.written = 0

    def write(self, edit: Callable[[Path], object], name: str = "step") -> ChangeSet:
        isolated = isolate(self.workspace, self.home / "workspaces" / name)
        edit(isolated.root)
        self.written += 1
        changes = find_changes(isolated, self.home / "artifacts" / f"{name}-{self.written}")
        remove_tree(isolated.home)
        return changes

    def merge(self, changes: ChangeSet) -> Merged | Conflict:
        return merge_back(changes, self.workspace, self.home)


@pytest.fixture
def writing(tmp_path: Path) -> Writing:
    return Writing(tmp_path)


def edit_text(name: str, old: bytes, new: bytes) -> Callable[[Path], object]:
    def edit(root: Path) -> None:
        content = (root / name).read_bytes()
        assert old in content
        (root / name).write_bytes(content.replace(old, new))

    return edit


def test_two_writers_of_different_files_both_land(writing: Writing) -> None:
    first = writing.write(edit_text("b.txt", b"b", b"B"), "first")
    second = writing.write(lambda root: (root / "new.txt").write_bytes(b"new"), "second")
    assert isinstance(writing.merge(first), Merged)
    assert isinstance(writing.merge(second), Merged)
    assert (writing.workspace / "b.txt").read_bytes() == b"B\n"
    assert (writing.workspace / "new.txt").read_bytes() == b"new"


def test_two_writers_of_one_text_are_merged_by_lines(writing: Writing) -> None:
    first = writing.write(edit_text("a.txt", b"line 2\n", b"two\n"), "first")
    second = writing.write(edit_text("a.txt", b"line 17\n", b"seventeen"), "second")
    writing.merge(first)
    merged = writing.merge(second)
    assert isinstance(merged, Merged)
    assert merged.merged_by_lines == ("a.txt",)
    text = LINES.replace(b"line 2\n", b"two\n").replace(b"line 17\n", b"seventeen")
    assert (writing.workspace / "a.txt").read_bytes() == text


def test_a_clash_changes_nothing_and_keeps_all_sides(writing: Writing) -> None:
    def edit(root: Path) -> None:
        edit_text("a.txt", b"line 2\n", b"theirs\n")(root)
        (root / "new.txt").write_bytes(b"new")
        shutil.rmtree(root / "d")

    changes = writing.write(edit)
    edit_text("a.txt", b"line 2\n", b"ours\n")(writing.workspace)
    before = read_tree(writing.workspace)
    conflict = writing.merge(changes)
    assert isinstance(conflict, Conflict)
    assert conflict.paths == ("a.txt",)
    assert conflict.clashes[0].why == "was changed by both in the same lines (3)"
    assert read_tree(writing.workspace) == before
    assert conflict.kept is not None
    assert (conflict.kept / "base/a.txt").read_bytes() == LINES
    assert (conflict.kept / "ours/a.txt").read_bytes() == LINES.replace(b"line 2\n", b"ours\n")
    assert (conflict.kept / "theirs/a.txt").read_bytes() == LINES.replace(b"line 2\n", b"theirs\n")
    assert not is_merged(changes, writing.workspace, writing.home)
    # Once the workspace is as it was, the same diff can be merged.
    (writing.workspace / "a.txt").write_bytes(LINES)
    assert isinstance(writing.merge(changes), Merged)
    assert not (writing.workspace / "d").exists()


def remove(name: str) -> Callable[[Path], object]:
    return lambda root: (root / name).unlink()


def put(name: str, content: bytes) -> Callable[[Path], object]:
    def act(root: Path) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)

    return act


def point(name: str, target: str) -> Callable[[Path], object]:
    def act(root: Path) -> None:
        (root / name).unlink(missing_ok=True)
        (root / name).symlink_to(target)

    return act


def turn_into_folder(root: Path) -> None:
    (root / "b.txt").unlink()
    put("b.txt/inside", b"x")(root)


def turn_into_file(root: Path) -> None:
    shutil.rmtree(root / "d")
    (root / "d").write_bytes(b"a file")


def link_folder_away(root: Path) -> None:
    shutil.rmtree(root / "d")
    (root / "d").symlink_to("..")


@pytest.mark.parametrize(
    ("theirs", "ours", "why"),
    [
        (edit_text("b.txt", b"b", b"c"), remove("b.txt"), "changed by the step, and is gone"),
        (remove("b.txt"), edit_text("b.txt", b"b", b"c"), "removed by the step, and changed"),
        (put("new", b"1"), put("new", b"2"), "made by both"),
        (put("pic.bin", b"\0a"), put("pic.bin", b"\0b"), "no text"),
        (point("link", "a.txt"), point("link", "run.sh"), "symbolic link"),
        (put("n/x", b"1"), put("n", b"2"), "needs a folder 'n'"),
        (turn_into_folder, edit_text("b.txt", b"b", b"c"), "removed by the step, and changed"),
        (turn_into_file, put("d/ignored", b"2"), "is a folder here"),
        (put("n", b"1"), put("n/x", b"2"), "is a folder here"),
        (edit_text("d/one.txt", b"o", b"O"), link_folder_away, "is gone from the workspace"),
    ],
)
def test_what_cannot_be_both_is_a_conflict_and_nothing_is_done(
    writing: Writing,
    theirs: Callable[[Path], object],
    ours: Callable[[Path], object],
    why: str,
) -> None:
    changes = writing.write(theirs)
    ours(writing.workspace)
    before = read_tree(writing.workspace)
    conflict = writing.merge(changes)
    assert isinstance(conflict, Conflict)
    assert why in " ".join(clash.why for clash in conflict.clashes)
    assert read_tree(writing.workspace) == before


@pytest.mark.parametrize(
    "edit",
    [remove("b.txt"), put("new", b"1"), put("a.txt", b"1"), turn_into_folder, turn_into_file],
)
def test_what_both_did_alike_is_done_already(
    writing: Writing, edit: Callable[[Path], object]
) -> None:
    changes = writing.write(edit)
    edit(writing.workspace)
    before = read_tree(writing.workspace)
    merged = writing.merge(changes)
    assert isinstance(merged, Merged)
    assert merged.paths == ()
    assert read_tree(writing.workspace) == before


def test_a_rename_carries_over_what_changed_meanwhile(writing: Writing) -> None:
    changes = writing.write(lambda root: (root / "a.txt").rename(root / "renamed.txt"))
    edit_text("a.txt", b"line 2\n", b"two\n")(writing.workspace)
    assert isinstance(writing.merge(changes), Merged)
    assert not (writing.workspace / "a.txt").exists()
    text = LINES.replace(b"line 2\n", b"two\n")
    assert (writing.workspace / "renamed.txt").read_bytes() == text


def test_a_rename_of_what_is_gone_is_a_conflict_of_both_paths(writing: Writing) -> None:
    changes = writing.write(lambda root: (root / "a.txt").rename(root / "renamed.txt"))
    (writing.workspace / "a.txt").write_bytes(b"something else")
    conflict = writing.merge(changes)
    assert isinstance(conflict, Merged)  # only the name was theirs, only the content ours
    other = writing.write(lambda root: (root / "renamed.txt").rename(root / "again.txt"))
    (writing.workspace / "renamed.txt").unlink()
    conflict = writing.merge(other)
    assert isinstance(conflict, Conflict)
    assert conflict.paths == ("again.txt", "renamed.txt")


def test_modes_are_merged_and_the_rest_of_a_mode_stays(writing: Writing) -> None:
    def edit(root: Path) -> None:
        (root / "run.sh").chmod(0o644)
        (root / "b.txt").chmod(0o755)
        (root / "secret").write_bytes(b"still\n")
        (root / "secret").chmod(0o666)
        put("new", b"")(root)
        (root / "new").chmod(0o777)
        put("private", b"")(root)
        (root / "private").chmod(0o600)

    changes = writing.write(edit)
    (writing.workspace / "b.txt").chmod(0o640)
    edit_text("run.sh", b"sh", b"bash")(writing.workspace)
    writing.merge(changes)
    now = read_tree(writing.workspace)
    assert now["run.sh"] == (b"#!/bin/bash\n", 0o644)
    assert now["b.txt"] == (b"b\n", 0o750)
    assert now["secret"] == (b"still\n", 0o600)
    assert now["new"] == (b"", 0o755)
    assert now["private"] == (b"", 0o600)


@pytest.mark.parametrize(
    ("path", "target", "is_inside"),
    [
        ("l", "a", True),
        ("l", "./a//b/.", True),
        ("d/l", "../a", True),
        ("d/e/l", "../../a", True),
        ("d/e/l", "./../../a", True),
        ("l", "..", False),
        ("l", "../ws/a", False),
        ("d/l", "../../a", False),
        ("l", "/etc/passwd", False),
        ("l", "d/../../a", False),
        ("l", "d/e/../..", False),  # d/e may be a link to the top
        ("l", "", False),
    ],
)
def test_a_link_stays_inside_whatever_else_is_a_link(
    path: str, target: str, is_inside: bool
) -> None:
    assert stays_inside(path, target) is is_inside


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "d/../../outside"])
def test_a_link_out_of_the_workspace_is_never_merged(writing: Writing, target: str) -> None:
    changes = writing.write(lambda root: (point("new", target)(root), put("ok", b"")(root)))
    before = read_tree(writing.workspace)
    conflict = writing.merge(changes)
    assert isinstance(conflict, Conflict)
    assert conflict.clashes[0].why == "is a symbolic link that leads out of the workspace"
    assert read_tree(writing.workspace) == before


def test_pipes_are_never_merged(writing: Writing) -> None:
    changes = writing.write(lambda root: (os.mkfifo(root / "pipe"), put("ok", b"")(root)))
    conflict = writing.merge(changes)
    assert isinstance(conflict, Conflict)
    assert conflict.paths == ("pipe",)
    assert not (writing.workspace / "ok").exists()


def test_no_merge_touches_git(tmp_path: Path) -> None:
    writing = Writing(tmp_path, {})
    shutil.rmtree(writing.workspace)
    repository(writing.workspace, FILES)
    before = {p: p.stat().st_mtime_ns for p in (writing.workspace / ".git").rglob("*")}

    def edit(root: Path) -> None:
        git(root, "init", "-q")
        put(".git/hooks/pre-commit", b"evil")(root)
        put("d/.GIT/config", b"evil")(root)
        put("b.txt", b"fine")(root)

    merged = writing.merge(writing.write(edit))
    assert isinstance(merged, Merged)
    assert merged.paths == ("b.txt",)
    assert {p: p.stat().st_mtime_ns for p in (writing.workspace / ".git").rglob("*")} == before
    assert not (writing.workspace / "d/.GIT").exists()


def test_a_folder_that_is_a_link_now_is_not_written_through(
    writing: Writing, tmp_path: Path
) -> None:
    outside = write_tree(tmp_path / "outside", {"one.txt": b"one\n"})
    changes = writing.write(put("d/new.txt", b"x"))
    shutil.rmtree(writing.workspace / "d")
    (writing.workspace / "d").symlink_to("../outside")
    conflict = writing.merge(changes)
    assert isinstance(conflict, Conflict)
    assert read_tree(outside) == {"one.txt": (b"one\n", 0o644)}


def test_a_hard_link_elsewhere_keeps_what_it_held(writing: Writing, tmp_path: Path) -> None:
    os.link(writing.workspace / "b.txt", tmp_path / "elsewhere")
    writing.merge(writing.write(put("b.txt", b"new")))
    assert (tmp_path / "elsewhere").read_bytes() == b"b\n"
    assert (writing.workspace / "b.txt").read_bytes() == b"new"


def test_a_dry_run_writes_nothing(writing: Writing) -> None:
    changes = writing.write(edit_text("b.txt", b"b", b"c"))
    before = read_tree(writing.folder)
    plan = plan_merge(changes, writing.workspace)
    assert isinstance(plan, MergePlan)
    assert [each.path for each in plan.puts] == ["b.txt"]
    assert read_tree(writing.folder) == before


def test_changes_are_merged_once(writing: Writing) -> None:
    changes = writing.write(edit_text("b.txt", b"b", b"c"))
    writing.merge(changes)
    (writing.workspace / "b.txt").write_bytes(b"b\n")  # taken back by hand
    again = writing.merge(open_changes(changes.artifact))
    assert isinstance(again, Merged)
    assert again.was_done
    assert (writing.workspace / "b.txt").read_bytes() == b"b\n"


def apply_plan(plan: MergePlan, home: Path, at: Checkpoint = no_checkpoint) -> Merged:
    with merge_lock(home, plan.workspace):
        return apply_locked(plan, home, at)


@pytest.mark.parametrize("when", ["staged", "removed", "folder removed", "created", "kept"])
def test_a_file_saved_in_the_middle_of_a_merge_undoes_all_of_it(
    writing: Writing, when: str
) -> None:
    def edit(root: Path) -> None:
        shutil.rmtree(root / "d")
        put("e/new.txt", b"new")(root)
        put("a.txt", b"theirs")(root)
        put("zz.txt", b"theirs")(root)

    put("zz.txt", b"z\n")(writing.workspace)
    changes = writing.write(edit)
    plan = plan_merge(changes, writing.workspace)
    assert isinstance(plan, MergePlan)
    before = read_tree(writing.workspace)
    inode = (writing.workspace / "a.txt").stat().st_ino

    def save(point: str) -> None:
        if point == when:
            put("zz.txt", b"saved by hand")(writing.workspace)

    with pytest.raises(WorkspaceMoved, match=r"'zz\.txt' was changed in the workspace"):
        apply_plan(plan, writing.home, save)
    assert read_tree(writing.workspace) == {**before, "zz.txt": (b"saved by hand", 0o644)}
    assert (writing.workspace / "a.txt").stat().st_ino == inode
    conflict = writing.merge(changes)
    assert isinstance(conflict, Conflict)
    assert conflict.paths == ("zz.txt",)


def test_a_file_saved_meanwhile_is_looked_at_anew(writing: Writing) -> None:
    changes = writing.write(edit_text("a.txt", b"line 2\n", b"two\n"))
    saved = list[str]()

    def save(point: str) -> None:
        if point == "staged" and not saved:
            saved.append(point)
            edit_text("a.txt", b"line 17\n", b"seventeen\n")(writing.workspace)

    merged = merge_back(changes, writing.workspace, writing.home, save)
    assert isinstance(merged, Merged)
    text = LINES.replace(b"line 2\n", b"two\n").replace(b"line 17\n", b"seventeen\n")
    assert (writing.workspace / "a.txt").read_bytes() == text


def test_a_failure_in_the_middle_leaves_nothing_behind(writing: Writing) -> None:
    changes = writing.write(lambda root: (put("x/y", b"1")(root), put("b.txt", b"2")(root)))
    plan = plan_merge(changes, writing.workspace)
    assert isinstance(plan, MergePlan)
    before = read_tree(writing.workspace)

    def fail(point: str) -> None:
        if point == "replaced":
            raise KeyboardInterrupt

    def run_out(point: str) -> None:
        if point == "created":
            raise OSError(28, "No space left on device")

    with pytest.raises(KeyboardInterrupt):
        apply_plan(plan, writing.home, fail)
    with pytest.raises((OSError, PathRefused)):
        apply_plan(plan, writing.home, run_out)
    assert read_tree(writing.workspace) == before
    assert recover_merges(writing.workspace, writing.home) == ()
    assert isinstance(apply_plan(plan, writing.home), Merged)


DYING = """
import os, sys
from pathlib import Path
from stretto.workspaces.change import open_changes
from stretto.workspaces.transaction import merge_back

artifact, workspace, home = map(Path, sys.argv[1:])
die = lambda point: os._exit(0) if point == "synced" else None
merge_back(open_changes(artifact), workspace, home, die)
"""


def test_what_was_edited_between_a_crash_and_its_recovery_is_not_lost(writing: Writing) -> None:
    changes = writing.write(
        lambda root: (put("a.txt", b"theirs")(root), put("b.txt", b"theirs")(root))
    )
    paths = [str(path) for path in (changes.artifact, writing.workspace, writing.home)]
    subprocess.run([sys.executable, "-c", DYING, *paths], check=True)
    put("b.txt", b"edited since")(writing.workspace)
    (recovered,) = recover_merges(writing.workspace, writing.home)
    assert (recovered.outcome, recovered.disturbed) == ("undone", ("b.txt",))
    assert (writing.workspace / "a.txt").read_bytes() == LINES
    assert (writing.workspace / "b.txt").read_bytes() == b"edited since"
    assert recovered.kept is not None
    assert (recovered.kept / "b.txt").read_bytes() == b"b\n"
    assert list(writing.workspace.glob(".stretto-merge-*")) == []
    assert recover_merges(writing.workspace, writing.home) == ()


def test_no_copy_is_made_of_a_mixed_tree(writing: Writing, tmp_path: Path) -> None:
    changes = writing.write(
        lambda root: (put("a.txt", b"theirs")(root), put("b.txt", b"theirs")(root))
    )
    paths = [str(path) for path in (changes.artifact, writing.workspace, writing.home)]
    subprocess.run([sys.executable, "-c", DYING, *paths], check=True)
    assert (writing.workspace / "a.txt").read_bytes() == b"theirs"
    isolated = isolate(writing.workspace, tmp_path / "copy", engine_home=writing.home)
    assert (isolated.root / "a.txt").read_bytes() == LINES
    with merge_lock(writing.home, writing.workspace, shared=True):
        isolate(writing.workspace, tmp_path / "copy", engine_home=writing.home)
        with pytest.raises(WorkspaceBusy), merge_lock(writing.home, writing.workspace, 0.05):
            pass


def test_merges_of_one_workspace_wait_for_each_other(writing: Writing) -> None:
    changes = [writing.write(put(f"new{number}.txt", b"x"), f"step{number}") for number in range(6)]
    writers = [threading.Thread(target=writing.merge, args=[each]) for each in changes]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert all((writing.workspace / f"new{number}.txt").exists() for number in range(6))
    with (
        merge_lock(writing.home, writing.workspace),
        pytest.raises(WorkspaceBusy),
        merge_lock(writing.home, writing.workspace, wait_seconds=0.05),
    ):
        pass


def test_readers_never_miss_a_file_that_is_replaced(writing: Writing) -> None:
    changes = writing.write(put("a.txt", b"theirs"))
    stop = threading.Event()
    seen = set[bytes]()

    def read() -> None:
        while not stop.is_set():
            seen.add((writing.workspace / "a.txt").read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    writing.merge(changes)
    stop.set()
    reader.join()
    assert seen <= {LINES, b"theirs"}
    assert seen
