"""What a run did. In: RunState. Out: Report. Nothing is in it that the journal does not hold."""

from dataclasses import dataclass
from datetime import UTC, datetime

from weft.schedule.result import output_of
from weft.schedule.state import RunState, StepState
from weft.vocabulary.statuses import RunStatus, StepStatus
from weft.vocabulary.usage import Usage
from weft.vocabulary.values import Json


@dataclass(frozen=True, slots=True)
class StepReport:
    id: str
    agents: tuple[str, ...]
    status: str
    output: Json
    outputs: dict[str, Json] | None
    attempts: int
    retries: int
    started_at: float | None
    ended_at: float | None
    error: str | None
    usage: Usage

    @property
    def duration_seconds(self) -> float | None:
        if self.started_at is None or self.ended_at is None:
            return None
        return self.ended_at - self.started_at


@dataclass(frozen=True, slots=True)
class Report:
    run_id: str
    workflow: str
    status: str
    output: Json
    steps: tuple[StepReport, ...]
    warnings: tuple[str, ...]
    deployed: int
    retries: int
    usage: Usage
    duration_seconds: float

    def count(self, *statuses: StepStatus) -> int:
        return sum(step.status in statuses for step in self.steps)


def report_of(state: RunState) -> Report:
    steps = tuple(_step(step) for step in state.order)
    ended = state.ended_at if state.ended_at is not None else state.now
    return Report(
        run_id=state.run_id,
        workflow=state.plan.name,
        status=state.status.value,
        output=output_of(state),
        steps=steps,
        warnings=state.all_warnings,
        deployed=state.deployed,
        retries=sum(step.retries for step in steps),
        usage=state.usage,
        duration_seconds=max(0.0, ended - (state.started_at or ended)),
    )


def _step(step: StepState) -> StepReport:
    attempts = list(step.attempts)
    return StepReport(
        id=step.id,
        agents=tuple(dict.fromkeys(attempt.agent for attempt in attempts)),
        status=step.status.value,
        output=step.output,
        outputs=step.outputs,
        attempts=len(attempts),
        # The first attempt of each part is no retry.
        retries=sum(max(0, len(part.attempts) - 1) for part in step.parts.values()),
        started_at=step.started_at,
        ended_at=step.ended_at,
        error=step.error,
        usage=step.usage,
    )


def report_as_json(report: Report) -> dict[str, object]:
    return {
        "type": "report",
        "ok": report.status == RunStatus.COMPLETE,
        "run_id": report.run_id,
        "workflow": report.workflow,
        "status": report.status,
        "output": report.output,
        "steps": {step.id: _step_as_json(step) for step in report.steps},
        "warnings": list(report.warnings),
        "usage": _usage(report.usage),
        "duration_seconds": round(report.duration_seconds, 3),
    }


def _step_as_json(step: StepReport) -> dict[str, object]:
    duration = step.duration_seconds
    return {
        "status": step.status,
        "output": step.output,
        "outputs": step.outputs,
        "attempts": step.attempts,
        "started_at": iso(step.started_at),
        "ended_at": iso(step.ended_at),
        "duration_seconds": None if duration is None else round(duration, 3),
        "error": step.error,
        "usage": _usage(step.usage),
    }


def _usage(usage: Usage) -> dict[str, object]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "usd": usage.usd,
        "model_calls": usage.model_calls,
    }


def iso(at: float | None) -> str | None:
    return (
        None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    )
