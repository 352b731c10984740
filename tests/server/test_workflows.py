"""Saved workflows over HTTP: byte for byte, with versions, and never over somebody's change."""

import os
from pathlib import Path

import pytest

from stretto.testing.openai_script import Said, TokenUsage
from stretto.testing.openai_server import serving
from support.served import Served, served

TEXT = "# Mine.\nname: notes\nsteps:\n  - {id: a, subagent: writer, prompt: 'Hi'}   # one\n"
OTHER = TEXT.replace("Hi", "Ho")


def test_a_workflow_is_saved_read_and_removed(server: Served) -> None:
    client = server.client()
    saved = client.put("/api/workflows/notes", json={"recipe": TEXT})
    assert (saved.status_code, saved.json()["version"]) == (200, 1)
    shown = client.get("/api/workflows/notes")
    assert shown.json()["text"] == TEXT
    assert shown.headers["etag"] == saved.headers["etag"]
    assert client.get("/api/workflows/notes/text").content == TEXT.encode()
    assert client.delete("/api/workflows/notes").status_code == 200
    assert client.get("/api/workflows/notes").status_code == 404
    assert client.post("/api/workflows/notes/restore", json={"version": 1}).status_code == 200
    assert client.get("/api/workflows/notes/text").content == TEXT.encode()


def test_a_change_by_somebody_else_is_noticed(server: Served) -> None:
    client = server.client()
    etag = client.put("/api/workflows/shared", json={"recipe": TEXT}).headers["etag"]
    file = server.folder / "workflows" / "shared.yaml"
    file.write_text(file.read_text().replace("Hi", "Hey"))
    for headers in ({"If-Match": etag}, {"If-Match": '"nonsense"'}, {"If-None-Match": "*"}):
        refused = client.put("/api/workflows/shared", json={"recipe": OTHER}, headers=headers)
        assert (refused.status_code, refused.json()["error"]["kind"]) == (412, "changed")
    assert client.delete("/api/workflows/shared", headers={"If-Match": etag}).status_code == 412
    now = client.get("/api/workflows/shared").headers["etag"]
    saved = client.put("/api/workflows/shared", json={"recipe": OTHER}, headers={"If-Match": now})
    assert saved.status_code == 200


def test_a_workflow_that_nobody_has_saved_over_has_no_versions_yet(server: Served) -> None:
    client = server.client()
    bundled = client.get("/api/workflows/research-and-brief/versions")
    assert (bundled.status_code, bundled.json()["versions"]) == (200, [])
    assert client.get("/api/workflows/nobody-has-it/versions").status_code == 404


def test_versions_are_listed_shown_and_compared(server: Served) -> None:
    client = server.client()
    client.put("/api/workflows/kept", json={"recipe": TEXT})
    client.put("/api/workflows/kept", json={"recipe": OTHER, "why": "a better word"})
    found = client.get("/api/workflows/kept/versions").json()["versions"]
    assert [(each["version"], each["why"]) for each in found] == [
        (1, "saved"),
        (2, "a better word"),
    ]
    assert "prompt: 'Hi'" in client.get("/api/workflows/kept/versions/1").text
    difference = client.get("/api/workflows/kept/diff?old=1&new=2").text
    assert "-  - {id: a, subagent: writer, prompt: 'Hi'}   # one" in difference
    assert client.get("/api/workflows/kept/diff?old=1").text.count("\n+  ") == 1
    assert client.get("/api/workflows/kept/versions/9").status_code == 404


def test_what_cannot_be_saved_is_refused(server: Served) -> None:
    client = server.client()
    broken = client.put("/api/workflows/bad", json={"recipe": "name: bad\nsteps: 1\n"})
    assert (broken.status_code, broken.json()["error"]["kind"]) == (422, "invalid_recipe")
    for name in ("a%2Fb", "..", "a b", "x" * 200, "%00"):
        answer = client.put(f"/api/workflows/{name}", json={"recipe": TEXT})
        assert answer.status_code in (404, 405, 422), name
    assert client.delete("/api/workflows/research-and-brief").status_code == 403
    assert client.get("/api/workflows/nots").json()["error"]["details"]["hint"]


def test_what_there_is_to_work_with_is_listed(server: Served) -> None:
    client = server.client()
    assert "writer" in [each["name"] for each in client.get("/api/agents").json()["agents"]]
    assert client.get("/api/agents/writer").json()["agent"]["prompt"]
    assert client.get("/api/agents/writr").status_code == 404
    assert "models" in client.get("/api/models").json()
    assert "playbooks" in client.get("/api/playbooks").json()
    assert "playbooks" in client.get("/api/playbooks?query=review").json()
    assert client.get("/api/playbook-changes").json()["audit"] == []
    tried = client.post("/api/models/test", json={"model": "scripted:nowhere.yaml"})
    assert tried.status_code in (404, 422, 424), tried.text
    assert client.get("/api/doctor").json()["checks"]
    assert "stretto_runs_started_total" in client.get("/metrics").text
    page = client.get("/runs/anything", headers={"Accept": "text/html"})
    assert page.headers["content-type"].startswith("text/html")
    for path in ("/assets/none.js", "/api/none"):
        assert client.get(path).status_code == 404, path


def test_counters_have_every_digit(tmp_path: Path) -> None:
    with serving([Said("Done.", usage=TokenUsage(123_456_789, 7))]) as api:
        env = {"STRETTO_MODEL": "openai:m", "OPENAI_BASE_URL": api.url, "OPENAI_API_KEY": "k" * 9}
        with served(tmp_path, {}, env) as server:
            answer = server.client().post("/api/tasks", json={"agent": "writer", "prompt": "Hi."})
            told = server.client().get("/metrics").text
    assert answer.json()["status"] == "complete", answer.text
    assert 'stretto_tokens_total{direction="input"} 123456789\n' in told


def test_a_file_whose_name_is_no_text_hides_nothing(server: Served) -> None:
    odd = server.folder / "workflows" / os.fsdecode(b"\xff.yaml")
    odd.write_text(TEXT.replace("name: notes", "name: odd"))
    answer = server.client().get("/api/workflows")
    assert answer.status_code == 200
    assert "odd" in [each["name"] for each in answer.json()["workflows"]]
    assert server.client().get("/api/workflows/odd").status_code == 200
    odd.unlink()


def test_a_recipe_that_is_named_in_words_is_found_by_its_name(server: Served) -> None:
    """As a person may write it in a file. One that is saved here has a name that a file can have."""
    written = TEXT.replace("name: notes", "name: Weekly notes")
    (server.folder / "workflows" / "weekly.yaml").write_text(written)
    client, path = server.client(), "/api/workflows/Weekly notes"
    assert client.get(path).json()["text"] == written
    assert client.get(f"{path}/versions").json()["versions"] == []
    ran = client.post(f"{path}/run", json={"dry_run": True, "inputs": {}})
    assert ran.status_code == 200, ran.text
    assert client.put(path, json={"recipe": written}).status_code == 422
    assert client.get("/api/workflows/..%2Fweekly.yaml").status_code == 404
    assert client.get("/api/workflows/weekly.yaml").status_code == 404


def test_no_route_of_a_workflow_reads_a_file_by_its_name(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name of a file is a name that nobody has, whether the file is there or not."""
    client = server.client()
    monkeypatch.chdir(server.folder)  # as `stretto serve` is where it was started
    for name in ("private.yaml", "Makefile"):
        (server.folder / name).write_text("key: 'of a file that is no workflow\n")
        for path in ("", "/text", "/versions", "/versions/1", "/diff?old=1"):
            answer = client.get(f"/api/workflows/{name}{path}")
            assert answer.status_code == 404, (name, path, answer.text)
            assert "of a file" not in answer.text
        assert client.post(f"/api/workflows/{name}/restore").status_code == 404
        (server.folder / name).unlink()
