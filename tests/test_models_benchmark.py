"""The benchmark of model calls runs and prints its tables. What it measures is for people to read."""

import subprocess
import sys
from pathlib import Path

MODELS = Path(__file__).parents[1] / "benchmarks" / "models.py"


def test_the_tables_of_model_calls_are_printed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, MODELS, "--quick"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    *lines, _, whole = done.stdout.splitlines()
    assert whole.startswith("stretto run, 3 calls, as a whole command: ")
    ways = ("  stretto, whole engine", "  stretto's model alone")
    for line, begins in zip(lines, ("chain of 3", *ways, "fan-out of 100", *ways), strict=True):
        assert line.startswith(begins)
    assert list(tmp_path.iterdir()) == []
