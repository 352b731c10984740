"""What a writer changed, and who merges it: runs over loopback, and programs as writers."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from stretto.testing.openai_script import Said, Status, ToolCall
from stretto.testing.openai_server import serving
from support.background_runs import journal, lines, running
from support.cli import Said as Printed, stretto, write

# A program that does what it was told, and more.
PROGRAM = """
import pathlib
pathlib.Path("in.txt").write_text("asked for\\n")
{more}
print("done")
"""
STRAYS = """
pathlib.Path("outside.txt").write_text("not asked for\\n")
pathlib.Path("source.txt").unlink()
"""


def ran(folder: Path, more: str, keys: str, *words: str) -> Printed:
    """A run whose one step is a program, with a copy of its own."""
    write(folder, "source.txt", "precious\n")
    write(folder, "program.py", PROGRAM.format(more=more))
    recipe = f"""
name: program
agents: {{it: {{prompt: x, model: "cli:python3 program.py"}}}}
steps: [{{id: a, agent: it, prompt: go, posture: writer, write_set: [in.txt, "odd*"], {keys}}}]
"""
    write(folder, "program.yaml", recipe)
    return stretto(folder, "run", "program.yaml", "--json", "--trust", *words)


def wrote(folder: Path, keys: str, *answers: Any) -> dict[str, Any]:
    """The report of a run whose one step writes a.txt."""
    recipe = f"""
name: one
agents: {{writer: {{prompt: Write., tools: [Write]}}}}
steps: [{{id: a, agent: writer, prompt: go, write_set: [a.txt], {keys}}}]
"""
    write(folder, "one.yaml", recipe)
    call = ToolCall("Write", {"file_path": "a.txt", "content": "one\n"})
    with serving([Said("", tool_calls=(call,)), *answers]) as server:
        environ = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-loopback-0123456789"}
        said = stretto(folder, "run", "one.yaml", "--json", "--model", "openai:m", env=environ)
    report: dict[str, Any] = lines(said)[-1]
    return report


def reported(folder: Path, run_id: str) -> str:
    return stretto(folder, "report", run_id).out


@pytest.mark.parametrize("merge_back", ["auto", "manual", "never"])
def test_the_write_set_holds_whichever_way_a_change_is_merged(
    tmp_path: Path, merge_back: str
) -> None:
    said = ran(tmp_path, STRAYS, f"merge_back: {merge_back}")
    assert said.code == 1, said
    report = lines(said)[-1]
    assert "outside its write-set: outside.txt, source.txt" in report["steps"]["a"]["error"]
    assert report["steps"]["a"]["changes"]["standing"] == "refused"
    assert "stretto apply" not in reported(tmp_path, report["run_id"])
    for words in ((), ("--unfinished",), ("--allow-removals",), ("--dry-run",)):
        applied = stretto(tmp_path, "apply", report["run_id"], "a", *words)
        assert applied.code != 0
        assert "outside its write-set" in applied.err
    assert (tmp_path / "source.txt").read_text() == "precious\n"
    assert not (tmp_path / "outside.txt").exists()
    assert not (tmp_path / "in.txt").exists()


def test_apply_leaves_an_event_and_the_report_says_who(tmp_path: Path) -> None:
    run_id = wrote(tmp_path, "merge_back: manual", Said("Done."))["run_id"]
    assert f"not merged (stretto apply {run_id} a)" in reported(tmp_path, run_id)
    assert stretto(tmp_path, "apply", run_id, "a").code == 0
    (applied,) = [e for e in journal(tmp_path, run_id) if e["type"] == "changes_applied"]
    assert applied["step"] == "a"
    assert f"merged by {applied['by'] or 'a person'}" in reported(tmp_path, run_id)
    changes = stretto(tmp_path, "report", run_id, "--json").json["steps"]["a"]["changes"]
    assert (changes["merged"], changes["standing"]) == (True, "applied")
    assert changes["applied_by"] == applied["by"]
    assert stretto(tmp_path, "apply", run_id, "a").code == 0
    assert journal(tmp_path, run_id).count(applied) == 1
    assert stretto(tmp_path, "runs", "--json").json["runs"][0]["status"] == "complete"


def test_apply_is_refused_where_nothing_may_be_written(tmp_path: Path) -> None:
    run_id = wrote(tmp_path, "merge_back: manual", Said("Done."))["run_id"]
    for words in ((), ("--unfinished", "--allow-removals")):
        said = stretto(
            tmp_path,
            "apply",
            run_id,
            "a",
            "--json",
            *words,
            env={"STRETTO_PERMISSION": "read_only"},
        )
        assert (said.code, said.json["error"]["kind"]) == (4, "permission_denied")
    assert not (tmp_path / "a.txt").exists()
    tried = stretto(
        tmp_path, "apply", run_id, "a", "--dry-run", env={"STRETTO_PERMISSION": "read_only"}
    )
    assert tried.code == 0, tried


def test_half_done_work_is_applied_only_by_who_asks_for_it(tmp_path: Path) -> None:
    report = wrote(tmp_path, "merge_back: manual", *[Status(400, "no more")] * 8)
    run_id = report["run_id"]
    assert report["steps"]["a"]["status"] == "failed"
    assert f"stretto apply {run_id} a --unfinished" in reported(tmp_path, run_id)
    said = stretto(tmp_path, "apply", run_id, "a")
    assert said.code == 2
    assert "may be half done" in said.err
    assert not (tmp_path / "a.txt").exists()
    assert stretto(tmp_path, "apply", run_id, "a", "--unfinished").code == 0
    assert (tmp_path / "a.txt").read_text() == "one\n"


def test_what_a_recipe_never_merges_is_not_applied(tmp_path: Path) -> None:
    run_id = wrote(tmp_path, "merge_back: never", Said("Done."))["run_id"]
    assert "stretto apply" not in reported(tmp_path, run_id)
    assert stretto(tmp_path, "apply", run_id, "a").code == 2
    assert "+one" in stretto(tmp_path, "diff", run_id, "a").out


@pytest.mark.parametrize("merge_back", ["manual", "never"])
def test_of_a_change_without_files_there_is_nothing_to_apply(
    tmp_path: Path, merge_back: str
) -> None:
    undo = 'pathlib.Path("in.txt").unlink()'
    report = lines(ran(tmp_path, undo, f"merge_back: {merge_back}", "--permission", "auto"))[-1]
    changes = report["steps"]["a"]["changes"]
    assert (changes["files"], changes["standing"]) == (0, "nothing to apply")


def test_a_change_without_files_is_told_where_its_patch_would_be(tmp_path: Path) -> None:
    run_id = str(wrote(tmp_path, "merge_back: auto", Said("done"))["run_id"])
    write(tmp_path, "a.txt", "one\n")
    again = str(wrote(tmp_path, "merge_back: auto", Said("done"))["run_id"])
    assert "+one" in stretto(tmp_path, "diff", run_id, "a").out
    shown = stretto(tmp_path, "diff", again, "a")
    assert (shown.out, "step 'a' changed no file" in shown.err) == ("", True)
    for id, why in ((run_id, "it was merged before"), (again, "step 'a' changed no file")):
        assert f"{why}; nothing is left to do" in stretto(tmp_path, "apply", id, "a").out


def test_a_program_may_remove_what_its_write_set_covers(tmp_path: Path) -> None:
    for number in range(30):
        write(tmp_path, f"old/{number}.txt", "x\n")
    more = 'import shutil; shutil.rmtree("old")'
    said = ran(tmp_path, more, "").code
    assert said == 1  # outside its write-set
    write(tmp_path, "program.yaml", (tmp_path / "program.yaml").read_text().replace(
        '[in.txt, "odd*"]', '["**"]'))  # fmt: skip
    said = stretto(tmp_path, "run", "program.yaml", "--json", "--trust")
    assert said.code == 0, said
    assert not (tmp_path / "old").exists()


def test_removals_that_nothing_explains_wait_for_a_person(tmp_path: Path) -> None:
    """Somebody else empties the copy while the step is at work, which only writes a file."""
    for number in range(30):
        write(tmp_path, f"old/{number}.txt", "x\n")
    home = tmp_path / ".stretto-home"

    def empties(asked: Any) -> Any:
        if len(asked.messages) > 2:
            for old in home.glob("workspaces/*/a/copy-1/root/old/*"):
                old.unlink()
            return Said("Done.")
        call = ToolCall("Write", {"file_path": "a.txt", "content": "one\n"})
        return Said("", tool_calls=(call,))

    recipe = """
name: one
agents: {writer: {prompt: Write., tools: [Write]}}
steps: [{id: a, agent: writer, prompt: go}]
"""
    write(tmp_path, "one.yaml", recipe)
    with serving(empties) as server:
        environ = {
            "OPENAI_BASE_URL": server.url,
            "OPENAI_API_KEY": "sk-loopback-0123456789",
            "STRETTO_HOME": str(home),
        }
        said = stretto(tmp_path, "run", "one.yaml", "--json", "--model", "openai:m", env=environ)
        assert said.code == 3, said
        report = lines(said)[-1]
        run_id = report["run_id"]
        assert report["steps"]["a"]["changes"]["standing"] == "held"
        assert "removes 30 of 31 files" in json.dumps(report["warnings"])
        assert len(list((tmp_path / "old").iterdir())) == 30
        applied = stretto(tmp_path, "apply", run_id, "a", env=environ)
        assert (applied.code, "stretto approve" in applied.err) == (2, True)
        said = stretto(tmp_path, "reject", run_id, "a", "--json", env=environ)
    assert said.code == 1, said
    assert "rejected" in lines(said)[-1]["steps"]["a"]["error"]
    assert len(list((tmp_path / "old").iterdir())) == 30
    assert not (tmp_path / "a.txt").exists()


CLASH = """
import os
pathlib.Path("in.txt").write_text("the step's\\n")
pathlib.Path(os.fsdecode(b"odd \\xe9\\x1b[2J\\n.txt")).write_text("odd\\n")
"""


def clashed(folder: Path) -> str:
    """A run whose change is not merged: in.txt is the user's own by now."""
    report = lines(ran(folder, CLASH, "merge_back: manual", "--permission", "auto"))[-1]
    write(folder, "in.txt", "the user's\n")
    run_id: str = report["run_id"]
    assert stretto(folder, "apply", run_id, "a").code != 0
    return run_id


@pytest.mark.parametrize(
    ("words", "content"),
    [
        (("--resolved", "in.txt"), "the user's\n"),
        (("--resolved", "./in.txt"), "the user's\n"),
        (("--ours",), "the user's\n"),
        (("--theirs",), "the step's\n"),
    ],
)
def test_a_conflict_that_was_settled_is_applied(
    tmp_path: Path, words: tuple[str, ...], content: str
) -> None:
    run_id = clashed(tmp_path)
    said = stretto(tmp_path, "apply", run_id, "a")
    assert "--resolved PATH" in said.err
    assert stretto(tmp_path, "apply", run_id, "a", "--dry-run", *words).code == 0
    assert (tmp_path / "in.txt").read_text() == "the user's\n"
    assert stretto(tmp_path, "apply", run_id, "a", *words).code == 0
    assert (tmp_path / "in.txt").read_text() == content
    assert "merged by" in reported(tmp_path, run_id) or "applied" in reported(tmp_path, run_id)
    assert "merged before" in stretto(tmp_path, "apply", run_id, "a").out


def test_what_is_not_part_of_a_change_cannot_be_settled(tmp_path: Path) -> None:
    run_id = clashed(tmp_path)
    said = stretto(tmp_path, "apply", run_id, "a", "--resolved", "in.txd", "--json")
    assert said.json["error"]["details"]["hint"] == "did you mean 'in.txt'?"
    assert stretto(tmp_path, "apply", run_id, "a", "--ours", "--theirs").code == 2


def test_a_path_in_full_is_a_path_of_the_change_and_what_stays_is_named(tmp_path: Path) -> None:
    run_id = clashed(tmp_path)
    said = stretto(tmp_path, "apply", run_id, "a", "--resolved", str(tmp_path / "in.txt"), "--json")
    assert (said.code, [each["path"] for each in said.json["left"]]) == (0, ["in.txt"])
    again = stretto(tmp_path, "apply", run_id, "a", "--dry-run", "--json")
    assert (again.code, again.json["was_merged"]) == (0, True), "not the conflict of long ago"


def test_names_of_files_are_text_for_terminals_and_for_json(tmp_path: Path) -> None:
    run_id = clashed(tmp_path)
    shown = r"odd \xe9\x1b[2J\n.txt"
    assert shown in stretto(tmp_path, "diff", run_id, "a", "--json").json["files"]
    said = stretto(tmp_path, "apply", run_id, "a", "--dry-run", "--ours")
    assert shown in said.out
    assert "\x1b" not in said.out
    found = stretto(tmp_path, "apply", run_id, "a", "--ours", "--json").json
    assert found["files"] == [shown]


def test_what_a_failed_shared_writer_wrote_is_named(tmp_path: Path) -> None:
    report = wrote(tmp_path, "workspace_mode: shared, on_failure: inline", Status(400))
    assert report["steps"]["a"]["status"] == "failed"
    said = "it failed, and what it had written stays in the workspace: a.txt"
    assert any(said in warning for warning in report["warnings"]), report["warnings"]
    assert (tmp_path / "a.txt").exists()


def test_what_a_cancelled_shared_writer_wrote_is_named(tmp_path: Path) -> None:
    write(tmp_path, "slow.py", SLOW_WRITER)
    recipe = """
name: slow
agents: {slow: {prompt: x, model: "cli:python3 slow.py"}}
steps:
  - {id: a, agent: slow, prompt: go, posture: writer, write_set: [a.txt], workspace_mode: shared}
"""
    write(tmp_path, "slow.yaml", recipe)
    with running(tmp_path, "run", "slow.yaml", "--json", "--trust") as child:
        assert child.stdout is not None
        run_id = json.loads(child.stdout.readline())["run_id"]
        while not (tmp_path / "a.txt").exists():
            assert child.poll() is None
            time.sleep(0.01)
        assert stretto(tmp_path, "cancel", run_id).code == 0
        child.wait(60)
    said = "it was cancelled, and what it had written stays in the workspace: a.txt"
    assert said in reported(tmp_path, run_id)


SLOW_WRITER = """
import pathlib, time
pathlib.Path("a.txt").write_text("half")
time.sleep(600)
"""


def test_what_a_cancelled_isolated_writer_wrote_can_be_looked_at_and_applied(
    tmp_path: Path,
) -> None:
    write(tmp_path, "slow.py", SLOW_WRITER)
    recipe = """
name: slow
agents: {slow: {prompt: x, model: "cli:python3 slow.py"}}
steps:
  - {id: a, agent: slow, prompt: go, posture: writer, write_set: [a.txt]}
"""
    write(tmp_path, "slow.yaml", recipe)
    with running(tmp_path, "run", "slow.yaml", "--json", "--trust") as child:
        assert child.stdout is not None
        run_id = json.loads(child.stdout.readline())["run_id"]
        while not list((tmp_path / "home/workspaces").glob("*/a/copy-1/root/a.txt")):
            assert child.poll() is None
            time.sleep(0.01)
        assert stretto(tmp_path, "cancel", run_id).code == 0
        child.wait(60)
    assert not list((tmp_path / "home/workspaces").glob("*/a/copy-*"))
    assert f"stretto apply {run_id} a --unfinished" in reported(tmp_path, run_id)
    assert "+half" in stretto(tmp_path, "diff", run_id, "a").out
    refused = stretto(tmp_path, "apply", run_id, "a")
    assert (refused.code, (tmp_path / "a.txt").exists()) == (2, False)
    assert "may be half done: the step was cancelled" in refused.err
    assert stretto(tmp_path, "apply", run_id, "a", "--unfinished").code == 0
    assert (tmp_path / "a.txt").read_text() == "half"


def elements(folder: Path, *answers: Any, keys: str = "merge_back: auto") -> dict[str, Any]:
    """The report of a map over two elements, one after the other, each of which writes a file."""
    recipe = f"""
name: each
agents: {{writer: {{prompt: Write., tools: [Write]}}, reader: {{prompt: Read.}}}}
steps:
  - id: a
    map: {{over: "{{{{inputs.files}}}}", agent: writer, prompt: "{{{{item}}}}", batch_size: 1,
          on_item_failure: skip}}
    write_set: ["*.txt"]
    {keys}
inputs: [{{name: files, type: json, default: [one, two]}}]
"""
    write(folder, "each.yaml", recipe)
    with serving(list(answers)) as server:
        environ = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-loopback-0123456789"}
        said = stretto(folder, "run", "each.yaml", "--json", "--model", "openai:m", env=environ)
    report: dict[str, Any] = lines(said)[-1]
    return report


def making(name: str) -> Said:
    call = ToolCall("Write", {"file_path": f"{name}.txt", "content": "x\n"})
    return Said("", tool_calls=(call,))


@pytest.mark.parametrize("word", ["approve", "reject"])
def test_half_done_files_of_a_failed_element_are_not_merged_unasked(
    tmp_path: Path, word: str
) -> None:
    report = elements(tmp_path, making("one"), Said("done"), making("two"), Status(400))
    assert report["status"] == "waiting", report
    assert not (tmp_path / "one.txt").exists()
    assert not (tmp_path / "two.txt").exists()
    assert "half-done files of item.1.stage.0" in reported(tmp_path, report["run_id"])
    with serving([]) as server:
        environ = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-loopback-0123456789"}
        stretto(tmp_path, word, report["run_id"], "a", env=environ)
        stretto(tmp_path, "resume", report["run_id"], env=environ)
    assert (tmp_path / "one.txt").exists() is (word == "approve")


def raced(folder: Path, keys: str = "merge_back: auto") -> dict[str, Any]:
    """The report of a run whose winner waited until the loser had written, in the files that both work on."""
    loser = "import pathlib, time; pathlib.Path('lost.txt').write_text('half'); time.sleep(600)"
    write(folder, "lose.py", loser)
    winner = """
import pathlib, time
while not pathlib.Path("lost.txt").exists():
    time.sleep(0.01)
pathlib.Path("won.txt").write_text("all of it")
print("done")
"""
    write(folder, "win.py", winner)
    recipe = f"""
name: race
agents:
  winner: {{prompt: x, model: "cli:python3 win.py"}}
  loser: {{prompt: x, model: "cli:python3 lose.py"}}
steps:
  - id: a
    wait: any
    parallel: [{{agent: winner, prompt: go}}, {{agent: loser, prompt: go}}]
    posture: writer
    write_set: ["*.txt"]
    {keys}
"""
    write(folder, "race.yaml", recipe)
    report: dict[str, Any] = lines(stretto(folder, "run", "race.yaml", "--json", "--trust"))[-1]
    return report


def test_a_rejected_half_done_change_is_applied_only_by_who_asks_for_it(tmp_path: Path) -> None:
    report = raced(tmp_path)
    assert report["status"] == "waiting", report
    run_id = report["run_id"]
    stretto(tmp_path, "reject", run_id, "a")
    stretto(tmp_path, "resume", run_id, "--trust")
    assert f"stretto apply {run_id} a --unfinished" in reported(tmp_path, run_id)
    for flags in ((), ("--allow-removals",)):
        refused = stretto(tmp_path, "apply", run_id, "a", *flags)
        assert refused.code == 2, refused
        assert "half-done files of" in refused.err
        assert "rejected" in refused.err
    assert not (tmp_path / "lost.txt").exists()
    assert stretto(tmp_path, "apply", run_id, "a", "--unfinished").code == 0
    assert (tmp_path / "lost.txt").read_text() == "half"


def test_what_a_loser_left_in_a_shared_workspace_is_named(tmp_path: Path) -> None:
    report = raced(tmp_path, "workspace_mode: shared")
    assert report["status"] == "complete", report
    (said,) = [each for each in report["steps"]["a"]["warnings"] if "half-done" in each]
    assert "half-done files of" in said
    assert "lost.txt" in said


def test_what_a_failed_element_left_in_a_shared_workspace_is_named(tmp_path: Path) -> None:
    answers = (making("one"), Said("done"), making("two"), Status(400))
    report = elements(tmp_path, *answers, keys="workspace_mode: shared")
    (said,) = [each for each in report["steps"]["a"]["warnings"] if "half-done" in each]
    assert "half-done files of item.1" in said
    assert "two.txt" in said


def test_an_element_that_wrote_nothing_is_not_named_in_a_shared_workspace(tmp_path: Path) -> None:
    answers = (making("one"), Said("done"), Status(400))
    report = elements(tmp_path, *answers, keys="workspace_mode: shared")
    assert (tmp_path / "one.txt").exists()
    assert not any("half-done" in each for each in report["warnings"]), report


def test_the_half_done_files_of_an_element_are_not_applied_unasked(tmp_path: Path) -> None:
    answers = (making("one"), Said("done"), making("two"), Status(400))
    report = elements(tmp_path, *answers, keys="merge_back: manual")
    run_id = report["run_id"]
    assert report["steps"]["a"]["changes"]["standing"] == "unfinished", report
    refused = stretto(tmp_path, "apply", run_id, "a")
    assert (refused.code, "half-done files of item.1" in refused.err) == (2, True), refused
    assert "None" not in refused.err
    assert not (tmp_path / "one.txt").exists()
    assert stretto(tmp_path, "apply", run_id, "a", "--unfinished").code == 0
    assert (tmp_path / "two.txt").exists()


def test_half_done_files_are_not_merged_after_a_later_step_either(tmp_path: Path) -> None:
    keys = """merge_back: after b
  - {id: b, agent: reader, prompt: "look at {{steps.a.output}}"}"""
    answers = (making("one"), Said("done"), making("two"), Status(400), Said("fine"))
    report = elements(tmp_path, *answers, keys=keys)
    assert not (tmp_path / "two.txt").exists(), report
    assert "--unfinished" in report["steps"]["b"]["error"], report
    assert report["steps"]["a"]["changes"]["standing"] == "unfinished"
    assert stretto(tmp_path, "apply", report["run_id"], "a").code == 2


def test_what_is_never_merged_is_only_kept_however_its_step_ended(tmp_path: Path) -> None:
    report = wrote(tmp_path, "merge_back: never, on_failure: inline", Status(400))
    assert report["steps"]["a"]["changes"]["standing"] == "kept"
    assert "stretto apply" not in reported(tmp_path, report["run_id"])


def test_an_element_that_failed_before_it_wrote_anything_holds_nothing_up(tmp_path: Path) -> None:
    report = elements(tmp_path, making("one"), Said("done"), Status(400))
    assert report["status"] == "partial"
    assert (tmp_path / "one.txt").exists()


@pytest.mark.parametrize("mode", ["isolated", "shared"])
def test_a_command_that_changed_files_and_ended_with_a_code_was_not_in_vain(
    tmp_path: Path, mode: str
) -> None:
    recipe = f"""
name: one
agents: {{writer: {{prompt: Write., tools: [Bash]}}}}
steps: [{{id: a, agent: writer, prompt: go, write_set: [made.txt], workspace_mode: {mode}}}]
"""
    write(tmp_path, "one.yaml", recipe)
    call = ToolCall("Bash", {"command": "echo one > made.txt; exit 3"})
    with serving([Said("", tool_calls=(call,)), Said("Done.")]) as server:
        environ = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-loopback-0123456789"}
        said = stretto(tmp_path, "run", "one.yaml", "--json", "--model", "openai:m", env=environ)
    report = lines(said)[-1]
    assert (said.code, report["status"]) == (0, "complete")
    assert (tmp_path / "made.txt").read_text() == "one\n"
    (warning,) = report["steps"]["a"]["warnings"]
    assert warning.startswith("Bash failed")
    assert "exit code 3" in warning


def test_a_step_at_work_has_no_change_yet(tmp_path: Path) -> None:
    recipe = """
name: one
agents: {writer: {prompt: Write., tools: [Write]}}
steps: [{id: a, agent: writer, prompt: go, gate: human, write_set: [a.txt]}]
"""
    write(tmp_path, "one.yaml", recipe)
    write(tmp_path, "script.yaml", "default: ok")
    waiting = stretto(tmp_path, "run", "one.yaml", "--json", "--model", "scripted:script.yaml")
    assert waiting.code == 3, waiting
    said = stretto(tmp_path, "apply", lines(waiting)[-1]["run_id"], "a")
    assert (said.code, "has not ended" in said.err) == (2, True)
