"""`stretto task` and `stretto batch`: work for agents without a recipe."""

import json
from pathlib import Path

import pytest

from stretto.testing.openai_script import Asked, Said, Status
from stretto.testing.openai_server import serving
from support.background_runs import MODEL, lines, running
from support.cli import refused, stretto, write

TASKS = """\
- {agent: researcher, prompt: "What does {{Acme}} sell?", description: products}
- {agent: analyst, prompt: What does it cost?, description: price}
- {agent: writer, prompt: Write a greeting.}
"""
ONE_FAILS = "default: An answer.\nreplies: {2-price: {fail: no price is known, tokens: 7}}\n"


def test_results_come_in_the_order_of_the_tasks_and_one_failure_loses_no_other(
    tmp_path: Path,
) -> None:
    write(tmp_path, "script.yaml", ONE_FAILS)
    write(tmp_path, "tasks.yaml", TASKS)
    said = stretto(tmp_path, "batch", "tasks.yaml", "--json", *MODEL)
    assert (said.code, said.err) == (1, "")
    answer = said.json
    assert answer["ok"] is False
    assert all(
        list(each) == ["index", "status", "output", "error", "usage"] for each in answer["results"]
    )
    assert [(e["index"], e["status"], e["output"], e["error"]) for e in answer["results"]] == [
        (0, "succeeded", "An answer.", None),
        (1, "failed", None, "no price is known"),
        (2, "succeeded", "An answer.", None),
    ]
    assert answer["results"][1]["usage"]["output_tokens"] == 7


def test_a_batch_that_goes_well_is_ok_and_reads_stdin(tmp_path: Path) -> None:
    write(tmp_path, "script.yaml", "default: An answer.\n")
    tasks = "\n".join(json.dumps({"agent": "writer", "prompt": f"{n}"}) for n in range(5))
    said = stretto(tmp_path, "batch", "-", "--json", *MODEL, stdin=tasks)
    assert said.code == 0
    assert said.json["ok"] is True
    assert [each["index"] for each in said.json["results"]] == [0, 1, 2, 3, 4]


def test_each_task_has_a_card_and_its_place_in_the_answer_and_in_the_report(tmp_path: Path) -> None:
    write(tmp_path, "script.yaml", ONE_FAILS)
    write(tmp_path, "tasks.yaml", TASKS)
    said = stretto(tmp_path, "batch", "tasks.yaml", *MODEL)
    assert said.code == 1
    assert said.out == (
        "## 1. products\n\nAn answer.\n\n## 2. price\n\nno price is known\n\n"
        "## 3. Write a greeting.\n\nAn answer.\n"
    )
    assert "✓ 1-products succeeded" in said.err
    assert "✗ 2-price    failed: no price is known" in said.err
    report = stretto(tmp_path, "report", "last", "--format", "md").out
    for card in ("1-products", "2-price", "task-3"):
        assert card in report


def test_prompts_reach_the_models_as_they_are_written_and_at_most_width_at_once(
    tmp_path: Path,
) -> None:
    now = most = 0

    def answer(asked: Asked) -> Said:
        return Said(f"to: {asked.prompt}", delay_seconds=0.05)

    tasks = "\n".join(
        json.dumps({"agent": "writer", "prompt": f"Keep {{{{inputs.x}}}} {n}."}) for n in range(6)
    )
    with serving(answer) as server:
        env = {
            "OPENAI_BASE_URL": server.url,
            "OPENAI_API_KEY": "sk-loopback-0123456789",
            "STRETTO_MAX_CONCURRENCY": "2",
        }
        said = stretto(tmp_path, "batch", "-", "--json", stdin=tasks, env=env)
        assert said.code == 0, said
        run_id = said.json["run_id"]
    assert [each["output"] for each in said.json["results"]] == [
        f"to: Keep {{{{inputs.x}}}} {n}." for n in range(6)
    ]
    for event in lines(stretto(tmp_path, "events", run_id)):
        now += (event["type"] == "attempt_started") - (event["type"] == "attempt_succeeded")
        most = max(most, now)
    assert most == 2


def test_a_task_whose_provider_fails_loses_no_other(tmp_path: Path) -> None:
    def answer(asked: Asked) -> Said | Status:
        return Status(400, "no") if "second" in asked.prompt else Said("fine")

    tasks = "- {agent: writer, prompt: first}\n- {agent: writer, prompt: second}\n"
    with serving(answer) as server:
        env = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-loopback-0123456789"}
        said = stretto(tmp_path, "batch", "-", "--json", stdin=tasks, env=env)
    assert [each["status"] for each in said.json["results"]] == ["succeeded", "failed"]
    assert said.json["results"][1]["error"]


def test_a_killed_batch_goes_on_where_it_was(tmp_path: Path) -> None:
    write(tmp_path, "script.yaml", "default: ok\nreplies: {task-2: {reply: late, delay: 10m}}\n")
    write(tmp_path, "tasks.yaml", "- {agent: writer, prompt: a}\n- {agent: writer, prompt: b}\n")
    with running(tmp_path, "batch", "tasks.yaml", *MODEL) as child:
        for line in child.stderr or ():
            if "task-1 succeeded" in line:
                break
        child.kill()
    write(tmp_path, "script.yaml", "default: ok\n")
    said = stretto(tmp_path, "resume", "last", "--json")
    report = lines(said)[-1]
    assert said.code == 0, said
    assert report["workflow"] == "batch"
    assert {id: step["attempts"] for id, step in report["steps"].items()} == {
        "task-1": 1,
        "task-2": 2,
    }


def test_a_problem_shows_the_line_as_it_stands(tmp_path: Path) -> None:
    first = '{"agent": "researcher", "prompt": "x", "bogus": 1}'
    write(tmp_path, "tasks.jsonl", f'{first}\n\n{{"agent": "writer", "prompt": "y", "more": 2}}\n')
    said = stretto(tmp_path, "batch", "tasks.jsonl")
    shown = [line.partition("│ ")[2] for line in said.err.splitlines() if "│ {" in line]
    assert shown == [first, '{"agent": "writer", "prompt": "y", "more": 2}']
    error = refused(stretto(tmp_path, "batch", "tasks.jsonl", "--json"), "usage")
    columns = [problem["column"] for problem in error["details"]["problems"]]
    assert columns == [first.index('"bogus"') + 1, shown[1].index('"more"') + 1]


@pytest.mark.parametrize(
    ("tasks", "says"),
    [
        ("- {agent: nobody, prompt: a}\n", "agent 'nobody' is not registered"),
        ("[]", "there is no task in it"),
        ("- {agent: writer}\n- 7\n", "a task needs 'prompt'"),
        ("agent: writer", "a batch must be a list of tasks"),
        ("\x00", "cannot stand"),
    ],
)
def test_bad_tasks_are_refused_before_anything_runs(tmp_path: Path, tasks: str, says: str) -> None:
    said = stretto(tmp_path, "batch", "-", "--json", stdin=tasks)
    error = refused(said, "usage")
    told = [each["message"] for each in error["details"].get("problems", ())]
    assert any(says in message for message in (error["message"], *told))
    assert stretto(tmp_path, "runs", "--json").json["runs"] == []


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    error = refused(stretto(tmp_path, "batch", "none.yaml", "--json"), "usage")
    assert error["message"] == "none.yaml cannot be read: No such file or directory"


def test_a_read_only_batch_refuses_writers(tmp_path: Path) -> None:
    write(tmp_path, "script.yaml", "default: ok\n")
    tasks = "- {agent: worker, prompt: a}\n"
    said = stretto(
        tmp_path, "batch", "-", "--permission", "read_only", "--json", *MODEL, stdin=tasks
    )
    assert said.code == 4
    assert said.json["error"]["kind"] == "permission_denied"


def test_a_task_is_a_run_of_one_step(tmp_path: Path) -> None:
    write(tmp_path, "script.yaml", "default: Hello.\n")
    said = stretto(tmp_path, "task", "writer", "Say {{hello}}.", *MODEL)
    assert (said.code, said.out) == (0, "Hello.\n")
    report = lines(stretto(tmp_path, "task", "writer", "-", "--json", *MODEL, stdin="Hi"))[-1]
    assert (report["status"], report["output"]) == ("complete", "Hello.")
    error = refused(stretto(tmp_path, "task", "writr", "x", "--json"), "not_found")
    assert "writr" in error["message"]
    refused(stretto(tmp_path, "task", "writer", " ", "--json"), "usage")
