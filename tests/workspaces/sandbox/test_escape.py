"""The quick probes of benchmarks/escape.py: none may get out. The rest is run by hand."""

import subprocess
import sys
from pathlib import Path

import pytest

from stretto.workspaces.sandbox.sandbox import Setting
from support.sandboxes import find

ESCAPE = Path(__file__).parents[3] / "benchmarks" / "escape.py"


@pytest.mark.parametrize("setting", ["bubblewrap", "landlock"])
def test_no_quick_probe_gets_out(setting: Setting) -> None:
    find(setting)
    done = subprocess.run(
        [sys.executable, ESCAPE, "--quick", "--sandbox", setting],
        capture_output=True,
        text=True,
        timeout=240,
    )
    lines = done.stdout.splitlines()
    assert [line for line in lines if " ESCAPED " in line or " refused " in line] == []
    assert done.returncode == 0, done.stderr
    probes, _, succeeded, _ = lines[-1].split()
    assert (int(probes) >= 60, succeeded) == (True, "0")


@pytest.mark.parametrize("name", ["absolute", "git-hook", "tcp", "descriptors", "own-environ"])
def test_a_probe_would_get_out_if_nothing_held_it(name: str) -> None:
    done = subprocess.run(
        [sys.executable, ESCAPE, "--control", "--only", name], capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "1 probes, 1 succeeded"
