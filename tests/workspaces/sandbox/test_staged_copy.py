"""The copy that a command works on: what it takes from the workspace, and what comes back."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stretto.workspaces.sandbox import staged_copy
from stretto.workspaces.sandbox.staged_copy import (
    CopyTooLarge,
    SourceUnreadable,
    StagedCopy,
    collect_changes,
    copy_bytes,
    fill_copy,
    lay_out,
)
from support.sandboxes import globs

EMOJI = "\N{GRINNING FACE}" * 60  # 60 letters, 240 bytes


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    place = tmp_path / "ws"
    (place / "docs").mkdir(parents=True)
    (place / "docs/a.md").write_text("original")
    return place


@contextmanager
def opened(folder: Path) -> Iterator[int]:
    fd = os.open(folder, os.O_RDONLY)
    try:
        yield fd
    finally:
        os.close(fd)


def fill(workspace: Path, *write_set: str) -> StagedCopy:
    root = workspace.with_name("stage")
    root.mkdir()
    with opened(workspace) as fd:
        return fill_copy(lay_out(fd, globs(*write_set)), fd, root)


def collect(stage: StagedCopy, workspace: Path) -> tuple[str, ...]:
    with opened(workspace) as fd:
        return collect_changes(stage, fd)


def dig(folder: Path, name: str, levels: int) -> None:
    fd = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Writing past it fails, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_copy_that_cannot_be_written_is_no_copy_and_harms_no_file(workspace: Path) -> None:
    (workspace / "docs/a.md").write_bytes(b"x" * 3_000_000)
    with largest_file(1_000_000), pytest.raises(OSError, match="File too large"):
        fill(workspace, "docs/*.md")
    assert (workspace / "docs/a.md").stat().st_size == 3_000_000


def test_a_file_that_cannot_be_read_to_its_end_is_not_seen_and_stays_as_it_is(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunks = [b"orig"]

    def fail_midway(_: int) -> bytes:
        if chunks:
            return chunks.pop()
        raise SourceUnreadable("a fault of the disk")

    monkeypatch.setattr(staged_copy, "_read_chunk", fail_midway)
    stage = fill(workspace, "docs/*.md")
    assert list(stage.tops["docs",].iterdir()) == []
    assert collect(stage, workspace) == ()
    assert (workspace / "docs/a.md").read_text() == "original"


def test_an_error_of_reading_is_told_from_one_of_writing(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreadable):  # at its beginning nothing can be read
        copy_bytes(os.open("/proc/self/mem", os.O_RDONLY), tmp_path / "copy", 0o600)


def test_a_path_too_long_to_be_opened_costs_no_other_change(workspace: Path) -> None:
    stage = fill(workspace, "docs/*.md")
    top = stage.tops["docs",]
    (top / "a.md").write_text("work")
    dig(top, EMOJI, 20)
    assert collect(stage, workspace) == ()
    assert (workspace / "docs/a.md").read_text() == "work"


def test_what_of_a_copy_cannot_be_read_is_named_and_not_taken_for_removed(
    workspace: Path,
) -> None:
    (workspace / "docs/b.md").write_text("original")
    stage = fill(workspace, "docs/*.md")
    moved = stage.root / "elsewhere"
    stage.tops["docs",].rename(moved)
    assert collect(stage, workspace) == ("docs",)
    assert len(list((workspace / "docs").iterdir())) == 2


@pytest.mark.parametrize(
    ("name", "levels"),
    [("d", 600), ("d" * 240, 13), (EMOJI, 13)],
    ids=["levels", "bytes", "letters"],
)
def test_a_workspace_that_is_too_deep_is_not_copied(
    workspace: Path, name: str, levels: int
) -> None:
    dig(workspace, name, levels)
    with pytest.raises(CopyTooLarge, match="128 names or 3,072 bytes"):
        fill(workspace, "**/*.md")


def test_a_folder_that_no_glob_covers_may_be_as_deep_as_it_likes(workspace: Path) -> None:
    (workspace / "other").mkdir()
    dig(workspace / "other", "d", 600)
    assert list(fill(workspace, "README.md", "docs/*.md").tops) == [()]
