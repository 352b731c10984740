"""What a writer makes under an ignored path is kept, or named; it is never lost in silence."""

from collections.abc import Callable
from pathlib import Path

import pytest

from stretto.globs.glob import Glob, parse_glob
from stretto.workspaces.change import ChangeSet, find_changes, open_changes
from stretto.workspaces.file_list import (
    DEFAULT_LIMITS,
    WorkspaceLimits,
    WorkspaceTooLarge,
    find_left_out,
)
from stretto.workspaces.isolated_copy import isolate, open_isolated, why_lost
from stretto.workspaces.transaction import Merged, merge_back
from support.trees import Tree, git, read_tree, repository, write_tree

FILES: Tree = {".gitignore": b"out/\n*.log\n", "a.txt": b"a\n", "src/a.c": b"int a;\n"}


def globs(*texts: str) -> list[Glob]:
    return [glob for text in texts if isinstance(glob := parse_glob(text), Glob)]


class Work:
    """A workspace and one writer's copy of it."""

    def __init__(self, folder: Path, files: Tree, *writes: str, reads: str = "**/*") -> None:
        self.folder = folder
        self.workspace = write_tree(folder / "ws", files)
        self.isolated = isolate(
            self.workspace,
            folder / "copy",
            asked=(*writes, reads),
            writes=writes,
        )
        self.root = self.isolated.root

    def changes(self, limits: WorkspaceLimits = DEFAULT_LIMITS) -> ChangeSet:
        return find_changes(self.isolated, self.folder / "artifact", limits)

    def merge(self) -> Merged:
        merged = merge_back(self.changes(), self.workspace, self.folder / "home")
        assert isinstance(merged, Merged), merged
        return merged


def made(changes: ChangeSet) -> list[str]:
    return [change.path for change in changes.changes]


@pytest.mark.parametrize("is_repository", [True, False])
@pytest.mark.parametrize("path", ["out/report.md", "out/deep/er.md", "run.log", "src/x.log"])
def test_an_ignored_file_that_the_write_set_covers_reaches_the_workspace(
    tmp_path: Path, path: str, is_repository: bool
) -> None:
    work = Work(tmp_path, FILES, "**/*")
    if is_repository:
        work = Work(repository(tmp_path / "r" / "ws", FILES).parent, {}, "**/*")
    write_tree(work.root, {path: b"made"})
    assert work.merge().paths == (path,)
    assert (work.workspace / path).read_bytes() == b"made"
    assert open_changes(work.folder / "artifact").changes[0].is_ignored


def test_rules_from_above_and_of_the_writers_own_lose_nothing_either(tmp_path: Path) -> None:
    top = repository(tmp_path / "top", {".gitignore": b"*.tmp\n", "inner/a": b""})
    (top / ".git/info/exclude").write_text("*.bak\n")
    isolated = isolate(top / "inner", tmp_path / "copy", writes=["**/*"])
    write_tree(isolated.root, {"x.tmp": b"", "x.bak": b"", ".gitignore": b"*\n", "new": b""})
    changes = find_changes(isolated, tmp_path / "artifact")
    assert made(changes) == [".gitignore", "new", "x.bak", "x.tmp"]


def test_an_ignored_file_outside_the_write_set_is_named_and_fails_nothing(tmp_path: Path) -> None:
    work = Work(tmp_path, FILES, "src/**")
    write_tree(work.root, {"src/a.c": b"int b;\n", "out/x": b"", "out/y": b"", "z.log": b""})
    changes = work.changes()
    assert made(changes) == ["src/a.c"]
    assert {left.path: left.why for left in changes.left} == {
        "out": "a .gitignore leaves it out, and the write-set does not cover it (2 files)",
        "z.log": "a .gitignore leaves it out, and the write-set does not cover it (1 file)",
    }


@pytest.mark.parametrize("name", ["node_modules", ".venv", "__pycache__", "src/node_modules"])
def test_folders_that_nobody_edits_are_named_unless_the_write_set_names_them(
    tmp_path: Path, name: str
) -> None:
    work = Work(tmp_path / "covered", FILES, "**/*", "src/**")
    write_tree(work.root, {f"{name}/x": b"", f"{name}/deep/y": b""})
    changes = work.changes()
    assert made(changes) == []
    assert [(left.path, left.why[-9:]) for left in changes.left] == [(name, "(2 files)")]
    named = Work(tmp_path / "named", FILES, f"{name}/**")
    write_tree(named.root, {f"{name}/x": b"", f"{name}/deep/y": b""})
    assert made(named.changes()) == [f"{name}/deep/y", f"{name}/x"]


def test_an_empty_folder_that_a_step_made_is_named(tmp_path: Path) -> None:
    work = Work(tmp_path, {**FILES, ".gitignore": b"*.log\n"}, "src/**")
    (work.root / "src" / "old").mkdir()
    (work.workspace / "src" / "old").mkdir()  # the user has made it too
    (work.root / "new" / "in" / "it").mkdir(parents=True)
    write_tree(work.root, {"src/full/b.c": b"", "logs/x.log": b""})
    changes = work.changes()
    assert made(changes) == ["src/full/b.c"]
    told = {left.path: left.why for left in changes.left}
    assert told.pop("logs").startswith("a .gitignore")
    assert told == {"new": "it is an empty folder"}


def test_a_file_that_the_step_was_not_shown_is_not_replaced_by_its_own(tmp_path: Path) -> None:
    work = Work(tmp_path, {**FILES, "a.log": b"user's"}, "**/*")
    assert "a.log" not in work.isolated.files
    write_tree(work.root, {"a.log": b"step's", "src/a.c": b"int b;\n", "b.log": b"new"})
    merged = work.merge()
    assert merged.paths == ("b.log", "src/a.c")
    assert [left.path for left in merged.left] == ["a.log"]
    assert (work.workspace / "a.log").read_bytes() == b"user's"


def test_much_that_is_ignored_does_not_fail_the_step(tmp_path: Path) -> None:
    work = Work(tmp_path, FILES, "**/*")
    write_tree(work.root, {f"out/{number}": b"" for number in range(30)})
    write_tree(work.root, {"src/a.c": b"int b;\n"})
    changes = work.changes(WorkspaceLimits(files=5))
    assert "src/a.c" in made(changes)
    assert len(made(changes)) == 11  # twice the limit of those that are ignored
    assert len(changes.left) == 20


def test_a_copy_that_just_fits_has_room_for_what_the_step_adds(tmp_path: Path) -> None:
    files: Tree = {f"f{number}": b"x" for number in range(10)}
    limits = WorkspaceLimits(files=10, bytes=10, file_bytes=1)
    workspace = write_tree(tmp_path / "ws", files)
    isolated = isolate(workspace, tmp_path / "copy", limits, writes=["**/*"])
    write_tree(isolated.root, {"new": b"x", "f1": b"xy"})
    assert made(find_changes(isolated, tmp_path / "artifact", limits)) == ["f1", "new"]
    write_tree(isolated.root, {f"more{number}": b"" for number in range(20)})
    with pytest.raises(WorkspaceTooLarge):
        find_changes(isolated, tmp_path / "artifact", limits)


READS: list[tuple[str, str, bool]] = [
    ("out/**", "out/a", True),
    ("out/*.md", "out/a", False),
    ("out/deep/**/*.md", "out/deep/er/a.md", True),
    ("**/out/**", "x/out/a", True),
    ("{out,b}/**", "out/a", True),
    ("*.log", "a.log", True),
    ("src/*.log", "src/a.log", True),
    ("**/*", "out/a", False),
    ("src/**", "src/node_modules/a", False),
]


@pytest.mark.parametrize(("reads", "path", "is_copied"), READS)
def test_what_a_read_set_names_is_copied_too(
    tmp_path: Path, reads: str, path: str, is_copied: bool
) -> None:
    work = Work(tmp_path, {**FILES, path: b"x"}, "src/*.c", reads=reads)
    assert (path in work.isolated.files) is is_copied


@pytest.mark.parametrize(
    ("path", "write_set", "is_lost"),
    [
        ("out/new.md", "**/*", False),
        ("out/there.md", "**/*", True),
        ("out/there.md", "out/**", False),
        ("node_modules/x.js", "**/*", True),
        ("src/__pycache__/x.pyc", "src/**", True),
        ("node_modules/x.js", "node_modules/**", False),
        ("a.txt", "**/*", False),
        ("src/new.c", "**/*", False),
    ],
)
def test_what_would_be_lost_is_known_before_it_is_written(
    tmp_path: Path, path: str, write_set: str, is_lost: bool
) -> None:
    work = Work(tmp_path, {**FILES, "out/there.md": b"user's"}, write_set)
    assert (why_lost(work.root, work.workspace, path) is not None) is is_lost


def test_a_file_that_the_step_removed_may_be_made_again(tmp_path: Path) -> None:
    work = Work(tmp_path, FILES, "**/*")
    (work.root / "a.txt").unlink()
    assert why_lost(work.root, work.workspace, "a.txt") is None


def submodule(folder: Path) -> Path:
    library = repository(folder / "library", {"lib.c": b"int l;\n", ".gitignore": b"*.o\n"})
    workspace = repository(folder / "ws", FILES)
    allow = ("-c", "protocol.file.allow=always")
    git(workspace, *allow, "submodule", "add", "-q", str(library), "vendor/lib")
    git(workspace, "commit", "-q", "-m", "with a submodule")
    write_tree(workspace, {"vendor/lib/lib.o": b"", "vendor/lib/new.c": b"uncommitted"})
    return workspace


def test_a_submodule_is_copied_and_its_files_are_merged(tmp_path: Path) -> None:
    workspace = submodule(tmp_path)
    before = read_tree(workspace / ".git")
    isolated = isolate(workspace, tmp_path / "copy", writes=["**/*"])
    assert {path for path in isolated.files if path.startswith("vendor")} == {
        "vendor/lib/.gitignore",
        "vendor/lib/lib.c",
        "vendor/lib/new.c",
    }
    assert not (isolated.root / "vendor/lib/.git").exists()
    write_tree(isolated.root, {"vendor/lib/lib.c": b"int m;\n"})
    changes = find_changes(isolated, tmp_path / "artifact")
    assert isinstance(merge_back(changes, workspace, tmp_path / "home"), Merged)
    assert (workspace / "vendor/lib/lib.c").read_bytes() == b"int m;\n"
    assert read_tree(workspace / ".git") == before


def test_a_repository_inside_is_named_as_left_out_unless_a_set_names_it(tmp_path: Path) -> None:
    workspace = repository(tmp_path / "ws", FILES)
    repository(workspace / "vendor/other", {"o.c": b""})
    isolated = isolate(workspace, tmp_path / "copy", writes=["**/*"])
    assert "vendor/other/o.c" not in isolated.files
    changes = find_changes(isolated, tmp_path / "artifact")
    assert [left.path for left in changes.left] == ["vendor/other"]
    named = isolate(workspace, tmp_path / "copy2", asked=["vendor/other/**"])
    assert "vendor/other/o.c" in named.files


COVERED: list[tuple[str, tuple[str, ...]]] = [
    ("src/**", ("src/gen",)),
    ("src/gen/**", ()),
    ("**/*", ()),
    ("src/*.c", ()),
    ("{src,out}/**", ("src/gen",)),
    ("src/**/*.h", ("src/gen",)),
]


@pytest.mark.parametrize(("write_set", "left_out"), COVERED)
def test_what_a_set_covers_and_a_copy_leaves_out_is_known_before_the_run(
    tmp_path: Path, write_set: str, left_out: tuple[str, ...]
) -> None:
    tree: Tree = {**FILES, "src/.gitignore": b"gen/\n", "src/gen/x.h": b"", "out/x": b""}
    workspace = write_tree(tmp_path / "ws", {**tree, "src/__pycache__/x.pyc": b""})
    found = find_left_out(workspace, (), DEFAULT_LIMITS)
    assert found.covered_by(globs(write_set)) == left_out
    isolated = isolate(workspace, tmp_path / "copy", asked=[write_set])
    assert not any(path.startswith(left_out) for path in isolated.files if left_out)


def carrying(folder: Path, edit: Callable[[Path], object]) -> ChangeSet:
    workspace = write_tree(folder / "ws", {**FILES, "deps/x.js": b"x", "deps/y/z.js": b"z"})
    isolated = isolate(workspace, folder / "copy", writes=["**/*"], carry=("deps", "gone"))
    assert open_isolated(folder / "copy").carried == ("deps",)
    assert list((isolated.root / "deps").iterdir()) == []
    edit(isolated.root)
    changes = find_changes(isolated, folder / "artifact")
    assert isinstance(merge_back(changes, workspace, folder / "home"), Merged)
    assert (workspace / "deps/x.js").read_bytes() == b"x"
    return changes


def test_a_carried_folder_is_no_part_of_a_change_whatever_becomes_of_it(tmp_path: Path) -> None:
    assert carrying(tmp_path / "a", lambda root: None).left == ()
    wrote = carrying(tmp_path / "b", lambda root: (root / "deps/x.js").write_bytes(b"evil"))
    assert (made(wrote), [left.path for left in wrote.left]) == ([], ["deps"])
    removed = carrying(tmp_path / "c", lambda root: (root / "deps").rmdir())
    assert (made(removed), [left.path for left in removed.left]) == ([], ["deps"])


def test_a_link_is_not_carried(tmp_path: Path) -> None:
    workspace = write_tree(tmp_path / "ws", {"deps": "/etc", "a": b""})
    isolated = isolate(workspace, tmp_path / "copy", carry=("deps",))
    assert isolated.carried == ()
