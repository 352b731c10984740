"""The benchmarks run and print their table. What they measure is for people to read, not tests."""

import subprocess
import sys
from pathlib import Path

SPEED = Path(__file__).parents[1] / "benchmarks" / "speed.py"


def test_the_table_of_speeds_is_printed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, SPEED, "--quick"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    heading, *lines = done.stdout.splitlines()
    assert heading.split() == ["goal", "reached"]
    for what in (
        "stretto --version",
        "stretto validate, 3 steps",
        "stretto run, 3 model calls",
        "of that, imports",
        "read and plan 500 steps",
        "refuse: brackets",
        "refuse: 10 MB",
        "conflicts of 500 steps: own files",
    ):
        assert [line for line in lines if line.startswith(what)], what
    assert lines[-1].endswith("goals reached")
    assert list(tmp_path.iterdir()) == []


def test_the_memory_of_large_outputs_is_printed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, SPEED.with_name("size.py"), "20", "100"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    heading, *lines = done.stdout.splitlines()
    assert heading == "20 steps of 100 kB: 2 MB of outputs"
    assert [line.split(":")[0].strip() for line in lines] == ["run", "resume", "html", "json", "md"]
