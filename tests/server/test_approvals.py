"""People decide over HTTP: what they see, what they may change, and who comes second."""

from typing import Any

from server.test_runs import started, until
from support.served import Served


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


def test_a_prompt_is_edited_and_approved(server: Served) -> None:
    client = server.client()
    run = started(client, "gated")
    until(client, run, "waiting")
    empty = client.post(f"/api/runs/{run}/steps/act/edit", json={"prompt": " "})
    assert empty.status_code == 422
    client.post(f"/api/runs/{run}/steps/act/edit", json={"prompt": "Knock."})
    until(client, run, "complete")
    assert client.get(f"/api/runs/{run}/steps/act").json()["prompt"] == "Knock."


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
