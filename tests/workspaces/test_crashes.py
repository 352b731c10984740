"""Merges killed at their named points: the old tree or the new one, and the harness would see."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HARNESS = Path(__file__).parents[2] / "benchmarks" / "merge_back.py"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    # In memory where there is room: a kill is a kill, and a disk makes every fsync wait.
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK):
        return tmp_path
    return shared


def run(folder: Path, *options: str) -> tuple[int, dict[str, str], str]:
    done = subprocess.run(
        [sys.executable, HARNESS, "--quick", "--folder", str(folder), *options],
        capture_output=True,
        text=True,
        timeout=300,
    )
    figures = [line.rsplit(maxsplit=1) for line in done.stdout.splitlines()]
    return done.returncode, {what.strip(): number for what, number in figures}, done.stderr


def test_a_killed_merge_leaves_the_old_tree_or_the_new_one(folder: Path) -> None:
    code, figures, errors = run(folder)
    assert (code, errors) == (0, "")
    assert figures["mixed trees"] == figures["merged again, not the new tree"] == "0"
    assert int(figures["kills in a merge"]) >= 20
    assert int(figures["kills in its recovery"]) >= 1
    assert int(figures["old tree after recovery"]) > 0
    assert int(figures["new tree after recovery"]) > 0


def test_without_recovery_the_harness_sees_mixed_trees(folder: Path) -> None:
    code, figures, errors = run(folder, "--broken")
    assert code == 1
    assert int(figures["mixed trees"]) > 5
    assert "killed at" in errors
