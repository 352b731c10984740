"""No two steps work on one file when they may not, whatever name each has for it.

`benchmarks/overlaps.py` does the same for 10,000 plans.
"""

import subprocess
import sys
from pathlib import Path

OVERLAPS = Path(__file__).parents[2] / "benchmarks" / "overlaps.py"


def test_steps_at_work_share_no_file_through_links_or_case_and_every_run_ends() -> None:
    done = subprocess.run(
        [sys.executable, OVERLAPS, "--plans", "240", "--seed", "7", "--a-workspace", "6"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    rows = [line.rpartition(" ") for line in done.stdout.splitlines()]
    figures = {what.strip(): float(figure.replace(",", "")) for what, _, figure in rows}
    assert figures["plans"] == 240
    assert figures["moments checked"] > 2_000
    for none in ("overlaps", "deadlocks", "claims lost in the journal"):
        assert figures[none] == 0, none
    assert figures["pairs by files that claims miss"] == 0
    # Without aliases it goes wrong, so the check is not blind.
    assert figures["overlaps without aliases, links"] > 5
    assert figures["overlaps without aliases, links and case"] > 5
