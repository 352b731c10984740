"""`stretto goal`: run again until a verifier passes."""

import random
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from support.background_runs import MODEL, await_call, journal, running
from support.cli import refused, stretto, talk, write

GROW = """\
name: grow
inputs:
  evidence: {default: none}
steps:
  - {id: think, subagent: writer, prompt: "So far: {{inputs.evidence}}"}
  - {id: add, run: echo line >> lines.txt, write_set: [lines.txt], depends_on: think}
"""
COUNT = "command:n=$(cat lines.txt 2>/dev/null | wc -l); echo $n lines; test $n -ge 3"


def project(folder: Path, script: str = "default: {reply: ok, tokens: 10}\n") -> Path:
    write(folder, "grow.yaml", GROW)
    write(folder, "script.yaml", script)
    return folder


def set_goal(folder: Path, *words: str, verify: str = COUNT, workflow: str = "grow.yaml"):
    given = ("goal", "set", "Three lines", "--verify", verify, "--workflow", workflow)
    return stretto(folder, *given, *MODEL, *words)


def inputs_of(folder: Path, run_id: str):
    return journal(folder, run_id)[0]["inputs"]


def test_a_workflow_runs_until_the_verifier_passes_and_each_run_is_given_the_evidence(
    tmp_path: Path,
) -> None:
    said = set_goal(project(tmp_path), "--json")
    assert (said.code, said.err) == (0, "")
    goal = said.json["goal"]
    assert said.json["ok"] is True
    assert (goal["status"], goal["iterations"], len(goal["history"])) == ("achieved", 3, 3)
    assert [each["evidence"] for each in goal["history"]] == [
        "exit code 1\n1 lines",
        "exit code 1\n2 lines",
        "exit code 0\n3 lines",
    ]
    assert goal["usage"]["output_tokens"] == 30
    assert inputs_of(tmp_path, goal["history"][1]["run_id"])["evidence"] == "exit code 1\n1 lines"
    assert stretto(tmp_path, "goal", "show", "--json").json["goal"] == goal
    listed = stretto(tmp_path, "goal", "list", "--json").json["goals"]
    assert [each["id"] for each in listed] == [goal["id"]]
    assert "achieved" in stretto(tmp_path, "goal", "list").out


def test_what_is_achieved_already_costs_no_run_and_needs_no_model(tmp_path: Path) -> None:
    said = stretto(tmp_path, "goal", "set", "Nothing", "--verify", "command:true", "--json")
    assert said.code == 0
    assert (said.json["goal"]["status"], said.json["goal"]["iterations"]) == ("achieved", 0)
    assert stretto(tmp_path, "runs", "--json").json["runs"] == []


def test_bad_words_are_refused_before_anything_is_kept(tmp_path: Path) -> None:
    project(tmp_path)
    base = ("goal", "set", "x", "--json", "--verify")
    for words in (
        ("nonsense",),
        ("command:",),
        ("command:true", "--budget", "many"),
        ("command:true", "--timeout", "soon"),
        ("command:true", "--max-iterations", "0"),
        ("command:true", "-i", "a=b"),
        ("data:file.json",),
        ("data:file.json#a ==",),
        ("command:true", "--workflow", "grow.yaml", "--evidence-input", "nope"),
    ):
        assert refused(stretto(tmp_path, *base, *words), "usage")["message"]
    assert refused(stretto(tmp_path, *base, "command:true", "--workflow", "nope"), "not_found")
    assert refused(
        stretto(tmp_path, *base, "command:true", "--workflow", "grow.yaml", "-i", "nope=1"),
        "invalid_inputs",
    )
    assert stretto(tmp_path, "goal", "list", "--json").json["goals"] == []
    assert refused(stretto(tmp_path, "goal", "show", "nope", "--json"), "not_found")


MARK = """\
name: mark
inputs:
  evidence: {default: none}
steps:
  - {id: think, subagent: writer, prompt: "{{inputs.evidence}}"}
  - id: mark
    run: touch "marks/$RUN"
    env: {RUN: "{{run.id}}"}
    write_set: [marks/**]
    recovery: rerun
    depends_on: think
"""
MARKS = "command:n=$(ls marks | wc -l); echo $n; test $n -ge 3"


def test_a_goal_that_is_killed_again_and_again_goes_on_and_counts_each_run_once(
    tmp_path: Path,
) -> None:
    write(tmp_path, "mark.yaml", MARK)
    write(tmp_path, "script.yaml", "default: {reply: ok, delay: 250ms, tokens: 10}\n")
    (tmp_path / "marks").mkdir()
    words = ["goal", "set", "x", "--verify", MARKS, "--workflow", "mark.yaml", *MODEL]
    moments = random.Random(13)
    for _ in range(5):
        with running(tmp_path, *words) as child:
            with suppress(subprocess.TimeoutExpired):
                child.wait(moments.uniform(0.7, 2.2))
            child.kill()
        goals = stretto(tmp_path, "goal", "list", "--json").json["goals"]
        if goals:
            words = ["goal", "resume", goals[0]["id"]]
    goal = stretto(tmp_path, *words, "--json").json["goal"]
    assert (goal["status"], goal["iterations"]) == ("achieved", 3)
    runs = stretto(tmp_path, "runs", "--json").json["runs"]
    assert {run["run_id"] for run in runs} == {each["run_id"] for each in goal["history"]}
    assert len(runs) == 3
    assert {run["trigger"] for run in runs} == {f"goal {goal['id']}"}
    assert goal["usage"]["output_tokens"] == 30


def test_the_budget_of_a_goal_counts_what_kill_9_cut_off(tmp_path: Path) -> None:
    write(tmp_path, "mark.yaml", MARK)
    write(tmp_path, "script.yaml", "default: {reply: ok, delay: 600s, tokens: 80}\n")
    (tmp_path / "marks").mkdir()
    words = ["goal", "set", "x", "--verify", MARKS, "--workflow", "mark.yaml", *MODEL]
    with running(tmp_path, *words, "--budget", "tokens=150") as child:
        await_call(tmp_path, "mark")
        child.kill()
    write(tmp_path, "script.yaml", "default: {reply: ok, tokens: 80}\n")
    [interrupted] = stretto(tmp_path, "goal", "list", "--json").json["goals"]
    goal = stretto(tmp_path, "goal", "resume", interrupted["id"], "--json").json["goal"]
    assert (goal["status"], goal["limit"]) == ("exhausted", "tokens")
    assert goal["usage"]["input_tokens"] + goal["usage"]["output_tokens"] == 80, goal["usage"]


def test_ctrl_c_leaves_a_goal_that_resume_goes_on_with(tmp_path: Path) -> None:
    write(tmp_path, "mark.yaml", MARK)
    write(tmp_path, "script.yaml", "default: {reply: ok, delay: 10m}\n")
    (tmp_path / "marks").mkdir()
    words = ("goal", "set", "x", "--verify", MARKS, "--workflow", "mark.yaml", *MODEL)
    with running(tmp_path, *words) as child:
        for line in child.stderr or ():
            if "running" in line:
                break
        other = stretto(tmp_path, "goal", "resume", "--json")
        assert (other.code, other.json["error"]["kind"]) == (5, "leased")
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 130
    shown = stretto(tmp_path, "goal", "show", "--json").json["goal"]
    assert (shown["status"], shown["state"], shown["iterations"]) == ("interrupted", "active", 1)
    write(tmp_path, "script.yaml", "default: ok\n")
    said = stretto(tmp_path, "goal", "resume")
    assert (said.code, said.out) == (0, "achieved after 3 iterations\n")
    again = stretto(tmp_path, "goal", "resume", "--json")
    assert (again.code, again.json["goal"]["status"]) == (0, "achieved")


def test_a_goal_waits_with_its_run_for_a_person(tmp_path: Path) -> None:
    write(tmp_path, "gated.yaml", MARK.replace("recovery: rerun", "gate: human"))
    write(tmp_path, "script.yaml", "default: ok\n")
    (tmp_path / "marks").mkdir()
    once = MARKS.replace("3", "1")
    words = ("goal", "set", "x", "--verify", once, "--workflow", "gated.yaml", *MODEL)
    said = stretto(tmp_path, *words)
    assert (said.code, said.out.partition(" ")[0]) == (3, "waiting")
    run_id = stretto(tmp_path, "goal", "show", "--json").json["goal"]["run_id"]
    assert stretto(tmp_path, "approve", run_id, "mark", "--no-resume").code == 0
    done = stretto(tmp_path, "goal", "resume", "--json")
    assert (done.code, done.json["goal"]["iterations"]) == (0, 1)


@pytest.mark.parametrize("verb", ["show", "clear", "resume"])
def test_an_empty_word_means_no_goal(tmp_path: Path, verb: str) -> None:
    """As that of a shell's variable that is not set; it would mean the newest."""
    error = refused(stretto(tmp_path, "goal", verb, "", "--json"), "usage")
    assert error["message"] == "GOAL is empty"


def test_a_goal_in_the_background_is_cleared_with_its_run(tmp_path: Path) -> None:
    write(tmp_path, "mark.yaml", MARK)
    write(tmp_path, "script.yaml", "default: {reply: ok, delay: 10m}\n")
    (tmp_path / "marks").mkdir()
    words = ("--workflow", "mark.yaml", *MODEL, "--detach", "--json")
    said = stretto(tmp_path, "goal", "set", "x", "--verify", MARKS, *words)
    assert said.code == 0
    id = said.json["goal"]["id"]
    cleared = stretto(tmp_path, "goal", "clear", id, "--json")
    assert (cleared.code, cleared.json["goal"]["status"]) == (0, "cleared")
    runs = stretto(tmp_path, "runs", "--json").json["runs"]
    assert {run["status"] for run in runs} <= {"cancelled"}


def test_hostile_words_reach_no_terminal(tmp_path: Path) -> None:
    write(tmp_path, "evil.txt", "\x1b[2Jgone \x1b]0;t\x07 \u202eabc")
    said = stretto(tmp_path, "goal", "set", "a\x1b[31mb\u202e", "--verify", "command:cat evil.txt")
    assert said.code == 0
    for words in (("goal", "list"), ("goal", "show"), ("goal", "show", "--json")):
        shown = stretto(tmp_path, *words)
        assert not {"\x1b", "\x07", "\u202e"} & set(shown.out + shown.err), words


def test_a_person_at_the_terminal_is_asked_at_a_gate(tmp_path: Path) -> None:
    write(tmp_path, "gated.yaml", MARK.replace("recovery: rerun", "gate: human"))
    write(tmp_path, "script.yaml", "default: ok\n")
    (tmp_path / "marks").mkdir()
    once = MARKS.replace("3", "1")
    words = ("goal", "set", "x", "--verify", once, "--workflow", "gated.yaml", *MODEL)
    code, screen, _ = talk(tmp_path, words, [("[y]es", "y\r")])
    assert code == 0, screen
    assert "achieved after 1 iteration" in screen


def test_a_person_at_the_terminal_is_asked_what_the_lead_agent_may_do(tmp_path: Path) -> None:
    write(tmp_path, "workflows/mark.yaml", MARK.replace("recovery: rerun", "effect: idempotent"))
    call = "{tool: run_workflow, arguments: {name: mark}}"
    write(
        tmp_path,
        "script.yaml",
        f"default: ok\nreplies: {{turn-1: {{calls: [{call}], reply: Done.}}}}\n",
    )
    (tmp_path / "marks").mkdir()
    once = MARKS.replace("3", "1")
    words = ("goal", "set", "x", "--verify", once, "--permission", "ask", *MODEL)
    assert stretto(tmp_path, *words).code == 3
    code, screen, _ = talk(tmp_path, ("goal", "resume"), [("[y]es", "y\r"), ("[y]es", "y\r")])
    assert code == 0, screen
    assert "achieved after 1 iteration" in screen
