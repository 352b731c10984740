"""Warnings of a recipe and of writers' copies: told before the run, and part of `--json`."""

from pathlib import Path
from typing import Any

import pytest

from support.background_runs import lines
from support.cli import stretto, succeeded, write

READER = """\
name: notes
steps:
  - {id: note, subagent: writer, prompt: Write a note., write_set: [notes/**]}
"""
WRITER = """\
name: tidy
agents:
  coder: {prompt: You change code., tools: [Read, Edit]}
steps:
  - {id: code, subagent: coder, prompt: Tidy it., write_set: [src/**]}
"""
KEYS = {"code", "file", "line", "column", "path", "message", "hint"}


def codes(warnings: list[dict[str, Any]]) -> list[str]:
    assert all(set(warning) == KEYS for warning in warnings)
    return [warning["code"] for warning in warnings]


def test_warnings_of_a_recipe_are_part_of_what_validate_and_plan_print(tmp_path: Path) -> None:
    write(tmp_path, "notes.yaml", READER)
    for command in ("validate", "plan"):
        found = succeeded(stretto(tmp_path, command, "notes.yaml", "--json"))
        assert codes(found["warnings"]) == ["RCP902"]
        assert "RCP902 warning" in stretto(tmp_path, command, "notes.yaml").err


def test_warnings_of_a_recipe_are_part_of_the_report(tmp_path: Path) -> None:
    write(tmp_path, "notes.yaml", READER)
    write(tmp_path, "script.yaml", "default: ok")
    said = stretto(tmp_path, "run", "notes.yaml", "--model", "scripted:script.yaml", "--json")
    report = lines(said)[-1]
    assert codes(report["recipe_warnings"]) == ["RCP902"]
    again = succeeded(stretto(tmp_path, "report", report["run_id"], "--json"))
    assert again["recipe_warnings"] == report["recipe_warnings"]


def left_out(folder: Path, recipe: str = WRITER) -> list[str]:
    write(folder, "tidy.yaml", recipe)
    found = succeeded(stretto(folder, "plan", "tidy.yaml", "--json", "--trust"))
    assert set(codes(found["warnings"])) <= {"RCP905"}
    return [warning["message"] for warning in found["warnings"]]


def test_what_a_copy_leaves_out_is_told_before_the_run(tmp_path: Path) -> None:
    assert left_out(tmp_path) == []
    write(tmp_path, ".gitignore", "gen/\n")
    write(tmp_path, "src/gen/api.py", "")
    write(tmp_path, "other/gen/api.py", "")
    assert left_out(tmp_path) == [
        "the copy of step 'code' leaves out 'src/gen': ignored, and only covered by its sets, "
        "not named"
    ]
    assert left_out(tmp_path, WRITER.replace("[src/**]", "[src/**, src/gen/*]")) == []
    # A step that works in the workspace itself has no copy.
    assert (
        left_out(tmp_path, WRITER.replace("write_set", "workspace_mode: shared, write_set")) == []
    )


def test_a_repository_inside_is_told_before_the_run(tmp_path: Path) -> None:
    write(tmp_path, "vendor/lib/.git/HEAD", "ref: refs/heads/main\n")
    write(tmp_path, "vendor/lib/a.c", "")
    (said,) = left_out(tmp_path)
    assert "step 'code' leaves out 'vendor/lib': a repository of its own" in said
    named = WRITER.replace("write_set", "read_set: [vendor/lib/**], write_set")
    assert left_out(tmp_path, named) == []


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("carry: [node_modules]", "'node_modules' of workspace.carry is not a folder"),
        ("carry: [src]\nsandbox: 'off'", "workspace.carry has no effect: the sandbox is off"),
        ("carry: [src]\nmodel: x", ""),
        ("max_files: 1", "will get no copy of the workspace: the workspace holds more than 1 file"),
    ],
)
def test_settings_of_copies_are_told_where_they_cannot_hold(
    tmp_path: Path, settings: str, said: str
) -> None:
    write(tmp_path, "src/a.py", "")
    first, _, rest = settings.partition("\n")
    write(tmp_path, "stretto.yaml", f"workspace: {{{first}}}\n{rest}\n")
    warnings = left_out(tmp_path)
    assert len(warnings) == bool(said)
    assert said in "".join(warnings)


def test_a_program_of_its_own_does_not_see_what_is_carried(tmp_path: Path) -> None:
    write(tmp_path, "src/a.py", "")
    write(tmp_path, "stretto.yaml", "workspace: {carry: [src]}\n")
    (said,) = left_out(tmp_path, WRITER.replace("tools:", "model: 'cli:codex', tools:"))
    assert "step 'code' is done by another program" in said


@pytest.mark.parametrize("path", ["/etc", "../up", "~/x", "a/.git", ".", ""])
def test_only_folders_of_the_workspace_can_be_carried(tmp_path: Path, path: str) -> None:
    write(tmp_path, "stretto.yaml", f"workspace: {{carry: ['{path}']}}\n")
    said = stretto(tmp_path, "list", "--trust", "--json")
    assert said.code == 2
    assert said.json["error"]["details"]["problems"][0]["code"] in ("RCP103", "RCP121")
