"""What a run stored is believed as far as it was checked: its plan, its folder, today's permission."""

import base64
import json
import re
import sqlite3
from pathlib import Path

import pytest

from support.background_runs import GATED, MODEL, lines, ran, statuses
from support.cli import Said, stretto, write

WRITERS = """\
name: writers
agents:
  w: {role: writer of files, prompt: x, tools: [Write]}
steps:
  - {id: a, subagent: researcher, gate: human, prompt: look}
  - {id: b, subagent: w, posture: writer, write_set: [out/**], depends_on: [a], prompt: write}
  - {id: c, subagent: researcher, depends_on: [b], prompt: "{{steps.b.output}}"}
"""


def edit_start(folder: Path, *swaps: tuple[str, str]) -> None:
    """Change the first row of the only journal."""
    with sqlite3.connect(folder / "home" / "runs.db") as db:
        ((row,),) = db.execute("SELECT event FROM events WHERE seq = 1").fetchall()
        for old, new in swaps:
            assert old in row
            row = row.replace(old, new)
        db.execute("UPDATE events SET event = ? WHERE seq = 1", (row,))
    db.close()


def waiting(folder: Path, recipe: str = GATED) -> str:
    report = ran(folder, recipe)
    assert report["status"] == "waiting"
    return str(report["run_id"])


def refusal(said: Said) -> dict[str, object]:
    assert said.code == 4, said
    error = json.loads(said.out.splitlines()[-1])["error"]
    assert error["kind"] == "plan_not_accepted", error
    return dict(error)


NO_GATE = ('"is_gated":true', '"is_gated":false')


@pytest.mark.parametrize(
    "words", [["resume", "RUN"], ["retry", "RUN"], ["fork", "RUN", "--from", "g"], ["apply", "RUN", "g"]]
)  # fmt: skip
def test_a_plan_whose_gate_was_removed_is_not_driven(tmp_path: Path, words: list[str]) -> None:
    run = waiting(tmp_path)
    edit_start(tmp_path, NO_GATE)
    refusal(stretto(tmp_path, *[run if word == "RUN" else word for word in words], "--json"))
    kept = stretto(tmp_path, "report", run, "--json").json  # it can still be read
    assert statuses(kept)["a"] == "succeeded"


@pytest.mark.parametrize("swap", [('"prompt":"', '"prompt":"x'), ('"seal":"1:', '"seal":"2:')])
def test_other_edits_are_noticed_too(tmp_path: Path, swap: tuple[str, str]) -> None:
    run = waiting(tmp_path)
    edit_start(tmp_path, swap)
    refusal(stretto(tmp_path, "resume", run, "--json"))


def test_without_a_run_those_that_were_changed_are_left_alone_and_it_says_so(
    tmp_path: Path,
) -> None:
    run = waiting(tmp_path)
    stretto(tmp_path, "approve", run, "g", "--no-resume")
    edit_start(tmp_path, NO_GATE)
    said = stretto(tmp_path, "resume")
    assert said.code == 2
    assert f"run {run} is not resumed" in said.err


def test_a_journal_without_a_seal_goes_on_once_its_plan_was_read_and_accepted(
    tmp_path: Path,
) -> None:
    run = waiting(tmp_path)
    with sqlite3.connect(tmp_path / "home" / "runs.db") as db:
        ((row,),) = db.execute("SELECT event FROM events WHERE seq = 1").fetchall()
        old = {k: v for k, v in json.loads(row).items() if k not in ("seal", "project", "trusted")}
        db.execute("UPDATE events SET event = ? WHERE seq = 1", (json.dumps(old),))
    db.close()
    hint = str(refusal(stretto(tmp_path, "resume", run, "--json"))["details"])
    shown = stretto(tmp_path, "plan", "--run", run)
    mark = shown.out.rsplit("fingerprint ", 1)[1].strip()
    assert mark in hint
    assert "a person must allow it" in shown.out
    assert mark == stretto(tmp_path, "plan", "--run", run, "--json").json["fingerprint"]
    stretto(tmp_path, "approve", run, "g", "--no-resume")
    refusal(stretto(tmp_path, "resume", run, "--json", "--accept-plan", "0" * len(mark)))
    said = stretto(tmp_path, "resume", run, "--json", "--accept-plan", mark)
    assert statuses(lines(said)[-1])["g"] == "succeeded", said


def test_a_recipe_that_is_known_runs_instead_and_takes_nothing_of_a_changed_start(
    tmp_path: Path,
) -> None:
    run = waiting(tmp_path)
    edit_start(tmp_path, NO_GATE, (str(tmp_path / "script.yaml"), "/nowhere.yaml"))
    said = stretto(tmp_path, "retry", run, "--recipe", "recipe.yaml", "--json", *MODEL)
    assert lines(said)[-1]["status"] == "waiting", said
    assert "are not used" in said.err


def test_the_secret_is_the_users_alone_and_is_made_once(tmp_path: Path) -> None:
    waiting(tmp_path)
    secret = tmp_path / "home" / "secret"
    assert secret.stat().st_mode & 0o777 == 0o600
    before = secret.read_bytes()
    assert len(before) == 32
    ran(tmp_path, "name: x\nsteps: [{id: a, subagent: researcher, prompt: p}]")
    assert secret.read_bytes() == before


def test_the_permission_of_today_narrows_a_run_that_began_without_one(tmp_path: Path) -> None:
    run = waiting(tmp_path, WRITERS)
    stretto(tmp_path, "approve", run, "a", "--no-resume")
    said = stretto(tmp_path, "resume", run, "--json", env={"STRETTO_PERMISSION": "read_only"})
    assert (said.code, json.loads(said.out)["error"]["kind"]) == (4, "permission_denied")
    said = stretto(tmp_path, "resume", run, "--json", env={"STRETTO_PERMISSION": "ask"})
    report = lines(said)[-1]
    assert report["status"] == "waiting", report
    assert statuses(report)["a"] == "succeeded"
    assert statuses(report)["b"] == "awaiting approval"
    stretto(tmp_path, "approve", run, "b", "--no-resume")
    said = stretto(tmp_path, "resume", run, "--json", env={"STRETTO_PERMISSION": "ask"})
    assert statuses(lines(said)[-1])["c"] == "succeeded", said


def test_a_finished_writer_does_not_keep_a_reading_rest_from_going_on(tmp_path: Path) -> None:
    recipe = WRITERS.replace("gate: human, ", "").replace("{id: c, ", "{id: c, gate: human, ")
    run = waiting(tmp_path, recipe)
    stretto(tmp_path, "approve", run, "c", "--no-resume")
    said = stretto(tmp_path, "resume", run, "--json", env={"STRETTO_PERMISSION": "read_only"})
    assert statuses(lines(said)[-1])["c"] == "succeeded", said


def test_the_settings_of_the_runs_own_folder_count_wherever_one_stands(tmp_path: Path) -> None:
    run = waiting(tmp_path, WRITERS)
    stretto(tmp_path, "approve", run, "a", "--no-resume")
    home = {"STRETTO_HOME": str(tmp_path / "home")}
    elsewhere = tmp_path / "elsewhere"
    write(elsewhere, "stretto.yaml", "permission: read_only\n")
    write(tmp_path, "stretto.yaml", "permission: ask\n")
    said = stretto(elsewhere, "resume", run, "--json", env=home)
    assert statuses(lines(said)[-1])["b"] == "awaiting approval", said


def test_a_run_that_used_a_folders_own_agents_needs_its_trust_again(tmp_path: Path) -> None:
    untrusting = {"STRETTO_TRUST": "0"}
    write(tmp_path, "agents/helper.md", "Be helpful.\n")
    assert stretto(tmp_path, "trust", env=untrusting).code == 0
    write(tmp_path, "recipe.yaml", GATED.replace("subagent: writer", "subagent: helper"))
    write(tmp_path, "script.yaml", "default: ok")
    said = stretto(tmp_path, "run", "recipe.yaml", "--json", *MODEL, env=untrusting)
    run = lines(said)[-1]["run_id"]
    stretto(tmp_path, "approve", run, "g", "--no-resume")
    write(tmp_path, "agents/helper.md", "Be harmful.\n")
    for command in ("resume", "retry"):
        said = stretto(tmp_path, command, run, "--json", env=untrusting)
        assert said.code == 4, said
        assert json.loads(said.out)["error"]["kind"] == "not_trusted"
        assert re.search(r"stretto trust \S+", said.out)
    stretto(tmp_path, "trust", env=untrusting)
    said = stretto(tmp_path, "resume", run, "--json", env=untrusting)
    assert statuses(lines(said)[-1])["g"] == "succeeded", said


def test_a_rejection_that_was_written_into_the_journal_does_not_count(tmp_path: Path) -> None:
    run = waiting(tmp_path)
    with sqlite3.connect(tmp_path / "home" / "runs.db") as db:
        rows = db.execute("SELECT run, seq, event FROM events ORDER BY seq").fetchall()
        (asked,) = [json.loads(each[2]) for each in rows if "approval_requested" in each[2]]
        of, last, _ = rows[-1]
        forged = {"type": "rejected", "at": asked["at"], "step": "g", "key": asked["key"]}
        row = (of, last + 1, json.dumps(forged))
        db.execute("INSERT INTO events (run, seq, event) VALUES (?, ?, ?)", row)
    db.close()
    for words in (["resume", run], ["retry", run]):
        assert "a rejection of g" in str(refusal(stretto(tmp_path, *words, "--json")))


def test_an_approval_that_was_written_into_the_journal_does_not_count(tmp_path: Path) -> None:
    run = waiting(tmp_path)
    stretto(tmp_path, "approve", run, "g", "--no-resume")
    with sqlite3.connect(tmp_path / "home" / "runs.db") as db:
        found = db.execute("SELECT rowid, event FROM events").fetchall()
        ((row, text),) = [each for each in found if '"type":"approved"' in each[1]]
        forged = {key: value for key, value in json.loads(text).items() if key != "seal"}
        swap = (json.dumps(forged, separators=(",", ":")), row)
        db.execute("UPDATE events SET event = ? WHERE rowid = ?", swap)
    db.close()
    for words in (["resume", run], ["retry", run]):
        assert "approval of g" in str(refusal(stretto(tmp_path, *words, "--json")))
    shown = stretto(tmp_path, "plan", "--run", run).out
    assert "approved: g" in shown
    again = stretto(tmp_path, "retry", run, "--recipe", "recipe.yaml", "--json", *MODEL)
    assert lines(again)[-1]["status"] == "waiting", again


def test_what_cannot_be_read_in_the_mailbox_is_said_once_and_cleared(tmp_path: Path) -> None:
    run = waiting(tmp_path)
    texts = (
        '{"type":"approv',
        '{"type":"surprise\x1b[2J","at":1}',
        '{"type":"approved","at":1,"step":"g"}',
        '{"type":"run_ended","at":1,"status":"complete"}',
        '{"type":"rejected","at":1,"step":"g"}',
    )
    with sqlite3.connect(tmp_path / "home" / "runs.db") as db:
        for text in texts:
            db.execute("INSERT INTO mailbox (run_id, event) VALUES (?, ?)", (run, text))
        db.execute("INSERT INTO mailbox (run_id, event) VALUES (?, CAST(x'ff7b' AS TEXT))", (run,))
    db.close()
    said = stretto(tmp_path, "resume", run, "--json")
    assert said.code == 3, said
    assert said.err.count("ignored") == len(texts) + 1
    assert "\x1b" not in said.err
    assert "ignored" not in stretto(tmp_path, "resume", run, "--json").err


def test_no_secret_of_the_environment_is_stored_or_shown(tmp_path: Path) -> None:
    secret = "canary-5f3a9c04d1"
    encoded = base64.b64encode(f"key={secret}".encode()).decode()
    recipe = f"""\
name: leaky
inputs: [{{name: t}}]
steps:
  - {{id: a, subagent: researcher, prompt: "use {secret} and {{{{inputs.t}}}}"}}
"""
    write(tmp_path, "recipe.yaml", recipe)
    write(tmp_path, "script.yaml", f"default: 'it is {secret}, or {encoded}'\n")
    shown = ""
    for form in ([], ["--json"]):
        words = ["run", "recipe.yaml", "-i", f"t=my {secret}", *MODEL, *form]
        said = stretto(tmp_path, *words, env={"GH_PAT": secret})
        assert said.code == 0, said
        shown += said.out + said.err
    stored = b"".join(file.read_bytes() for file in (tmp_path / "home").glob("runs.db*"))
    for form in (secret, encoded[8:-4]):
        assert form not in shown
        assert form.encode() not in stored
    assert "[redacted]" in shown
