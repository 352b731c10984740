"""What a command said is given again only for the files that it read, and with all that it said."""

import json
import subprocess
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


COUNTS = "{id: a, run: 'cat src/* | cksum; date +%N', posture: read_only"  # never says the same


def is_same(first: dict[str, Any], again: dict[str, Any], step: str = "a") -> bool:
    return bool(first["steps"][step]["output"] == again["steps"][step]["output"])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, "work/src/code.py", "good\n")
    write(tmp_path, "work/docs/page.md", "page\n")
    write(tmp_path, "work/node_modules/x/index.js", "x\n")
    return tmp_path


EDITS = {
    "edited": "printf 'evil\\n' > src/code.py",
    "edited to the same size at the same time": (
        "touch -r src/code.py t; printf 'evil\\n' > src/code.py; touch -r t src/code.py; rm t"
    ),
    "added": "echo new > src/more.py",
    "added hidden": "echo new > .env",
    "removed": "rm docs/page.md",
    "made executable": "chmod +x src/code.py",
    "made a link": "rm docs/page.md; ln -s ../src/code.py docs/page.md",
    "renamed": "mv docs/page.md docs/other.md",
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_command_runs_again_where_a_file_was_changed(project: Path, edit: str) -> None:
    steps = f"  - {COUNTS}, cache: true}}\n"
    first = run(project, steps)
    assert is_same(first, run(project, steps))
    assert is_same(first, retry(project, first))
    subprocess.run(["sh", "-ec", edit], cwd=project / "work", check=True)
    again = retry(project, first)
    assert not is_same(first, again)
    assert is_same(again, run(project, steps))  # the cache has the files of now
    assert is_same(again, retry(project, again))


def test_a_retry_runs_again_what_is_not_cached(project: Path) -> None:
    first = run(project, f"  - {COUNTS}}}\n")
    write(project, "work/src/code.py", "evil\n")
    assert not is_same(first, retry(project, first))


def test_a_retry_from_a_step_runs_it_again_though_it_is_cached(project: Path) -> None:
    first = run(project, f"  - {COUNTS}, cache: true}}\n")
    again = retry(project, first, "--from", "a")
    assert not is_same(first, again)
    assert is_same(again, run(project, f"  - {COUNTS}, cache: true}}\n"))  # the newest one is kept


UNSEEN = {
    "touched": "touch src/code.py",
    "written again": "cp src/code.py c; rm src/code.py; mv c src/code.py",
    "what tools make": "echo y > node_modules/x/index.js; mkdir -p src/__pycache__; echo > src/__pycache__/c.pyc",
    "an empty folder": "mkdir -p nothing",
}


@pytest.mark.parametrize("edit", UNSEEN.values(), ids=UNSEEN)
def test_a_command_is_reused_where_its_files_are_the_same(project: Path, edit: str) -> None:
    steps = f"  - {COUNTS}, cache: true}}\n"
    first = run(project, steps)
    subprocess.run(["sh", "-ec", edit], cwd=project / "work", check=True)
    assert is_same(first, run(project, steps))
    assert is_same(first, retry(project, first))


def test_what_was_put_back_counts_as_unchanged(project: Path) -> None:
    steps = f"  - {COUNTS}, cache: true}}\n"
    first = run(project, steps)
    write(project, "work/src/code.py", "evil\n")
    assert not is_same(first, run(project, steps))
    write(project, "work/src/code.py", "good\n")
    assert is_same(first, run(project, steps))
    assert is_same(first, retry(project, first))


def test_only_the_read_set_counts(project: Path) -> None:
    steps = f"  - {COUNTS}, cache: true, read_set: [src, node_modules/x]}}\n"
    first = run(project, steps)
    write(project, "work/docs/page.md", "other\n")
    assert is_same(first, run(project, steps))
    assert is_same(first, retry(project, first))
    write(project, "work/node_modules/x/index.js", "other\n")  # named, so it counts
    assert not is_same(first, run(project, steps))
    assert not is_same(first, retry(project, first))


LINKS = {
    "a link to a folder": ("ln -s src lib", "lib", "lib/code.py"),
    "a link to a file": ("ln -s src/code.py one.py", "one.py", "one.py"),
    "a link to a link": ("ln -s src mid; ln -s mid lib", "lib", "lib/code.py"),
    "a link below": ("ln -s ../src docs/lib", "docs", "docs/lib/code.py"),
    "a link that a glob meets": ("ln -s src lib", "l*/*.py", "lib/code.py"),
}


@pytest.mark.parametrize(("link", "read_set", "file"), LINKS.values(), ids=LINKS)
def test_a_file_that_is_read_through_a_link_counts(
    project: Path, link: str, read_set: str, file: str
) -> None:
    subprocess.run(["sh", "-ec", link], cwd=project / "work", check=True)
    steps = (
        f"  - {{id: a, run: 'cat {file}; date +%N', posture: read_only, cache: true,"
        f" read_set: ['{read_set}']}}\n"
    )
    first = run(project, steps)
    assert is_same(first, run(project, steps))
    assert is_same(first, retry(project, first))
    write(project, "work/src/code.py", "evil\n")
    for again in (run(project, steps), retry(project, first)):
        assert again["steps"]["a"]["output"].startswith("evil")


def test_what_the_run_itself_changed_is_no_reason_to_run_again(project: Path) -> None:
    steps = f"""\
  - {COUNTS}}}
  - {{id: isolated, run: "echo fixed > src/code.py", write_set: [src], depends_on: a}}
  - {{id: shared, run: "echo made > docs/made.md; rm docs/page.md", write_set: [docs],
     workspace_mode: shared, depends_on: a}}
  - {{id: fails, run: "exit 1", posture: read_only, depends_on: [isolated, shared]}}
"""
    first = run(project, steps)
    again = retry(project, first)
    third = retry(project, again)
    for id in ("a", "isolated", "shared"):
        assert is_same(first, third, id)
        assert "reused" in str(call(project, "events", third["run_id"], "--json").out)
    assert is_same(first, again)
    assert is_same(first, third)
    write(project, "work/docs/made.md", "by the user\n")
    assert not is_same(third, retry(project, third))


NEVER_MERGED = {
    "kept": "run: 'echo fixed > src/code.py', merge_back: manual",
    "failed": "run: 'echo fixed > src/code.py; exit 1', on_failure: inline",
}


@pytest.mark.parametrize("writer", NEVER_MERGED.values(), ids=NEVER_MERGED)
def test_what_a_writer_wrote_and_nobody_merged_is_no_change_of_the_run(
    project: Path, writer: str
) -> None:
    steps = f"""\
  - {COUNTS}}}
  - {{id: w, {writer}, write_set: [src], depends_on: a}}
"""
    first = run(project, steps)
    assert is_same(first, retry(project, first))
    write(project, "work/src/code.py", "fixed\n")  # the same, but by the user
    assert not is_same(first, retry(project, first))


def test_a_change_that_a_person_applied_is_a_change_of_the_run(project: Path) -> None:
    steps = f"""\
  - {COUNTS}}}
  - {{id: w, {NEVER_MERGED["kept"]}, write_set: [src], depends_on: a}}
"""
    first = run(project, steps)
    assert call(project, "apply", first["run_id"], "w").code == 0
    assert (project / "work/src/code.py").read_text() == "fixed\n"
    assert is_same(first, retry(project, first))


def test_a_writer_is_not_repeated_for_what_it_wrote_itself(project: Path) -> None:
    steps = """\
  - {id: a, run: "echo x >> src/count; date +%N", effect: in_doubt}
  - {id: b, run: "echo x >> docs/count; date +%N", workspace_mode: shared, depends_on: a}
"""
    first = run(project, steps)
    again = retry(project, retry(project, first))
    assert is_same(first, again)
    assert is_same(first, again, "b")
    assert (project / "work/src/count").read_text() == "x\n"
    write(project, "work/src/code.py", "evil\n")
    assert not is_same(first, retry(project, again))


def test_a_file_that_changed_while_the_command_ran_is_not_taken_for_what_it_read(
    project: Path,
) -> None:
    """By somebody who put the first bytes back later: nobody knows which ones were read."""
    steps = "  - {id: a, run: 'sleep 1.5; cat src/code.py; date +%N', posture: read_only, cache: true}\n"
    write(project, "work/r.yaml", f"name: r\nsteps:\n{steps}")
    edit = "sleep 0.9; echo evil > src/code.py"
    with subprocess.Popen(["sh", "-ec", edit], cwd=project / "work"):
        first = run(project, steps)
    for _ in range(3):  # on a busy machine the edit may come too late, or too early
        if first["steps"]["a"]["output"].startswith("evil"):
            break
        write(project, "work/src/code.py", "good\n")
        with subprocess.Popen(["sh", "-ec", edit], cwd=project / "work"):
            first = run(project, steps)
    write(project, "work/src/code.py", "good\n")
    assert not is_same(first, run(project, steps))
    assert not is_same(first, retry(project, first))


def test_a_commit_counts_for_a_command_that_may_ask_git(project: Path) -> None:
    def commit(*words: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
        subprocess.run(["git", *identity, *words], cwd=project / "work", check=True)

    commit("init", "-q")
    commit("commit", "-qm", "one", "--allow-empty")
    first = run(project, "  - {id: a, run: 'git log --oneline; date +%N', posture: read_only}\n")
    assert is_same(first, retry(project, first))
    commit("commit", "-qm", "two", "--allow-empty")
    assert not is_same(first, retry(project, first))


def test_a_command_that_reads_too_much_is_never_reused_and_says_so(project: Path) -> None:
    with (project / "work/huge").open("wb") as huge:
        huge.truncate(300 * 2**20)
    steps = f"  - {COUNTS}, cache: true}}\n  - {COUNTS.replace('id: a', 'id: b')}, read_set: [src], cache: true}}\n"
    first = run(project, steps)
    again, retried = run(project, steps), retry(project, first)
    for report in (again, retried):
        assert not is_same(first, report)
        assert is_same(first, report, "b")
        (said,) = report["steps"]["a"]["warnings"]
        assert "is never reused" in said
        assert "read_set" in said
    assert first["steps"]["b"]["warnings"] == []
    plain = run(project, f"  - {COUNTS}}}\n")
    assert plain["steps"]["a"]["warnings"] == []  # nobody had asked for it
    assert "is never reused" in str(retry(project, plain)["steps"]["a"]["warnings"])


def test_a_person_is_asked_again_about_a_command_whose_files_were_changed(project: Path) -> None:
    steps = f"  - {COUNTS}, gate: human}}\n"
    first = run(project, steps)
    first = report_of(call(project, "approve", first["run_id"], "a", "--json"))
    assert is_same(first, retry(project, first))
    write(project, "work/src/code.py", "evil\n")
    again = retry(project, first)
    assert again["steps"]["a"]["status"] == "awaiting approval"


GATED = {
    "a validator": """\
  - id: a
    prompt: Try.
    gate: human
    posture: read_only
    loop: {agent: researcher, validator: {run: 'grep -q good src/code.py'}, max_iterations: 2}
""",
    "a validator of a writer": """\
  - id: a
    prompt: Try.
    gate: human
    write_set: [out/**]
    loop: {agent: researcher, validator: {run: 'echo x > out/made; grep -q good src/code.py'}}
""",
    "a command in a workflow step": "  - {id: a, workflow: ./inner.yaml, gate: human}\n",
}


@pytest.mark.parametrize("steps", GATED.values(), ids=GATED)
def test_a_person_is_asked_again_wherever_in_the_step_the_command_is(
    project: Path, steps: str
) -> None:
    write(project, "work/s.yaml", "default: a candidate\n")
    inner = "name: inner\nsteps: [{id: c, run: 'cat src/*', posture: read_only}]\n"
    write(project, "work/inner.yaml", inner)
    write(project, "work/out/made", "")
    write(project, "work/r.yaml", f"name: r\nsteps:\n{steps}")
    first = report_of(call(project, "run", "r.yaml", "--json", "--model", "scripted:s.yaml"))
    first = report_of(call(project, "approve", first["run_id"], "a", "--json"))
    assert first["steps"]["a"]["status"] == "succeeded"
    again = retry(project, first)
    assert again["steps"]["a"]["status"] == "succeeded"
    assert retry(project, again)["steps"]["a"]["status"] == "succeeded"
    write(project, "work/src/code.py", "good and evil\n")
    for run in (first, again):
        assert retry(project, run)["steps"]["a"]["status"] == "awaiting approval"


def test_a_verdict_of_a_command_is_given_again_only_for_its_files(project: Path) -> None:
    write(project, "work/s.yaml", "default: a candidate\n")
    recipe = """\
name: r
steps:
  - id: fix
    prompt: Try.
    posture: read_only
    loop: {agent: researcher, validator: {run: 'date +%N; grep -q good src/code.py'}}
"""
    write(project, "work/r.yaml", recipe)
    first = report_of(call(project, "run", "r.yaml", "--json", "--model", "scripted:s.yaml"))
    assert first["status"] == "complete"
    assert asked_anew(project, retry(project, first)) == set()
    write(project, "work/src/code.py", "evil\n")
    again = retry(project, first)
    assert again["status"] == "partial"
    assert any("check" in each for each in asked_anew(project, again))


def asked_anew(folder: Path, report: dict[str, Any]) -> set[str]:
    told = call(folder, "events", report["run_id"], "--json").out.splitlines()
    events = [json.loads(line) for line in told]
    found = [e for e in events if e["type"] == "attempt_succeeded" and not e.get("reused_from")]
    return {str(e["attempt"].get("part")) for e in found}
