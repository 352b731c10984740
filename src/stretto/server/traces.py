"""Traces of runs, by OpenTelemetry: run → step → attempt → model and tool spans.

They follow from the journal of a run that has ended: one trace a run, also where several processes
drove it one after the other. Nothing is traced unless OTEL_EXPORTER_OTLP_ENDPOINT (or …_TRACES_ENDPOINT)
says where to. Spans hold ids, names, times, usage and kinds of failure, and no prompt and no answer.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from threading import Thread
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
    UsageNoted,
)
from stretto.problems.errors import NotReady, StrettoError
from stretto.schedule.state import RunState
from stretto.vocabulary.names import StepId

if TYPE_CHECKING:
    from stretto.execution.history import History
    from stretto.server.service import Service

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_MOST_WAITING = 10_000  # runs that have ended and are to be traced
_MOST_IN_REQUEST = 512  # spans
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
        span.below = attempts[step.id]
        top.below.append(span)
    return top


def _attempts(events: Iterable[Event], ended_at: float) -> dict[StepId, list[RunSpan]]:
    found, calls = dict[AttemptId, RunSpan](), dict[AttemptId, int]()
    for event in events:
        match event:
            case AttemptStarted():
                span = RunSpan(f"attempt {event.attempt.number}", event.at, ended_at)
                span.facts = {
                    "stretto.agent": event.agent,
                    "stretto.attempt": event.attempt.number,
                    "stretto.part": event.attempt.part.text,
                }
                found[event.attempt] = span
            case ToolEnded() if event.attempt in found:
                found[event.attempt].below.append(_tool(event))
            case UsageNoted():
                calls[event.attempt] = event.usage.model_calls
            case AttemptSucceeded() | AttemptFailed() | AttemptCancelled():
                if event.attempt in found:
                    calls[event.attempt] = _end(found[event.attempt], event)
            case _:
                pass
    of_steps = defaultdict[StepId, list[RunSpan]](list)
    for id, span in found.items():
        _add_models(span, calls.get(id, 0))
        of_steps[id.step].append(span)
    return of_steps


def _tool(event: ToolEnded) -> RunSpan:
    facts: dict[str, str | int | float] = {
        "stretto.tool": event.tool,
        "stretto.tool.verdict": event.verdict,
        "stretto.tool.result_bytes": event.result_bytes,
    }
    error = "" if event.verdict == "ok" else event.verdict
    began = event.at - event.duration_seconds
    return RunSpan(f"tool {event.tool}", began, event.at, facts, error)


def _end(span: RunSpan, event: AttemptSucceeded | AttemptFailed | AttemptCancelled) -> int:
    """End the span of an attempt. Returns how often a model was asked."""
    span.ended_at = event.at
    span.facts |= {
        "gen_ai.usage.input_tokens": event.usage.input_tokens,
        "gen_ai.usage.output_tokens": event.usage.output_tokens,
    }
    if isinstance(event, AttemptFailed):
        span.error = event.kind
    model = "" if isinstance(event, AttemptCancelled) else event.model
    if model:
        span.facts["gen_ai.response.model"] = model
    return max(event.usage.model_calls, 1 if model else 0)


def _add_models(span: RunSpan, calls: int) -> None:
    """The journal says how often a model was asked, and when tools were at work: the model was asked
    in the longest gaps. Tools of one turn work side by side, or follow each other at once."""
    gaps, free_from = [], span.began_at
    for tool in sorted(span.below, key=lambda each: each.began_at):
        if tool.began_at > free_from:
            gaps.append((free_from, tool.began_at))
        free_from = max(free_from, tool.ended_at)
    gaps.append((free_from, max(free_from, span.ended_at)))
    asked = sorted(gaps, key=lambda gap: gap[0] - gap[1])[:calls]
    models = [RunSpan("model", *gap) for gap in sorted(asked)]
    if models and (model := span.facts.get("gen_ai.response.model")):
        models[-1].facts["gen_ai.response.model"] = model  # another may have been asked before it
    span.below = sorted([*span.below, *models], key=lambda each: each.began_at)


class Traces:
    """Sends the spans of each run that ends here."""

    def __init__(self, tracer: Any, take: Callable[[], Sequence[Any]], exporter: Any) -> None:
        """`take`: the spans that were made since it was called last."""
        self._tracer = tracer
        self._take = take
        self._exporter = exporter
        self._ended: asyncio.Queue[str] = asyncio.Queue(maxsize=_MOST_WAITING)
        self._spans: list[Any] = []  # that are to be sent
        self._sending: asyncio.Future[None] | None = None

    def hear(self, event: Event, state: RunState) -> None:
        """A listener of the engine."""
        if not isinstance(event, RunEnded):
            return
        if self._ended.full():
            _log.warning("stretto: run %s is not traced: the collector is too slow", state.run_id)
        else:
            self._ended.put_nowait(state.run_id)

    async def keep(self, service: "Service") -> None:
        """Until it is cancelled."""
        while True:
            await self._read(service, await self._ended.get())
            await self._send_all()

    async def close(self, service: "Service") -> None:
        """Send what is left, for as long as whoever calls waits."""
        try:
            while not self._ended.empty():
                await self._read(service, self._ended.get_nowait())
            await self._send_all()
        finally:
            self._exporter.shutdown()

    async def _read(self, service: "Service", run_id: str) -> None:
        """The run, and others that have ended by now while they fit into a request with it."""
        while True:
            try:
                history = await service.history(run_id)
                await asyncio.to_thread(lambda: self._make(spans_of(history), None))  # noqa: B023
                self._spans += self._take()
            except StrettoError as error:
                _log.warning("stretto: run %s is not traced: %s", run_id, error.message)
            if len(self._spans) >= _MOST_IN_REQUEST or self._ended.empty():
                return
            run_id = self._ended.get_nowait()

    async def _send_all(self) -> None:
        while self._sending is not None or self._spans:
            if self._sending is None:
                some, self._spans = self._spans[:_MOST_IN_REQUEST], self._spans[_MOST_IN_REQUEST:]
                self._sending = _in_thread(self._exporter.export, some)
            await asyncio.shield(self._sending)  # which goes on if this is cancelled
            self._sending = None

    def _make(self, span: RunSpan, above: Any) -> None:
        from opentelemetry import trace

        context = trace.set_span_in_context(above) if above is not None else None
        began, ended = (int(at * 1e9) for at in (span.began_at, max(span.began_at, span.ended_at)))
        made = self._tracer.start_span(
            span.name, context=context, start_time=began, attributes=span.facts
        )
        if span.error:
            made.set_status(trace.Status(trace.StatusCode.ERROR, span.error))
        for each in span.below:
            self._make(each, made)
        made.end(ended)


def _in_thread(send: Callable[[Sequence[Any]], Any], spans: Sequence[Any]) -> asyncio.Future[None]:
    """In a daemon, unlike asyncio's own threads, for which a process waits when it ends: a collector
    that does not answer holds nothing up."""
    loop = asyncio.get_running_loop()
    sent: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        if not sent.done():
            sent.set_result(None)

    def work() -> None:
        try:
            send(spans)
        except Exception:  # of an exporter: the next request may reach its collector
            _log.exception("stretto: spans could not be sent")
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(tell)

    Thread(target=work, name="stretto-traces", daemon=True).start()
    return sent


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
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    named = {"service.name": environ.get("OTEL_SERVICE_NAME") or "stretto"}
    provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False)
    # Not the SDK's queue: what does not fit into that is lost, and a long run alone does not fit.
    made = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(made))

    def take() -> Sequence[Any]:
        found = made.get_finished_spans()
        made.clear()
        return found

    return Traces(provider.get_tracer("stretto"), take, OTLPSpanExporter())


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def all_spans(span: RunSpan) -> Iterator[RunSpan]:
    yield span
    for each in span.below:
        yield from all_spans(each)
