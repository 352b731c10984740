"""A disk that is full when a change should be kept: nothing is lost, and later the change is applied."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.background_runs import lines
from support.cli import stretto, write

BIG_BYTES = 3_000_000
PROGRAM = f"""
import pathlib, random
pathlib.Path("big.bin").write_bytes(random.Random(1).randbytes({BIG_BYTES}))
print("done")
"""
RECIPE = """
name: big
agents: {it: {prompt: x, model: "cli:python3 program.py"}}
steps: [{id: a, agent: it, prompt: go, posture: writer, write_set: [big.bin]}]
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real one, where copies and changes lie; with room for one big file, not for two."""
    disk = tmp_path / "home/workspaces"
    disk.mkdir(parents=True, mode=0o700)
    words = ["mount", "-t", "tmpfs", "-o", f"size={BIG_BYTES * 3 // 2},mode=0700", "tmpfs", disk]
    mounted = subprocess.run(words, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


def test_a_change_that_a_full_disk_kept_from_being_kept_is_applied_when_there_is_room(
    tmp_path: Path, small_disk: Path
) -> None:
    write(tmp_path, "program.py", PROGRAM)
    write(tmp_path, "big.yaml", RECIPE)
    report = lines(stretto(tmp_path, "run", "big.yaml", "--json", "--trust"))[-1]
    run_id, error = report["run_id"], report["steps"]["a"]["error"]
    assert "No space left on device" in error
    assert f"stretto apply {run_id} a" in error
    (kept,) = small_disk.glob("*/a/kept-1")
    assert (kept / "root/big.bin").stat().st_size == BIG_BYTES
    for command in ("diff", "apply"):
        full = stretto(tmp_path, command, run_id, "a")
        assert (full.code, "No space left on device" in full.err) == (1, True), full
        assert str(kept) in full.err
    assert not (tmp_path / "big.bin").exists()

    words = ["mount", "-o", f"remount,size={BIG_BYTES * 4}", small_disk]
    subprocess.run(words, check=True)
    assert "big.bin" in stretto(tmp_path, "diff", run_id, "a").out
    assert stretto(tmp_path, "apply", run_id, "a").code == 0
    assert (tmp_path / "big.bin").stat().st_size == BIG_BYTES
    assert not kept.exists(), "the change holds all of it now"
    assert "merged before" in stretto(tmp_path, "apply", run_id, "a").out
    assert stretto(tmp_path, "report", run_id).out.count("No space left on device") >= 1
