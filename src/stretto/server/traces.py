"""Traces of runs, by OpenTelemetry: run → step → attempt → model and tool spans.

They follow from the journal of a run that has ended: one trace a run, also where several processes
drove it one after the other. Nothing is traced unless OTEL_EXPORTER_OTLP_ENDPOINT (or …_TRACES_ENDPOINT)
says where to. Spans hold ids, names, times, usage and kinds of failure, and no prompt and no answer.
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from stretto.events.attempts import AttemptId
from stretto.events.model import (
    AttemptCancelled,
    AttemptFailed,
    AttemptStarted,
    AttemptSucceeded,
    Event,
    RunEnded,
    ToolEnded,
)
from stretto.problems.errors import NotReady, StrettoError
from stretto.schedule.state import RunState

if TYPE_CHECKING:
    from stretto.execution.history import History
    from stretto.server.service import Service

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_log = logging.getLogger("stretto.server")


@dataclass(slots=True)
class RunSpan:
    """One span, with those below it. Times are seconds since the epoch."""

    name: str
    began_at: float
    ended_at: float
    facts: dict[str, str | int | float] = field(default_factory=dict)
    error: str = ""
    below: "list[RunSpan]" = field(default_factory=list)


def spans_of(history: "History") -> RunSpan:
    """In: the journal of a run. Out: its span."""
    state, started = history.state, history.started
    ended_at = state.ended_at or history.events[-1].at
    top = RunSpan(f"run {started.workflow}", started.at, ended_at)
    top.facts = {
        "stretto.run.id": started.run_id,
        "stretto.workflow": started.workflow,
        "stretto.run.status": state.status.value,
        "stretto.run.trigger": started.trigger,
    }
    top.error = "" if state.status.value == "complete" else state.status.value
    attempts = _attempts(history.events, ended_at)
    for step in state.order:
        if step.started_at is None:
            continue
        end = ended_at if step.ended_at is None else step.ended_at
        span = RunSpan(f"step {step.id}", step.started_at, end)
        span.facts = {"stretto.step.id": step.id, "stretto.step.status": step.status.value}
        span.error = "failed" if step.status.value == "failed" else ""
        span.below = [each for id, each in attempts.items() if id.step == step.id]
        top.below.append(span)
    return top


def _attempts(events: Iterable[Event], ended_at: float) -> dict[AttemptId, RunSpan]:
    found: dict[AttemptId, RunSpan] = {}
    since: dict[AttemptId, float] = {}  # when a model was asked last
    for event in events:
        match event:
            case AttemptStarted():
                span = RunSpan(f"attempt {event.attempt.number}", event.at, ended_at)
                span.facts = {
                    "stretto.agent": event.agent,
                    "stretto.attempt": event.attempt.number,
                    "stretto.part": event.attempt.part.text,
                }
                found[event.attempt], since[event.attempt] = span, event.at
            case ToolEnded() if event.attempt in found:
                began = event.at - event.duration_seconds
                found[event.attempt].below += [
                    RunSpan("model", since[event.attempt], max(began, since[event.attempt])),
                    _tool(event, began),
                ]
                since[event.attempt] = event.at
            case AttemptSucceeded() | AttemptFailed() | AttemptCancelled():
                if event.attempt in found:
                    _end(found[event.attempt], event, since[event.attempt])
            case _:
                pass
    return found


def _tool(event: ToolEnded, began: float) -> RunSpan:
    facts: dict[str, str | int | float] = {
        "stretto.tool": event.tool,
        "stretto.tool.verdict": event.verdict,
        "stretto.tool.result_bytes": event.result_bytes,
    }
    error = "" if event.verdict == "ok" else event.verdict
    return RunSpan(f"tool {event.tool}", began, event.at, facts, error)


def _end(
    span: RunSpan, event: AttemptSucceeded | AttemptFailed | AttemptCancelled, since: float
) -> None:
    span.ended_at = event.at
    span.facts |= {
        "gen_ai.usage.input_tokens": event.usage.input_tokens,
        "gen_ai.usage.output_tokens": event.usage.output_tokens,
    }
    model = "" if isinstance(event, AttemptCancelled) else event.model
    if event.usage.model_calls or model:
        facts: dict[str, str | int | float] = {"gen_ai.response.model": model} if model else {}
        span.below.append(RunSpan("model", since, event.at, facts))
    if isinstance(event, AttemptFailed):
        span.error = event.kind


class Traces:
    """Sends the spans of each run that ends here."""

    def __init__(self, tracer: Any, close: Any) -> None:
        self._tracer = tracer
        self._close = close
        self._ended: asyncio.Queue[str] = asyncio.Queue(maxsize=10_000)

    def hear(self, event: Event, state: RunState) -> None:
        """A listener of the engine."""
        if isinstance(event, RunEnded) and not self._ended.full():
            self._ended.put_nowait(state.run_id)

    async def keep(self, service: "Service") -> None:
        """Until it is cancelled."""
        while True:
            await self._send(service, await self._ended.get())

    async def close(self, service: "Service") -> None:
        """Send what is left, for a moment."""
        while not self._ended.empty():
            await self._send(service, self._ended.get_nowait())
        await asyncio.to_thread(self._close)

    async def _send(self, service: "Service", run_id: str) -> None:
        try:
            history = await service.history(run_id)
            await asyncio.to_thread(self._export, spans_of(history), None)
        except StrettoError as error:
            _log.warning("stretto: run %s is not traced: %s", run_id, error.message)

    def _export(self, span: RunSpan, above: Any) -> None:
        from opentelemetry import trace

        context = trace.set_span_in_context(above) if above is not None else None
        began, ended = (int(at * 1e9) for at in (span.began_at, max(span.began_at, span.ended_at)))
        made = self._tracer.start_span(
            span.name, context=context, start_time=began, attributes=span.facts
        )
        if span.error:
            made.set_status(trace.Status(trace.StatusCode.ERROR, span.error))
        for each in span.below:
            self._export(each, made)
        made.end(ended)


def open_traces(environ: Mapping[str, str]) -> Traces | None:
    """None: traces are not switched on. Raises NotReady."""
    if not any(environ.get(name) for name in _ENDPOINTS):
        return None
    if not all(map(_is_there, ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"))):
        hint = "pip install 'stretto[otel]', or leave it unset"
        raise NotReady(f"{_ENDPOINTS[0]} is set, and OpenTelemetry is not installed", hint=hint)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    named = {"service.name": environ.get("OTEL_SERVICE_NAME") or "stretto"}
    provider = TracerProvider(resource=Resource.create(named))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Traces(provider.get_tracer("stretto"), provider.shutdown)


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def all_spans(span: RunSpan) -> Iterator[RunSpan]:
    yield span
    for each in span.below:
        yield from all_spans(each)
