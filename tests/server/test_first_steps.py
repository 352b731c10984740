"""The shortest way through the API: is it there, what is saved, run it, look at it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.served import Served, served

RECIPE = """\
name: greet
description: Say hello.
inputs:
  - {name: whom, required: true}
steps:
  - id: hello
    subagent: writer
    prompt: Say hello to {{inputs.whom}}.
"""
SCRIPT = """\
replies:
  hello: Hello!
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("served")
    (folder / "greet.script.yaml").write_text(SCRIPT)
    model = f"scripted:{folder / 'greet.script.yaml'}"
    with served(folder, {"greet": RECIPE}, {"STRETTO_MODEL": model}) as found:
        yield found


def test_health_needs_no_token(server: Served) -> None:
    assert server.stranger().get("/healthz").json()["ok"] is True


def test_everything_else_needs_one(server: Served) -> None:
    answer = server.stranger().get("/api/workflows")
    assert answer.status_code == 401
    assert answer.json()["error"]["kind"] == "unauthenticated"


def test_a_saved_workflow_runs_to_its_report(server: Served) -> None:
    client = server.client()
    assert "greet" in [each["name"] for each in client.get("/api/workflows").json()["workflows"]]
    report = client.post("/api/workflows/greet/run", json={"inputs": {"whom": "Ada"}}).json()
    assert (report["status"], report["output"]) == ("complete", "Hello!")
    assert client.get(f"/api/runs/{report['run_id']}").json()["output"] == "Hello!"
