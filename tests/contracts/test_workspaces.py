"""What workspaces must do, wherever the folder lies and whichever sandbox a writer works in."""

import asyncio
import subprocess
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from stretto.adapters.workspaces import LocalWorkspaces
from stretto.ports.workspace import (
    Collected,
    Held,
    MergeTerms,
    NotMerged,
    SharedWorkspace,
    UndeclaredChanges,
    WorkspaceCopy,
    Workspaces,
)
from stretto.problems.errors import StrettoError
from stretto.vocabulary.names import StepId
from support.sandboxes import confined, find, run
from support.trees import Tree, git, repository, write_tree

PORTS = (Workspaces,)

_T = TypeVar("_T")
FILES: Tree = {f"src/f{n}.txt": f"{n}\n".encode() for n in range(20)} | {"README": b"read\n"}
MERGED = MergeTerms(("src/**",), is_merged=True)
KEPT = MergeTerms(("src/**",), is_merged=False)
MAKE_REPOSITORY = "mkdir -p src/sub; cd src/sub; mkdir -p .git/refs .git/objects; echo 'ref: refs/heads/x' > .git/HEAD; cd ../.."


class Place:
    """A workspace, the port to it, and a step "a" of run "one" that writes `src/**`."""

    def __init__(self, folder: Path, kind: str, hand: str) -> None:
        self.workspace = _MAKERS[kind](folder)
        self.port: Workspaces = LocalWorkspaces(folder / "home")
        self._hand = hand

    def copy(self, run_id: str = "one", number: str = "1") -> WorkspaceCopy:
        step, sets = StepId("a"), ("src/**",)
        return WorkspaceCopy(run_id, step, number, self.workspace, sets, ("**/*",))

    def shared(self, run_id: str = "one") -> SharedWorkspace:
        return SharedWorkspace(run_id, StepId("a"), self.workspace, ("src/**",))

    def do(self, action: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run(action)

    def work(self, command: str, copy: WorkspaceCopy | None = None) -> Path:
        """Open the copy, and let a writer run a command in it."""
        root = self.do(self.port.open(copy or self.copy()))
        self.run(command, root)
        return root

    def run(self, command: str, folder: Path) -> None:
        if self._hand == "by itself":
            subprocess.run(["/bin/sh", "-ec", command], cwd=folder, check=True)
        else:
            sandbox = find("bubblewrap" if self._hand == "bubblewrap" else "landlock")
            ran = run(sandbox, command, confined(folder, "src/**"))
            assert ran.exit_code == 0, ran.output

    def collect(
        self, terms: MergeTerms = MERGED, copy: WorkspaceCopy | None = None
    ) -> Collected | NotMerged | Held:
        return self.do(self.port.collect(copy or self.copy(), terms))

    def text(self, path: str) -> str:
        return (self.workspace / path).read_text()


def _make_folder(folder: Path) -> Path:
    return write_tree(folder / "project", FILES)


def _make_repository(folder: Path) -> Path:
    return repository(folder / "project", FILES)


def _make_worktree(folder: Path) -> Path:
    repository(folder / "main", FILES)
    git(folder / "main", "worktree", "add", "-q", str(folder / "project"))
    return folder / "project"


_MAKERS = {
    "folder": _make_folder,
    "repository": _make_repository,
    "linked worktree": _make_worktree,
}
PLACES = [(kind, "by itself") for kind in _MAKERS]
PLACES += [(kind, hand) for kind in ("folder", "repository") for hand in ("bubblewrap", "landlock")]


@pytest.fixture(params=PLACES, ids=lambda it: f"{it[0]}, {it[1]}")
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(tmp_path, *request.param)


# Isolated writers


def test_a_copy_holds_what_the_workspace_holds_and_is_not_the_workspace(place: Place) -> None:
    (place.workspace / "src/new.txt").write_text("not committed\n")
    root = place.work("cat src/new.txt src/f0.txt > src/f1.txt")
    assert (root / "src/f1.txt").read_text() == "not committed\n0\n"
    assert place.text("src/f1.txt") == "1\n"
    assert place.do(place.port.open(place.copy())) == root
    assert place.do(place.port.open(place.copy(number="2"))) != root


def test_a_change_is_merged_once_however_often_it_is_collected(place: Place) -> None:
    place.work("echo changed > src/f0.txt; echo new > src/new.txt; rm src/f1.txt")
    first = place.collect()
    assert isinstance(first, Collected)
    assert (first.files, first.is_merged, first.is_whole) == (3, True, True)
    assert (place.text("src/f0.txt"), place.text("src/new.txt")) == ("changed\n", "new\n")
    assert not (place.workspace / "src/f1.txt").exists()
    (place.workspace / "src/f0.txt").write_text("the user's\n")
    assert isinstance(place.collect(), Collected)
    assert place.text("src/f0.txt") == "the user's\n"


def test_a_change_that_is_not_to_be_merged_is_kept(place: Place) -> None:
    place.work("echo changed > src/f0.txt")
    kept = place.collect(KEPT)
    assert isinstance(kept, Collected)
    assert (kept.is_merged, kept.changed) == (False, ("src/f0.txt",))
    assert "+changed" in kept.diff
    assert place.text("src/f0.txt") == "0\n"
    assert Path(kept.artifact).is_dir()
    place.do(place.port.discard(place.copy()))
    assert isinstance(place.collect(MERGED), Collected)  # from what was kept
    assert place.text("src/f0.txt") == "changed\n"


def test_what_both_changed_in_different_lines_is_merged_and_a_clash_is_not(place: Place) -> None:
    lines = "".join(f"{n}\n" for n in range(9))
    for name in ("src/both.txt", "src/clash.txt"):
        (place.workspace / name).write_text(lines)
    place.work("sed -i 's/^0$/step/' src/both.txt")
    (place.workspace / "src/both.txt").write_text(lines.replace("8", "user"))
    assert isinstance(place.collect(), Collected)
    assert place.text("src/both.txt") == lines.replace("0", "step").replace("8", "user")
    other = place.copy("two")
    place.work("echo step > src/clash.txt; echo step > src/f3.txt", other)
    (place.workspace / "src/clash.txt").write_text("user\n")
    clash = place.collect(copy=other)
    assert isinstance(clash, NotMerged)
    assert (clash.is_refused, clash.paths) == (False, ("src/clash.txt",))
    assert (place.text("src/clash.txt"), place.text("src/f3.txt")) == ("user\n", "3\n")


def test_what_is_outside_the_write_set_is_refused_whoever_wrote_it(place: Place) -> None:
    root = place.work("echo changed > src/f0.txt")
    (root / "README").write_text("changed")  # no sandbox lets a command do that
    for terms in (MERGED, KEPT):
        refused = place.collect(terms)
        assert isinstance(refused, NotMerged)
        assert (refused.is_refused, refused.paths) == (True, ("README",))
    assert (place.text("README"), place.text("src/f0.txt")) == ("read\n", "0\n")


def test_removals_that_nothing_explains_wait_for_a_person(place: Place) -> None:
    place.work("rm -r src/f*")
    held = place.collect()
    assert isinstance(held, Held)
    assert "removes 20 of 21 files" in held.question
    assert place.text("src/f0.txt") == "0\n"
    assert isinstance(
        place.collect(MergeTerms(("src/**",), is_merged=True, may_remove=True)), Collected
    )
    assert not (place.workspace / "src/f0.txt").exists()


def test_a_change_that_may_be_half_done_waits_for_a_person(place: Place) -> None:
    place.work("echo half > src/f0.txt")
    held = place.collect(MergeTerms(("src/**",), is_merged=True, half_done="it may be half done"))
    assert isinstance(held, Held)
    assert (held.is_whole, held.question) == (False, "it may be half done")
    assert place.text("src/f0.txt") == "0\n"


def test_a_step_in_which_nobody_worked_has_no_change_and_a_lost_copy_is_an_error(
    place: Place,
) -> None:
    assert place.collect() == Collected("")
    with pytest.raises(StrettoError, match="is gone"):
        place.collect(MergeTerms(("src/**",), is_merged=True, has_worked=True))


def test_no_repository_that_a_writer_makes_is_merged(place: Place) -> None:
    place.work(f"{MAKE_REPOSITORY}; echo x > src/sub/x.txt")
    place.collect()
    assert not (place.workspace / "src/sub/.git").exists()
    assert place.text("src/sub/x.txt") == "x\n"


def test_an_answer_is_reused_only_with_the_change_it_came_with(place: Place) -> None:
    place.work("echo changed > src/f0.txt")
    place.collect(MergeTerms(("src/**",), is_merged=True, key="k"))
    (place.workspace / "src/f0.txt").write_text("0\n")
    again = place.copy("two")
    for key, may_reuse in (("other", False), ("k", True)):
        terms = MergeTerms(("src/**",), is_merged=True, key=key, reused_from="one")
        assert place.do(place.port.can_reuse(again, terms)) is may_reuse
    assert isinstance(place.collect(terms, again), Collected)
    assert place.text("src/f0.txt") == "changed\n"


def test_copies_go_when_they_are_discarded_or_released_and_changes_stay(place: Place) -> None:
    root = place.work("echo changed > src/f0.txt")
    kept = place.collect(KEPT)
    assert isinstance(kept, Collected)
    place.do(place.port.discard(place.copy()))
    assert not root.exists()
    failed, other = place.copy(number="2"), place.copy("two")
    folders = [place.do(place.port.open(each)) for each in (failed, other)]
    assert set(place.do(place.port.leftovers())) == {"one", "two"}
    place.do(place.port.release("one"))
    assert [folder.exists() for folder in folders] == [False, True]
    place.do(place.port.empty_trash())
    assert set(place.do(place.port.leftovers())) == {"two"}
    assert Path(kept.artifact).is_dir()


# Shared writers


def watched(place: Place, command: str, declared: tuple[str, ...]) -> UndeclaredChanges:
    async def story() -> UndeclaredChanges:
        await place.port.watch(place.shared())
        await asyncio.to_thread(place.run, command, place.workspace)
        (place.workspace / "stray.txt").write_text("another program's\n")
        return await place.port.undeclared_changes(place.shared(), declared)

    return place.do(story())


def test_what_nobody_declared_is_found_and_told_from_the_steps_own(place: Place) -> None:
    found = watched(place, "echo changed > src/f0.txt", ("src/**",))
    assert (found.paths, found.own) == (("stray.txt",), ("src/f0.txt",))
    assert not found.is_unchanged
    quiet = watched(place, "cat src/f0.txt", ("src/**", "stray.txt"))
    assert (quiet.paths, quiet.own, quiet.is_unchanged) == ((), (), True)


def test_a_repository_that_a_shared_writer_makes_is_none_afterwards(place: Place) -> None:
    watched(place, MAKE_REPOSITORY, ("src/**",))
    assert not (place.workspace / "src/sub/.git").exists()


def test_what_a_shared_writer_left_counts_while_it_is_there(place: Place) -> None:
    watched(place, "echo changed > src/f0.txt", ("src/**",))
    assert place.do(place.port.can_reuse_shared(place.shared("two"), "one"))
    (place.workspace / "src/f0.txt").write_text("0\n")
    assert not place.do(place.port.can_reuse_shared(place.shared("three"), "one"))
    assert not place.do(place.port.can_reuse_shared(place.shared("three"), "never"))


# After a crash


def test_without_a_crash_there_is_nothing_to_recover(place: Place) -> None:
    place.work("echo changed > src/f0.txt")
    place.collect()
    assert place.do(place.port.unfinished()) == ()
    assert place.do(place.port.recover(place.workspace)) == ()
    assert place.text("src/f0.txt") == "changed\n"
