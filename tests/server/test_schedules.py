"""Schedules and webhooks over HTTP."""

import json
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from stretto.triggers.arrivals import MOST_BODY_BYTES, signature
from support.served import PATIENCE_SECONDS, Served

HELLO = {"inputs": {"whom": "Ada"}}


def until_complete(client: httpx2.Client, run_id: str) -> dict[str, Any]:
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < give_up_at:
        found = client.get(f"/api/runs/{run_id}")
        if found.status_code == 200 and found.json()["status"] == "complete":
            return dict(found.json())
        time.sleep(0.05)
    raise AssertionError(found.text)


def settled_fires(client: httpx2.Client, name: str) -> list[str]:
    """What became of each fire. A short run may end before its start is on record beside the trigger."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < give_up_at:
        fires = client.get(f"/api/schedules/{name}").json()["fires"]
        found = [each["status"] for each in fires]
        if "queued" not in found:
            return found
        time.sleep(0.05)
    raise AssertionError(found)


def sent(server: Served, hook: str, secret: str, body: bytes, **more: str) -> httpx2.Response:
    stamp = more.get("stamp", str(int(time.time())))
    signed = more.get("signed", signature(secret, stamp, body))
    headers = {"X-Stretto-Timestamp": stamp, "X-Stretto-Signature": signed}
    return server.stranger().post(f"/hooks/{hook}", content=body, headers=headers)


@pytest.fixture(scope="module")
def hook(server: Served) -> tuple[str, str]:
    body = {"name": "hook", "workflow": "greet", "mapping": {"whom": "{{body.user.name}}"}}
    made = server.client().post("/api/hooks", json=body)
    assert made.status_code == 201, made.text
    return made.json()["hook"]["hook"], made.json()["secret"]


def test_a_schedule_is_made_listed_fired_paused_and_removed(server: Served) -> None:
    client = server.client()
    body = {
        "name": "nightly",
        "workflow": "greet",
        "cron": "0 2 * * *",
        "zone": "Asia/Kolkata",
        **HELLO,
    }
    made = client.post("/api/schedules", json=body)
    assert made.status_code == 201, made.text
    assert made.json()["schedule"]["next_at"].endswith("20:30:00.000+00:00")
    assert client.post("/api/schedules", json=body).status_code == 409
    assert [len(client.get("/api/schedules/nightly/next?count=3").json()["next"])] == [3]
    fired = client.post("/api/schedules/nightly/run-now")
    assert fired.status_code == 202
    report = until_complete(client, fired.json()["run_id"])
    assert report["trigger"] == "schedule nightly"
    assert settled_fires(client, "nightly") == ["started"]
    assert client.post("/api/schedules/nightly/pause").json()["schedule"]["paused"] is True
    assert client.post("/api/schedules/nightly/resume").json()["schedule"]["paused"] is False
    assert client.delete("/api/schedules/nightly").status_code == 200
    assert client.get("/api/schedules/nightly").status_code == 404


@pytest.mark.parametrize(
    ("change", "status", "kind"),
    [
        ({"cron": "never"}, 422, "usage"),
        ({"zone": "Mars/Olympus"}, 422, "usage"),
        ({"workflow": "nope"}, 404, "not_found"),
        ({"inputs": {}}, 422, "usage"),
        ({"inputs": {"whom": "x", "other": 1}}, 422, "usage"),
        ({"name": "../x"}, 422, "usage"),
        ({"missed": "maybe"}, 422, "usage"),
    ],
)
def test_what_could_never_fire_is_refused(
    server: Served, change: dict[str, Any], status: int, kind: str
) -> None:
    body = {"name": "bad", "workflow": "greet", "cron": "@daily", **HELLO, **change}
    answer = server.client().post("/api/schedules", json=body)
    assert (answer.status_code, answer.json()["error"]["kind"]) == (status, kind), answer.text


def test_a_genuine_delivery_starts_a_run_and_its_replay_none(
    server: Served, hook: tuple[str, str]
) -> None:
    body, stamp = b'{"user": {"name": "Grace"}}', str(int(time.time()))
    answer = sent(server, *hook, body, stamp=stamp)
    assert answer.status_code == 202, answer.text
    again = sent(server, *hook, body, stamp=stamp)
    assert (again.status_code, again.json()["error"]["kind"]) == (409, "exists")
    report = until_complete(server.client(), answer.json()["run_id"])
    assert (report["trigger"], report["steps"]["hello"]["status"]) == ("webhook hook", "succeeded")
    fires = server.client().get("/api/schedules/hook").json()["fires"]
    assert len(fires) == 1
    assert "secret" not in server.client().get("/api/hooks").text


def test_every_other_delivery_is_refused_and_starts_nothing(
    server: Served, hook: tuple[str, str]
) -> None:
    name, secret = hook
    body = b'{"user": {"name": "Eve"}}'
    before = len(server.client().get("/api/schedules/hook").json()["fires"])
    statuses = {
        "wrong": sent(server, name, "guessed", body).status_code,
        "missing": server.stranger().post(f"/hooks/{name}", content=body).status_code,
        "old": sent(server, name, secret, body, stamp=str(int(time.time()) - 400)).status_code,
        "changed": sent(
            server, name, secret, body, signed=signature(secret, "1", b"x")
        ).status_code,
        "unknown": sent(server, "nowhere", secret, body).status_code,
        "huge": sent(server, name, secret, b"x" * (MOST_BODY_BYTES + 1)).status_code,
        "10 MB": sent(server, name, secret, b"[" * 10_000_000).status_code,
        "deep": sent(server, name, secret, b"[" * 900_000).status_code,
        "NaN": sent(server, name, secret, b'{"user": NaN}').status_code,
        "lacking": sent(server, name, secret, b"{}").status_code,
        "a list": sent(server, name, secret, b"[]").status_code,
        "GET": server.stranger().get(f"/hooks/{name}").status_code,
    }
    assert statuses == {
        "wrong": 403, "missing": 403, "old": 403, "changed": 403, "unknown": 404, "huge": 413,
        "10 MB": 413, "deep": 422, "NaN": 422, "lacking": 422, "a list": 422, "GET": 401,
    }  # fmt: skip
    assert len(server.client().get("/api/schedules/hook").json()["fires"]) == before


def test_a_role_may_do_what_it_may(server: Served) -> None:
    viewer = server.client_of("vera", "viewer")
    operator = server.client_of("otto", "operator")
    body = {"name": "mine", "workflow": "greet", "cron": "@daily", **HELLO}
    assert viewer.get("/api/schedules").status_code == 200
    assert operator.post("/api/schedules", json=body).status_code == 403
    assert operator.post("/api/hooks", json={"name": "h", "workflow": "greet"}).status_code == 403
    assert viewer.post("/api/schedules/hook/run-now").status_code == 403
    assert server.stranger().get("/api/schedules").status_code == 401
    assert (
        json.loads(server.stranger().get("/api/hooks").text)["error"]["kind"] == "unauthenticated"
    )


def test_whoever_fires_a_trigger_may_decide_about_its_run(server: Served) -> None:
    operator, other = server.client_of("olga", "operator"), server.client_of("omar", "operator")
    body = {"name": "asked", "workflow": "gated", "cron": "@yearly"}
    assert server.client().post("/api/schedules", json=body).status_code == 201
    run = operator.post("/api/schedules/asked/run-now").json()["run_id"]
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while operator.get(f"/api/runs/{run}/approvals/act").status_code == 404:
        assert time.monotonic() < give_up_at
        time.sleep(0.05)
    path = f"/api/runs/{run}/steps/act/reject"
    assert other.post(path, json={}).status_code == 403
    assert operator.post(path, json={}).status_code == 200
    assert operator.get(f"/api/runs/{run}").json()["owner"] == "olga"


def test_a_trigger_that_lacks_inputs_cannot_be_fired_by_hand(
    server: Served, hook: tuple[str, str]
) -> None:
    before = len(settled_fires(server.client(), "hook"))
    refused = server.client().post("/api/schedules/hook/run-now")
    assert (refused.status_code, refused.json()["error"]["kind"]) == (422, "invalid_inputs")
    assert len(settled_fires(server.client(), "hook")) == before


def test_an_author_watches_folders_of_the_project_alone(server: Served, tmp_path: Path) -> None:
    author, admin = server.client_of("aya", "author"), server.client_of("adi", "admin")
    (server.folder / "own").mkdir()
    (server.folder / "out").symlink_to(tmp_path)
    body = {"name": "seen", "workflow": "greet", "input": "whom"}
    for folder in (str(tmp_path), "/etc", "..", "out", "\0"):
        refused = author.post("/api/folders", json={**body, "folder": folder})
        assert (refused.status_code, refused.json()["error"]["kind"]) == (403, "permission_denied")
    assert author.post("/api/folders", json={**body, "folder": "own"}).status_code == 201
    elsewhere = {"folder": str(tmp_path)}
    assert author.put("/api/schedules/seen", json=elsewhere).status_code == 403
    assert admin.put("/api/schedules/seen", json=elsewhere).status_code == 200
    admin.delete("/api/schedules/seen")


def test_an_expression_is_said_in_words_with_its_next_fires(server: Served) -> None:
    client = server.client()
    body = {"cron": "0 9 * * 1-5", "zone": "Europe/Berlin"}
    found = client.post("/api/schedules/preview", json=body).json()
    assert found["says"] == "at 09:00 from Monday to Friday"
    assert len(found["next"]) == 3
    assert found["next"] == sorted(found["next"])
    for wrong in ({"cron": "61 * * * *"}, {"cron": "0 9 * * *", "zone": "Mars/Base"}):
        answer = client.post("/api/schedules/preview", json=wrong)
        assert (answer.status_code, answer.json()["error"]["kind"]) == (422, "usage")


def test_a_watched_folder_is_changed(server: Served) -> None:
    client = server.client()
    for name in ("inbox", "second"):
        (server.folder / name).mkdir(exist_ok=True)
    body = {"name": "watching", "workflow": "greet", "folder": "inbox", "input": "whom"}
    assert client.post("/api/folders", json=body).status_code == 201
    wanted = {"folder": "second", "pattern": "*.md", "existing": True}
    changed = client.put("/api/schedules/watching", json=wanted).json()["schedule"]
    assert changed["folder"] == str((server.folder / "second").resolve())
    assert (changed["pattern"], changed["input"]) == ("*.md", "whom")
    for wrong in ({"folder": "nowhere"}, {"input": "nobody"}, {"pattern": None}):
        assert client.put("/api/schedules/watching", json=wrong).status_code == 422, wrong
    assert client.get("/api/schedules/watching").json()["schedule"] == changed
    assert client.delete("/api/schedules/watching").status_code == 200


def test_a_trigger_is_changed_and_keeps_what_it_fired(server: Served) -> None:
    client = server.client()
    body = {"name": "changing", "workflow": "greet", "cron": "0 6 * * *", **HELLO}
    made = client.post("/api/schedules", json=body).json()["schedule"]
    assert client.post("/api/schedules/changing/run-now").status_code == 202
    changed = client.put("/api/schedules/changing", json={"cron": "30 7 * * 1"}).json()["schedule"]
    assert (changed["says"], changed["inputs"]) == ("at 07:30 on Monday", made["inputs"])
    assert len(client.get("/api/schedules/changing").json()["fires"]) == 1
    for wrong in (
        {"cron": "no"},
        {"inputs": {"nobody": 1}},
        {"workflow": "none"},
        {"mapping": {}},
        {"overlap": None},
    ):
        assert client.put("/api/schedules/changing", json=wrong).status_code in (404, 422), wrong
    assert client.get("/api/schedules/changing").json()["schedule"]["cron"] == "30 7 * * 1"
    assert client.put("/api/schedules/changing", json={"folder": "inbox"}).status_code == 422
    assert client.delete("/api/schedules/changing").status_code == 200
