"""What `/metrics` counts."""

from types import SimpleNamespace
from typing import Any

from stretto.events.attempts import AttemptId
from stretto.events.model import AttemptCancelled
from stretto.server.metrics import Metrics
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.names import StepId
from support.served import Served


def test_what_a_cancelled_attempt_cost_counts() -> None:
    metrics = Metrics()
    usage = Usage(input_tokens=1000, output_tokens=500, usd=0.25, model_calls=1)
    state: Any = None
    metrics.hear(AttemptCancelled(1.0, AttemptId(StepId("a"), 1), usage), state)
    engine = SimpleNamespace(tasks=())
    service: Any = SimpleNamespace(stretto=SimpleNamespace(engine=engine), open_streams=0)
    told = set(metrics.lines(service))
    assert 'stretto_tokens_total{direction="input"} 1000' in told
    assert 'stretto_tokens_total{direction="output"} 500' in told
    assert "stretto_usd_total 0.25" in told


def test_head_is_counted_by_its_own_name(server: Served) -> None:
    client = server.client()
    client.head("/healthz")
    told = client.get("/metrics").text
    assert 'stretto_http_requests_total{method="HEAD",status="200"} 1\n' in told
