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
