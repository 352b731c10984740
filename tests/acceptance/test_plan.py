"""`stretto plan`: what a run would do, and the inputs it would take."""

from pathlib import Path

import pytest

from support.cli import (
    GOOD,
    SHIPPED,
    as_data,
    problems,
    refused,
    stretto,
    succeeded,
    tree,
    write,
)

MAIN_KEYS = {"ok", "mode", "workflow", "inputs", "would_run", "waves", "summary"}
STEP_KEYS = {
    "id",
    "type",
    "agent",
    "depends_on",
    "posture",
    "workspace_mode",
    "read_set",
    "write_set",
    "prompt",
}
SUMMARY_KEYS = {"steps", "max_concurrency", "max_model_calls"}
TYPED = """\
name: typed
inputs:
  - {name: word, required: true}
  - {name: size, type: number, required: true}
  - {name: loud, type: boolean, required: true}
  - {name: facts, type: json, required: true}
  - {name: notes, type: file_path, required: true}
  - {name: tone, enum: [warm, cool], default: warm}
steps:
  - id: say
    subagent: writer
    prompt: "{{inputs.word}} {{inputs.size}} {{inputs.loud}} {{inputs.facts}} {{inputs.notes}} {{inputs.tone}}"
"""
WRITER = """\
name: w
steps: [{id: save, subagent: worker, posture: writer, write_set: [out], prompt: go}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "good.yaml", GOOD)
    write(tmp_path, "typed.yaml", TYPED)
    write(tmp_path, "notes.md", "some notes\n")
    return tmp_path


def test_a_plan_says_all_of_a_run_in_json(folder: Path) -> None:
    found = succeeded(stretto(folder, "plan", "good.yaml", "-i", "topic=bees", "--json"))
    assert set(found) >= MAIN_KEYS
    assert found["mode"] == "dry_run"
    assert found["workflow"] == "good"
    assert found["inputs"] == {"topic": "bees", "count": 3}
    assert found["waves"] == [["look"], ["write"], ["check"]]
    assert set(found["summary"]) >= SUMMARY_KEYS
    assert found["summary"]["steps"] == 3
    assert found["summary"]["max_concurrency"] == 4
    assert found["summary"]["max_model_calls"] >= 3
    for step in found["would_run"]:
        assert set(step) >= STEP_KEYS
    first, second, third = found["would_run"]
    assert [step["id"] for step in found["would_run"]] == ["look", "write", "check"]
    assert first["type"] == "sequential"
    assert first["agent"] == "researcher"
    assert first["prompt"] == "Find 3 facts about bees."
    assert (first["posture"], first["workspace_mode"]) == ("read_only", "shared")
    assert (first["read_set"], first["write_set"]) == (["**/*"], [])
    # A reference is an edge, though nobody wrote it; what only a run can know stays open.
    assert second["depends_on"] == ["look"]
    assert second["prompt"] == "Write it up: {{steps.look.output}}"
    assert third["depends_on"] == ["write"]


def test_a_plan_in_text_shows_the_same(folder: Path) -> None:
    said = stretto(folder, "plan", "good.yaml", "-i", "topic=bees")
    assert (said.code, said.err) == (0, "")
    for piece in ("no model was called", "bees", "look", "write", "check", "researcher"):
        assert piece in said.out


def test_writers_get_their_own_copy(folder: Path) -> None:
    text = "name: w\nsteps: [{id: a, subagent: worker, prompt: x, write_set: [src]}]\n"
    found = succeeded(stretto(folder, "plan", "-", "--json", stdin=text))
    (step,) = found["would_run"]
    assert (step["posture"], step["workspace_mode"]) == ("writer", "isolated")
    assert step["write_set"] == ["src"]


def test_steps_that_write_the_same_files_get_waves_of_their_own(folder: Path) -> None:
    text = """\
name: w
steps:
  - {id: a, subagent: worker, prompt: x, write_set: ["src/**"]}
  - {id: b, subagent: worker, prompt: x, write_set: [src/a.py]}
  - {id: c, subagent: worker, prompt: x, write_set: [docs]}
"""
    found = succeeded(stretto(folder, "plan", "-", "--json", stdin=text))
    assert found["waves"] == [["a", "c"], ["b"]]


def test_a_path_that_ends_like_a_file_is_one_unless_a_folder_is_there(folder: Path) -> None:
    text = """\
name: w
steps:
  - {id: a, subagent: worker, prompt: x, write_set: ["**/*.py"]}
  - {id: b, subagent: worker, prompt: x, write_set: [docs/a.txt]}
  - {id: c, subagent: worker, prompt: x, write_set: ["{v1.0,v2.0}"]}
"""
    found = succeeded(stretto(folder, "plan", "-", "--json", stdin=text))
    assert found["waves"] == [["a", "b", "c"]]
    (folder / "v2.0").mkdir()
    found = succeeded(stretto(folder, "plan", "-", "--json", stdin=text))
    assert found["waves"] == [["a", "b"], ["c"]]
    assert found["would_run"][2]["write_set"] == ["{v1.0,v2.0}", "v2.0/**"]


@pytest.mark.parametrize("recipe", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_recipe_can_be_planned_once_its_inputs_are_there(
    folder: Path, recipe: Path
) -> None:
    shown = as_data(recipe)
    shown = {**shown, **shown.get("workflow", {})}
    declared = shown.get("inputs") or shown.get("parameters") or []
    if isinstance(declared, dict):
        declared = [{"name": name, **(about or {})} for name, about in declared.items()]
    words = [word for each in declared if each.get("required") for word in ("-i", _some(each))]
    found = succeeded(stretto(folder, "plan", recipe, *words, "--json"))
    assert set(found) >= MAIN_KEYS
    ids = [step["id"] for step in found["would_run"]]
    assert sorted(id for wave in found["waves"] for id in wave) == sorted(ids)
    assert all(set(step) >= STEP_KEYS for step in found["would_run"])
    assert len(ids) == found["summary"]["steps"]
    assert [id for id in ids if "/" not in id] == [step["id"] for step in shown["steps"]]


def _some(declared: dict) -> str:  # type: ignore[type-arg]
    value = {"number": "1", "boolean": "true", "json": "{}", "file_path": "notes.md"}
    if declared.get("enum"):
        return f"{declared['name']}={declared['enum'][0]}"
    return f"{declared['name']}={value.get(declared.get('type', 'string'), 'x')}"


ALL = ("-i", "word=a", "-i", "size=1", "-i", "loud=true", "-i", 'facts={"a": 1}')


def test_inputs_are_converted_to_their_types(folder: Path) -> None:
    words = ("plan", "typed.yaml", *ALL, "-i", "notes=notes.md", "--json")
    assert succeeded(stretto(folder, *words))["inputs"] == {
        "word": "a",
        "size": 1,
        "loud": True,
        "facts": {"a": 1},
        "notes": "notes.md",
        "tone": "warm",
    }


def test_inputs_come_from_a_json_file(folder: Path) -> None:
    write(folder, "in.json", '{"topic": "bees", "count": 5}')
    found = succeeded(stretto(folder, "plan", "good.yaml", "--input-json", "in.json", "--json"))
    assert found["inputs"] == {"topic": "bees", "count": 5}


def test_inputs_come_from_stdin(folder: Path) -> None:
    words = ("plan", "good.yaml", "--input-json", "-", "--json")
    assert succeeded(stretto(folder, *words, stdin='{"topic": "é"}'))["inputs"]["topic"] == "é"


def test_a_pair_wins_over_the_file_and_the_last_pair_over_the_first(folder: Path) -> None:
    words = ("plan", "good.yaml", "--input-json", "-", "-i", "topic=b", "-i", "topic=c", "--json")
    found = succeeded(stretto(folder, *words, stdin='{"topic": "a", "count": 9}'))
    assert found["inputs"] == {"topic": "c", "count": 9}


def test_an_at_sign_reads_a_file_and_two_stand_for_one(folder: Path) -> None:
    words = ("plan", "good.yaml", "--json", "-i")
    assert (
        succeeded(stretto(folder, *words, "topic=@notes.md"))["inputs"]["topic"] == "some notes\n"
    )
    assert succeeded(stretto(folder, *words, "topic=@@home"))["inputs"]["topic"] == "@home"


def test_a_value_may_hold_equals_signs_braces_and_lines(folder: Path) -> None:
    value = "a=b {{steps.look.output}}\nsecond \\{{ line"
    found = succeeded(stretto(folder, "plan", "good.yaml", "-i", f"topic={value}", "--json"))
    assert found["inputs"]["topic"] == value
    assert found["would_run"][0]["prompt"] == f"Find 3 facts about {value}."


def test_missing_inputs_are_one_error_that_names_all(folder: Path) -> None:
    (problem,) = problems(stretto(folder, "plan", "typed.yaml", "--json"), "invalid_inputs")
    for name in ("word", "size", "loud", "facts", "notes"):
        assert name in problem["message"]
    assert "tone" not in problem["message"]


def test_a_pipe_is_never_asked(folder: Path) -> None:
    said = stretto(folder, "plan", "typed.yaml", stdin="a\nb\nc\nd\ne\n")
    assert said.code == 2
    assert said.out == ""
    assert "word, size, loud, facts, notes" in said.err


def test_a_blank_value_is_a_missing_one(folder: Path) -> None:
    said = stretto(folder, "plan", "good.yaml", "-i", "topic= ", "--json")
    (problem,) = problems(said, "invalid_inputs")
    assert "topic" in problem["message"]


def test_an_undeclared_input_is_refused_with_a_guess(folder: Path) -> None:
    words = ("plan", "good.yaml", "-i", "topic=x", "-i", "cuont=3", "--json")
    (problem,) = problems(stretto(folder, *words), "invalid_inputs")
    assert problem["path"] == "inputs.cuont"
    assert problem["hint"] == "did you mean 'count'?"


@pytest.mark.parametrize(
    "pair", ["size=big", "size=NaN", "loud=maybe", "facts={", "notes=nope.md", "tone=hot"]
)
def test_a_mistyped_value_is_refused(folder: Path, pair: str) -> None:
    words = ("plan", "typed.yaml", *ALL, "-i", "notes=notes.md", "-i", pair, "--json")
    (problem,) = problems(stretto(folder, *words), "invalid_inputs")
    assert problem["path"] == f"inputs.{pair.partition('=')[0]}"


@pytest.mark.parametrize("path", ["../outside.md", "/etc/passwd", "link.md"])
def test_a_file_outside_the_workspace_is_refused(folder: Path, path: str) -> None:
    workspace = folder / "inside"
    write(folder, "outside.md", "secret")
    write(workspace, "typed.yaml", TYPED)
    (workspace / "link.md").symlink_to("/etc/passwd")
    said = stretto(workspace, "plan", "typed.yaml", *ALL, "-i", f"notes={path}", "--json")
    (problem,) = problems(said, "invalid_inputs")
    assert "outside" in problem["message"]


def test_everything_wrong_with_the_inputs_is_said_at_once(folder: Path) -> None:
    words = ("plan", "typed.yaml", "-i", "size=big", "-i", "loud=maybe", "-i", "zz=1", "--json")
    found = problems(stretto(folder, *words), "invalid_inputs")
    said = " ".join(problem["message"] for problem in found)
    for name in ("word", "size", "loud", "facts", "notes", "zz"):
        assert name in said


@pytest.mark.parametrize(
    "words",
    [
        ("-i", "topic"),
        ("-i", "=x"),
        ("-i", "topic=@nope.md"),
        ("-i", "topic=@."),
        ("--input-json", "nope.json"),
        ("--input-json", "."),
        ("--input-json", "notes.md"),
        ("-i",),
    ],
    ids=" ".join,
)
def test_inputs_that_cannot_be_read_are_wrong_usage(folder: Path, words: tuple[str, ...]) -> None:
    before = tree(folder)
    refused(stretto(folder, "plan", "good.yaml", "--json", *words), "usage")
    assert tree(folder) == before


@pytest.mark.parametrize("text", ["", "[1]", "{", "[" * 100_000, "\0", '"x"'])
def test_input_json_must_be_an_object(folder: Path, text: str) -> None:
    refused(
        stretto(folder, "plan", "good.yaml", "--input-json", "-", "--json", stdin=text), "usage"
    )


def test_a_broken_recipe_has_no_plan(folder: Path) -> None:
    write(folder, "bad.yaml", "name: x\nsteps: [{id: a, subagent: nobody-at-all, prompt: x}]\n")
    assert problems(stretto(folder, "plan", "bad.yaml", "--json"))
    refused(stretto(folder, "plan", "nope", "--json"), "not_found")


def test_a_cycle_is_refused(folder: Path) -> None:
    text = """\
name: x
steps:
  - {id: a, subagent: writer, prompt: "{{steps.b.output}}"}
  - {id: b, subagent: writer, prompt: x, depends_on: a}
"""
    assert problems(stretto(folder, "plan", "-", "--json", stdin=text))


TERMS = """\
name: terms
inputs: [{name: rows, type: json, default: [1, 2, 3]}]
timeout: 10m
agents:
  critic:
    prompt: Judge it.
    timeout: 30s
    retry: {max_attempts: 3, backoff: linear, on_failure: "fallback:other"}
    validation:
      schema: {type: object, properties: {score: {type: number}, why: {type: string}}, required: [score]}
      rules: [must include a score field, must be kind]
  other: {prompt: x, retry: {max_attempts: 2}}
steps:
  - {id: one, agent: critic, prompt: x, timeout: 2m, output: {store_as: kept}}
  - {id: fan, prompt: x, wait: 1, parallel: [{agent: other}, {agent: other}]}
  - {id: loop, prompt: x, loop: {agent: other, validator: critic}, output: {format: json}}
  - {id: map, map: {over: "{{inputs.rows}}", agent: other, on_item_failure: skip}}
output: "{{kept.score}}"
"""


@pytest.mark.parametrize(
    ("judge", "decider"),
    [("", "decided by the model that answers"), ("off", "nobody will check it"), ("x:y", "decided by x:y")],
)  # fmt: skip
def test_a_plan_in_text_tells_what_answers_must_be_and_what_happens_without(
    folder: Path, judge: str, decider: str
) -> None:
    settings = {"STRETTO_JUDGE": judge} if judge else {}
    said = stretto(folder, "plan", "-", stdin=TERMS, env=settings)
    assert (said.code, said.err) == (0, "")
    for line in (
        "answers   JSON with score (number), why? (string)",
        f"must be kind ({decider})",
        "retries   up to 3 attempts, linear backoff, then other takes over (up to 2 attempts)",
        "may take  30s each time",
        "may take     2m",
        "stored as    kept",
        "ends when    1 of 2 branches succeeded (wait: 1)",
        "ends when    the validator passes it, after at most 3 rounds",
        "answers  json",
        "elements     3, of {{inputs.rows}}, 20 at once; one that fails: skip",
        "Result: {{kept.score}}",
        "in at most 10m",
    ):
        assert line in said.out, line
    assert "rules     must include a score field (decided by code" in said.out


def test_a_dry_run_shows_the_model_and_the_gates_that_its_options_would_give(
    folder: Path,
) -> None:
    write(folder, "w.yaml", WRITER)
    words = ("run", "w.yaml", "--dry-run", "--json")
    (step,) = succeeded(stretto(folder, *words))["would_run"]
    assert (step["gate"], step["delegations"][0]["model"]) == (None, None)
    options = ("--model", "openai:gpt-x", "--permission", "ask")
    (step,) = succeeded(stretto(folder, *words, *options))["would_run"]
    assert (step["gate"], step["delegations"][0]["model"]) == ("human", "openai:gpt-x")
    said = stretto(folder, *words, "--permission", "read_only")
    assert (said.code, said.json["error"]["kind"]) == (4, "permission_denied")


@pytest.mark.parametrize("words", [["--detach"], ["-o", "x.md"], ["--report"], ["--open"]])
def test_a_dry_run_refuses_what_only_a_run_can_do(folder: Path, words: list[str]) -> None:
    given = ("run", "good.yaml", "-i", "topic=bees", "--dry-run")
    said = stretto(folder, *given, *words)
    assert (said.code, said.out) == (2, ""), said
    assert "with --dry-run there is no run" in said.err
    assert not (folder / "x.md").exists()
