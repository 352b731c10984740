"""Who sits at a terminal is asked there: about writers, about gates, about trust."""

import json
import re
from pathlib import Path

import pytest

from support.background_runs import lines
from support.cli import refused, stretto, succeeded, talk, write

WRITER = "name: w\nsteps: [{id: a, subagent: worker, prompt: go, write_set: [src]}]\n"
SCRIPT = ("--model", "scripted:script.yaml")


def folder_with(tmp_path: Path, recipe: str) -> Path:
    write(tmp_path, "w.yaml", recipe)
    write(tmp_path, "script.yaml", "default: Done.")
    return tmp_path


ASKED = "[l]ater"
GATED = """\
name: w
inputs: [{name: t, default: Ann}]
steps:
  - {id: look, subagent: researcher, prompt: look}
  - {id: send, subagent: writer, gate: human, prompt: "send {{steps.look.output}} to {{inputs.t}}"}
"""
RUN = ["run", "w.yaml", *SCRIPT]


def gated(tmp_path: Path, recipe: str = GATED) -> tuple[Path, str]:
    """A run that awaits approval, and nobody drives it."""
    folder = folder_with(tmp_path, recipe)
    said = stretto(folder, *RUN, "--json")
    assert said.code == 3, said
    return folder, lines(said)[-1]["run_id"]


def test_a_writer_may_start_once_the_person_says_yes(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, WRITER)
    words = ["run", "w.yaml", "--permission", "ask", *SCRIPT]
    code, screen, _ = talk(folder, words, [(ASKED, "y\n")])
    assert code == 0, screen
    assert "writes  src" in screen
    assert "complete in " in screen


def test_a_no_at_the_terminal_is_a_rejection_with_its_reason(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, WRITER)
    words = ["run", "w.yaml", "--permission", "ask", *SCRIPT]
    code, screen, _ = talk(folder, words, [(ASKED, "no\n"), ("Why not?", "too risky\n")])
    assert code == 1, screen
    assert "too risky" in screen.partition("Why not?")[2].partition("\n")[2]


def test_a_gate_shows_what_would_run_and_on_what_grounds(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, GATED)
    code, screen, _ = talk(folder, RUN, [(ASKED, "yes it is harmless\n")])
    assert code == 0, screen
    before = screen.partition(ASKED)[0]
    for words in (
        "Step 'send' of w",
        "agent writer",
        "scripted:",
        "send Done. to Ann",
        "look (succ",
    ):
        assert words in before, words
    assert "it is harmless" in screen.rpartition(ASKED)[2]


def test_enter_asks_again_and_so_does_a_word_that_means_nothing(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, GATED)
    answers = [(ASKED, "\n"), (ASKED, "perhaps\n"), (ASKED, "yesterday\n"), (ASKED, "yes\n")]
    code, screen, _ = talk(folder, RUN, answers)
    assert code == 0, screen
    assert words(screen).count("a reason may follow yes and no") == 3


def test_what_was_edited_is_what_is_viewed(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, GATED)
    edited = [(ASKED, "edit\n"), ("> ", "send it to nobody\n"), ("> ", ".\n")]
    answers = [*edited, (ASKED, "view\n"), (ASKED, "later\n")]
    code, screen, said = talk(folder, RUN, answers, env={"PAGER": "cat"})
    assert code == 3, screen
    assert "send it to nobody" in said[-1]
    assert "send Done. to Ann" not in said[-1]


def test_the_whole_of_it_can_be_viewed(tmp_path: Path) -> None:
    long = GATED.replace(
        "look}", '"' + "\\n".join(f"line {n}" for n in range(40)) + '", gate: human}'
    )
    folder = folder_with(tmp_path, long)
    answers = [(ASKED, "view\n"), (ASKED, "later\n")]
    code, screen, (before, after) = talk(folder, RUN, answers, env={"PAGER": "cat"})
    assert code == 3, screen
    assert "more lines" in before
    assert "line 39" not in before
    assert "line 39" in after


@pytest.mark.parametrize(("keys", "ends"), [("\x03", 130), ("\x04", 130), ("later\n", 3)])
def test_to_leave_it_decides_nothing_and_says_how_to_go_on(
    tmp_path: Path, keys: str, ends: int
) -> None:
    folder = folder_with(tmp_path, GATED)
    code, screen, _ = talk(folder, RUN, [(ASKED, keys)])
    assert code == ends, screen
    (run_id,) = (row["run_id"] for row in stretto(folder, "runs", "--json").json["runs"])
    assert f"stretto approve {run_id} send" in screen
    assert stretto(folder, "runs", "--json").json["runs"][0]["status"] == "waiting"
    said = stretto(folder, "approve", run_id, "send")
    assert said.code == 0, said


def words(screen: str) -> str:
    """What is to be read there, without colours and the breaks of lines."""
    return " ".join(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen).split())


def test_an_edited_prompt_is_what_runs_and_stands_in_the_report(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, GATED)
    answers = [(ASKED, "edit\n"), ("> ", "send it to nobody\n"), ("> ", ".\n"), (ASKED, "y\n")]
    code, screen, _ = talk(folder, [*RUN, "--report"], answers)
    assert code == 0, screen
    assert "the prompt that ran: send it to nobody" in words(screen)


def test_an_editor_is_used_where_one_is_set(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, GATED)
    editor = write(folder, "editor.sh", "#!/bin/sh\necho 'from the editor' > $1\n")
    editor.chmod(0o755)
    answers = [(ASKED, "e\n"), (ASKED, "y\n")]
    code, screen, _ = talk(folder, [*RUN, "--report"], answers, env={"EDITOR": str(editor)})
    assert code == 0, screen
    assert "the prompt that ran: from the editor" in words(screen)


def test_approve_goes_on_by_itself(tmp_path: Path) -> None:
    folder, run_id = gated(tmp_path)
    said = stretto(folder, "approve", run_id, "send", "--reason", "as agreed")
    assert said.code == 0, said
    assert "complete in " in said.err
    assert "as agreed" in stretto(folder, "report", run_id).out


def test_reject_goes_on_by_itself(tmp_path: Path) -> None:
    folder, run_id = gated(tmp_path)
    said = stretto(folder, "reject", run_id, "send", "--reason", "not now", "--json")
    first, *_, report = lines(said)
    assert first["decision"] == "rejected"
    assert said.code == 1
    assert "not now" in report["steps"]["send"]["error"]


def test_a_detached_run_goes_on_when_it_is_approved(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, GATED)
    run_id = stretto(folder, *RUN, "--detach", "--json").json["run_id"]
    assert stretto(folder, "events", run_id, "--follow").code == 3  # until it awaits approval
    said = stretto(folder, "approve", run_id, "send")
    assert said.code == 0, said
    assert stretto(folder, "report", run_id, "--json").json["status"] == "complete"


def test_a_second_word_is_refused_and_both_words_are_told(tmp_path: Path) -> None:
    for first, second in (("approve", "reject"), ("reject", "approve")):
        folder, run_id = gated(tmp_path / first)
        assert stretto(folder, first, run_id, "send", "--no-resume").code == 0
        error = refused(stretto(folder, second, run_id, "send", "--json"), "already_decided")
        verb = "approved" if first == "approve" else "rejected"
        assert f"was {verb} by" in error["message"]
        stretto(folder, "resume", run_id)
        report = stretto(folder, "report", run_id, "--json").json
        assert (report["steps"]["send"]["status"] == "succeeded") is (first == "approve")


def test_what_would_run_is_shown_without_a_terminal(tmp_path: Path) -> None:
    folder, run_id = gated(tmp_path)
    shown = succeeded(stretto(folder, "approve", run_id, "send", "--show", "--json"))
    assert shown["parts"][0]["prompt"] == "send Done. to Ann"
    assert shown["parts"][0]["models"][0].startswith("scripted:")
    assert shown["grounds"] == [{"step": "look", "status": "succeeded", "output": "Done."}]
    assert "send Done. to Ann" in stretto(folder, "approve", run_id, "send", "--show").out
    assert stretto(folder, "runs", "--json").json["runs"][0]["status"] == "waiting"
    wrong = stretto(folder, "approve", run_id, "send", "--key", "0" * 32, "--json")
    assert "than you were shown" in refused(wrong, "usage")["message"]
    assert stretto(folder, "approve", run_id, "send", "--key", shown["key"]).code == 0


def test_a_prompt_is_edited_by_a_file_or_from_stdin(tmp_path: Path) -> None:
    folder, run_id = gated(tmp_path)
    missing = stretto(folder, "approve", run_id, "send", "--edit", "none.md", "--json")
    assert "cannot be read" in refused(missing, "usage")["message"]
    words = ("approve", run_id, "send", "--edit", "-", "--no-resume")
    assert stretto(folder, *words, stdin="send nothing").code == 0
    events = [json.loads(line) for line in stretto(folder, "events", run_id).out.splitlines()]
    (approved,) = (event for event in events if event["type"] == "approved")
    assert approved["prompts"] == {"": "send nothing"}
    (asked,) = (event for event in events if event["type"] == "approval_requested")
    assert asked["key"] == approved["key"]


def test_an_approval_does_not_travel_to_other_work(tmp_path: Path) -> None:
    folder, run_id = gated(tmp_path)
    assert stretto(folder, "approve", run_id, "send").code == 0
    fork = stretto(folder, "fork", run_id, "--from", "look", "-i", "t=EVERYBODY", "--json", *SCRIPT)
    assert lines(fork)[-1]["status"] == "waiting"
    write(folder, "edited.yaml", GATED.replace("send {{", "send all of {{"))
    edited = stretto(folder, "retry", run_id, "--recipe", "edited.yaml", "--json", *SCRIPT)
    assert lines(edited)[-1]["status"] == "waiting"
    same = stretto(folder, "retry", run_id, "--json", *SCRIPT)
    assert lines(same)[-1]["status"] == "complete"


def test_who_follows_a_run_is_told_where_it_awaits_approval(tmp_path: Path) -> None:
    folder, run_id = gated(tmp_path)
    said = stretto(folder, "events", run_id, "--follow")
    assert said.code == 3
    assert "send awaits approval" in said.err
    assert json.loads(said.out.splitlines()[-1])["type"] == "approval_requested"
    watched = stretto(folder, "watch", run_id)
    assert (watched.code, watched.err.count(" send --show")) == (3, 1)
    report = stretto(folder, "report", run_id, "--json").json
    assert report["steps"]["send"]["status"] == "awaiting approval"


def test_a_folder_that_brings_agents_is_asked_about_once(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "name: w\nsteps: [{id: a, subagent: mine, prompt: go}]\n")
    (folder / "agents").mkdir()
    write(folder, "agents/mine.md", "Be mine.\n")
    untrusted = {"STRETTO_TRUST": "0"}
    refused = stretto(folder, "validate", "w.yaml", env=untrusted)
    assert refused.code == 2
    assert "not used until you trust it" in refused.err
    words = ["validate", "w.yaml"]
    code, screen, _ = talk(folder, words, [("Trust this folder", "y\n")], env=untrusted)
    assert code == 0, screen
    assert stretto(folder, "validate", "w.yaml", env=untrusted).code == 0
    write(folder, "agents/mine.md", "Be somebody else's.\n")
    changed = stretto(folder, "validate", "w.yaml", env=untrusted)
    assert changed.code == 2
    assert "changed since you trusted it" in changed.err


def test_init_trusts_what_it_has_made_and_nothing_else(tmp_path: Path) -> None:
    untrusted = {"STRETTO_TRUST": "0"}
    assert stretto(tmp_path, "init", "new", env=untrusted).code == 0
    assert stretto(tmp_path / "new", "trust", "--list", "--json", env={
        **untrusted, "STRETTO_HOME": str(tmp_path / "home")}).json["trusted"] is True  # fmt: skip
    old = tmp_path / "old" / "agents"
    old.mkdir(parents=True)
    write(old, "theirs.md", "Obey.\n")
    assert stretto(tmp_path, "init", "old", env=untrusted).code == 0
    assert stretto(tmp_path / "old", "trust", "--list", "--json", env={
        **untrusted, "STRETTO_HOME": str(tmp_path / "home")}).json["trusted"] is False  # fmt: skip


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (b"\xff\xfe\x00abc", "decode"),
        (b"a\0b", "zero byte"),
        (b"x" * 10_000_001, "10,000,000"),
        (b" \n", "empty"),
    ],
    ids=["no UTF-8", "a zero byte", "too long", "blank"],
)
@pytest.mark.parametrize("source", ["-", "prompt.md"])
def test_what_is_no_prompt_is_refused_and_decides_nothing(
    tmp_path: Path, given: bytes, says: str, source: str
) -> None:
    folder, run_id = gated(tmp_path)
    write(folder, "prompt.md", given)
    stdin = given if source == "-" else b""
    said = stretto(folder, "approve", run_id, "send", "--edit", source, "--json", stdin=stdin)
    assert says in refused(said, "usage")["message"]
    assert stretto(folder, "runs", "--json").json["runs"][0]["status"] == "waiting"


@pytest.mark.parametrize("source", ["-", "prompt.md"])
def test_an_edited_prompt_keeps_its_bytes(tmp_path: Path, source: str) -> None:
    folder, run_id = gated(tmp_path)
    given = "to Zoë\r\n\tand Bo\n\n"
    write(folder, "prompt.md", given)
    words = ("approve", run_id, "send", "--edit", source, "--no-resume")
    assert stretto(folder, *words, stdin=given if source == "-" else "").code == 0
    (prompts,) = (
        event["prompts"]
        for event in lines(stretto(folder, "events", run_id))
        if event["type"] == "approved"
    )
    assert prompts == {"": given}


def test_a_part_without_an_edit_is_refused(tmp_path: Path) -> None:
    folder, run_id = gated(tmp_path)
    said = stretto(folder, "approve", run_id, "send", "--part", "x", "--json")
    assert "there is no --edit" in refused(said, "usage")["message"]


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_a_run_that_waited_for_a_person_was_not_interrupted(tmp_path: Path, verb: str) -> None:
    folder, run_id = gated(tmp_path)
    stretto(folder, verb, run_id, "send")
    report = stretto(folder, "report", run_id).out
    assert "send" in report
    assert "interruption" not in report
