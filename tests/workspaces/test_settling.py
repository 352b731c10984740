"""A conflict that a person has settled: by hand, or by taking one side."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from stretto.workspaces.change import ChangeSet, FileChange, find_changes
from stretto.workspaces.content import BlobWriter, FileEntry
from stretto.workspaces.isolated_copy import isolate
from stretto.workspaces.merge import Conflict, MergePlan, Settlement, plan_merge
from stretto.workspaces.paths import escape_path
from stretto.workspaces.transaction import Merged, merge_back
from support.trees import Tree, read_tree, write_tree

FILES: Tree = {
    "text": b"one\ntwo\n",
    "binary": b"\0\1",
    "removed": b"r\n",
    "kept": b"k\n",
    "old": b"".join(b"line %d\n" % number for number in range(30)),
    "calm": b"c\n",
}


def step(root: Path) -> None:
    write_tree(root, {"text": b"theirs\ntwo\n", "binary": b"\0theirs", "calm": b"C\n"})
    write_tree(root, {"made": b"theirs", "kept": b"theirs\n"})
    (root / "removed").unlink()
    (root / "old").rename(root / "new")


def person(root: Path) -> None:
    write_tree(root, {"text": b"ours\ntwo\n", "binary": b"\0ours", "made": b"ours"})
    write_tree(root, {"removed": b"ours\n", "new": b"ours"})
    (root / "kept").unlink()


class Clashing:
    def __init__(self, folder: Path) -> None:
        self.workspace = write_tree(folder / "ws", FILES)
        self.home = folder / "home"
        isolated = isolate(self.workspace, folder / "copy")
        step(isolated.root)
        self.changes: ChangeSet = find_changes(isolated, folder / "artifact")
        person(self.workspace)

    def merge(self, *resolved: str, otherwise: str | None = None) -> Merged | Conflict:
        settlement = Settlement(frozenset(resolved), otherwise)  # type: ignore[arg-type]
        return merge_back(self.changes, self.workspace, self.home, settlement=settlement)

    def read(self) -> dict[str, bytes]:
        return {path: file[0] for path, file in read_tree(self.workspace).items()}  # type: ignore[misc]


CLASHES = {"text", "binary", "removed", "kept", "made", "new", "old"}


@pytest.fixture
def clashing(tmp_path: Path) -> Clashing:
    return Clashing(tmp_path)


def test_what_is_settled_by_hand_stays_and_the_rest_is_merged(clashing: Clashing) -> None:
    conflict = clashing.merge()
    assert isinstance(conflict, Conflict)
    assert set(conflict.paths) == CLASHES
    write_tree(clashing.workspace, {"text": b"both\n"})
    assert isinstance(clashing.merge("text", "binary"), Conflict), "five are left"
    before = clashing.read()
    assert isinstance(clashing.merge(*CLASHES), Merged)
    assert clashing.read() == {**before, "calm": b"C\n"}
    merged = clashing.merge()
    assert isinstance(merged, Merged)
    assert merged.was_done, "settled once is settled"


def test_what_was_settled_stays_also_where_it_would_merge_by_itself_now(
    clashing: Clashing,
) -> None:
    settled = {"text": b"two\n", "calm": b"c\n"}  # by removing the line, and as it was at first
    write_tree(clashing.workspace, settled)
    merged = clashing.merge("text", "calm", otherwise="theirs")
    assert isinstance(merged, Merged)
    assert {path: clashing.read()[path] for path in settled} == settled
    assert {"text", "calm"} <= {left.path for left in merged.left}


def test_ours_keeps_the_workspace_in_every_conflict(clashing: Clashing) -> None:
    before = clashing.read()
    assert isinstance(clashing.merge(otherwise="ours"), Merged)
    assert clashing.read() == {**before, "calm": b"C\n"}


def test_theirs_takes_the_step_in_every_conflict(clashing: Clashing) -> None:
    assert isinstance(clashing.merge(otherwise="theirs"), Merged)
    lines = FILES["old"]
    assert clashing.read() == {
        "text": b"theirs\ntwo\n", "binary": b"\0theirs", "made": b"theirs", "kept": b"theirs\n",
        "new": lines, "calm": b"C\n",
    }  # fmt: skip


def test_theirs_for_all_but_what_was_settled_by_hand(clashing: Clashing) -> None:
    assert isinstance(clashing.merge("text", "kept", otherwise="theirs"), Merged)
    read = clashing.read()
    assert (read["text"], "kept" in read, read["made"]) == (b"ours\ntwo\n", False, b"theirs")


def leads_out(root: Path) -> None:
    (root / "out").symlink_to("/etc/passwd")


def is_a_pipe(root: Path) -> None:
    os.mkfifo(root / "pipe")


@pytest.mark.parametrize("edit", [leads_out, is_a_pipe])
def test_no_side_that_is_taken_brings_what_no_merge_may_bring(
    tmp_path: Path, edit: Callable[[Path], None]
) -> None:
    workspace = write_tree(tmp_path / "ws", {"a": b""})
    isolated = isolate(workspace, tmp_path / "copy")
    edit(isolated.root)
    changes = find_changes(isolated, tmp_path / "artifact")
    theirs = Settlement(otherwise="theirs")
    home = tmp_path / "home"
    assert isinstance(merge_back(changes, workspace, home, settlement=theirs), Conflict)
    ours = Settlement(otherwise="ours")
    assert isinstance(merge_back(changes, workspace, home, settlement=ours), Merged)
    assert read_tree(workspace) == {"a": (b"", 0o644)}


def test_a_folder_in_the_way_is_not_removed_by_taking_a_side(tmp_path: Path) -> None:
    workspace = write_tree(tmp_path / "ws", {"a": b""})
    isolated = isolate(workspace, tmp_path / "copy")
    write_tree(isolated.root, {"thing": b"file"})
    changes = find_changes(isolated, tmp_path / "artifact")
    write_tree(workspace, {"thing/precious": b""})
    theirs = Settlement(otherwise="theirs")
    merged = merge_back(changes, workspace, tmp_path / "home", settlement=theirs)
    assert isinstance(merged, Conflict)
    assert (workspace / "thing/precious").exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("caf\xe9", "caf\xe9"),
        (os.fsdecode(b"caf\xe9"), "caf\\xe9"),
        ("\x1b]52;c;x\x07", "\\x1b]52;c;x\\x07"),
        ("a\u202eb", "a\\u202eb"),
        ("a\nb", "a\\nb"),
    ],
)
def test_a_name_is_spelt_as_text_that_a_terminal_and_json_take(name: str, text: str) -> None:
    assert escape_path(name) == text
    escape_path(name).encode()


OBSTRUCTED: list[tuple[Tree, Tree]] = [
    ({"thing": b"theirs"}, {"thing/own": b"ours"}),
    ({"thing/made": b"theirs"}, {"thing": b"ours"}),
    ({"a/b/c": b"theirs", "a/b/d": b"theirs"}, {"a": b"ours"}),
]


@pytest.mark.parametrize(("made", "own"), OBSTRUCTED)
def test_ours_keeps_a_file_or_folder_that_is_in_the_way(
    tmp_path: Path, made: Tree, own: Tree
) -> None:
    workspace = write_tree(tmp_path / "ws", {"calm": b"c\n"})
    isolated = isolate(workspace, tmp_path / "copy")
    write_tree(isolated.root, {**made, "calm": b"C\n"})
    changes = find_changes(isolated, tmp_path / "artifact")
    write_tree(workspace, own)
    for otherwise in (None, "theirs"):
        settlement = Settlement(otherwise=otherwise)  # type: ignore[arg-type]
        merged = merge_back(changes, workspace, tmp_path / "home", settlement=settlement)
        assert isinstance(merged, Conflict), "nothing of the workspace is removed to make room"
    merged = merge_back(
        changes, workspace, tmp_path / "home", settlement=Settlement(otherwise="ours")
    )
    assert isinstance(merged, Merged)
    assert {left.path for left in merged.left} == set(made)
    files = (path for path in workspace.rglob("*") if path.is_file())
    found = {str(path.relative_to(workspace)): path.read_bytes() for path in files}
    assert found == {"calm": b"C\n", **own}


def test_ours_keeps_both_ends_of_a_rename_whose_end_is_in_the_way(tmp_path: Path) -> None:
    workspace = write_tree(tmp_path / "ws", {"old": FILES["old"], "calm": b"c\n"})
    isolated = isolate(workspace, tmp_path / "copy")
    (isolated.root / "new").mkdir()
    (isolated.root / "old").rename(isolated.root / "new" / "place")
    changes = find_changes(isolated, tmp_path / "artifact")
    write_tree(workspace, {"new": b"ours"})
    before = read_tree(workspace)
    ours = Settlement(otherwise="ours")
    merged = merge_back(changes, workspace, tmp_path / "home", settlement=ours)
    assert isinstance(merged, Merged)
    assert read_tree(workspace) == before


def test_ours_settles_many_changes_that_are_in_the_way_in_no_time(tmp_path: Path) -> None:
    workspace = write_tree(tmp_path / "ws", {"out": b"ours"})
    with BlobWriter(tmp_path / "artifact/objects") as keep:
        entry = FileEntry("file", 0o644, 1, keep.add(b"x"))
        keep.finish(durable=False)
    made = [FileChange(f"out/{number}", None, entry) for number in range(3_000)]
    changes = ChangeSet("id", tmp_path / "artifact", tuple(made))
    began = time.process_time()
    plan = plan_merge(changes, workspace, Settlement(otherwise="ours"))
    assert time.process_time() - began < 5
    assert isinstance(plan, MergePlan)
    assert (len(plan.left), plan.puts) == (3_000, ())


def test_what_was_settled_is_named(clashing: Clashing) -> None:
    merged = clashing.merge("text", otherwise="ours")
    assert isinstance(merged, Merged)
    assert {left.path for left in merged.left} == CLASHES
