"""Steps that are workflows, three levels deep, from outside: killed, resumed, retried, forked, compared."""

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from support.background_runs import journal, running, statuses
from support.cli import Said, stretto, write

TOP = """\
name: top
inputs: {topic: {default: tea}}
steps:
  - {id: first, subagent: researcher, prompt: "Think of {{inputs.topic}}"}
  - {id: sub, workflow: mid.yaml, inputs: {topic: "{{steps.first.output}}"}}
  - {id: last, subagent: writer, prompt: "End with {{steps.sub.output}}"}
"""
MID = """\
workflow:
  name: mid
  inputs: {topic: {required: true}}
  agents: {local: {prompt: "You look at {{inputs.topic}}."}}
  steps:
    - {id: look, agent: local}
    - {id: deep, workflow: parts/deep.json, inputs: {n: 4}}
    - {id: close, agent: writer, input: "{{steps.deep.output}}"}
"""
DEEP: dict[str, Any] = {
    "inputs": {"n": {"type": "number"}},
    "agents": {"reader": {"prompt": "You read."}},
    "steps": [
        {"id": "x", "agent": "reader", "task": "Do {{inputs.n}}"},
        {"id": "y", "agent": "reader", "task": "Then this", "depends_on": ["x"]},
    ],
    "output": "{{steps.y.output}}",
}
STEPS = ["first", "sub", "sub/look", "sub/deep", "sub/deep/x", "sub/deep/y", "sub/close", "last"]
ASKED = [id for id in STEPS if id not in ("sub", "sub/deep")]
SCRIPT = "replies:\n" + "".join(f"  {id}: '{id} said'\n" for id in ASKED)
SLOW = "replies:\n" + "".join(f"  {id}: {{reply: '{id} said', delay: 100ms}}\n" for id in ASKED)
MODEL = ("--model", "scripted:script.yaml")


def three(folder: Path, script: str = SCRIPT, deep: dict[str, Any] | None = None) -> Path:
    write(folder, "top.yaml", TOP)
    write(folder, "mid.yaml", MID)
    write(folder, "parts/deep.json", json.dumps(deep or DEEP))
    write(folder, "script.yaml", script)
    return folder


def report_of(said: Said) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(said.out.splitlines()[-1])
    assert found["type"] == "report", said
    return found


def run(folder: Path, *words: str) -> dict[str, Any]:
    return report_of(stretto(folder, "run", "top.yaml", "--json", *MODEL, *words))


def prompts(folder: Path, run_id: str) -> dict[str, str]:
    said = stretto(folder, "logs", run_id, "--json").out.splitlines()
    entries = [json.loads(line) for line in said]
    return {each["step"]: each["text"] for each in entries if each["kind"] == "prompt"}


def test_three_levels_run_as_one_and_have_their_outputs(tmp_path: Path) -> None:
    report = run(three(tmp_path))
    assert statuses(report) == dict.fromkeys(STEPS, "succeeded")
    assert report["steps"]["sub"]["output"] == "sub/close said"
    assert report["steps"]["sub/deep"]["output"] == "sub/deep/y said"
    told = prompts(tmp_path, report["run_id"])
    assert told["sub/look"] == "You look at first said."
    assert told["sub/deep/x"].startswith("Do 4")
    assert told["last"] == "End with sub/close said"
    within = stretto(tmp_path, "logs", report["run_id"], "sub/deep").out
    assert "sub/deep/x" in within
    assert "sub/look" not in within


def test_a_run_of_three_levels_that_is_killed_goes_on_and_repeats_nothing(tmp_path: Path) -> None:
    folder, luck = three(tmp_path, SLOW), random.Random()
    with running(folder, "run", "top.yaml", "--json", *MODEL) as child:
        run_id = json.loads(next(iter(child.stdout or ())))["run_id"]
        time.sleep(luck.uniform(0, 0.5))
        child.kill()
    # Once more: a step that had been running three times when the process died would be given up.
    with running(folder, "resume", run_id, "--json") as child:
        next(iter(child.stdout or ()))
        time.sleep(luck.uniform(0, 0.3))
        child.kill()
    report = report_of(stretto(folder, "resume", run_id, "--json"))
    assert statuses(report) == dict.fromkeys(STEPS, "succeeded")
    assert report["output"] == "last said"
    ended = [
        e["attempt"]["step"] for e in journal(folder, run_id) if e["type"] == "attempt_succeeded"
    ]
    assert sorted(ended) == sorted(ASKED)  # each once


def test_a_retry_from_an_inner_step_repeats_it_and_what_follows(tmp_path: Path) -> None:
    first = run(three(tmp_path))
    again = report_of(stretto(tmp_path, "retry", first["run_id"], "--from", "sub/deep/y", "--json"))
    assert asked_anew(tmp_path, again) == {"sub/deep/y", "sub/close", "last"}
    assert again["status"] == "complete"
    whole = report_of(stretto(tmp_path, "retry", first["run_id"], "--from", "sub", "--json"))
    assert asked_anew(tmp_path, whole) == set(ASKED) - {"first"}
    wrong = stretto(tmp_path, "retry", first["run_id"], "--from", "sub/dep/y")
    assert wrong.code == 2
    assert "did you mean 'sub/deep/y'?" in wrong.err


def test_a_fork_from_an_inner_step_is_compared_step_by_step(tmp_path: Path) -> None:
    first = run(three(tmp_path))
    write(tmp_path, "script.yaml", SCRIPT.replace("sub/deep/y said", "another answer"))
    words = ("fork", first["run_id"], "--from", "sub/deep/y", "--json")
    forked = report_of(stretto(tmp_path, *words))
    assert forked["steps"]["sub/deep"]["output"] == "another answer"
    shown = stretto(tmp_path, "diff", first["run_id"], forked["run_id"])
    assert "sub/deep/y" in shown.out
    assert "the output of sub/deep" in shown.out


def test_an_edited_inner_recipe_reuses_what_is_unchanged(tmp_path: Path) -> None:
    first = run(three(tmp_path))
    edited = json.loads(json.dumps(DEEP).replace("Then this", "Then that"))
    three(tmp_path, deep=edited)
    same = report_of(stretto(tmp_path, "retry", first["run_id"], "--json"))
    assert asked_anew(tmp_path, same) == set()  # the stored plan is as it was
    new = report_of(stretto(tmp_path, "retry", first["run_id"], "--recipe", "top.yaml", "--json"))
    # What came after it was told the same answer, and is not asked again.
    assert asked_anew(tmp_path, new) == {"sub/deep/y"}


def asked_anew(folder: Path, report: dict[str, Any]) -> set[str]:
    ended = [e for e in journal(folder, report["run_id"]) if e["type"] == "attempt_succeeded"]
    return {e["attempt"]["step"] for e in ended if not e.get("reused_from")}


def test_a_gate_inside_is_approved_by_its_name_and_an_edit_meanwhile_changes_nothing(
    tmp_path: Path,
) -> None:
    gated = json.loads(json.dumps(DEEP))
    gated["steps"][1]["gate"] = "human"
    waiting = run(three(tmp_path, deep=gated))
    assert waiting["status"] == "waiting"
    assert statuses(waiting)["sub/deep/y"] == "awaiting approval"
    assert (statuses(waiting)["sub"], statuses(waiting)["sub/deep"]) == ("waiting", "waiting")
    three(tmp_path, deep={**DEEP, "output": "edited"})
    run_id = waiting["run_id"]
    outer = stretto(tmp_path, "approve", run_id, "sub")
    assert outer.code == 2
    assert "step 'sub' does not await approval: it is waiting" in outer.err
    shown = stretto(tmp_path, "approve", run_id, "sub/deep/y", "--show")
    assert "Then this" in shown.out
    report = report_of(stretto(tmp_path, "approve", run_id, "sub/deep/y", "--json"))
    assert (report["status"], report["steps"]["sub/deep"]["output"]) == (
        "complete",
        "sub/deep/y said",
    )


def test_agents_of_one_name_in_two_recipes_are_told_apart_in_words(tmp_path: Path) -> None:
    said = stretto(
        three(tmp_path, deep={**DEEP, "agents": {"reader": {"prompt": "You read."}}}),
        "explain",
        "top.yaml",
    )
    assert said.out.count("\n   reader.") == 1
    both = {**DEEP, "agents": {"local": {"prompt": "You read."}}}
    both["steps"] = [{**each, "agent": "local"} for each in DEEP["steps"]]
    told = stretto(three(tmp_path, deep=both), "explain", "top.yaml").out
    assert "\n   local. No tools." in told
    assert "\n   sub/deep/local. No tools." in told
    assert "sub/deep/x: sub/deep/local gets inputs.n." in told


def test_an_isolated_writer_inside_has_a_change_of_its_own(tmp_path: Path) -> None:
    inner = """\
name: inner
inputs: {name: {required: true}}
steps:
  - id: make
    run: mkdir -p out && printf '%s' "$NAME" > "out/$NAME"
    env: {NAME: "{{inputs.name}}"}
    write_set: ["out/**"]
    merge_back: manual
"""
    write(tmp_path, "work/inner.yaml", inner)
    write(
        tmp_path,
        "work/outer.yaml",
        "name: outer\nsteps: [{id: sub, workflow: inner.yaml, inputs: {name: note}}]",
    )
    env = {"STRETTO_HOME": str(tmp_path / "home")}
    folder = tmp_path / "work"
    said = stretto(folder, "run", "outer.yaml", "--json", env=env)
    if "sandbox" in said.out and said.code == 2:
        pytest.skip("commands need a sandbox")
    run_id = report_of(said)["run_id"]
    patch = stretto(folder, "diff", run_id, "sub/make", env=env)
    assert "+note" in patch.out
    assert [each.name for each in (tmp_path / "home/workspaces" / run_id).iterdir()] == ["sub+make"]
    assert stretto(folder, "apply", run_id, "sub/make", env=env).code == 0
    assert (folder / "out/note").read_text() == "note"


def problems(folder: Path, file: str) -> list[dict[str, Any]]:
    said = stretto(folder, "validate", file, "--json").json
    found: list[dict[str, Any]] = said["error"]["details"]["problems"]
    return found


def test_circles_by_file_and_by_name_are_found(tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "workflows/../c.yaml"), ("c", "a")):
        place = f"workflows/{name}.yaml" if name != "c" else "c.yaml"
        used = other.replace("workflows/../", "../")
        write(tmp_path, place, f"name: {name}\nsteps: [{{id: s, workflow: {used}}}]")
    codes = [each["code"] for each in problems(tmp_path, "workflows/a.yaml")]
    assert sorted(codes) == ["RCP144", "RCP146", "RCP146"]
    assert "c → a → b → c" in stretto(tmp_path, "validate", "c.yaml").out
    assert stretto(tmp_path, "list", "--json").code == 0


def test_recipes_may_stand_eight_deep_and_no_deeper(tmp_path: Path) -> None:
    for level in range(1, 10):
        inner = f"workflow: r{level + 1}.yaml" if level < 9 else "subagent: writer, prompt: x"
        write(tmp_path, f"r{level}.yaml", f"name: r{level}\nsteps: [{{id: s, {inner}}}]")
    assert stretto(tmp_path, "validate", "r2.yaml").code == 0
    assert "RCP145" in {each["code"] for each in problems(tmp_path, "r1.yaml")}


def test_many_uses_of_few_files_are_counted_before_they_are_expanded(tmp_path: Path) -> None:
    for level in range(1, 8):
        inner = f"workflow: r{level + 1}.yaml" if level < 7 else "subagent: writer, prompt: x"
        steps = "".join(f"  - {{id: s{i}, {inner}}}\n" for i in range(20))
        write(tmp_path, f"r{level}.yaml", f"name: r{level}\nsteps:\n{steps}")
    began = time.process_time()
    assert "RCP118" in {each["code"] for each in problems(tmp_path, "r1.yaml")}
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    "named", ["../outside.yaml", "/etc/hosts.yaml", "link.yaml", "~/x.yaml", ".", "no.yaml"]
)
def test_a_file_outside_the_project_is_refused(tmp_path: Path, named: str) -> None:
    folder = tmp_path / "project"
    write(tmp_path, "outside.yaml", "name: o\nsteps: [{id: s, subagent: writer, prompt: x}]")
    write(folder, "stretto.yaml", "")
    write(folder, "outer.yaml", f"name: outer\nsteps: [{{id: sub, workflow: '{named}'}}]")
    (folder / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    assert [each["code"] for each in problems(folder, "outer.yaml")] == ["RCP143"]


def test_a_recipe_of_an_untrusted_folder_is_not_replaced_by_another_of_its_name(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "project"
    own = "name: research-and-brief\nsteps: [{id: mine, subagent: writer, prompt: x}]"
    write(folder, "workflows/research-and-brief.yaml", own)
    write(folder, "agents/helper.md", "---\nname: helper\ndescription: x\n---\nHelp.")
    write(
        folder,
        "outer.yaml",
        "name: outer\nsteps: [{id: sub, workflow: research-and-brief, inputs: {topic: x}}]",
    )
    env = {"STRETTO_HOME": str(tmp_path / "home"), "STRETTO_TRUST": ""}
    said = stretto(folder, "validate", "outer.yaml", env=env)
    assert said.code == 2
    assert "is not used until you trust this folder" in said.out
    by_file = "name: outer\nsteps: [{id: sub, workflow: workflows/research-and-brief.yaml}]"
    write(folder, "outer.yaml", by_file)
    assert stretto(folder, "validate", "outer.yaml", env=env).code == 0


def test_a_users_own_recipe_uses_none_of_an_untrusted_folder(tmp_path: Path) -> None:
    folder, home = tmp_path / "project", tmp_path / "home"
    write(
        folder,
        "workflows/helper.yaml",
        "name: helper\nsteps: [{id: a, subagent: writer, prompt: x}]",
    )
    write(home, "workflows/mine.yaml", "name: mine\nsteps: [{id: sub, workflow: helper}]")
    env = {"STRETTO_HOME": str(home), "STRETTO_TRUST": ""}
    said = stretto(folder, "plan", "mine", env=env)
    assert said.code == 2
    assert "which you have not trusted" in said.out + said.err
    assert stretto(folder, "plan", "mine", env={**env, "STRETTO_TRUST": "1"}).code == 0


def test_a_workflow_is_named_and_not_computed(tmp_path: Path) -> None:
    text = "name: o\ninputs: {w: {}}\nsteps: [{id: s, workflow: '{{inputs.w}}'}]"
    write(tmp_path, "o.yaml", text)
    (problem,) = problems(tmp_path, "o.yaml")
    assert problem["message"].startswith("'workflow' has no templates")
