"""`stretto goal`: run again until a verifier passes."""

from pathlib import Path

from support.background_runs import MODEL, journal
from support.cli import refused, stretto, write

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
