"""`stretto draft` from outside: words, a repair, an approval, a run, a saved recipe."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stretto.testing.openai_script import Said
from stretto.testing.openai_server import serving
from support.cli import CTRL_C, environment, stretto, talk, write

WORDS = "first research Acme, then write a brief about it"
SOUND = """\
name: company-brief
inputs: [{name: company, default: Acme}]
steps:
  - id: research
    subagent: researcher
    prompt: Research {{inputs.company}}.
  - id: brief
    subagent: writer
    prompt: "Write: {{steps.research.output}}"
"""
BROKEN = SOUND.replace("subagent: researcher", "subagent: researchr")
COMMAND = "name: danger\nsteps:\n  - {id: wipe, run: touch wiped}\n"


def script(folder: Path, *drafts: str, **replies: str) -> list[str]:
    text = json.dumps({"default": "A fine answer.", "replies": replies, "draft": list(drafts)})
    write(folder, "script.yaml", text)
    return ["--model", "scripted:script.yaml"]


def test_a_draft_is_repaired_from_its_own_problems_and_waits_for_approval(tmp_path: Path) -> None:
    model = script(tmp_path, f"Sure:\n```yaml\n{BROKEN}```", f"```yaml\n{SOUND}```")
    said = stretto(tmp_path, "draft", WORDS, *model)
    assert (said.code, said.out) == (3, SOUND)
    assert "[1. research: researcher] --> [2. brief: writer]" in said.err
    draft = said.err.partition("--resume ")[2].split()[0]
    assert "did you mean 'researcher'?" in stretto(tmp_path, "logs", draft).out
    assert stretto(tmp_path, "output", draft).out == SOUND

    ran = stretto(tmp_path, "draft", "--resume", draft, "--yes", "--save", "acme", *model)
    assert (ran.code, ran.out) == (0, "A fine answer.\n")
    assert (tmp_path / "home/workflows/acme.yaml").read_text() == SOUND.replace(
        "company-brief", "acme"
    )
    again = stretto(
        tmp_path, "run", "acme", "-i", "company=Initech", "--model", "scripted:plain.yaml"
    )
    assert again.code == 2, "there is no such script"
    write(tmp_path, "plain.yaml", "replies: {research: Found., brief: It is Initech.}")
    again = stretto(
        tmp_path, "run", "acme", "-i", "company=Initech", "--model", "scripted:plain.yaml"
    )
    assert (again.code, again.out) == (0, "It is Initech.\n")


def test_json_is_one_document_whether_it_waits_runs_or_fails(tmp_path: Path) -> None:
    model = script(tmp_path, BROKEN, SOUND)
    waits = stretto(tmp_path, "draft", WORDS, *model, "--json")
    assert waits.code == 3
    assert (waits.json["ok"], waits.json["error"]["kind"]) == (False, "waiting")
    draft = waits.json["draft"]
    assert (draft["recipe"], draft["rounds"], draft["to_read"]) == (SOUND, 2, [])
    ran = stretto(
        tmp_path, "draft", "--resume", draft["id"], "--yes", "--json", "--save", "x", *model
    ).json
    assert ran["ok"] is True
    assert ran["report"]["output"] == "A fine answer."
    assert ran["saved"]["name"] == "x"

    model = script(tmp_path, BROKEN)
    bad = stretto(tmp_path, "draft", WORDS, *model, "--json", "--yes", "--max-repairs", "1")
    assert bad.code == 2
    assert bad.json["error"]["kind"] == "invalid_recipe"
    assert "after 2 rounds" in bad.json["error"]["message"]
    assert bad.json["error"]["details"]["problems"][0]["code"] == "RCP108"
    none = stretto(tmp_path, "draft", WORDS, *script(tmp_path, "I would rather not."), "--json")
    assert none.json["error"]["kind"] == "invalid_recipe"


def test_commands_that_nobody_has_read_are_refused(tmp_path: Path) -> None:
    model = script(tmp_path, COMMAND)
    refused = stretto(
        tmp_path, "draft", "tidy up", *model, "--yes", "--permission", "auto", "--save", "t"
    )
    assert refused.code == 4
    assert "touch wiped" in refused.err
    assert not (tmp_path / "home/workflows").exists()
    assert (
        "read this: step 'wipe' runs a command" in stretto(tmp_path, "draft", "tidy up", *model).err
    )
    allowed = stretto(tmp_path, "draft", "tidy up", *model, "--yes", "--allow-commands", "--json")
    assert list(allowed.json["report"]["steps"]) == ["wipe"]


def test_a_gate_that_a_saved_recipe_has_is_not_gone_around_unread(tmp_path: Path) -> None:
    gated = "name: mail\nsteps:\n  - {id: send, subagent: writer, prompt: Send the monthly letter to all customers., gate: human}\n"
    write(tmp_path, "workflows/mail.yaml", gated)
    model = script(tmp_path, gated.replace(", gate: human", "").replace("name: mail", "name: post"))
    refused = stretto(tmp_path, "draft", "send the letter", *model, "--yes")
    assert refused.code == 4
    assert "step 'send' of 'mail' waits for a person" in refused.err


def test_a_draft_never_takes_the_place_of_a_persons_recipe(tmp_path: Path) -> None:
    mine = write(
        tmp_path,
        "workflows/acme.yaml",
        "name: acme\nsteps: [{id: a, subagent: writer, prompt: Mine.}]\n",
    )
    before = mine.read_text()
    said = stretto(
        tmp_path, "draft", WORDS, *script(tmp_path, SOUND), "--yes", "--save", "acme", "--json"
    )
    assert (said.code, said.json["error"]["kind"]) == (2, "exists")
    assert mine.read_text() == before


def test_at_a_terminal_enter_asks_again_and_what_was_approved_runs(tmp_path: Path) -> None:
    model = script(tmp_path, SOUND)
    question = "Run it? [y]es, [n]o, [e]dit, [s]ave only: "
    answers = [
        (question, "\n"),
        (question, "maybe\n"),
        (question, "y\n"),
        ("Enter for no: ", "y\n"),
    ]
    code, screen, between = talk(tmp_path, ["draft", WORDS, *model], answers)
    assert code == 0, screen
    assert "[1. research: researcher] --> [2. brief: writer]" in between[0]
    assert "A fine answer." in screen
    assert (tmp_path / "home/workflows/company-brief.yaml").read_text() == SOUND


def test_at_a_terminal_a_draft_can_be_edited_saved_or_left(tmp_path: Path) -> None:
    model = script(tmp_path, SOUND)
    editor = write(tmp_path, "bin/edit", '#!/bin/sh\nsed -i s/Write:/Say:/ "$1"\n')
    editor.chmod(0o755)
    env = {"EDITOR": str(editor), "PATH": f"{editor.parent}:/usr/bin:/bin"}
    question = "Run it? [y]es, [n]o, [e]dit, [s]ave only: "
    answers = [(question, "e\n"), (question, "s\n"), ("company-brief): ", "said\n")]
    code, screen, between = talk(tmp_path, ["draft", WORDS, *model], answers, env)
    assert code == 0, screen
    assert "Say: {{steps.research.output}}" in between[1]
    assert "Say:" in (tmp_path / "home/workflows/said.yaml").read_text()
    code, screen, _ = talk(tmp_path, ["draft", WORDS, *model], [(question, "n\n")])
    assert code == 0
    assert "nothing has run" in screen
    code, screen, _ = talk(tmp_path, ["draft", WORDS, *model], [(question, CTRL_C)])
    assert code == 130
    assert "stretto draft --resume" in screen


def test_a_real_client_is_told_the_agents_and_its_own_problems(tmp_path: Path) -> None:
    answers = [
        Said(f"Sure.\n```yaml\n{BROKEN}```"),
        Said(SOUND),
        Said("Found."),
        Said("Acme it is."),
    ]
    with serving(answers) as server:
        env = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-loopback-0123456789"}
        words = ("draft", WORDS, "--yes", "--json", "--model", "openai:m")
        said = stretto(tmp_path, *words, env=env)
    assert said.code == 0, said
    assert (said.json["draft"]["rounds"], said.json["report"]["output"]) == (2, "Acme it is.")
    asked = [each.body for each in server.requests if each.path.endswith("completions")]
    assert len(asked) == 4
    first, second = (json.dumps(each, ensure_ascii=False) for each in asked[:2])
    assert "- researcher: " in first
    assert "{{steps.research.output}}" in first, "the guide keeps its braces"
    assert WORDS in first
    assert "did you mean 'researcher'?" in second
    assert "tools" not in asked[0], "a drafter has none"


def test_a_draft_that_was_killed_goes_on(tmp_path: Path) -> None:
    slow = {"draft": [BROKEN, {"reply": SOUND, "delay": "10m"}]}
    write(tmp_path, "script.yaml", json.dumps(slow))
    words = [sys.executable, "-m", "stretto", "draft", WORDS, "--model", "scripted:script.yaml"]
    child = subprocess.Popen(
        words, cwd=tmp_path, env=environment(tmp_path), stderr=subprocess.DEVNULL
    )
    try:
        give_up_at = time.monotonic() + 120
        while '"try.2"' not in stretto(tmp_path, "logs", "--json").out:
            assert child.poll() is None
            assert time.monotonic() < give_up_at
            time.sleep(0.1)
    finally:
        child.kill()
        child.wait()
    model = script(tmp_path, BROKEN, SOUND)
    said = stretto(tmp_path, "draft", "--resume", "last", *model)
    assert (said.code, said.out) == (3, SOUND)


@pytest.mark.parametrize(
    "words",
    [["draft"], ["draft", ""], ["draft", "x", "--resume", "y"], ["draft", "--resume", "nothing"]],
)
def test_bad_usage_is_told(tmp_path: Path, words: list[str]) -> None:
    said = stretto(tmp_path, *words, "--json")
    assert said.code == 2
    assert said.json["error"]["kind"] in ("usage", "not_found")


def test_a_run_of_something_else_is_no_draft(tmp_path: Path) -> None:
    write(tmp_path, "plain.yaml", "default: Hello.")
    stretto(tmp_path, "task", "writer", "Say hello.", "--model", "scripted:plain.yaml")
    said = stretto(tmp_path, "draft", "--resume", "last", "--json")
    assert "is no draft" in said.json["error"]["message"]
