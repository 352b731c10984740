"""People decide over HTTP: what they see, what they may change, and who comes second."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from server.conftest import RECIPES, SCRIPTS
from server.test_runs import started, until
from stretto.assembly.project import Project
from stretto.assembly.run import Run
from stretto.assembly.surface import Surface
from stretto.execution.history import History
from stretto.execution.runs import Runs
from stretto.problems.errors import StrettoError
from stretto.server.approvals import open_gates
from stretto.server.service import Service
from support.cli import environment
from support.served import Served, served


def test_what_awaits_a_person_is_listed_oldest_first_with_what_would_run(server: Served) -> None:
    client = server.client()
    runs = [started(client, "gated"), started(client, "gated")]
    for run in runs:
        until(client, run, "waiting")
    gates: list[dict[str, Any]] = [
        each for each in client.get("/api/approvals").json()["approvals"] if each["run_id"] in runs
    ]
    assert [each["run_id"] for each in gates] == runs
    gate = gates[0]
    assert gate["step"] == "act"
    assert gate["parts"][0]["prompt"] == "Act on Hello!."
    assert gate["grounds"] == [{"step": "look", "status": "succeeded", "output": "Hello!"}]
    assert (gate["deadline"], gate["overdue"]) == (None, False)
    of_one = client.get("/api/approvals", params={"run": runs[1]}).json()["approvals"]
    assert of_one == gates[1:]
    brief = client.get("/api/approvals", params={"run": runs[0], "brief": True}).json()
    assert brief["approvals"] == [{**gate, "parts": [], "later": [], "grounds": []}]
    for run in runs:
        client.post(f"/api/runs/{run}/cancel")


def test_an_approval_lets_the_run_go_on_and_the_second_one_is_told_what_stands(
    server: Served,
) -> None:
    client = server.client()
    run = started(client, "gated")
    until(client, run, "waiting")
    key = client.get(f"/api/runs/{run}/approvals/act").json()["key"]
    wrong = client.post(f"/api/runs/{run}/steps/act/approve", json={"key": "another"})
    assert wrong.status_code == 422
    first = client.post(f"/api/runs/{run}/steps/act/approve", json={"key": key, "reason": "fine"})
    assert (first.status_code, first.json()["decision"]) == (200, "approved")
    second = client.post(f"/api/runs/{run}/steps/act/reject", json={"reason": "no"})
    error = second.json()["error"]
    assert (second.status_code, error["kind"]) == (409, "already_decided")
    assert "approved" in error["message"]
    assert until(client, run, "complete")["output"] == "Hello!"


SKIPPING = """\
name: skipping
steps:
  - {id: act, subagent: writer, gate: human, timeout: 2s, on_failure: skip, prompt: Act.}
  - {id: after, subagent: writer, depends_on: [act], prompt: Go on.}
"""


def test_what_is_said_of_a_deadline_is_what_happens(server: Served) -> None:
    client = server.client()
    client.put("/api/workflows/skipping", json={"recipe": SKIPPING})
    run = started(client, "skipping")
    until(client, run, "waiting")
    gates = client.get("/api/approvals").json()["approvals"]
    said = [each["then"] for each in gates if each["run_id"] == run]
    assert said == ["the step fails, and the steps that need it go on without its output"]
    steps = until(client, run, "partial")["steps"]
    assert (steps["act"]["status"], steps["act"]["output"]) == ("failed", None)
    assert steps["after"]["status"] == "succeeded"


def test_a_prompt_is_edited_and_approved(server: Served) -> None:
    client = server.client()
    run = started(client, "gated")
    until(client, run, "waiting")
    empty = client.post(f"/api/runs/{run}/steps/act/edit", json={"prompt": " "})
    assert empty.status_code == 422
    client.post(f"/api/runs/{run}/steps/act/edit", json={"prompt": "Knock."})
    until(client, run, "complete")
    assert client.get(f"/api/runs/{run}/steps/act").json()["prompt"] == "Knock."


def test_what_was_not_shown_is_not_rejected(server: Served) -> None:
    client = server.client()
    run = started(client, "gated")
    until(client, run, "waiting")
    wrong = client.post(f"/api/runs/{run}/steps/act/reject", json={"key": "another"})
    assert wrong.status_code == 422
    key = client.get(f"/api/runs/{run}/approvals/act").json()["key"]
    right = client.post(f"/api/runs/{run}/steps/act/reject", json={"key": key})
    assert (right.status_code, right.json()["decision"]) == (200, "rejected")


def test_a_rejection_fails_the_step_with_its_reason(server: Served) -> None:
    client = server.client()
    run = started(client, "gated")
    until(client, run, "waiting")
    client.post(f"/api/runs/{run}/steps/act/reject", json={"reason": "too bold"})
    report = until(client, run, "failed", "partial")
    assert "too bold" in report["steps"]["act"]["error"]


def test_a_deadline_at_a_gate_does_not_lapse_silently(server: Served) -> None:
    client = server.client()
    run = started(client, "brief-gate")
    until(client, run, "waiting", "overdue", "failed")
    report = until(client, run, "failed", "partial")
    assert "awaited approval" in report["steps"]["ask"]["error"]
    late = client.post(f"/api/runs/{run}/steps/ask/approve")
    assert late.status_code in (409, 422)


def test_a_question_is_kept_behind_any_number_of_later_runs(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text(SCRIPTS["script"])
    model = {"STRETTO_MODEL": f"scripted:{tmp_path / 'script.yaml'}"}
    with served(tmp_path, RECIPES, model) as server:
        client = server.client()
        kept, due = started(client, "gated"), started(client, "brief-gate")
        until(client, kept, "waiting")
        with closing(sqlite3.connect(server.home / "runs.db", timeout=60)) as db:
            rows = ((f"later-{n}", 4e9 + n) for n in range(10_001))
            sql = """
                INSERT INTO runs (run_id, fence, leased_until, workflow, status, started_at, ended_at)
                VALUES (?, 1, 0, 'many', 'complete', ?, 5e9)
                """
            db.executemany(sql, rows)
            db.commit()
        report = until(client, due, "failed", "partial")
        assert "awaited approval" in report["steps"]["ask"]["error"]
        open_gates = client.get("/api/approvals").json()["approvals"]
        assert [each["run_id"] for each in open_gates] == [kept]


def test_a_gate_inside_a_workflow_step_shows_the_deadline_of_that_step(server: Served) -> None:
    client = server.client()
    run = started(client, "bounded")
    until(client, run, "waiting")
    (gate,) = [
        each for each in client.get("/api/approvals").json()["approvals"] if each["run_id"] == run
    ]
    assert gate["step"] == "inner/act"
    assert gate["deadline"] is not None
    client.post(f"/api/runs/{run}/cancel")


DEEP = "outer/inner/act"  # a gate in the third of three recipes


@pytest.mark.parametrize("named", [DEEP, DEEP.replace("/", "%2F")])
@pytest.mark.parametrize("decision", ["approve", "reject", "edit"])
def test_a_gate_in_the_third_recipe_is_decided_over_http(
    server: Served, decision: str, named: str
) -> None:
    client = server.client()
    run = started(client, "third-level")
    until(client, run, "waiting")
    assert client.get(f"/api/runs/{run}/approvals/{named}").json()["step"] == DEEP
    body = {"approve": {}, "reject": {"reason": "too deep"}, "edit": {"prompt": "Knock."}}[decision]
    answer = client.post(f"/api/runs/{run}/steps/{named}/{decision}", json=body)
    assert answer.status_code == 200, answer.text
    ended = {"reject": ("partial", "failed")}.get(decision, ("complete",))
    report = until(client, run, *ended)
    if decision == "reject":
        assert "too deep" in report["steps"][DEEP]["error"]
    else:
        assert report["output"] == "Hello!"
        told = {"approve": "Act on Hello!.", "edit": "Knock."}[decision]
        assert client.get(f"/api/runs/{run}/steps/{named}").json()["prompt"] == told
        again = client.post(f"/api/runs/{run}/retry", json={"from_step": DEEP, "wait": True}).json()
        assert again["steps"]["outer/inner/look"]["status"] == "succeeded"
        client.post(f"/api/runs/{again['run_id']}/cancel")


@asynccontextmanager
async def waiting_runs(folder: Path, count: int) -> AsyncIterator[tuple[Service, list[Run]]]:
    gate = {"id": "act", "subagent": "writer", "gate": "human", "prompt": "May I?"}
    (folder / "script.yaml").write_text("default: Yes.")
    environ = environment(folder, {"STRETTO_MODEL": f"scripted:{folder / 'script.yaml'}"})
    async with Surface(lambda place: Project(place or folder, environ)) as opened:
        runs = [await opened.start({"name": "gated", "steps": [gate]}) for _ in range(count)]
        for run in runs:
            while await run.status() != "waiting":
                await asyncio.sleep(0.01)
        yield Service(opened, *[None] * 3), runs  # type: ignore[arg-type]


async def read_gates_twice(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many journals were read for the list: at first, again, and after one run had changed."""
    counted = {"read": 0}
    read = Runs.history

    async def count(runs: Runs, *words: Any, **options: Any) -> History:
        counted["read"] += 1
        return await read(runs, *words, **options)

    async with waiting_runs(folder, 4) as (service, runs):
        monkeypatch.setattr(Runs, "history", count)
        found = []
        for expected in (4, 4, 3):
            if expected == 3:
                await runs[0].reject("act")
            counted["read"] = 0
            assert len(await open_gates(service)) == expected
            found.append(counted["read"])
        return found


def test_only_the_journals_that_have_changed_are_read_for_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, again, after = asyncio.run(read_gates_twice(tmp_path, monkeypatch))
    assert (first, again) == (4, 0)
    assert after <= 1  # none, where the run has ended by then


def test_what_awaits_a_person_is_listed_again_after_its_journal_could_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Runs.history

    async def fail(runs: Runs, *words: Any, **options: Any) -> History:
        raise StrettoError("the store is busy")

    async def story() -> None:
        async with waiting_runs(tmp_path, 1) as (service, _):
            monkeypatch.setattr(Runs, "history", fail)
            assert await open_gates(service) == []
            monkeypatch.setattr(Runs, "history", read)
            assert len(await open_gates(service)) == 1

    asyncio.run(story())
