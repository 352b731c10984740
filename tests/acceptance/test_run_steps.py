"""Steps with `run:`: commands between the agents, from outside."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from stretto.workspaces.sandbox.sandbox import NoSandbox, find_sandbox
from support.cli import Said, refused, stretto, write

pytestmark = pytest.mark.skipif(
    isinstance(find_sandbox(), NoSandbox), reason="commands need a sandbox"
)


def call(folder: Path, *words: str, stdin: str = "", **more: str) -> Said:
    """In `work`, with the user's own folder beside it."""
    home = {"STRETTO_HOME": str(folder / "home"), "HOME": str(folder / "user")}
    return stretto(folder / "work", *words, stdin=stdin, env={**home, **more})


def run(folder: Path, steps: str, *words: str, inputs: str = "", stdin: str = "") -> Said:
    write(folder, "work/r.yaml", f"name: r\n{inputs}steps:\n{steps}")
    return call(folder, "run", "r.yaml", "--json", *words, stdin=stdin)


def step_of(said: Said, id: str) -> dict[str, Any]:
    report = json.loads(said.out.splitlines()[-1])
    found: dict[str, Any] = report["steps"][id]
    return found


def test_stdout_is_the_output_and_stderr_is_in_the_report(tmp_path: Path) -> None:
    said = run(tmp_path, "  - {id: a, run: 'echo out; echo err >&2', posture: read_only}\n")
    assert said.code == 0, said
    step = step_of(said, "a")
    assert (step["output"], step["stderr"], step["exit_code"]) == ("out", "err", 0)
    report = json.loads(said.out.splitlines()[-1])
    assert report["agents_deployed"] == 0
    shown = call(tmp_path, "report", report["run_id"])
    assert "a: exit code 0, on stderr: err" in shown.out


def test_stdout_is_parsed_where_json_is_wanted(tmp_path: Path) -> None:
    steps = """\
  - id: a
    run: |
      echo '{"n": 3}'
    output: {format: json}
  - {id: b, run: echo $N, env: {N: "{{steps.a.output.n}}"}}
"""
    assert step_of(run(tmp_path, steps), "b")["output"] == "3"
    bad = run(tmp_path, "  - {id: a, run: echo no, output: {format: json}}\n")
    assert step_of(bad, "a")["status"] == "failed"


def test_another_exit_code_fails_with_what_the_command_said(tmp_path: Path) -> None:
    said = run(tmp_path, "  - {id: a, run: 'echo half; echo why >&2; exit 7'}\n")
    step = step_of(said, "a")
    assert said.code == 1
    assert step["status"] == "failed"
    assert step["error"] == "exit code 7\nhalf\nwhy"
    assert step["exit_code"] == 7


def test_a_command_is_retried_as_the_recipe_says(tmp_path: Path) -> None:
    said = run(tmp_path, "  - {id: a, run: exit 1, retry: {max_attempts: 3}}\n")
    assert step_of(said, "a")["attempts"] == 3


def test_a_command_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    said = run(tmp_path, "  - {id: a, run: 'sleep 60 & sleep 60', timeout: 1s}\n")
    assert step_of(said, "a")["status"] == "failed"
    assert "timed out" in step_of(said, "a")["error"]


def test_what_a_command_printed_before_its_timeout_is_in_the_report(tmp_path: Path) -> None:
    steps = "  - {id: a, run: 'echo test_seven; echo slow >&2; sleep 60', timeout: 10s, retry: {max_attempts: 3}}\n"
    said = run(tmp_path, steps)
    step = step_of(said, "a")
    assert step["error"] == "the step timed out after 10s"
    assert (step["stderr"], step["attempts"]) == ("test_seven\nslow", 1)
    run_id = json.loads(said.out.splitlines()[-1])["run_id"]
    assert "test_seven" in call(tmp_path, "report", run_id).out


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="needs a Python in the sandbox")
def test_python_never_takes_the_code_of_an_earlier_round_for_that_of_now(tmp_path: Path) -> None:
    """An edit within a second that keeps the size: Python's cached code looks as new as the file."""
    steps = """\
  - id: a
    run: |
      echo 'said = 1' > m.py; touch -d @1700000000 m.py
      python3 -c 'import m; print(m.said)'
      echo 'said = 2' > m.py; touch -d @1700000000 m.py
      python3 -c 'import m; print(m.said)'
"""
    said = run(tmp_path, steps)
    assert step_of(said, "a")["output"] == "1\n2"
    assert step_of(said, "a")["warnings"] == []


def test_a_read_only_command_changes_nothing(tmp_path: Path) -> None:
    said = run(tmp_path, "  - {id: a, run: 'echo x > made', posture: read_only}\n")
    assert step_of(said, "a")["status"] == "failed"
    assert not (tmp_path / "work/made").exists()


def test_a_command_writes_where_its_step_may(tmp_path: Path) -> None:
    steps = "  - {id: a, run: 'mkdir -p build; echo x > build/made; echo y > other || true',"
    said = run(tmp_path, f"{steps} write_set: [build/**]}}\n")
    assert step_of(said, "a")["status"] == "succeeded", said
    assert (tmp_path / "work/build/made").read_text() == "x\n"
    assert not (tmp_path / "work/other").exists()


def test_permission_read_only_refuses_writers_among_commands(tmp_path: Path) -> None:
    said = run(tmp_path, "  - {id: a, run: make}\n", "--permission", "read_only")
    assert said.code == 4
    assert said.json["error"]["kind"] == "permission_denied"
    fine = run(tmp_path, "  - {id: a, run: pwd, posture: read_only}\n", "--permission", "read_only")
    assert fine.code == 0


def test_permission_ask_asks_before_a_writer(tmp_path: Path) -> None:
    said = run(tmp_path, "  - {id: a, run: 'echo x > made'}\n", "--permission", "ask")
    report = json.loads(said.out.splitlines()[-1])
    assert report["status"] == "waiting"
    assert not (tmp_path / "work/made").exists()
    place = (report["run_id"], "a")
    edited = call(tmp_path, "approve", *place, "--edit", "-", stdin="rm -rf .")
    assert edited.code == 2
    assert "runs a command" in edited.err
    done = call(tmp_path, "approve", *place)
    assert done.code == 0, done
    assert (tmp_path / "work/made").exists()


def test_without_a_sandbox_nothing_starts(tmp_path: Path) -> None:
    write(tmp_path, "home/stretto.yaml", "sandbox: bubblewrap\n")
    write(tmp_path, "work/r.yaml", "name: r\nsteps:\n  - {id: a, run: ls}\n")
    said = call(tmp_path, "run", "r.yaml", "--json", PATH="/nowhere")
    found = refused(said, "not_ready")["details"]["problems"]
    assert [each["code"] for each in found] == ["RUN007"]
    assert "so commands are refused (a)" in found[0]["message"]
    runs = call(tmp_path, "runs", "--json").json
    assert runs["runs"] == []


def test_a_scripted_model_does_not_stand_in_for_a_command(tmp_path: Path) -> None:
    write(tmp_path, "work/s.yaml", "default: hello\n")
    steps = "  - {id: a, subagent: writer, prompt: x}\n"
    steps += '  - {id: b, run: cat, stdin: "{{steps.a.output}}!"}\n'
    said = run(tmp_path, steps, "--model", "scripted:s.yaml")
    assert step_of(said, "b")["output"] == "hello!"
    write(tmp_path, "work/s.yaml", "replies: {b: no}\ndefault: x\n")
    assert "runs a command" in run(tmp_path, steps, "--model", "scripted:s.yaml").out


def test_a_finished_command_is_not_repeated_by_a_retry(tmp_path: Path) -> None:
    count = "echo x >> count; wc -l < count"
    steps = f"  - {{id: a, run: '{count}'}}\n  - {{id: b, run: exit 1, depends_on: a}}\n"
    said = run(tmp_path, steps)
    id = json.loads(said.out.splitlines()[-1])["run_id"]
    again = call(tmp_path, "retry", id, "--from", "b", "--json")
    assert step_of(again, "a")["output"] == "1"
    assert (tmp_path / "work/count").read_text() == "x\n"
    anew = call(tmp_path, "retry", id, "--from", "a", "--json")
    assert step_of(anew, "a")["output"] == "2"


def test_a_command_after_a_writer_that_worked_anew_is_not_reused(tmp_path: Path) -> None:
    steps = """\
  - {id: fix, run: "echo good > code", write_set: [code]}
  - {id: test, run: "grep good code", posture: read_only, depends_on: fix, cache: true}
  - {id: other, run: "date +%N", posture: read_only}
"""
    first = run(tmp_path, steps)
    assert step_of(first, "test")["output"] == "good"
    run_id = json.loads(first.out.splitlines()[-1])["run_id"]
    write(tmp_path, "work/r.yaml", f"name: r\nsteps:\n{steps.replace('echo good', 'echo bad')}")
    again = call(tmp_path, "retry", run_id, "--recipe", "r.yaml", "--json")
    assert step_of(again, "test")["exit_code"] == 1, again
    assert step_of(again, "other")["output"] == step_of(first, "other")["output"]


def test_an_approval_does_not_count_for_files_that_were_written_anew(tmp_path: Path) -> None:
    steps = """\
  - {id: fix, run: "echo good > code", write_set: [code]}
  - {id: ship, run: "cat code", posture: read_only, depends_on: fix, gate: human}
"""
    first = json.loads(run(tmp_path, steps).out.splitlines()[-1])["run_id"]
    assert step_of(call(tmp_path, "approve", first, "ship", "--json"), "ship")["output"] == "good"
    write(tmp_path, "work/r.yaml", f"name: r\nsteps:\n{steps.replace('echo good', 'echo bad')}")
    again = call(tmp_path, "retry", first, "--recipe", "r.yaml", "--json")
    assert step_of(again, "ship")["status"] == "awaiting approval", again


def test_a_reused_command_is_no_difference_between_two_runs(tmp_path: Path) -> None:
    steps = "".join(f"  - {{id: {id}, run: echo {id}, posture: read_only}}\n" for id in "ab")
    first = json.loads(run(tmp_path, steps).out.splitlines()[-1])["run_id"]
    said = call(tmp_path, "fork", first, "--from", "b", "--json")
    second = json.loads(said.out.splitlines()[-1])["run_id"]
    assert "model" not in call(tmp_path, "diff", first, second).out


def test_a_long_value_comes_by_stdin_and_is_refused_in_env(tmp_path: Path) -> None:
    steps = (
        "  - {id: long, run: \"head -c 1000000 /dev/zero | tr '\\\\0' a\", posture: read_only}\n"
    )
    steps += '  - {id: by_stdin, run: wc -c, stdin: "{{steps.long.output}}"}\n'
    steps += '  - {id: by_env, run: ls, env: {A: "{{steps.long.output}}"}}\n'
    said = run(tmp_path, steps)
    assert step_of(said, "by_stdin")["output"] == "1000000"
    error = step_of(said, "by_env")["error"]
    assert "1,000,002 bytes" in error
    assert "give it by stdin" in error


HOSTILE = [
    "$(touch PWNED)", "`touch PWNED`", "; touch PWNED", "| touch PWNED", "& touch PWNED &",
    "&& touch PWNED", "|| touch PWNED", "\ntouch PWNED\n", "\r\ntouch PWNED", "'; touch PWNED; '",
    '"; touch PWNED; "', "\\'; touch PWNED; \\'", "$((`touch PWNED`))", "${x:-$(touch PWNED)}",
    "<(touch PWNED)", ">(touch PWNED)", "> PWNED", ">> PWNED", "() { :; }; touch PWNED",
    "!touch PWNED", "~", "*", "?", "[a-z]", "{a,b}", "$IFS", "$PATH", "%s%n", "\\", "'", '"',
    "-rf /", "--help", "\x1b[31m", "\u202e", "{{inputs.v}}", "{{steps.a.output}}", "\\{{x}}",
    "é🙂", "a\tb", "x ", "x" * 100_000, "=A", "#touch PWNED", "\x7f", "$'\\x41'",
]  # fmt: skip


def test_no_value_is_ever_executed(tmp_path: Path) -> None:
    """Each value in an environment variable and on stdin, in a step that may write everywhere."""
    places = range(len(HOSTILE))
    steps = "".join(
        f'  - {{id: s{i}, run: \'printf %s "$V" > /tmp/e; cat > /tmp/s; cmp /tmp/e /tmp/s;'
        f' sha256sum < /tmp/e\', env: {{V: "{{{{inputs.v{i}}}}}"}}, stdin: "{{{{inputs.v{i}}}}}",'
        " workspace_mode: shared}\n"
        for i in places
    )
    inputs = "inputs:\n" + "".join(f"  v{i}: {{required: true}}\n" for i in places)
    given = json.dumps({f"v{i}": value for i, value in enumerate(HOSTILE)})
    said = run(tmp_path, steps, "--input-json", "-", inputs=inputs, stdin=given)
    assert said.code == 0, said
    for i, value in enumerate(HOSTILE):
        assert step_of(said, f"s{i}")["output"].split()[0] == sha256(value.encode()).hexdigest()
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["r.yaml"]


def test_a_nul_in_a_value_is_a_clear_failure(tmp_path: Path) -> None:
    steps = '  - {id: a, run: "touch PWNED", env: {A: "{{inputs.v}}"}}\n'
    inputs = "inputs: {v: {required: true}}\n"
    given = json.dumps({"v": "a\0b"})
    said = run(tmp_path, steps, "--input-json", "-", inputs=inputs, stdin=given)
    assert "NUL" in said.out
    assert not (tmp_path / "work/PWNED").exists()
