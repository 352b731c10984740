"""Playbooks from outside: a SKILL.md folder reaches a step's prompt, and the report tells so."""

import json
from pathlib import Path
from typing import Any

import pytest

from stretto.testing.openai_script import Asked, Said, ToolCall
from stretto.testing.openai_server import serving
from support.background_runs import lines
from support.cli import Said as Printed, stretto, write
from support.recipes import RECIPES

SKILL = """\
---
name: review-invoices
description: How to review invoices for duplicates and wrong totals.
allowed-tools: Bash, Write
---
Sort the invoices by vendor first. Then compare totals line by line.
"""
REVIEW = """
name: review
inputs: [{name: vendor, default: Acme}]
steps:
  - {id: check, subagent: default, prompt: "Review the invoices of {{inputs.vendor}} for wrong totals."}
  - {id: poem, subagent: default, prompt: "A poem on rain, after {{steps.check.output}}.", depends_on: [check]}
"""
MODEL = ("--model", "openai:m")


def over_http(folder: Path, url: str, *words: str | Path, stdin: str = "") -> Printed:
    environ = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-loopback-0123456789"}
    return stretto(folder, *words, stdin=stdin, env=environ)


def instructions(asked: Asked) -> str:
    """All that the model was told before the prompt."""
    messages: Any = asked.body["messages"]
    return "\n".join(each["content"] for each in messages if each["role"] == "system")


def questions(requests: list[Asked]) -> list[Asked]:
    return [asked for asked in requests if asked.path.endswith("completions")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "home/playbooks/review-invoices/SKILL.md", SKILL)
    write(tmp_path, "review.yaml", REVIEW)
    return tmp_path


def test_a_folder_with_a_skill_reaches_the_step_that_it_is_about(folder: Path) -> None:
    with serving(Said("Fine.")) as server:
        said = over_http(folder, server.url, "run", "review.yaml", "--json", *MODEL)
    assert said.code == 0, said
    check, poem = questions(server.requests)
    told = instructions(check)
    assert "<learned_skills>" in told
    assert "Sort the invoices by vendor first." in told
    assert "learned_skills" not in json.dumps(poem.body)
    report = lines(said)[-1]
    assert report["steps"]["check"]["playbooks"] == ["review-invoices"]
    assert report["steps"]["poem"]["playbooks"] == []
    started = [line for line in lines(said) if line["type"] == "attempt_started"]
    assert started[0]["playbooks"] == ["review-invoices"]
    assert "playbooks" not in started[1]


def test_every_form_of_the_report_and_the_logs_tell_what_was_given(folder: Path) -> None:
    script = write(folder, "s.yaml", "default: Fine.")
    said = stretto(folder, "run", "review.yaml", "--json", "--model", f"scripted:{script}")
    run = lines(said)[-1]["run_id"]
    assert "- check: review-invoices" in stretto(folder, "report", run).out
    assert "review-invoices" in stretto(folder, "report", run, "--format", "html").out
    assert "Sort the invoices by vendor first." in stretto(folder, "logs", run, "check").out


def test_a_playbook_gives_no_rights(folder: Path) -> None:
    write(folder, "review.yaml", REVIEW.replace("subagent: default", "subagent: writer"))
    with serving(Said("Fine.")) as server:
        over_http(folder, server.url, "run", "review.yaml", "--json", *MODEL)
    check, poem = questions(server.requests)
    assert "<learned_skills>" in instructions(check)
    assert check.tool_names == poem.tool_names
    assert not {"Bash", "Write"} & set(check.tool_names)


@pytest.mark.parametrize("recipe", sorted(RECIPES.glob("*.yaml")), ids=lambda file: file.stem)
def test_without_playbooks_the_printed_recipes_prompt_as_ever(tmp_path: Path, recipe: Path) -> None:
    inputs = {
        "research-and-brief": {"topic": "looms"},
        "threat-brief": {"topic": "looms"},
        "multi-criteria-lead-scoring": {"lead_data": {"name": "Ann"}, "icp_criteria": {}},
        "research-to-proposal": {
            "company_name": "Acme",
            "contact_name": "Ann",
            "our_services": "looms",
        },
    }[recipe.stem]

    def prompts(setting: str) -> list[Any]:
        write(tmp_path, "home/stretto.yaml", setting)
        with serving(Said('{"score": 80, "passed": true, "feedback": []}')) as server:
            words = ("run", recipe, "--json", "--input-json", "-", *MODEL)
            over_http(tmp_path, server.url, *words, stdin=json.dumps(inputs))
        return sorted(json.dumps(asked.body) for asked in questions(server.requests))

    off = prompts("playbooks: {enabled: false}\n")
    assert prompts("") == off
    assert "learned_skills" not in "".join(off)


def test_the_setting_turns_them_off(folder: Path) -> None:
    write(folder, "home/stretto.yaml", "playbooks: {enabled: false}\n")
    script = write(folder, "s.yaml", "default: Fine.")
    said = stretto(folder, "run", "review.yaml", "--json", "--model", f"scripted:{script}")
    assert lines(said)[-1]["steps"]["check"]["playbooks"] == []


def test_an_answer_is_reused_only_with_the_same_playbooks(folder: Path) -> None:
    script = write(folder, "s.yaml", "default: Fine.")
    model = ("--json", "--model", f"scripted:{script}")

    def reused(said: Printed) -> list[str]:
        events = [line for line in lines(said) if line["type"] == "attempt_succeeded"]
        return [each["attempt"]["step"] for each in events if each["reused_from"]]

    first = lines(stretto(folder, "run", "review.yaml", *model))[-1]["run_id"]
    assert reused(stretto(folder, "retry", first, *model)) == ["check", "poem"]
    write(folder, "home/playbooks/review-invoices/SKILL.md", SKILL.replace("vendor", "date"))
    assert reused(stretto(folder, "retry", first, *model)) == ["poem"]


def test_a_cached_answer_counts_only_with_the_same_playbooks(folder: Path) -> None:
    write(folder, "review.yaml", REVIEW.replace("id: check,", "id: check, cache: true,"))
    with serving(Said("Fine.")) as server:
        words = ("run", "review.yaml", "--json", *MODEL)
        over_http(folder, server.url, *words)
        over_http(folder, server.url, *words)
        assert len(questions(server.requests)) == 3
        write(folder, "home/playbooks/review-invoices/SKILL.md", SKILL.replace("vendor", "date"))
        over_http(folder, server.url, *words)
        assert len(questions(server.requests)) == 5


def test_a_playbook_that_is_only_named_can_be_loaded(folder: Path) -> None:
    write(folder, "home/stretto.yaml", "playbooks: {top: 0}\n")
    write(folder, "home/playbooks/review-invoices/references/vat.md", "VAT is 20%.")
    script = [
        Said("", tool_calls=(ToolCall("load_playbook", {"name": "review-invoices"}),)),
        Said(
            "",
            tool_calls=(
                ToolCall("load_playbook", {"name": "review-invoices", "file": "references/vat.md"}),
            ),
        ),
        Said("Fine."),
        Said("Rain."),
    ]
    with serving(script) as server:
        said = over_http(folder, server.url, "run", "review.yaml", "--json", *MODEL)
    assert said.code == 0, said
    asked = questions(server.requests)
    assert "- review-invoices: How to review invoices" in instructions(asked[0])
    assert "Sort the invoices" not in instructions(asked[0])
    assert "Sort the invoices" in json.dumps(asked[1].body)
    assert "references/vat.md" in json.dumps(asked[1].body)
    assert "VAT is 20%." in json.dumps(asked[2].body)
    assert lines(said)[-1]["steps"]["check"]["playbooks"] == ["review-invoices"]


def test_playbooks_are_managed_from_the_command_line(folder: Path) -> None:
    def said(*words: str | Path) -> Any:
        printed = stretto(folder, "playbooks", *words, "--json")
        assert printed.code == 0, printed
        assert printed.json["ok"] is True
        return printed.json

    write(folder, "new/bread/SKILL.md", "---\nname: bread\ndescription: How to bake.\n---\nFold.\n")
    assert said("add", "new/bread")["playbook"]["layer"] == "user"
    assert (folder / "home" / "playbooks" / "bread" / "SKILL.md").exists()
    bundled = "write-a-recipe"
    names = [each["name"] for each in said("list")["playbooks"]]
    assert names == ["bread", "review-invoices", bundled]
    (found,) = said("search", "bake", "a", "loaf")["playbooks"]
    assert {"name", "source", "confidence", "score"} <= set(found)
    assert (found["name"], found["source"], found["confidence"]) == ("bread", "skill", 1.0)
    assert said("show", "bread")["playbook"]["body"] == "Fold."
    assert said("unpin", "bread")["playbook"]["pinned"] is False
    assert said("pin", "bread")["playbook"]["pinned"] is True
    said("delete", "bread")
    assert [each["name"] for each in said("list")["playbooks"]] == ["review-invoices", bundled]
    said("restore", "bread")
    assert said("curate", "--dry-run") == {"ok": True, "dry_run": True, "steps": []}
    actions = [each["action"] for each in said("audit")["audit"]]
    assert actions == ["restore", "delete", "pin", "unpin", "add"]
    text = stretto(folder, "playbooks")
    assert "review-invoices  user" in text.out
    lost = stretto(folder, "playbooks", "show", "bred", "--json")
    assert (lost.code, lost.json["error"]["kind"]) == (2, "not_found")
    assert "did you mean 'bread'?" in stretto(folder, "playbooks", "show", "bred").err


def test_a_step_that_worked_can_be_captured_and_is_given_to_the_next(folder: Path) -> None:
    script = write(folder, "s.yaml", "default: Fine.")
    model = ("--json", "--model", f"scripted:{script}")
    write(
        folder,
        "bake.yaml",
        "name: bake\nsteps:\n  - {id: a, subagent: writer, prompt: Bake sourdough with a cold proof.}\n",
    )
    run = lines(stretto(folder, "run", "bake.yaml", *model))[-1]["run_id"]
    said = stretto(folder, "playbooks", "capture", run, "a", "--json")
    assert said.code == 0, said
    assert said.json["playbook"]["source"] == "emitted"
    again = lines(stretto(folder, "run", "bake.yaml", *model))[-1]
    assert again["steps"]["a"]["playbooks"] == ["bake-a"]
    (found,) = stretto(folder, "playbooks", "search", "sourdough", "--json").json["playbooks"]
    assert (found["uses"], found["pinned"]) == (1, False)
    wrong = stretto(folder, "playbooks", "capture", run, "b", "--json")
    assert wrong.json["error"]["kind"] == "not_found"


def test_a_run_whose_playbooks_cannot_be_read_runs_without_them_and_says_so(folder: Path) -> None:
    write(folder, "home/playbooks.db", b"no database" * 100)
    script = write(folder, "s.yaml", "default: Fine.")
    said = stretto(folder, "run", "review.yaml", "--model", f"scripted:{script}")
    assert said.code == 0, said
    assert "no step is given playbooks" in said.err


def test_the_playbooks_of_a_project_count_only_with_trust(folder: Path) -> None:
    write(folder, "playbooks/poems/SKILL.md", "---\ndescription: A poem on rain.\n---\nRhyme.\n")
    script = write(folder, "s.yaml", "default: Fine.")
    words = ("run", "review.yaml", "--json", "--model", f"scripted:{script}")

    def given(**env: str) -> list[str]:
        return lines(stretto(folder, *words, env=env))[-1]["steps"]["poem"]["playbooks"]

    assert given(STRETTO_TRUST="") == []
    assert given() == ["poems"]


def test_a_person_approves_the_words_of_the_playbooks_too(folder: Path) -> None:
    write(folder, "review.yaml", REVIEW.replace("id: check,", "id: check, gate: human,"))
    script = write(folder, "s.yaml", "default: Fine.")
    model = ("--json", "--model", f"scripted:{script}")
    waits = stretto(folder, "run", "review.yaml", *model)
    assert waits.code == 3, waits
    run = lines(waits)[-1]["run_id"]
    shown = stretto(folder, "approve", run, "check", "--show", "--json").json
    assert "Sort the invoices by vendor first." in shown["parts"][0]["instructions"]
    # Also after the file has changed: what is resumed is what was journaled.
    write(folder, "home/playbooks/review-invoices/SKILL.md", SKILL.replace("vendor", "date"))
    assert stretto(folder, "approve", run, "check", "--json").code == 0
    resumed = lines(stretto(folder, "resume", run, "--json"))[-1]
    assert resumed["steps"]["check"]["playbooks"] == ["review-invoices"]
    assert "Sort the invoices by vendor first." in stretto(folder, "logs", run, "check").out


def test_no_step_is_given_a_bundled_playbook_unasked(folder: Path) -> None:
    words = (
        "Turn these words about a repeatable process into a Stretto recipe, a workflow of steps."
    )
    recipe = f"name: w\nsteps:\n  - {{id: a, subagent: writer, prompt: '{words}'}}\n"
    write(folder, "w.yaml", recipe)
    (found, *_) = stretto(folder, "playbooks", "search", words, "--json").json["playbooks"]
    assert (found["name"], found["layer"]) == ("write-a-recipe", "bundled")
    script = write(folder, "s.yaml", "default: Fine.")
    said = stretto(folder, "run", "w.yaml", "--json", "--model", f"scripted:{script}")
    assert lines(said)[-1]["steps"]["a"]["playbooks"] == []


def test_a_dry_run_shows_what_each_step_would_be_given(folder: Path) -> None:
    said = stretto(folder, "plan", "review.yaml", "--json").json["would_run"]
    assert said[0]["delegations"][0]["playbooks"] == ["review-invoices"]
    assert "playbooks" not in said[1]["delegations"][0]
    assert ", playbooks review-invoices" in stretto(folder, "plan", "review.yaml").out
