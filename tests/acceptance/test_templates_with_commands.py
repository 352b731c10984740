"""The templates with commands, on a real small repository, with a server that plays the model."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stretto.testing.openai_script import Asked, Said, ServerAnswer, ToolCall
from stretto.testing.openai_server import serving
from stretto.workspaces.sandbox.sandbox import NoSandbox, find_sandbox
from support.benchmarks import load_benchmark
from support.cli import Said as Told, stretto, write

pytestmark = pytest.mark.skipif(
    isinstance(find_sandbox(), NoSandbox) or not Path("/usr/bin/python3").exists(),
    reason="needs a sandbox, and a Python in it",
)
TESTS = """\
import unittest
from calc import add


class Adds(unittest.TestCase):
    def test_two_numbers(self):
        self.assertEqual(add(2, 3), 5)
"""
# What a user edits in the template: which command says that the code is good.
PYTEST = "python3 -m pytest -q -p no:cacheprovider"
UNITTEST = "python3 -B -m unittest -q test_calc"


def edits(text: str) -> Said:
    return Said("", tool_calls=(ToolCall("Write", {"file_path": "calc.py", "content": text}),))


WRONG = edits("def add(a, b):\n    return a * b\n")
RIGHT = edits("def add(a, b):\n    return a + b\n")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    write(work, "calc.py", "def add(a, b):\n    return a - b\n")
    write(work, "test_calc.py", TESTS)
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "start"]):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
        subprocess.run(["git", *identity, *words], cwd=work, check=True)
    return work


def add_pytest(work: Path, *, is_whole: bool = True) -> None:
    load_benchmark("embedded").add_pytest(work, is_whole=is_whole)


def start(
    work: Path,
    template: str,
    script: list[Said] | Callable[[Asked], ServerAnswer],
    module: str = "unittest",
    ends: int = 0,
    is_rejected: bool = False,
) -> tuple[dict[str, Any], Callable[..., Told], list[str]]:
    home = {"STRETTO_HOME": str(work.parent / "home"), "HOME": str(work.parent / "user")}

    def call(*words: str) -> Told:
        return stretto(work, *words, env={**home, **model})

    with serving(script) as server:
        model = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-loopback-0123456789"}
        assert call("new", "mine", "--template", template).code == 0
        file = work / "workflows/mine.yaml"
        text = file.read_text()
        assert f"stretto run {template}" not in text
        if (work / ".venv").exists():  # as the template says, for a virtual environment
            text = text.replace("python3 -m", ".venv/bin/python -m")
            text = text.replace("python3 -c", ".venv/bin/python -c")
        else:
            text = text.replace(PYTEST, UNITTEST).replace("import pytest", f"import {module}")
        file.write_text(text)
        said = call("run", "workflows/mine.yaml", "--json", "--model", "openai:m")
        report = json.loads(said.out.splitlines()[-1])
        step = "approve" if template == "fix-until-green" else "write"
        if report["status"] == "waiting":
            decision = "reject" if is_rejected else "approve"
            done = call(decision, report["run_id"], step, "--model", "openai:m")
            assert done.code == ends, done
            report = json.loads(call("report", report["run_id"], "--format", "json").out)
        prompts = [json.dumps(asked.body) for asked in server.requests]
    return report, call, prompts


def test_code_is_mended_until_its_tests_pass_and_merged_behind_the_gate(repository: Path) -> None:
    script = [WRONG, Said("Multiplied."), RIGHT, Said("Added.")]
    report, _, prompts = start(repository, "fix-until-green", script)
    assert report["status"] == "complete", report
    assert "AssertionError: -1 != 5" in report["steps"]["before"]["output"]
    assert report["steps"]["fix"]["output"] == "Added."
    assert "AssertionError: 6 != 5" in prompts[2]
    assert "+    return a + b" in report["steps"]["approve"]["output"]
    assert (repository / "calc.py").read_text() == "def add(a, b):\n    return a + b\n"


def test_what_stays_red_is_not_merged_and_nobody_is_asked(repository: Path) -> None:
    report, _, _ = start(
        repository,
        "fix-until-green",
        lambda asked: Said("Tried.") if asked.times % 2 == 0 else WRONG,
    )
    assert report["status"] == "partial", report
    assert report["steps"]["approve"]["status"] == "skipped"
    assert report["steps"]["fix"]["changes"]["merged"] is False
    assert (repository / "calc.py").read_text() == "def add(a, b):\n    return a - b\n"


def test_where_the_tests_cannot_run_no_model_is_asked(repository: Path) -> None:
    report, _, prompts = start(repository, "fix-until-green", [], module="no_such_module")
    assert report["status"] == "failed", report
    assert "No module named 'no_such_module'" in report["steps"]["before"]["error"]
    assert not prompts


def test_with_pytest_in_the_repository_the_code_is_mended_at_once(repository: Path) -> None:
    add_pytest(repository)
    report, call, prompts = start(repository, "fix-until-green", [RIGHT, Said("Added.")])
    assert report["status"] == "complete", report
    assert "1 failed" in report["steps"]["before"]["output"]
    assert (report["steps"]["fix"]["exit_code"], len(prompts)) == (0, 2)
    assert "1 passed" in report["output"]
    assert (repository / "calc.py").read_text() == "def add(a, b):\n    return a + b\n"
    # The loop works anew, without a model now; its own change is no reason to repeat the test before it.
    again = json.loads(call("retry", report["run_id"], "--json").out.splitlines()[-1])
    assert "before: 1 output reused" in call("report", again["run_id"]).out
    assert "1 failed" in again["steps"]["before"]["output"]


def test_with_pytest_in_the_repository_the_code_is_mended_in_the_second_round(
    repository: Path,
) -> None:
    add_pytest(repository)
    script = [WRONG, Said("Multiplied."), RIGHT, Said("Added.")]
    report, _, prompts = start(repository, "fix-until-green", script)
    assert report["status"] == "complete", report
    assert "assert 6 == 5" in prompts[2] or "6 != 5" in prompts[2]
    assert report["steps"]["fix"]["changes"]["merged"] is True


def test_with_pytest_in_the_repository_what_stays_red_is_kept_after_five_rounds(
    repository: Path,
) -> None:
    add_pytest(repository)
    report, call, prompts = start(
        repository,
        "fix-until-green",
        lambda asked: Said("Tried.") if asked.times % 2 == 0 else WRONG,
    )
    assert report["status"] == "partial", report
    assert len(prompts) == 10
    shown = call("report", report["run_id"]).out
    assert "max iterations reached" in shown
    assert "its change was not merged: the command never passed" in shown
    assert "+    return a * b" in call("diff", report["run_id"], "fix").out
    assert (repository / "calc.py").read_text() == "def add(a, b):\n    return a - b\n"


def test_tests_that_pass_already_leave_nothing_to_merge(repository: Path) -> None:
    add_pytest(repository)
    write(repository, "calc.py", "def add(a, b):\n    return a + b\n")
    report, _, _ = start(
        repository, "fix-until-green", lambda asked: Said("All pass: there is nothing to do.")
    )
    assert "1 passed" in report["steps"]["before"]["output"]
    assert report["status"] == "complete", json.dumps(report["steps"], indent=1)
    assert report["steps"]["approve"]["output"] == ""
    assert (repository / "calc.py").read_text() == "def add(a, b):\n    return a + b\n"


def test_a_repository_whose_environment_lacks_pytest_costs_nothing(repository: Path) -> None:
    add_pytest(repository, is_whole=False)
    report, _, prompts = start(repository, "fix-until-green", [])
    assert report["status"] == "failed", report
    assert "No module named 'pytest'" in report["steps"]["before"]["error"]
    assert not prompts


def test_what_a_person_rejects_is_not_merged(repository: Path) -> None:
    add_pytest(repository)
    report, call, _ = start(
        repository, "fix-until-green", [RIGHT, Said("Added.")], is_rejected=True, ends=1
    )
    assert report["status"] == "partial", report
    assert report["steps"]["approve"]["error"]
    assert report["steps"]["fix"]["changes"]["merged"] is False
    assert (repository / "calc.py").read_text() == "def add(a, b):\n    return a - b\n"
    assert call("apply", report["run_id"], "fix").code == 0
    assert (repository / "calc.py").read_text() == "def add(a, b):\n    return a + b\n"


def test_a_review_is_written_behind_the_gate(repository: Path) -> None:
    content = "# Review\n\nadd subtracts.\n"
    writes = Said(
        "", tool_calls=(ToolCall("Write", {"file_path": "REVIEW.md", "content": content}),)
    )

    def answer(asked: Asked) -> ServerAnswer:
        said = json.dumps(asked.body)
        if "REVIEW.md" not in said:
            return Said('{"findings": [], "read": ["calc.py"], "not_read": []}')
        return Said("add subtracts.") if '"role": "tool"' in said else writes

    add_pytest(repository)
    write(repository, "node_modules/x/index.js", "// TODO of others\n")
    write(repository, "odd name; touch PWNED/-n.py", "# FIXME: ours\n")
    report, _, prompts = start(repository, "review-this-repository", answer)
    assert report["status"] == "complete", report
    facts = report["steps"]["facts"]["output"]
    assert "calc.py" in facts
    assert "odd name; touch PWNED/-n.py:1:# FIXME: ours" in facts
    assert "site-packages" not in facts
    assert "node_modules" not in facts
    assert not (repository / "PWNED").exists()
    assert sum("Lens: " in prompt for prompt in prompts) >= 3
    assert (repository / "REVIEW.md").read_text() == content


def test_a_review_that_was_only_told_of_ends_partial(repository: Path) -> None:
    found = '{"findings": [], "read": ["calc.py"], "not_read": []}'
    report, _, _ = start(
        repository,
        "review-this-repository",
        lambda asked: Said(found if "REVIEW.md" not in json.dumps(asked.body) else "Written."),
        ends=1,
    )
    assert report["status"] == "partial", report
    assert "REVIEW.md was not written" in report["steps"]["written"]["error"]
