"""`/metrics`: what Prometheus asks for. In: events of runs and requests. Out: text."""

import asyncio
import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import Response

from stretto.events.model import (
    ApprovalRequested,
    AttemptCancelled,
    AttemptFailed,
    AttemptStarted,
    AttemptSucceeded,
    Event,
    RunEnded,
    RunStarted,
    ToolEnded,
)
from stretto.schedule.state import RunState
from stretto.server.bodies import new_router
from stretto.server.service import VIEWER, Service, TheService

if TYPE_CHECKING:
    from stretto.vocabulary.amounts import Usage

router = new_router("metrics")
_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_HELP = {
    "stretto_runs_started_total": "Runs that began here",
    "stretto_runs_ended_total": "Runs that ended here, by status",
    "stretto_attempts_started_total": "Attempts of subagents and commands",
    "stretto_attempts_failed_total": "Attempts that failed, by kind",
    "stretto_tool_calls_total": "Calls of tools, by verdict",
    "stretto_approvals_requested_total": "Steps that awaited a person",
    "stretto_tokens_total": "Tokens of models, by direction",
    "stretto_usd_total": "What models cost, where their price is known",
    "stretto_http_requests_total": "Requests, by method and status",
    "stretto_http_request_seconds_total": "Time until they were answered",
}
_GAUGES = {
    "stretto_runs_driven": "Runs that this server drives",
    "stretto_event_streams": "Open streams of events",
    "process_resident_memory_bytes": "Memory in use",
}
_SHARE_SECONDS = 1.0
_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")


class Metrics:
    def __init__(self, shared: Path | None = None) -> None:
        """`shared`: a folder where the workers of one server leave their figures for each other."""
        self._counts: Counter[tuple[str, str]] = Counter()
        self._shared = shared

    async def share(self, service: Service) -> None:
        """Leave the figures for the other workers now and then, until it is cancelled."""
        while True:
            await asyncio.sleep(_SHARE_SECONDS)
            self._leave(service)

    def _leave(self, service: Service) -> None:
        """Write the figures to this worker's file, whole or not at all. Whoever asks sums up the
        files alone, this worker too, so a counter never falls from one answer to the next."""
        assert self._shared is not None
        file = self._shared / f"{os.getpid()}.json"
        counts = [[*key, value] for key, value in self._counts.items()]
        draft = file.with_suffix(".draft")
        with suppress(OSError):  # a full disk: the figures are late
            draft.write_text(json.dumps({"counts": counts, "gauges": _gauges(service)}))
            draft.replace(file)

    def _of_all(self, service: Service) -> "tuple[Counter[tuple[str, str]], Counter[str]]":
        if self._shared is None:
            return self._counts, Counter(_gauges(service))
        self._leave(service)
        counts, gauges = Counter[tuple[str, str]](), Counter[str]()
        for file in self._shared.glob("*.json"):
            try:
                left = json.loads(file.read_text())
            except (OSError, ValueError):
                continue
            for name, labels, value in left["counts"]:
                counts[name, labels] += value
            if _is_alive(int(file.stem)):
                gauges.update(left["gauges"])
        return counts, gauges

    def hear(self, event: Event, state: RunState) -> None:
        """A listener of the engine: of every event of every run that is driven here."""
        match event:
            case RunStarted():
                self._add("stretto_runs_started_total")
            case RunEnded():
                self._add("stretto_runs_ended_total", f'status="{event.status}"')
            case AttemptStarted():
                self._add("stretto_attempts_started_total")
            case AttemptSucceeded() | AttemptCancelled():
                self._add_usage(event.usage)
            case AttemptFailed():
                self._add("stretto_attempts_failed_total", f'kind="{event.kind}"')
                self._add_usage(event.usage)
            case ToolEnded():
                self._add("stretto_tool_calls_total", f'verdict="{event.verdict}"')
            case ApprovalRequested():
                self._add("stretto_approvals_requested_total")
            case _:
                pass

    def count_request(self, method: str, status: int, seconds: float) -> None:
        known = method if method in _METHODS else "other"
        self._add("stretto_http_requests_total", f'method="{known}",status="{status}"')
        self._add("stretto_http_request_seconds_total", "", seconds)

    def _add_usage(self, usage: "Usage") -> None:
        self._add("stretto_tokens_total", 'direction="input"', usage.input_tokens)
        self._add("stretto_tokens_total", 'direction="output"', usage.output_tokens)
        self._add("stretto_usd_total", "", usage.usd or 0.0)

    def _add(self, name: str, labels: str = "", value: float = 1.0) -> None:
        self._counts[name, labels] += value  # type: ignore[assignment]

    def lines(self, service: Service) -> Iterator[str]:
        counts, gauges = self._of_all(service)
        for name, says in _HELP.items():
            yield f"# HELP {name} {says}"
            yield f"# TYPE {name} counter"
            found = {labels: v for (known, labels), v in counts.items() if known == name}
            for labels, value in sorted((found or {"": 0}).items()):
                yield (
                    f"{name}{{{labels}}} {_number(value)}" if labels else f"{name} {_number(value)}"
                )
        for name, says in _GAUGES.items():
            yield f"# HELP {name} {says}"
            yield f"# TYPE {name} gauge"
            yield f"{name} {gauges[name]}"


def _number(value: float) -> str:
    """With every digit: a rate is the difference of two of them."""
    return str(int(value)) if value == int(value) else repr(value)


def _gauges(service: Service) -> dict[str, int]:
    return {
        "stretto_runs_driven": len(service.stretto.engine.tasks),
        "stretto_event_streams": service.open_streams,
        "process_resident_memory_bytes": resident_bytes(),
    }


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def resident_bytes() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):  # a system without /proc
        return 0


@router.get(
    "/metrics",
    dependencies=[VIEWER],
    response_model=None,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def show_metrics(service: TheService) -> Response:
    """Counters and gauges, as Prometheus reads them."""
    text = "\n".join(service.metrics.lines(service)) + "\n"
    return Response(text, media_type=_TYPE)
