"""Traces follow from the journal: run, step, attempt, model and tools."""

import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from server.conftest import RECIPES
from server.test_runs import HELLO
from stretto.testing.openai_script import Said, ToolCall
from stretto.testing.openai_server import serving
from support.served import Served, served

LOOK = """\
name: look
agents:
  looker: {role: Looks., prompt: Look., tools: [Glob, Read]}
steps:
  - {id: see, subagent: looker, prompt: Look at the files.}
"""
MANY = """\
name: many
inputs: [{name: list, type: json, required: true}]
steps:
  - {id: each, map: {over: "{{inputs.list}}", max_items: 3000, agent: writer, prompt: "{{item}}"}}
"""
READ = ToolCall("Read", {"file_path": "workflows/look.yaml"})
TURN = Said(tool_calls=(ToolCall("Glob", {"pattern": "*"}), READ, READ), delay_seconds=0.05)


@dataclass
class Collector:
    url: str
    env: dict[str, str]
    bodies: list[bytes] = field(default_factory=list)

    def spans(self) -> list[Any]:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceRequest,
        )

        resources = (
            each
            for body in self.bodies
            for each in ExportTraceServiceRequest.FromString(body).resource_spans
        )
        return [span for each in resources for scope in each.scope_spans for span in scope.spans]


@pytest.fixture
def collector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    (tmp_path / "script.yaml").write_text("default: Hello!\n")

    class Collecting(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Collecting) as server:
        env = {"STRETTO_MODEL": f"scripted:{tmp_path / 'script.yaml'}"}
        found = Collector(f"http://127.0.0.1:{server.server_port}", env)
        _send_to(found.url, env, monkeypatch)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield found
        server.shutdown()
        thread.join()


def _send_to(url: str, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    env["OTEL_EXPORTER_OTLP_ENDPOINT"] = url
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")


def run_to_end(server: Served, workflow: str, inputs: dict[str, Any]) -> str:
    answer = server.client().post(f"/api/workflows/{workflow}/run", json={"inputs": inputs})
    assert answer.json()["status"] == "complete", answer.text
    return str(answer.json()["run_id"])


def test_a_run_is_sent_as_one_trace(tmp_path: Path, collector: Collector) -> None:
    with served(tmp_path, RECIPES, collector.env) as server:
        run = run_to_end(server, "greet", HELLO["inputs"])
    spans = collector.spans()
    names = {span.span_id: span.name for span in spans}
    above = {span.name: names.get(span.parent_span_id, "") for span in spans}
    assert above == {
        "run greet": "",
        "step hello": "run greet",
        "attempt 1": "step hello",
        "model": "attempt 1",
    }
    assert len({span.trace_id for span in spans}) == 1
    assert run in str(spans)
    assert "Say hello" not in str(spans)


def test_a_model_that_calls_several_tools_at_once_was_asked_once(
    tmp_path: Path, collector: Collector
) -> None:
    with serving([TURN, Said("Seen.", delay_seconds=0.05)]) as api:
        model = {"STRETTO_MODEL": "openai:m", "OPENAI_BASE_URL": api.url, "OPENAI_API_KEY": "k" * 9}
        with served(tmp_path, {"look": LOOK}, collector.env | model) as server:
            run_to_end(server, "look", {})
    spans = collector.spans()
    assert Counter(span.name for span in spans if span.name.startswith(("model", "tool"))) == {
        "model": 2,
        "tool Glob": 1,
        "tool Read": 2,
    }
    lasted = [s.end_time_unix_nano - s.start_time_unix_nano for s in spans if s.name == "model"]
    assert min(lasted) > 40_000_000


def test_no_span_of_a_long_run_is_lost(tmp_path: Path, collector: Collector) -> None:
    with served(tmp_path, {"many": MANY}, collector.env) as server:
        run_to_end(server, "many", {"list": ["x"] * 3_000})
        give_up_at = time.monotonic() + 30
        while len(collector.spans()) < 6_002 and time.monotonic() < give_up_at:
            time.sleep(0.1)
    found = Counter(span.name.split()[0] for span in collector.spans())
    assert found == {"run": 1, "step": 1, "attempt": 3_000, "model": 3_000}


def test_a_collector_that_does_not_answer_does_not_keep_the_server_from_ending(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, ExitStack() as asked:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        _send_to(url, collector.env, monkeypatch)
        with served(tmp_path, RECIPES, collector.env) as server:
            run_to_end(server, "greet", HELLO["inputs"])
            asked.enter_context(silent.accept()[0])
            began = time.monotonic()
        assert (
            time.monotonic() - began < 15
        )  # two, where the machine has nothing else to do; 19 with a wait
