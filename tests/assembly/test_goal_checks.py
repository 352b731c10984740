"""Each verifier both ways, and with what programs, files and servers do to it."""

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from stretto.assembly.goal_checks import Checks, _unproven, find_tests
from stretto.assembly.project import Project
from stretto.goals.evidence import CheckResult
from stretto.goals.verifier import read_verifier
from support.assembled import settings_of
from support.web_server import Asked, page, redirect, serving

SECRET = "sk-live-0123456789abcdefghij"


def check(
    folder: Path,
    verify: str,
    *,
    seconds: float = 60.0,
    may_write: bool = True,
    by_person: bool = True,
    environ: dict[str, str] | None = None,
    **settings: object,
) -> CheckResult:
    project = Project(environ=environ or {}, settings=settings_of(folder, **settings))
    checks = Checks(project, may_write=may_write, is_asked_by_person=by_person)
    return asyncio.run(checks.run(read_verifier(verify), seconds))


def test_a_command_passes_by_its_exit_code_and_its_output_is_the_evidence(tmp_path: Path) -> None:
    assert check(tmp_path, "command:test 1 = 1").is_met
    failed = check(tmp_path, "command:echo out; echo wrong >&2; exit 3")
    assert (failed.is_met, failed.evidence) == (False, "exit code 3\nout\nwrong")


@pytest.mark.parametrize("kind", ["command", "ci"])
@pytest.mark.parametrize(
    "said",
    ["no tests ran in 0.01s", "Ran 0 tests in 0.000s", "? m [no test files]", "running 0 tests"],
)
def test_a_command_that_tested_nothing_verifies_nothing(
    tmp_path: Path, kind: str, said: str
) -> None:
    found = check(tmp_path, f"{kind}:echo '{said}'; exit 0")
    assert (found.is_met, found.cannot_run) == (False, False)
    assert found.evidence.startswith(f"no test ran, so nothing is verified: {said}")
    assert check(tmp_path, f"{kind}:echo '{said}'; echo '3 passed'; exit 0").is_met


@pytest.mark.parametrize("kind", ["command", "ci"])
def test_a_pipe_that_hides_a_failed_test_verifies_nothing(tmp_path: Path, kind: str) -> None:
    found = check(tmp_path, f"{kind}:echo '1 failed, 2 passed in 0.10s' | tail -1")
    assert not found.is_met
    said = "exit code 0, but a test failed: 1 failed, 2 passed in 0.10s"
    assert found.evidence.startswith(said)


@pytest.mark.parametrize("kind", ["command", "ci"])
def test_a_pipe_that_hides_a_missing_program_verifies_nothing(tmp_path: Path, kind: str) -> None:
    found = check(tmp_path, f"{kind}:pytst -q | tail -1")
    assert not found.is_met
    assert found.evidence.startswith("exit code 0, but a part of it did not run: ")
    # A script may get by without a part of itself, if its tests ran.
    assert check(tmp_path, f"{kind}:nvm use 20; echo '3 passed in 0.1s'").is_met


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("echo 'BUILD FAILED in 3s' | cat", "exit code 0, but a part of it failed: BUILD FAILED"),
        ("echo 'Checked 0 files in 3ms.'", "it had no file to work on, so nothing is verified: "),
    ],
)
def test_a_failed_build_behind_a_pipe_and_a_linter_without_files_verify_nothing(
    tmp_path: Path, command: str, why: str
) -> None:
    found = check(tmp_path, f"command:{command}")
    assert not found.is_met
    assert found.evidence.startswith(why)
    assert check(tmp_path, f"command:{command}; echo '3 passed in 0.1s'").is_met


@pytest.mark.skipif(not Path("/usr/bin/npm").exists(), reason="there is no npm here")
def test_a_project_whose_test_program_finds_none_is_not_met(tmp_path: Path) -> None:
    script = {"test": "echo 'No tests found, exiting with code 0'"}
    (tmp_path / "package.json").write_text(json.dumps({"name": "m", "scripts": script}))
    found = check(tmp_path, "test:")
    assert (found.is_met, found.cannot_run) == (False, False)
    assert found.evidence.startswith("no test ran, so nothing is verified: No tests found")


def test_a_command_may_build_in_the_workspace_unless_the_goal_may_only_read(tmp_path: Path) -> None:
    assert check(tmp_path, "command:echo x > built.txt").is_met
    assert (tmp_path / "built.txt").exists()
    assert not check(tmp_path, "command:echo x > more.txt", may_write=False).is_met
    assert not (tmp_path / "more.txt").exists()


def test_a_command_sees_nothing_of_the_host_but_its_workspace(tmp_path: Path) -> None:
    work, secret = tmp_path / "work", tmp_path / "secret.txt"
    work.mkdir()
    secret.write_text("hidden")
    found = check(work, f"command:cat {secret}; env; exit 1", environ={"API_KEY": SECRET})
    assert "hidden" not in found.evidence
    assert SECRET not in found.evidence


def test_a_command_that_hangs_is_stopped(tmp_path: Path) -> None:
    hung = check(tmp_path, "command:sleep 1000", seconds=0.5)
    assert not hung.is_met
    assert "did not end" in hung.evidence


def test_a_program_that_is_not_there_is_the_verifier_s_own_fault_but_a_script_may_come(
    tmp_path: Path,
) -> None:
    assert check(tmp_path, "command:no-such-program --x").cannot_run
    script = check(tmp_path, "command:./check.sh")
    assert (script.is_met, script.cannot_run) == (False, False)


def test_hostile_output_becomes_short_plain_text_without_secrets(tmp_path: Path) -> None:
    said = r"printf '\033[31mred\033[0m \033]0;title\007 \xff\xfe \x00 end\n'"
    found = check(tmp_path, f"command:{said}; echo {SECRET}; exit 1", environ={"API_KEY": SECRET})
    assert "\x1b" not in found.evidence
    assert "red" in found.evidence
    assert "title" not in found.evidence
    assert "[redacted]" in found.evidence
    assert SECRET not in found.evidence
    found.evidence.encode()


def test_a_megabyte_of_output_is_cut_with_a_note(tmp_path: Path) -> None:
    found = check(tmp_path, "command:head -c 1000000 /dev/zero | tr '\\0' x; echo last; exit 1")
    assert len(found.evidence) < 9_000
    assert "characters left out" in found.evidence
    assert found.evidence.endswith("last")


def test_no_command_runs_on_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    found = check(tmp_path, "command:true")
    assert (found.is_met, found.cannot_run) == (False, True)
    assert "home folder" in found.evidence


@pytest.fixture(scope="module")
def python_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a pytest of its own, since the sandbox shows nothing of this one."""
    folder = tmp_path_factory.mktemp("suite")
    packages = Path(pytest.__file__).parents[1]
    (folder / ".venv").mkdir()
    shutil.copy(packages / "py.py", folder / ".venv")
    for name in ("_pytest", "pytest", "pluggy", "iniconfig", "packaging"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(packages / name, folder / ".venv" / name, ignore=ignored)
    python = folder / ".venv" / "bin" / "python"
    python.parent.mkdir()
    python.write_text('#!/bin/sh\nPYTHONPATH=.venv exec python3 "$@"\n')
    python.chmod(0o755)
    (folder / "pyproject.toml").write_text("")
    (folder / "test_sums.py").write_text(
        "def test_one(): assert 1 == 1\ndef test_two(): assert 'left' == 'right', 'they differ'\n"
    )
    (folder / "test_fine.py").write_text("def test_fine(): pass\n")
    return folder


def test_failing_tests_are_the_evidence_by_name(python_project: Path) -> None:
    found = check(python_project, "test:")
    assert not found.is_met
    assert "1 of 3 tests failed" in found.evidence
    assert "FAILED test_sums::test_two: AssertionError: they differ" in found.evidence
    again = check(python_project, "test:test_sums.py")
    assert "1 of 2 tests failed" in again.evidence


def test_tests_that_pass_are_met_and_none_at_all_are_not(python_project: Path) -> None:
    assert check(python_project, "test:test_fine.py").is_met
    assert not check(python_project, "test:test_fine.py -k nothing").is_met
    assert not check(python_project, "test:no_such_file.py").is_met


def test_paths_are_words_and_no_part_of_the_command(python_project: Path) -> None:
    assert not check(python_project, "test:test_fine.py; touch pwned").is_met
    assert not check(python_project, "test:'$(touch pwned)'").is_met
    assert not (python_project / "pwned").exists()
    assert "could not be checked" in check(python_project, "test:'open").evidence


def test_a_python_without_pytest_is_the_verifier_s_own_fault(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    found = check(tmp_path, "test:")
    assert (found.is_met, found.cannot_run) == (False, True)
    assert "pytest is not installed" in found.evidence


def test_the_tests_of_other_languages_are_found_by_their_files(tmp_path: Path) -> None:
    for file, command in (
        ("package.json", "npm test --silent"),
        ("go.mod", "go test ./..."),
        ("Cargo.toml", "cargo test"),
    ):
        folder = tmp_path / file
        folder.mkdir()
        (folder / file).write_text("{}")
        assert find_tests(folder, "").command.strip() == command
    go, rust = (find_tests(tmp_path / name, "").failed for name in ("go.mod", "Cargo.toml"))
    assert go is not None
    assert rust is not None
    assert go.findall("=== RUN TestA\n--- FAIL: TestA (0.0s)\n") == ["TestA"]
    assert rust.findall("test sums::two ... FAILED\ntest sums::one ... ok\n") == ["sums::two"]
    assert check(tmp_path, "test:").cannot_run


NODE = """const test = require("node:test"); const assert = require("node:assert");
test("adds", () => assert.equal(1 + 1, 2));
test("reads", () => assert.equal(require("fs").readFileSync("one.txt", "utf8"), "1"));
"""


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_the_tests_of_a_node_project_are_run_by_npm(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"name": "x", "scripts": {"test": "node --test"}}')
    (tmp_path / "one.test.js").write_text(NODE)
    (tmp_path / "one.txt").write_text("2")
    found = check(tmp_path, "test:")
    assert not found.is_met
    assert found.evidence.startswith("FAILED reads\n"), found.evidence
    (tmp_path / "one.txt").write_text("1")
    assert check(tmp_path, "test:").is_met
    (tmp_path / "one.test.js").unlink()
    assert not check(tmp_path, "test:").is_met
    (tmp_path / "package.json").write_text('{"name": "x"}')
    assert not check(tmp_path, "test:").is_met


UNITTEST = """import unittest
class Sums(unittest.TestCase):
    def test_adds(self): pass
    def test_reads(self): self.assertEqual(open("one.txt").read(), "1")
"""


def test_unittest_suites_are_run_by_pytest_or_by_a_command(python_project: Path) -> None:
    folder = python_project / "units"
    folder.mkdir(exist_ok=True)
    (folder / "test_units.py").write_text(UNITTEST)
    (python_project / "one.txt").write_text("2")
    found = check(python_project, "test:units")
    assert "FAILED units.test_units.Sums::test_reads: AssertionError: '2' != '1'" in found.evidence
    by_command = "command:python3 -m unittest discover -s units"
    assert "FAIL: test_reads" in check(python_project, by_command).evidence
    (python_project / "one.txt").write_text("1")
    assert check(python_project, "test:units").is_met
    assert check(python_project, by_command).is_met
    assert not check(python_project, "command:python3 -m unittest discover -s units -p none").is_met


@pytest.mark.parametrize(
    ("mark", "program"), [("go.mod", "go"), ("Cargo.toml", "cargo"), ("package.json", "npm")]
)
def test_a_test_program_that_is_not_there_is_the_verifier_s_own_fault(
    tmp_path: Path, mark: str, program: str
) -> None:
    (tmp_path / mark).write_text('{"scripts": {"test": "no-such-program"}}')
    found = check(tmp_path, "test:")
    if "command not found" in found.evidence or shutil.which(program, path=os.defpath) is None:
        assert (found.is_met, found.cannot_run) == (False, True)
        assert f"no program {program}" in found.evidence
    else:  # it is there; what the project's own script lacks may come to be
        assert (found.is_met, found.cannot_run) == (False, False)


CARGO = """#[cfg(test)]
mod tests {
    #[test] fn adds() {}
    #[test] fn reads() { assert_eq!(1, VALUE); }
}
"""


@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")
def test_what_cargo_prints_names_the_tests_that_failed(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "Cargo.toml").write_text(
        '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n'
    )
    program = find_tests(tmp_path, "")
    assert program.failed is not None
    for value, names in (("2", ["tests::reads"]), ("1", [])):
        (tmp_path / "src" / "lib.rs").write_text(CARGO.replace("VALUE", value))
        words = ["cargo", "test", "--offline"]
        ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert program.failed.findall(ran.stdout) == names, ran
        assert (ran.returncode == 0, "a test failed" in _unproven(ran.stdout)) == (
            not names,
            bool(names),
        )


JUNIT = '<testsuite name="s" tests="2" failures="{failures}"><testcase name="a"/><testcase name="b">{b}</testcase></testsuite>'


@pytest.mark.parametrize(
    ("reports", "is_met", "says"),
    [
        ({"a.xml": JUNIT.format(failures=0, b="")}, True, "0 of 2 tests failed"),
        ({"a.xml": JUNIT.format(failures=1, b='<failure message="no"/>')}, False, "FAILED b: no"),
        ({"a.xml": JUNIT.format(failures=1, b="")}, False, "1 failure that no test is named for"),
        ({"a.xml": JUNIT.format(failures=0, b="").replace("failures", "errors").replace('"0"', '"2"')},
         False, "2 failures"),
        ({"a.xml": JUNIT.format(failures=0, b=""), "b.xml": "<testsuite"}, False, "b.xml"),
        ({"a.xml": "<testsuite/>"}, False, "no test ran"),
        ({"a.xml": "<html/>"}, False, "a.xml is no JUnit report"),
        ({"a.xml": '<testsuite><testcase name="a"><skipped/></testcase></testsuite>'}, False, "no test"),
        ({}, False, "there is no report"),
    ],
)  # fmt: skip
def test_reports_that_somebody_else_wrote_are_read(
    tmp_path: Path, reports: dict[str, str], is_met: bool, says: str
) -> None:
    (tmp_path / "out").mkdir()
    for name, text in reports.items():
        (tmp_path / "out" / name).write_text(text)
    found = check(tmp_path, "test:out/*.xml")
    assert (found.is_met, found.cannot_run) == (is_met, False)
    assert says in found.evidence


def test_a_pattern_that_stands_for_too_many_reports_is_not_met(tmp_path: Path) -> None:
    for number in range(501):
        (tmp_path / f"{number:04}.xml").write_text(JUNIT.format(failures=0, b=""))
    found = check(tmp_path, "test:*.xml")
    assert not found.is_met
    assert found.evidence.startswith("*.xml stands for more than 500 reports: name fewer")
    (tmp_path / "0500.xml").unlink()
    assert check(tmp_path, "test:*.xml").is_met


def test_a_report_outside_the_workspace_is_read_only_where_no_link_leads_to_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "good.xml").write_text(JUNIT.format(failures=0, b=""))
    (tmp_path / "w" / "a.xml").symlink_to(tmp_path / "good.xml")
    assert not check(tmp_path / "w", "test:a.xml").is_met


GH = """#!{python}
import json, os, sys
from pathlib import Path
told = Path({told!r})
lines = told.read_text().splitlines()
print(lines[0])
if len(lines) > 1:
    told.write_text("\\n".join(lines[1:]))
Path({told!r} + ".asked").write_text(json.dumps(sys.argv[1:]))
"""


def gh(folder: Path, *answers: object) -> tuple[dict[str, str], Path]:
    """A `gh` on PATH that gives these answers one after another; and where it notes its words."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    told = folder / "told"
    told.write_text("\n".join(map(json.dumps, answers)))
    program = programs / "gh"
    program.write_text(GH.format(python=sys.executable, told=str(told)))
    program.chmod(0o755)
    return {"PATH": f"{programs}:/usr/bin:/bin"}, folder / "told.asked"


def work_in(folder: Path) -> Path:
    (folder / "work").mkdir(exist_ok=True)
    return folder / "work"


def test_the_checks_of_a_pull_request_are_asked_of_gh(tmp_path: Path) -> None:
    work = work_in(tmp_path)
    good = [{"name": "build", "state": "SUCCESS", "bucket": "pass"}]
    environ, asked = gh(tmp_path, good)
    assert check(work, "ci:#12", environ=environ).is_met
    assert json.loads(asked.read_text())[:3] == ["pr", "checks", "12"]
    bad = [*good, {"name": "lint", "state": "FAILURE", "bucket": "fail"}]
    environ, _ = gh(tmp_path, bad)
    found = check(work, "ci:https://github.com/a/b/pull/12", environ=environ)
    assert (found.is_met, found.evidence.splitlines()[1]) == (False, "FAIL lint")


def test_of_a_branch_the_newest_run_of_each_workflow_at_its_newest_commit_counts(
    tmp_path: Path,
) -> None:
    def row(name: str, conclusion: str, sha: str, status: str = "completed") -> dict[str, str]:
        return {"workflowName": name, "conclusion": conclusion, "headSha": sha, "status": status}

    environ, asked = gh(
        tmp_path,
        [row("t", "success", "new"), row("t", "failure", "new"), row("t", "failure", "old")],
    )
    work = work_in(tmp_path)
    assert check(work, "ci:branch main", environ=environ).is_met
    assert "--branch=main" in json.loads(asked.read_text())
    environ, _ = gh(tmp_path, [row("t", "failure", "new"), row("u", "success", "new")])
    assert not check(work, "ci:some/branch", environ=environ).is_met


def test_checks_under_way_are_waited_for(tmp_path: Path) -> None:
    pending = [{"name": "build", "state": "IN_PROGRESS", "bucket": "pending"}]
    good = [{"name": "build", "state": "SUCCESS", "bucket": "pass"}]
    environ, _ = gh(tmp_path, pending, good)
    assert check(work_in(tmp_path), "ci:7", environ=environ).is_met
    environ, _ = gh(tmp_path, pending)
    assert not check(work_in(tmp_path), "ci:7", environ=environ, seconds=0.5).is_met


@pytest.mark.parametrize("answer", [[], {}, "text", [1], None, [{"name": "x"}]])
def test_an_answer_of_gh_that_is_not_clearly_green_is_not_met(
    tmp_path: Path, answer: object
) -> None:
    environ, _ = gh(tmp_path, answer)
    assert not check(work_in(tmp_path), "ci:7", environ=environ).is_met


def test_gh_is_never_taken_from_the_workspace_and_its_lack_is_told(tmp_path: Path) -> None:
    environ, asked = gh(tmp_path, [{"name": "x", "bucket": "pass"}])
    found = check(tmp_path, "ci:7", environ=environ)  # here bin/gh lies in the workspace
    assert (found.is_met, found.cannot_run) == (False, True)
    assert "gh is not on PATH" in found.evidence
    assert not asked.exists()


def test_ci_may_be_a_command(tmp_path: Path) -> None:
    assert check(tmp_path, "ci:test -d .").is_met
    assert not check(tmp_path, "ci:false").is_met


@pytest.mark.parametrize(
    ("name", "text", "passes", "fails"),
    [
        ("a.json", '{"done": 3, "by": {"who": ["x"]}}', "done >= 3 and by.who[0] == 'x'", "done > 3"),
        ("a.json", '{"done": 3}', "$.done == 3", "$.nothing == 3"),
        ("a.yaml", "state: ready\n", "state == 'ready'", "state == 'gone'"),
        ("a.csv", "name,price\ntea,3\nrum,9\n", "rows[1].price > 5", "size(rows) == 3"),
        ("a.jsonl", '{"n": 1}\n{"n": 2}\n', "data[1].n == 2", "data[5].n == 2"),
        ("a.txt", "all is well", "value contains 'well'", "value contains 'ill'"),
    ],
)  # fmt: skip
def test_the_data_of_a_file_is_held_against_an_expression(
    tmp_path: Path, name: str, text: str, passes: str, fails: str
) -> None:
    (tmp_path / name).write_text(text)
    assert check(tmp_path, f"data:{name}#{passes}").is_met
    assert not check(tmp_path, f"data:{name}#{fails}").is_met


def test_more_rows_than_are_read_are_not_met(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n\n" + "1\n" * 10_001)
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n' * 10_001)
    with closing(sqlite3.connect(tmp_path / "a.db")) as db:
        db.execute("CREATE TABLE t (n)")
        db.executemany("INSERT INTO t VALUES (?)", [(1,)] * 10_001)
        db.commit()
    for verify in ("a.csv#rows[0].n == 1", "a.jsonl#rows[0].n == 1", "a.db#SELECT n FROM t#n == 1"):
        found = check(tmp_path, f"data:{verify}")
        assert not found.is_met
        assert "has more than 10,000 rows, and no more are read" in found.evidence
    assert check(tmp_path, "data:a.db#SELECT n FROM t LIMIT 10000#size(rows) == 10000").is_met
    assert check(tmp_path, "data:a.db#SELECT n FROM t").is_met  # its first value is all that counts


def test_cells_without_a_name_are_the_rest_of_their_row(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2,3,4\n5,6\n")
    assert check(tmp_path, "data:a.csv#size(rows) == 2 and rows[0].more[1] == 4").is_met
    assert not check(tmp_path, "data:a.csv#size(rows) == 3").is_met


@pytest.mark.parametrize(
    "verify", ["a.csv#size(rows) == 1", "a.db#SELECT 1; SELECT 2", "a.db#SELECT x FROM gone"]
)
def test_what_a_reader_of_data_refuses_is_not_met(tmp_path: Path, verify: str) -> None:
    (tmp_path / "a.csv").write_text("a,b\n" + "x" * 140_000 + ",2\n")
    with closing(sqlite3.connect(tmp_path / "a.db")) as db:
        db.execute("CREATE TABLE t (a)")
        db.commit()
    found = check(tmp_path, f"data:{verify}")
    assert not found.is_met
    assert "it could not be checked" in found.evidence


@pytest.mark.parametrize(
    "verify", ["data:~nosuch/a.json#a == 1", "data:loop.json#a == 1", "test:loop.xml"]
)
def test_a_path_that_leads_nowhere_is_not_met(tmp_path: Path, verify: str) -> None:
    for name in ("loop.json", "loop.xml"):
        (tmp_path / name).symlink_to(name)
    assert not check(tmp_path, verify).is_met


def test_a_line_of_json_ends_only_with_a_line_feed(tmp_path: Path) -> None:
    text = '{"a": "x\u2028y\x85z"}\r\n\n{"a": 2}\n'
    (tmp_path / "a.jsonl").write_bytes(text.encode())
    assert check(tmp_path, "data:a.jsonl#size(rows) == 2 and rows[1].a == 2").is_met


def test_the_evidence_of_data_shows_the_values_that_the_expression_names(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"done": 3}')
    found = check(tmp_path, "data:a.json#done >= 5 and gone == 1")
    assert "done is 3" in found.evidence
    assert "gone is missing" in found.evidence


@pytest.mark.parametrize("text", ["{", "", "[" * 100_000, '{"a": ' * 5000, "\udcff"])
def test_data_that_cannot_be_read_is_not_met(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert not check(tmp_path, "data:a.json#a == 1").is_met
    assert not check(tmp_path, "data:gone.json#a == 1").is_met
    assert not check(tmp_path, "data:.#a == 1").is_met


def test_a_database_is_asked_and_cannot_be_changed(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "shop.db") as db:
        db.execute("CREATE TABLE orders (state TEXT)")
        db.execute("INSERT INTO orders VALUES ('open'), ('paid')")
    counted = "data:shop.db#SELECT count(*) AS open FROM orders WHERE state = 'open'"
    assert check(tmp_path, f"{counted}#open == 1").is_met
    assert not check(tmp_path, f"{counted}#open == 0").is_met
    assert check(tmp_path, "data:shop.db#SELECT count(*) = 2 FROM orders").is_met
    for sql in (
        "WITH x AS (SELECT 1) DELETE FROM orders",
        "SELECT load_extension('x')",
        "SELECT 1 FROM nowhere",
        "SELECT writefile('x', 'y')",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT count(*) FROM n",
    ):
        assert not check(tmp_path, f"data:shop.db#{sql}", seconds=1).is_met
    with sqlite3.connect(tmp_path / "shop.db") as db:
        assert db.execute("SELECT count(*) FROM orders").fetchone() == (2,)


async def _over_http(folder: Path, spec: str, by_person: bool, answer: object) -> CheckResult:
    def respond(asked: Asked) -> bytes:
        return answer(asked) if callable(answer) else answer  # type: ignore[return-value, no-any-return]

    async with serving(respond) as there:
        project = Project(environ={}, settings=settings_of(folder))
        checks = Checks(project, may_write=False, is_asked_by_person=by_person)
        address = spec.replace("SITE", f"http://{there.place()}")
        return await checks.run(read_verifier(address), 20)


def test_an_address_is_asked_and_loopback_only_where_a_person_named_it(tmp_path: Path) -> None:
    answer = page('{"ready": true, "n": 4}', "application/json")
    spec = "data:SITE/health#http_status == 200 and ready == true and n == 4"
    assert asyncio.run(_over_http(tmp_path, spec, True, answer)).is_met
    refused = asyncio.run(_over_http(tmp_path, spec, False, answer))
    assert (refused.is_met, refused.cannot_run) == (False, True)
    broken = page("oops", status=500)
    assert not asyncio.run(_over_http(tmp_path, spec, True, broken)).is_met


def test_a_redirect_to_another_private_address_is_not_followed(tmp_path: Path) -> None:
    answer = redirect("http://127.0.0.1:1/secret")
    found = asyncio.run(_over_http(tmp_path, "data:SITE/x#http_status == 200", True, answer))
    assert not found.is_met


def test_a_file_outside_the_workspace_is_read_only_where_a_person_named_it(tmp_path: Path) -> None:
    work = work_in(tmp_path)
    (tmp_path / "outside.json").write_text('{"a": 1}')
    spec = f"data:{tmp_path}/outside.json#a == 1"
    assert check(work, spec).is_met
    assert check(work, spec, by_person=False).cannot_run
    (work / "link.json").symlink_to(tmp_path / "outside.json")
    assert check(work, "data:link.json#a == 1", by_person=False).cannot_run
    (work / ".env").write_text("KEY=1")
    assert check(work, "data:.env#value contains 'KEY'", by_person=False).cannot_run
    assert check(work, "data:.env#value contains 'KEY'").is_met


def test_a_link_that_a_step_may_have_planted_leads_no_verifier_out(tmp_path: Path) -> None:
    work = work_in(tmp_path)
    (tmp_path / "outside.json").write_text('{"a": "hidden"}')
    (tmp_path / "folder").symlink_to(work)  # the project's own folder may be reached by a link
    (work / ".env").write_text("KEY=hidden")
    (work / "data.json").symlink_to(tmp_path / "outside.json")
    (work / "up").symlink_to(tmp_path)
    (work / "keys.txt").symlink_to(".env")
    (work / "new.json").symlink_to("real.json")
    (work / "real.json").write_text('{"a": 1}')
    for planted in ("data.json#a == 1", "up/outside.json#a == 1", "keys.txt#data == 1"):
        found = check(work, f"data:{planted}")
        assert found.cannot_run, planted
        assert "by a link" in found.evidence
        assert "hidden" not in found.evidence
    assert check(work, "data:new.json#a == 1").is_met
    assert check(tmp_path / "folder", "data:real.json#a == 1").is_met


@pytest.mark.parametrize(
    ("value", "is_met"),
    [
        ("1", True), ("-0.5", True), ("0", False), ("0.0", False), ("NULL", False), ("'no'", False),
        ("'false'", False), ("'0.0'", False), ("'yes'", False), ("X'31'", False),
    ],
)  # fmt: skip
def test_the_value_of_a_query_is_met_only_by_a_number(
    tmp_path: Path, value: str, is_met: bool
) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as db:
        db.execute("CREATE TABLE t (a)")
        db.commit()
    assert check(tmp_path, f"data:a.db#SELECT {value}").is_met is is_met


def test_a_number_that_is_none_decides_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": NaN}')
    (tmp_path / "a.jsonl").write_text('{"a": Infinity}')
    assert not check(tmp_path, "data:a.json#a != 1").is_met
    assert not check(tmp_path, "data:a.jsonl#rows[0].a > 1").is_met


def test_a_pipe_in_the_place_of_a_database_is_not_met_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "shop.db")
    found = check(tmp_path, "data:shop.db#SELECT 1", seconds=5)
    assert not found.is_met
    assert "not a regular file" in found.evidence
