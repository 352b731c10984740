"""What a command said is given again only for the files that it read, and with all that it said."""

import json
from pathlib import Path
from typing import Any

import pytest

from stretto.workspaces.sandbox.sandbox import NoSandbox, find_sandbox
from support.cli import Said, stretto, write

pytestmark = pytest.mark.skipif(
    isinstance(find_sandbox(), NoSandbox), reason="commands need a sandbox"
)


def call(folder: Path, *words: str) -> Said:
    """In `work`, with the user's own folder beside it."""
    home = {"STRETTO_HOME": str(folder / "home"), "HOME": str(folder / "user")}
    return stretto(folder / "work", *words, env=home)


def report_of(said: Said) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(said.out.splitlines()[-1])
    assert "steps" in report, said
    return report


def run(folder: Path, steps: str) -> dict[str, Any]:
    write(folder, "work/r.yaml", f"name: r\nsteps:\n{steps}")
    return report_of(call(folder, "run", "r.yaml", "--json"))


def retry(folder: Path, report: dict[str, Any], *words: str) -> dict[str, Any]:
    return report_of(call(folder, "retry", report["run_id"], *words, "--json"))


SPEAKS = "{id: a, run: 'echo out; echo why >&2', posture: read_only%s}"


@pytest.mark.parametrize("how", ["retry", "cache"])
def test_a_reused_command_keeps_its_exit_code_and_stderr(tmp_path: Path, how: str) -> None:
    steps = f"  - {SPEAKS % (', cache: true' if how == 'cache' else '')}\n"
    first = run(tmp_path, steps)
    again = retry(tmp_path, first) if how == "retry" else run(tmp_path, steps)
    for report in (again, retry(tmp_path, again)):
        step, id = report["steps"]["a"], report["run_id"]
        assert (step["output"], step["exit_code"], step["stderr"]) == ("out", 0, "why")
        assert "reused" in call(tmp_path, "report", id).out
        assert "a: exit code 0, on stderr: why" in call(tmp_path, "report", id).out
        assert "exit code 0, on stderr: why" in call(tmp_path, "report", id, "--format", "html").out
        assert "exit code 0\n" in call(tmp_path, "logs", id, "a").out
        assert "why" in call(tmp_path, "logs", id, "a").out


def test_a_reused_verdict_of_a_command_keeps_its_exit_code(tmp_path: Path) -> None:
    write(tmp_path, "work/s.yaml", "default: a candidate\n")
    steps = """\
  - id: fix
    prompt: Try.
    loop: {agent: researcher, validator: {run: 'echo not yet >&2; exit 3'}, max_iterations: 2}
    on_failure: inline
"""
    write(tmp_path, "work/r.yaml", f"name: r\nsteps:\n{steps}")
    first = report_of(call(tmp_path, "run", "r.yaml", "--json", "--model", "scripted:s.yaml"))
    again = retry(tmp_path, first)
    assert again["steps"]["fix"]["exit_code"] == first["steps"]["fix"]["exit_code"] == 3
    assert again["steps"]["fix"]["stderr"] == "not yet"
