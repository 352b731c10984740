"""A secret that is given to a run: nobody computes with what stands in its place, and nobody is
left in the dark about it."""

from pathlib import Path

import pytest

from support.background_runs import MODEL, lines
from support.cli import Said, refused, stretto, write
from support.served import served

SECRET = "sk-live-0123456789abcdefghij"
ENV = {"MY_API_KEY": SECRET}
HEAD = "name: r\ninputs: [{name: token, required: true}, {name: other, default: plain}]\nsteps:\n"
INNER = """name: inner
inputs: [{name: value, required: true}]
steps: [{id: save, run: 'printf "%s" "$V" > made.txt', env: {V: "{{inputs.value}}"}}]
"""
BY_PROGRAMS = {
    "a command's environment": "  - {id: a, run: 'printf \"%s\" \"$T\" > made.txt', env: {T: '{{inputs.token}}'}}\n",
    "a command's stdin": "  - {id: a, run: cat > made.txt, stdin: 'x {{token}} y'}\n",
    "a validator": "  - {id: a, prompt: go, loop: {agent: writer, validator: {run: cat > made.txt, env: {T: '{{inputs.token}}'}}}}\n",
    "a workflow step": "  - {id: a, workflow: ./inner.yaml, inputs: {value: 'a {{inputs.token}}'}}\n",
    "a write-set": "  - {id: a, run: touch made.txt, write_set: ['{{inputs.token}}/**']}\n",
    "a read-set": "  - {id: a, run: touch made.txt, read_set: ['{{inputs.token}}']}\n",
}
IN_RECIPES = {
    "the command": f"  - {{id: a, run: 'echo {SECRET} > made.txt'}}\n",
    "its environment": f"  - {{id: a, run: touch made.txt, env: {{T: '{SECRET}'}}}}\n",
    "a workflow step": f"  - {{id: a, workflow: ./inner.yaml, inputs: {{value: '{SECRET}'}}}}\n",
}
READS = HEAD + "  - {id: a, subagent: writer, prompt: 'Use {{inputs.token}}.'}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "inner.yaml", INNER)
    write(tmp_path, "script.yaml", "default: fine\n")
    return tmp_path


def run(folder: Path, recipe: str, *words: str, token: str = SECRET) -> Said:
    write(folder, "r.yaml", recipe)
    return stretto(folder, "run", "r.yaml", "-i", f"token={token}", *words, *MODEL, env=ENV)


@pytest.mark.parametrize("recipe", BY_PROGRAMS.values(), ids=BY_PROGRAMS)
def test_a_program_that_would_compute_with_the_mask_is_refused_before_the_run(
    folder: Path, recipe: str
) -> None:
    error = refused(run(folder, HEAD + recipe, "--json"), "invalid_inputs")
    [problem] = error["details"]["problems"]
    assert problem["code"] == "RUN010"
    assert "input 'token'" in problem["message"]
    assert "MY_API_KEY" in problem["message"]
    assert SECRET not in str(error)
    assert not (folder / "made.txt").exists()
    assert stretto(folder, "runs", "--json").json["runs"] == []
    assert run(folder, HEAD + recipe, token="plain").code == 0


@pytest.mark.parametrize("recipe", IN_RECIPES.values(), ids=IN_RECIPES)
def test_so_is_a_secret_that_stands_in_the_recipe(folder: Path, recipe: str) -> None:
    error = refused(run(folder, HEAD + recipe, "--json", token="plain"), "invalid_inputs")
    [problem] = error["details"]["problems"]
    assert (problem["code"], "the recipe" in problem["message"]) == ("RUN010", True)
    assert SECRET not in str(error)
    assert not (folder / "made.txt").exists()


def test_what_a_model_gets_instead_is_told_before_the_run_and_in_its_report(folder: Path) -> None:
    said = run(folder, READS)
    assert said.code == 0
    assert "RUN010" in said.err
    assert "input 'token' holds the value of MY_API_KEY" in said.err
    assert SECRET not in said.out + said.err
    for form in ("md", "json", "html"):
        assert "MY_API_KEY" in stretto(folder, "report", "--format", form, env=ENV).out


def test_a_recipe_with_a_secret_in_a_prompt_says_so_too(folder: Path) -> None:
    recipe = HEAD + f"  - {{id: a, subagent: writer, prompt: 'Use {SECRET}.'}}\n"
    said = run(folder, recipe, token="plain")
    assert said.code == 0
    assert "the recipe holds the value of MY_API_KEY" in said.err


def test_an_input_that_no_program_reads_stops_none(folder: Path) -> None:
    recipe = READS + "  - {id: b, run: 'touch made.txt', env: {O: '{{inputs.other}}'}}\n"
    assert run(folder, recipe).code == 0
    assert (folder / "made.txt").exists()


def test_an_earlier_run_keeps_no_secret_to_give_to_a_command(folder: Path) -> None:
    assert run(folder, READS).code == 0
    write(folder, "edited.yaml", HEAD + BY_PROGRAMS["a command's environment"])
    words = ("retry", "--recipe", "edited.yaml", "--from", "a", "--json", *MODEL)
    error = refused(stretto(folder, *words, env=ENV), "invalid_inputs")
    assert "input 'token'" in error["details"]["problems"][0]["message"]
    assert not (folder / "made.txt").exists()
    again = stretto(folder, "retry", "--from", "a", *MODEL, env=ENV)
    assert again.code == 0
    assert again.err.count("RUN010") == 1


def test_a_command_that_is_given_what_a_secret_was_taken_out_of_says_so(folder: Path) -> None:
    """An earlier step has read the secret from a file."""
    write(folder, "secrets.txt", f"the key is {SECRET}\n")
    recipe = (
        "name: r\nsteps:\n  - {id: look, run: cat secrets.txt, posture: read_only}\n"
        "  - {id: save, run: cat > made.txt, stdin: '{{steps.look.output}}'}\n"
    )
    write(folder, "r.yaml", recipe)
    said = stretto(folder, "run", "r.yaml", "--json", *MODEL, env=ENV)
    warnings = " ".join(lines(said)[-1]["warnings"])
    assert "look: its output held the value of MY_API_KEY" in warnings
    assert "save: its values hold [redacted]" in warnings


def test_tasks_and_batches_tell_it_too(folder: Path) -> None:
    said = stretto(folder, "task", "writer", f"Use {SECRET}", *MODEL, env=ENV)
    assert (said.code, "MY_API_KEY" in said.err) == (0, True)
    tasks = f'[{{"agent": "writer", "prompt": "Use {SECRET}"}}]'
    said = stretto(folder, "batch", "-", *MODEL, stdin=tasks, env=ENV)
    assert (said.code, "MY_API_KEY" in said.err) == (0, True)


def test_a_chat_tells_what_it_replaced(folder: Path) -> None:
    said = stretto(folder, "chat", "-p", f"Use {SECRET}", "--json", *MODEL, env=ENV)
    assert said.code == 0
    assert any("MY_API_KEY" in each for each in said.json["turn"]["warnings"])
    assert SECRET not in said.out


def test_a_goal_holds_no_secret(folder: Path) -> None:
    write(folder, "r.yaml", READS)
    words = ("goal", "set", "--verify", "command:true", "--json", *MODEL)
    refused(stretto(folder, *words, f"Use {SECRET}", env=ENV), "invalid_inputs")
    given = ("Do it", "--workflow", "r.yaml", "-i", f"token={SECRET}")
    error = refused(stretto(folder, *words, *given, env=ENV), "invalid_inputs")
    assert "MY_API_KEY" in str(error)
    assert SECRET not in str(error)


def test_an_edited_prompt_and_a_reason_hold_none_either(folder: Path) -> None:
    gated = "name: g\nsteps: [{id: a, subagent: writer, prompt: go, gate: human}]\n"
    write(folder, "g.yaml", gated)
    assert stretto(folder, "run", "g.yaml", *MODEL, env=ENV).code == 3
    words = ("approve", "last", "a", "--json")
    refused(stretto(folder, *words, "--edit", "-", stdin=f"Use {SECRET}", env=ENV), "usage")
    assert stretto(folder, *words, "--reason", f"as {SECRET} says", env=ENV).code == 0
    events = stretto(folder, "events", "last").out
    assert "as [redacted] says" in events
    assert SECRET not in (folder / "home" / "runs.db").read_bytes().decode("latin-1")


def test_a_dry_run_tells_it_and_shows_what_the_run_would_keep(folder: Path) -> None:
    write(folder, "r.yaml", READS)
    words = ("-i", f"token={SECRET}", "--json")
    planned = stretto(folder, "plan", "r.yaml", *words, env=ENV)
    assert planned.code == 0
    assert "Use [redacted]." in planned.out
    assert "RUN010" in planned.out
    write(folder, "r.yaml", HEAD + BY_PROGRAMS["a command's stdin"])
    refused(stretto(folder, "plan", "r.yaml", *words, env=ENV), "invalid_inputs")
    with served(folder, {"r": READS}, ENV) as server:
        body = {"inputs": {"token": SECRET}, "dry_run": True}
        answer = server.client().post("/api/workflows/r/run", json=body)
    assert (answer.status_code, SECRET in answer.text) == (200, False)
    assert "RUN010" in answer.text


def test_a_trigger_holds_no_secret_either(folder: Path) -> None:
    write(folder, "workflows/r.yaml", READS)
    words = ("schedule", "add", "nightly", "r", "--cron", "0 2 * * *", "--json")
    error = refused(stretto(folder, *words, "-i", f"token={SECRET}", env=ENV), "invalid_inputs")
    assert "MY_API_KEY" in str(error)
    assert SECRET not in str(error)
    assert stretto(folder, *words, "-i", "token=plain", env=ENV).code == 0
    for file in (folder / "home").rglob("*.db*"):
        assert SECRET not in file.read_bytes().decode("latin-1")


def test_a_report_in_a_file_holds_no_secret_of_today_either(folder: Path) -> None:
    """The value was no secret when the run used it."""
    write(folder, "r.yaml", READS)
    write(folder, "script.yaml", f"default: the key is {SECRET}")
    assert stretto(folder, "run", "r.yaml", "-i", "token=plain", *MODEL).code == 0
    for form in ("md", "json", "html"):
        assert stretto(folder, "report", "--format", form, "-o", f"r.{form}", env=ENV).code == 0
    again = stretto(folder, "resume", "last", "--report", "-o", "long.md", env=ENV)
    assert again.code == 0, again
    for name in ("r.md", "r.json", "r.html", "long.md"):
        text = (folder / name).read_text(encoding="utf-8")
        assert (SECRET in text, "[redacted]" in text) == (False, True), name


@pytest.mark.parametrize("filler", [3_960, 3_975, 3_985])
def test_a_secret_at_the_place_where_an_error_is_cut_is_hidden_whole(
    folder: Path, filler: int
) -> None:
    """The report keeps 4,000 characters of what a command printed: the cut is within the secret."""
    write(folder, "note.txt", SECRET)
    printed = f"cat note.txt; head -c {filler} /dev/zero | tr '\\0' x; exit 1"
    write(
        folder, "r.yaml", f'name: r\nsteps: [{{id: a, run: "{printed}"}}]\n'.replace("\\", "\\\\")
    )
    said = stretto(folder, "run", "r.yaml", "--json", *MODEL, env=ENV)
    journal = "".join(each.read_text("latin-1") for each in folder.rglob("runs.db*"))
    for part in (SECRET[-10:], SECRET[-6:]):
        assert part not in said.out + said.err
        assert part not in journal
