"""Traces follow from the journal: run, step, attempt, model."""

from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from server.conftest import RECIPES, SCRIPTS
from server.test_runs import HELLO
from support.served import served


class _Collector(BaseHTTPRequestHandler):
    bodies: list[bytes] = []  # noqa: RUF012

    def do_POST(self) -> None:
        self.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *words: object) -> None:
        pass


def test_a_run_is_sent_as_one_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
        ExportTraceServiceRequest,
    )

    for name, text in SCRIPTS.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    collector = HTTPServer(("127.0.0.1", 0), _Collector)
    Thread(target=collector.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{collector.server_port}"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
    env = {
        "STRETTO_MODEL": f"scripted:{tmp_path / 'script.yaml'}",
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
    }
    try:
        with served(tmp_path, RECIPES, env) as server:
            run = server.client().post("/api/workflows/greet/run", json=HELLO).json()["run_id"]
    finally:
        collector.shutdown()
        collector.server_close()
    spans = [
        span
        for body in _Collector.bodies
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
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
