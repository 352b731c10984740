"""Copies of writers and what becomes of them, whatever a crash leaves."""

import asyncio
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from stretto.adapters import workspaces as adapter
from stretto.adapters.workspaces import LocalWorkspaces
from stretto.ports.workspace import (
    Collected,
    Held,
    MergeTerms,
    NotMerged,
    SharedWorkspace,
    UndeclaredChanges,
    WorkspaceCopy,
)
from stretto.problems.errors import StrettoError
from stretto.vocabulary.names import StepId
from stretto.workspaces import change, isolated_copy
from stretto.workspaces.merge_state import merge_lock
from stretto.workspaces.sandbox.repository_guard import Survey, look_for_repositories
from stretto.workspaces.shared_workspace import StatSnapshot, snapshot_stats

ALL = MergeTerms(("**",), is_merged=True)


class Stage:
    """A workspace of forty files, and a step with a copy of it."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "project"
        for number in range(40):
            file = self.workspace / f"d{number % 4}" / f"f{number}.txt"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{number}\n")
        self.home = folder / "home"
        self.port = LocalWorkspaces(self.home)
        self.named = WorkspaceCopy("run-1", StepId("a"), "1", self.workspace, ("**",))
        self.root = asyncio.run(self.port.open(self.named))

    @property
    def copy(self) -> Path:
        return self.root.parent

    def collect(self, terms: MergeTerms = ALL) -> Collected | NotMerged | Held:
        return asyncio.run(self.port.collect(self.named, terms))

    def files(self) -> int:
        return sum(path.is_file() for path in self.workspace.rglob("*"))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_a_copy_that_is_half_gone_is_not_read_again(stage: Stage) -> None:
    (stage.root / "d0/f0.txt").write_text("changed\n")
    first = stage.collect()
    shutil.rmtree(stage.root / "d1")  # the process died while it removed the copy
    assert stage.collect() == first
    assert stage.files() == 40
    assert (stage.workspace / "d0/f0.txt").read_text() == "changed\n"


def _nothing(stage: Stage) -> None:
    pass


def _clash(stage: Stage) -> None:
    (stage.workspace / "d0/f0.txt").write_text("the user's\n")


def _remove(stage: Stage) -> None:
    shutil.rmtree(stage.root / "d1")
    shutil.rmtree(stage.root / "d2")


@pytest.mark.parametrize(
    ("happens", "terms", "outcome"),
    [
        (_nothing, ALL, Collected),
        (_nothing, MergeTerms(("d1/**",), is_merged=True), NotMerged),
        (_clash, ALL, NotMerged),
        (_remove, ALL, Held),
    ],
)
def test_what_a_change_leaves_out_is_said_whatever_becomes_of_it(
    stage: Stage, happens: Callable[[Stage], None], terms: MergeTerms, outcome: type
) -> None:
    (stage.root / "d0/f0.txt").write_text("changed\n")
    (stage.root / "cloned/.git").mkdir(parents=True)
    (stage.root / "cloned/.git/HEAD").write_text("ref: refs/heads/main\n")
    happens(stage)
    collected = stage.collect(terms)
    assert isinstance(collected, outcome), collected
    (said,) = collected.warnings
    assert said.startswith("cloned/.git is no part of its change")


def test_the_copy_stays_until_it_is_discarded(stage: Stage) -> None:
    stage.collect()
    assert stage.root.exists()
    asyncio.run(stage.port.discard(stage.named))
    assert not stage.copy.exists()
    assert list((stage.home / "workspaces/trash").iterdir()) == []


def test_a_copy_that_is_going_is_no_longer_a_copy(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(isolated_copy, "remove_tree", dies)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(stage.port.discard(stage.named))
    assert not stage.copy.exists()


def test_an_artifact_that_is_not_whole_is_made_anew(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stage.root / "d0/f0.txt").write_text("changed\n")
    for name in ("join_renames", "write_durably"):
        with monkeypatch.context() as patched:
            patched.setattr(change, name, _dying)
            with pytest.raises(KeyboardInterrupt):
                stage.collect()
        assert not (stage.copy.parent / "change").exists()
    collected = stage.collect()
    assert isinstance(collected, Collected)
    assert (collected.files, collected.is_merged) == (1, True)
    assert [path.name for path in stage.copy.parent.iterdir() if "new" in path.name] == []


def test_removals_that_nothing_explains_are_asked_about(stage: Stage) -> None:
    shutil.rmtree(stage.root / "d1")
    shutil.rmtree(stage.root / "d2")
    held = stage.collect()
    assert isinstance(held, Held)
    assert "removes 20 of 40 files" in held.question
    assert stage.files() == 40
    assert stage.collect() == held
    allowed = stage.collect(MergeTerms(("**",), is_merged=True, may_remove=True))
    assert isinstance(allowed, Collected)
    assert stage.files() == 20


def test_what_a_command_removed_is_merged(stage: Stage) -> None:
    shutil.rmtree(stage.root / "d1")
    shutil.rmtree(stage.root / "d2")
    assert isinstance(stage.collect(MergeTerms(("**",), True, may_remove=True)), Collected)
    assert stage.files() == 20


def _few(root: Path) -> None:
    shutil.rmtree(root / "d1")  # ten files


def _moved(root: Path) -> None:
    (root / "d1").rename(root / "e1")
    (root / "d2").rename(root / "e2")


@pytest.mark.parametrize("edit", [_few, _moved])
def test_few_removals_and_renames_are_not_asked_about(
    stage: Stage, edit: Callable[[Path], None]
) -> None:
    edit(stage.root)
    assert isinstance(stage.collect(), Collected)


@pytest.mark.parametrize("is_merged", [True, False])
def test_the_write_set_holds_whoever_merges(stage: Stage, is_merged: bool) -> None:
    (stage.root / "outside.txt").write_text("x")
    (stage.root / "d1/f1.txt").unlink()
    (stage.root / "d0/f0.txt").write_text("changed\n")
    refused = stage.collect(MergeTerms(("d0/**",), is_merged))
    assert isinstance(refused, NotMerged)
    assert refused.is_refused
    assert refused.paths == ("d1/f1.txt", "outside.txt")
    assert stage.files() == 40


def test_a_change_that_cannot_be_kept_leaves_the_copy(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stage.root / "d0/f0.txt").write_text("changed\n")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(change, "write_durably", full)
        with pytest.raises(StrettoError, match="No space left") as caught:
            stage.collect()
    asyncio.run(stage.port.release("run-1"))
    (kept,) = stage.copy.parent.glob("kept-*")
    assert str(kept) in caught.value.hint
    assert (kept / "root/d0/f0.txt").read_text() == "changed\n"
    assert isinstance(stage.collect(), Collected)  # there is room again


def test_a_copy_of_an_earlier_boot_is_kept_and_not_merged(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stage.root / "d0/f0.txt").write_text("")  # as a power cut leaves what was not synced
    monkeypatch.setattr(isolated_copy, "boot_id", lambda: "another")
    with pytest.raises(StrettoError, match="restarted") as caught:
        stage.collect()
    assert str(stage.copy.parent / "kept-1") in caught.value.hint
    assert (stage.workspace / "d0/f0.txt").read_text() == "0\n"


def test_a_shared_copy_of_an_earlier_boot_is_not_worked_in(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolated_copy, "boot_id", lambda: "another")
    with pytest.raises(StrettoError, match="restarted"):
        asyncio.run(stage.port.open(stage.named))


def test_a_change_that_was_kept_before_a_restart_is_merged(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stage.root / "d0/f0.txt").write_text("changed\n")
    stage.collect(MergeTerms(("**",), is_merged=False))
    monkeypatch.setattr(isolated_copy, "boot_id", lambda: "another")
    assert isinstance(stage.collect(), Collected)
    assert (stage.workspace / "d0/f0.txt").read_text() == "changed\n"


def test_a_run_that_has_ended_leaves_no_copy_and_every_change(stage: Stage) -> None:
    stage.collect()
    for number in ("2", "3"):  # attempts that failed or were cancelled
        asyncio.run(stage.port.open(WorkspaceCopy("run-1", StepId("b"), number, stage.workspace)))
    other = asyncio.run(stage.port.open(WorkspaceCopy("run-2", StepId("a"), "1", stage.workspace)))
    asyncio.run(stage.port.release("run-1"))
    left = [path.name for path in (stage.home / "workspaces/run-1").glob("*/*")]
    assert left == ["change"]
    assert other.exists()


def _dying(*_: object) -> None:
    raise KeyboardInterrupt


def test_two_parts_that_watch_together_share_what_was_there_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, folder = tmp_path / "home", tmp_path / "work"
    folder.mkdir()
    workspaces, shared = (
        LocalWorkspaces(home),
        SharedWorkspace("r", StepId("s"), folder, ("ok/**",)),
    )
    looks: list[Path] = []

    def look(below: Path) -> StatSnapshot:
        looks.append(below)
        if len(looks) == 2:
            time.sleep(0.2)  # the thread of the second part comes late
        return snapshot_stats(below)

    monkeypatch.setattr(adapter, "snapshot_stats", look)

    async def work(is_first: bool) -> None:
        await workspaces.watch(shared)
        if is_first:
            (folder / "undeclared.txt").write_text("x")

    async def both() -> UndeclaredChanges:
        await asyncio.gather(work(True), work(False))
        return await workspaces.undeclared_changes(shared, ("ok/**",))

    assert asyncio.run(both()).paths == ("undeclared.txt",)


def test_what_was_called_off_while_it_looked_looks_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, folder = tmp_path / "home", tmp_path / "work"
    folder.mkdir()
    workspaces, shared = LocalWorkspaces(home), SharedWorkspace("r", StepId("s"), folder, ())
    is_looking = threading.Event()

    def look(below: Path) -> Survey:
        is_looking.set()
        time.sleep(0.1)
        return look_for_repositories(below)

    monkeypatch.setattr(adapter, "look_for_repositories", look)

    async def watch_twice() -> UndeclaredChanges:
        first = asyncio.create_task(workspaces.watch(shared))
        await asyncio.to_thread(is_looking.wait, 60)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await workspaces.watch(shared)
        (folder / "late.txt").write_text("x")
        return await workspaces.undeclared_changes(shared, ())

    assert asyncio.run(watch_twice()).paths == ("late.txt",)


def test_a_cancelled_part_does_not_copy_on_beside_the_next_one(stage: Stage) -> None:
    copy = replace(stage.named, number="all")

    async def story() -> None:
        with merge_lock(stage.home, stage.workspace):  # for which every copy waits
            first = asyncio.create_task(stage.port.open(copy))
            folder = stage.copy.with_name("copy-all")
            while not folder.exists():
                await asyncio.sleep(0.001)
            first.cancel()
            await asyncio.wait([first], timeout=0.01)
            assert not first.done()  # so the next part does not begin
        with pytest.raises(asyncio.CancelledError):
            await first
        await stage.port.release(copy.run_id)
        assert not folder.exists()  # nor does it come back when its run has ended
        root = await stage.port.open(copy)
        assert sum(path.is_file() for path in root.rglob("*")) == 40

    asyncio.run(story())


def test_a_copy_that_nobody_waits_for_is_not_finished(stage: Stage) -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(isolated_copy.CopyStopped):
        isolated_copy.isolate(stage.workspace, stage.home / "other", stop=stop)
    assert not any((stage.home / "other" / "root").rglob("*.txt"))
