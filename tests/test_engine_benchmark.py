"""The engine's benchmark runs and prints its tables. What it measures is for people to read."""

import subprocess
import sys
from pathlib import Path

ENGINE = Path(__file__).parents[1] / "benchmarks" / "engine.py"


def test_the_tables_of_the_engine_are_printed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ENGINE, "--quick"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    for what in (
        "chain of 20",
        "fan-out of 20",
        "3×5 layers",
        "  asyncio",
        "  the durable limit",
        "  weft, in memory",
        "  weft, SQLite",
        "CPU µs a step, in memory",
        "20 runs of 3 steps at once",
    ):
        assert [line for line in lines if line.startswith(what)], what
    assert lines[-1].endswith("goals reached")
    assert list(tmp_path.iterdir()) == []
