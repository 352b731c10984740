"""`stretto capture` from outside: two tasks, a recipe of them, and the recipe run with other inputs."""

import json
from pathlib import Path

import pytest

from support.cli import Said, refused, stretto, write

FOUND = "Acme Corp sells looms to weavers, and has forty people in Ghent."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "found.yaml", json.dumps({"default": FOUND}))
    write(tmp_path, "line.yaml", "default: A line on looms.")
    return tmp_path


def task(folder: Path, agent: str, prompt: str, script: str) -> str:
    said = stretto(folder, "task", agent, prompt, "--model", f"scripted:{script}.yaml", "--json")
    found: str = json.loads(said.out.splitlines()[-1])["run_id"]
    return found


def two_tasks(folder: Path) -> list[str]:
    first = task(folder, "researcher", "Research the company Acme Corp.", "found")
    return [first, task(folder, "writer", f"A line on Acme Corp. Facts:\n  {FOUND}", "line")]


def prompts(said: Said) -> list[str]:
    entries = [json.loads(line) for line in said.out.splitlines()]
    return [each["text"] for each in entries if each["kind"] == "prompt"]


def test_tasks_become_a_workflow_that_runs_with_other_inputs(folder: Path) -> None:
    runs = two_tasks(folder)
    said = stretto(folder, "capture", *runs, "--save", "line")
    assert said.code == 0, said
    assert "{{inputs.company}}" in said.out
    assert "{{steps.researcher.output}}" in said.out
    assert "[1. researcher] --> [2. writer]" in said.err
    assert "replayed: the same steps were asked the same" in said.err
    words = ("run", "line", "-i", "company=Initech", "--model", "scripted:script.yaml", "-q")
    write(
        folder, "script.yaml", "replies: {researcher: Initech makes spindles., writer: Spindles!}"
    )
    assert stretto(folder, *words).out == "Spindles!\n"
    assert prompts(stretto(folder, "logs", "--json")) == [
        "Research the company Initech.",
        "A line on Initech. Facts:\n  Initech makes spindles.",
    ]
    again = stretto(folder, "capture", *runs, "--save", "another", "--json").json
    assert again["ok"] is True
    assert again["saved"]["same_as"] == "line"
    assert not (folder / "home/workflows/another.yaml").exists()


def test_a_run_that_a_draft_became_is_captured_as_it_was_drafted(folder: Path) -> None:
    drafted = """\
name: lines
inputs: [{name: company, default: Acme}]
steps:
  - {id: look, subagent: researcher, prompt: "Look at {{inputs.company}}."}
  - {id: good, loop: {agent: writer, validator: reviewer, max_iterations: 2}, prompt: "Say {{steps.look.output}}"}
"""
    replies = {"look": FOUND, "good/check.1": {"reply": {"passed": True}}}
    text = json.dumps({"default": "A line.", "replies": replies, "draft": drafted})
    write(folder, "script.yaml", text)
    ran = stretto(
        folder, "draft", "look, then say", "--yes", "--model", "scripted:script.yaml", "--json"
    )
    assert ran.code == 0, ran
    said = stretto(folder, "capture", "last", "--save", "kept")
    assert (said.code, said.out) == (0, drafted), said
    kept = (folder / "home/workflows/kept.yaml").read_text(encoding="utf-8")
    assert kept == drafted.replace("name: lines", "name: kept")
    refusal = stretto(folder, "capture", ran.json["draft"]["id"], "--json")
    assert "nothing of it has run" in refused(refusal, "usage")["message"]


def test_a_recipe_that_its_author_calls_draft_is_captured_like_any_other(folder: Path) -> None:
    steps = "[{id: draft, subagent: writer, prompt: A line.}, {id: b, subagent: writer, prompt: And more.}]"
    write(folder, "draft.yaml", f"name: draft\nsteps: {steps}\n")
    ran = stretto(folder, "run", "draft.yaml", "--model", "scripted:line.yaml", "--json")
    run = json.loads(ran.out.splitlines()[-1])["run_id"]
    said = stretto(folder, "capture", run, "--save", "line")
    assert (said.code, "prompt: A line." in said.out) == (0, True), said
    refusal = stretto(folder, "draft", "--resume", run)
    assert f"run {run} is no draft, but the workflow draft" in refusal.err


def test_what_cannot_be_captured_says_why(folder: Path) -> None:
    first, second = two_tasks(folder)
    assert (
        "fewer than two" in refused(stretto(folder, "capture", first, "--json"), "usage")["message"]
    )
    wrong = stretto(folder, "capture", first, second, "-i", "x=Umbrella", "--json")
    assert "no prompt holds 'Umbrella'" in refused(wrong, "usage")["message"]
    refused(stretto(folder, "capture", "nothing", "--json"), "not_found")
    refused(stretto(folder, "capture", first, second, "--save", "../x", "--json"), "usage")
    mine = "name: line\nsteps: [{id: a, subagent: writer, prompt: Mine.}]\n"
    write(folder, "workflows/line.yaml", mine)
    taken = stretto(folder, "capture", first, second, "--save", "line", "--json")
    refused(taken, "exists")
    assert (folder / "workflows/line.yaml").read_text(encoding="utf-8") == mine


def chat(folder: Path, *turns: str) -> str:
    """A chat of these turns, as YAML of what the lead agent does in each: its id."""
    replies = "".join(f"  turn-{number}: {turn}\n" for number, turn in enumerate(turns, 1))
    answers = "".join(
        f"  {id}: {json.dumps(output)}\n"
        for id, output in {
            "looms": "Looms cost a thousand.", "spindles": "Spindles cost ten each.",
            "shuttles": "Shuttles cost five each.", "sum": "A table of three prices.",
            "say": "LOUD WORDS ON ACME CORP.",
        }.items()
    )  # fmt: skip
    batch = "".join(
        f"  {n}-{name}: {json.dumps(f'{name.title()} cost {n} thousand coins.')}\n"
        for n, name in enumerate(("looms", "spindles", "shuttles"), 1)
    )
    write(folder, "script.yaml", f"default: A line.\nreplies:\n{replies}{answers}{batch}")
    found = ""
    for number, _ in enumerate(turns):
        resume = ("--resume", found) if found else ()
        words = ("Prices, please." if number == 0 else "Go on.", "--model", "scripted:script.yaml")
        said = stretto(folder, "chat", *resume, "--permission", "auto", "--json", "-p", *words)
        assert said.code == 0, said
        assert all(each["ok"] for each in said.json["turn"]["calls"]), said.json
        found = said.json["chat"]
    return found


SHOUT = """\
name: shout
inputs: [{name: topic, required: true}, {name: tone, default: loud}]
steps:
  - {id: say, subagent: writer, prompt: "Shout about {{inputs.topic}} ({{inputs.tone}})."}
  - {id: note, run: 'echo "$TEXT"', env: {TEXT: "{{steps.say.output}}"}, effect: idempotent, depends_on: say}
output: "{{steps.say.output}}"
"""


def test_a_workflow_that_the_lead_agent_ran_is_a_step(folder: Path) -> None:
    write(folder, "workflows/shout.yaml", SHOUT)
    shout = "{tool: run_workflow, arguments: {name: shout, inputs: {topic: 'Acme Corp'}}}"
    task = "{tool: task, arguments: {agent: writer, prompt: 'Whisper: LOUD WORDS ON ACME CORP.'}}"
    id = chat(folder, f"{{calls: [{shout}, {task}], reply: A line.}}")
    said = stretto(folder, "capture", id, "--save", "whisper")
    assert said.code == 0, said
    assert "workflow: shout" in said.out
    assert "Whisper: {{steps.shout.output}}" in said.out
    write(folder, "script.yaml", "{default: quiet, replies: {shout/say: LOUD}}")
    again = stretto(folder, "run", "whisper", "--model", "scripted:script.yaml", "-q")
    assert (again.code, again.out) == (0, "quiet\n")
    assert "Whisper: LOUD" in prompts(stretto(folder, "logs", "--json"))
    twice = stretto(folder, "capture", id, "--save", "other", "--json").json
    assert twice["saved"]["same_as"] == "whisper"


def batch_of(*names: str) -> str:
    tasks = ", ".join(
        f"{{agent: researcher, prompt: 'What do {name} cost?', description: {name}}}"
        for name in names
    )
    return f"{{tool: task_batch, arguments: {{tasks: [{tasks}]}}}}"


def test_tasks_of_one_form_are_a_map_over_what_differs(folder: Path) -> None:
    told = "\n".join(
        f"{n}. {name.title()} cost {n} thousand coins."
        for n, name in enumerate(("looms", "spindles", "shuttles"), 1)
    )
    task = {
        "tool": "task",
        "arguments": {"agent": "writer", "prompt": f"Sum up:\n{told}\nBriefly."},
    }
    calls = f"{batch_of('looms', 'spindles', 'shuttles')}, {json.dumps(task)}"
    id = chat(folder, f"{{calls: [{calls}], reply: A line.}}")
    found = stretto(folder, "capture", id, "--save", "prices", "--json").json
    assert found["ok"] is True, json.dumps(found, indent=1)
    assert json.loads(found["inputs"]["items"]) == ["looms", "spindles", "shuttles"]
    assert "What do {{item}} cost?" in found["recipe"]
    assert "as a list" in found["notes"][0]
    write(folder, "script.yaml", "default: Two coins.")
    words = ("-i", 'items=["carts", "oxen"]', "--model", "scripted:script.yaml", "-q")
    assert stretto(folder, "run", "prices", *words).code == 0
    asked = prompts(stretto(folder, "logs", "--json"))
    assert asked[:2] == ["What do carts cost?", "What do oxen cost?"]
    assert asked[2].startswith("Sum up:")
    assert '["Two coins.","Two coins."]' in asked[2]


def test_tasks_whose_answers_went_different_ways_stay_apart(folder: Path) -> None:
    one = "{tool: task, arguments: {agent: writer, prompt: 'Double: Looms cost 1 thousand coins.'}}"
    calls = f"{batch_of('looms', 'spindles', 'shuttles')}, {one}"
    found = stretto(
        folder, "capture", chat(folder, f"{{calls: [{calls}], reply: A.}}"), "--json"
    ).json
    assert found["ok"] is True, json.dumps(found, indent=1)
    assert "map:" not in found["recipe"]
    assert "Double: {{steps.looms.output}}" in found["recipe"]


def test_a_chat_in_which_a_draft_ran_gives_the_draft(folder: Path) -> None:
    drafted = "name: lines\nsteps:\n  - {id: a, subagent: writer, prompt: Go.}\n  - {id: b, subagent: writer, prompt: 'On: {{steps.a.output}}'}\n"
    draft = {"tool": "draft_workflow", "arguments": {"words": "go, then go on"}}
    run = {"tool": "run_draft", "arguments": {"draft": "DRAFT"}}
    script = {"default": "A line.", "draft": drafted}
    write(
        folder, "script.yaml",
        json.dumps({**script, "replies": {"turn-1": {"calls": [draft], "reply": "Here."}}}),
    )  # fmt: skip
    words = ("--model", "scripted:script.yaml", "--permission", "auto", "--json")
    first = stretto(folder, "chat", "-p", "Draft it", *words).json
    run["arguments"] = {"draft": first["turn"]["run_ids"][0]}
    write(
        folder, "script.yaml",
        json.dumps({**script, "replies": {"turn-2": {"calls": [run], "reply": "Ran."}}}),
    )  # fmt: skip
    second = stretto(folder, "chat", "--resume", first["chat"], "-p", "Run it", *words).json
    assert [each["ok"] for each in second["turn"]["calls"]] == [True], second
    said = stretto(folder, "capture", first["chat"])
    assert (said.code, said.out) == (0, drafted), said
