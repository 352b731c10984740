"""Runs over HTTP: started once, listed, reported, cancelled, run again."""

import secrets
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from support.served import PATIENCE_SECONDS, Served, served

HELLO = {"inputs": {"whom": "Ada"}}
INLINE = "name: inline\nsteps:\n  - {id: hello, subagent: writer, prompt: Hello.}\n"


def started(client: httpx2.Client, workflow: str, **body: Any) -> str:
    answer = client.post(f"/api/workflows/{workflow}/run", json={"wait": False, **body})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["run_id"])


def until(client: httpx2.Client, run_id: str, *statuses: str) -> dict[str, Any]:
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < give_up_at:
        found: dict[str, Any] = client.get(f"/api/runs/{run_id}").json()
        if found["status"] in statuses:
            return found
        time.sleep(0.05)
    raise AssertionError(f"the run is {found['status']}")


def test_a_run_that_is_not_waited_for_is_in_the_journal_before_the_answer(server: Served) -> None:
    client = server.client()
    answer = client.post("/api/workflows/greet/run", json={**HELLO, "wait": False})
    assert answer.headers["location"] == f"/api/runs/{answer.json()['run_id']}"
    found = client.get(answer.headers["location"])
    assert found.status_code == 200
    assert (found.json()["owner"] != "", found.json()["trigger"]) == (True, "http")
    until(client, answer.json()["run_id"], "complete")


def test_a_dry_run_starts_nothing(server: Served) -> None:
    client = server.client()
    before = len(client.get("/api/runs?limit=200").json()["runs"])
    found = client.post("/api/workflows/greet/run", json={**HELLO, "dry_run": True}).json()
    assert (found["ok"], found["mode"], found["workflow"]) == (True, "dry_run", "greet")
    asked = {**HELLO, "dry_run": True, "model": "openai:another", "permission": "read_only"}
    found = client.post("/api/workflows/greet/run", json=asked).json()
    assert {step["model"] for step in found["would_run"]} == {"openai:another"}
    assert len(client.get("/api/runs?limit=200").json()["runs"]) == before


def test_a_repeated_request_with_a_key_starts_one_run(server: Served) -> None:
    client, headers = server.client(), {"Idempotency-Key": "tea-1"}
    first = client.post("/api/workflows/greet/run", json=HELLO, headers=headers)
    again = client.post("/api/workflows/greet/run", json=HELLO, headers=headers)
    assert first.json()["run_id"] == again.json()["run_id"]
    assert again.headers["idempotency-replayed"] == "true"
    other = client.post(
        "/api/workflows/greet/run", json={"inputs": {"whom": "Bo"}}, headers=headers
    )
    assert (other.status_code, other.json()["error"]["kind"]) == (409, "conflict")


def test_a_key_of_a_refused_request_can_be_used_again(server: Served) -> None:
    client, headers = server.client(), {"Idempotency-Key": "tea-2"}
    refused = client.post("/api/workflows/greet/run", json={"inputs": {}}, headers=headers)
    assert (refused.status_code, refused.json()["error"]["kind"]) == (422, "invalid_inputs")
    assert client.post("/api/workflows/greet/run", json=HELLO, headers=headers).status_code == 200


def test_a_recipe_that_is_not_saved_runs_as_text_and_as_an_object(server: Served) -> None:
    client = server.client()
    assert client.post("/api/runs", json={"recipe": INLINE}).json()["output"] == "Hello!"
    content = {"name": "x", "steps": [{"id": "hello", "subagent": "writer", "prompt": "Hi"}]}
    assert client.post("/api/runs", json={"recipe": content}).json()["output"] == "Hello!"


def test_a_recipe_is_never_read_from_a_path_of_the_server(server: Served) -> None:
    (server.folder / "secret.yaml").write_text(INLINE)
    for named in ("secret.yaml", str(server.folder / "secret.yaml"), "/etc/passwd"):
        answer = server.client().post("/api/runs", json={"recipe": named})
        assert (answer.status_code, answer.json()["error"]["kind"]) == (422, "invalid_recipe")
    refused = server.client().post(
        "/api/workflows/greet/run", json={**HELLO, "model": "scripted:/etc/passwd"}
    )
    assert refused.status_code == 403


def test_a_broken_recipe_is_told_with_every_problem_and_its_place(server: Served) -> None:
    bad = "name: bad\nsteps:\n  - {id: a, subagent: writr, prompt: x, depends_on: [b]}\n"
    answer = server.client().post("/api/validate", json={"recipe": bad})
    error = answer.json()["error"]
    assert (answer.status_code, error["kind"]) == (422, "invalid_recipe")
    assert {each["line"] for each in error["details"]["problems"]} == {3}
    good = server.client().post("/api/validate", json={"recipe": INLINE}).json()
    assert (good["ok"], good["workflow"]) == (True, "inline")


def test_the_report_comes_in_each_format(server: Served) -> None:
    client = server.client()
    run = client.post("/api/workflows/greet/run", json=HELLO).json()["run_id"]
    page = client.get(f"/api/runs/{run}/report?format=html")
    assert page.headers["content-type"].startswith("text/html")
    assert "sandbox" in page.headers["content-security-policy"]
    assert "Hello!" in client.get(f"/api/runs/{run}/report?format=md").text
    assert client.get(f"/api/runs/{run}/report").json()["output"] == "Hello!"
    assert client.get(f"/api/runs/{run}/report?format=pdf").status_code == 422


def test_runs_are_filtered_and_given_page_by_page(server: Served) -> None:
    client = server.client()
    own = [
        client.post("/api/workflows/greet/run", json={"inputs": {"whom": f"page-{n}"}}).json()
        for n in range(5)
    ]
    found: list[str] = []
    query: dict[str, Any] = {"text": "page-", "limit": 2}
    while True:
        page = client.get("/api/runs", params=query).json()
        found += [each["run_id"] for each in page["runs"]]
        if page["next"] is None:
            break
        query["cursor"] = page["next"]
    assert found == [each["run_id"] for each in reversed(own)]
    assert client.get("/api/runs?status=failed&workflow=greet").json()["runs"] == []
    assert client.get("/api/runs?since=1h&workflow=greet&limit=200").json()["runs"]
    assert client.get("/api/runs?since=2200-01-01").json()["runs"] == []
    assert client.get("/api/runs?since=yesterday").status_code == 422
    assert client.get("/api/runs?status=fine").status_code == 422
    assert client.get("/api/runs?cursor=nowhere").status_code == 422


def test_a_run_is_cancelled_and_run_again(server: Served) -> None:
    client = server.client()
    run = started(client, "greet", **HELLO, model="scripted:slow.yaml")
    ended = client.post(f"/api/runs/{run}/cancel", json={"reason": "enough"}).json()
    assert ended["status"] == "cancelled"
    assert client.post(f"/api/runs/{run}/cancel").status_code == 422
    again = client.post(f"/api/runs/{run}/retry", json={}).json()["run_id"]
    assert client.get(f"/api/runs/{again}").json()["parent"] == run
    client.post(f"/api/runs/{again}/cancel")


def test_a_run_is_forked_from_a_step(server: Served) -> None:
    client = server.client()
    run = client.post("/api/workflows/greet/run", json=HELLO).json()["run_id"]
    body = {"from_step": "hello", "inputs": {"whom": "Bo"}, "wait": True}
    fork = client.post(f"/api/runs/{run}/fork", json=body).json()
    assert (fork["status"], fork["parent"]) == ("complete", run)
    assert client.post(f"/api/runs/{run}/fork", json={"from_step": "no"}).status_code == 422


def test_a_step_is_shown_with_its_prompt_and_transcript(server: Served) -> None:
    client = server.client()
    run = client.post("/api/workflows/greet/run", json=HELLO).json()["run_id"]
    step = client.get(f"/api/runs/{run}/steps/hello").json()
    assert step["prompt"] == "Say hello to Ada."
    assert [each["kind"] for each in step["transcript"]][-1] == "answer"
    assert step["report"]["output"] == "Hello!"
    assert (step["diff"], step["artifacts"]) == (None, [])
    assert client.get(f"/api/runs/{run}/steps/outer/inner").status_code == 404
    assert client.get(f"/api/runs/{run}/diff?step=hello").status_code == 404


def test_a_step_is_shown_by_its_parts_and_attempts(server: Served) -> None:
    client = server.client()
    recipe = """
name: both
steps:
  - id: views
    parallel:
      - {agent: writer, prompt: One., output_key: one}
      - {agent: researcher, prompt: Two., output_key: two}
"""
    run = client.post("/api/runs", json={"recipe": recipe}).json()["run_id"]
    path = f"/api/runs/{run}/steps/views"
    step = client.get(path).json()
    assert [(each["part"], each["says"]) for each in step["parts"]] == [
        ("one", "Hello!"),
        ("two", "Hello!"),
    ]
    assert [(each["agent"], each["status"]) for each in step["attempts"]] == [
        ("writer", "succeeded"),
        ("researcher", "succeeded"),
    ]
    two = client.get(path, params={"part": "two"}).json()
    assert (two["prompt"], two["part_output"], len(two["attempts"])) == ("Two.", "Hello!", 1)
    assert {each["part"] for each in two["transcript"]} == {"two"}
    assert client.get(path, params={"part": "three"}).status_code == 404


PLAYBOOK = """\
---
name: greeting-well
description: How to say hello to a guest warmly
---
Say hello to the guest warmly, by name.
"""


def test_a_playbook_names_the_runs_that_used_it_however_many_came_after(tmp_path: Path) -> None:
    place = tmp_path / "playbooks" / "greeting-well"
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(PLAYBOOK)
    (tmp_path / "script.yaml").write_text("default: Hello!\n")
    recipes = {
        "greet": "name: greet\nsteps: [{id: a, subagent: writer, prompt: Say hello to the guest warmly.}]\n",
        "other": "name: other\nsteps: [{id: b, subagent: writer, prompt: Count stones.}]\n",
    }
    with served(tmp_path, recipes, {"STRETTO_MODEL": f"scripted:{tmp_path}/script.yaml"}) as at:
        client = at.client()
        run = client.post("/api/workflows/greet/run", json={}).json()["run_id"]
        for _ in range(55):
            assert client.post("/api/workflows/other/run", json={}).json()["ok"]
        shown = client.get("/api/playbooks/greeting-well").json()
        used = [(each["run_id"], each["workflow"], each["step"]) for each in shown["used_by"]]
        assert used == [(run, "greet", "a")]
        assert shown["playbook"]["uses"] == 1


def test_a_step_is_kept_as_a_playbook_that_says_where_it_is_from(server: Served) -> None:
    client = server.client()
    run = client.post("/api/workflows/greet/run", json=HELLO).json()["run_id"]
    kept = client.post("/api/playbooks", json={"run_id": run, "step": "hello"})
    assert kept.status_code == 201, kept.text
    shown = client.get(f"/api/playbooks/{kept.json()['playbook']['name']}").json()
    assert shown["playbook"]["origin"]["run"] == run
    assert [each["action"] for each in shown["audit"]] == ["capture"]
    assert shown["used_by"] == []
    again = client.post("/api/playbooks", json={"run_id": run, "step": "nobody"})
    assert again.status_code == 404


def test_a_run_says_why_it_is_where_it_is_and_whether_its_recipe_was_edited(
    server: Served,
) -> None:
    client = server.client()
    run = client.post("/api/workflows/gated/run", json={}).json()["run_id"]
    found = client.get(f"/api/runs/{run}").json()
    assert found["standing"]["says"] == "A person must approve or reject 'act'"
    assert "approve" in found["standing"]["steps"]["act"]["says"]
    assert found["recipe"]["now"] == "unchanged"
    file = server.folder / "workflows" / "gated.yaml"
    text = file.read_text()
    file.write_text(text + "# edited\n")
    try:
        assert client.get(f"/api/runs/{run}").json()["recipe"]["now"] == "edited"
    finally:
        file.write_text(text)
    inline = "name: inline\nsteps: [{id: a, subagent: writer, prompt: Hi.}]\n"
    other = client.post("/api/runs", json={"recipe": inline}).json()["run_id"]
    ended = client.get(f"/api/runs/{other}").json()
    assert (ended["recipe"]["now"], ended["standing"]["says"]) == ("not saved", "")


def test_tasks_and_batches_are_runs(server: Served) -> None:
    client = server.client()
    told = {"agent": "writer", "prompt": "Say {{hi}}."}
    assert client.post("/api/tasks", json=told).json()["output"] == "Hello!"
    assert client.post("/api/tasks", json={**told, "agent": "writr"}).status_code == 404
    assert [each["workflow"] for each in client.get("/api/tasks").json()["runs"]] == ["task"]
    batch = client.post("/api/batches", json={"tasks": [told, told]}).json()
    assert [each["output"] for each in batch["results"]] == ["Hello!", "Hello!"]
    assert [each["workflow"] for each in client.get("/api/batches").json()["runs"]] == ["batch"]


def test_an_unknown_run_is_not_found_everywhere(server: Served) -> None:
    client = server.client()
    for path in ("", "/report", "/events", "/steps/x", "/diff?step=x"):
        answer = client.get(f"/api/runs/nope{path}")
        assert (answer.status_code, answer.json()["error"]["kind"]) == (404, "not_found"), path
    for verb in ("cancel", "resume", "retry", "steps/x/approve", "steps/x/reject"):
        assert client.post(f"/api/runs/nope/{verb}").status_code == 404, verb


START_BODIES = {
    "nothing": b"",
    "no JSON": b"{",
    "not a number": b'{"inputs": {"whom": NaN}}',
    "half a character": b'{"inputs": {"whom": "\xff"}}',
    "a list": b"[]",
    "null": b"null",
    "a word too much": b'{"inputs": {"whom": "you"}, "waiting": false}',
    "wrong types": b'{"inputs": 3, "wait": "no", "budget": {"tokens": -1}, "model": ""}',
    "an input that is missing": b'{"wait": false}',
    "a dry run": b'{"inputs": {"whom": "you"}, "dry_run": true}',
    "a file for a model": b'{"inputs": {"whom": "you"}, "model": "scripted:/etc/passwd"}',
    "a good one": b'{"inputs": {"whom": "you"}, "wait": false}',
    "one that is waited for": b'{"inputs": {"whom": "you"}}',
}


@pytest.mark.parametrize("body", START_BODIES.values(), ids=START_BODIES)
def test_the_straight_way_to_a_start_answers_as_the_declared_one(
    server: Served, body: bytes
) -> None:
    ways = (
        "application/json",
        "application/vnd.own+json",
    )  # what is not plainly JSON goes the long way
    operator, viewer = server.client(), server.client_of(f"v{secrets.token_hex(4)}", "viewer")
    for client, name in ((operator, "greet"), (operator, "gret"), (viewer, "greet")):
        path = f"/api/workflows/{name}/run"
        answers = [client.post(path, content=body, headers={"Content-Type": way}) for way in ways]
        straight, declared = (_told(each) for each in answers)
        assert straight == declared


def _told(answer: httpx2.Response) -> tuple[int, set[str], object]:
    """Without what no two runs have in common."""
    said = answer.json()
    if answer.is_success and "run_id" in said:
        said = {name: said.get(name) for name in ("ok", "status", "output", "workflow")}
    return answer.status_code, set(answer.headers), said


def test_the_straight_way_takes_a_key_and_names_what_is_wrong_with_it(server: Served) -> None:
    body = {"inputs": {"whom": "you"}, "wait": False}
    client, path = server.client(), "/api/workflows/greet/run"
    key = {"Idempotency-Key": f"straight-{secrets.token_hex(4)}"}
    first, again = (client.post(path, json=body, headers=key) for _ in range(2))
    assert first.json()["run_id"] == again.json()["run_id"]
    assert again.headers["idempotency-replayed"] == "true"
    other = client.post(path, json={**body, "inputs": {"whom": "me"}}, headers=key)
    assert (other.status_code, other.json()["error"]["kind"]) == (409, "conflict")
    bad = client.post(path, json=body, headers={"Idempotency-Key": "two words"})
    assert (bad.status_code, bad.json()["error"]["kind"]) == (422, "usage")


def test_a_list_of_runs_says_what_each_was_given(server: Served) -> None:
    client = server.client()
    run = client.post(
        "/api/workflows/greet/run", json={"inputs": {"whom": "Bo\n\x1b[31mred"}}
    ).json()
    tasks = [{"agent": "writer", "prompt": f"Do {n}."} for n in range(99)]
    batch = client.post("/api/batches", json={"tasks": tasks}).json()
    rows = client.get("/api/runs", params={"limit": 5}).json()["runs"]
    about = {row["run_id"]: row["about"] for row in rows}
    assert about[run["run_id"]].startswith("Bo ")
    assert "\x1b" not in about[run["run_id"]]
    assert about[batch["run_id"]].startswith("Do 0. · Do 1. ·")
    assert len(about[batch["run_id"]]) <= 160
