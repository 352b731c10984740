"""The report as JSON: `{"type": "report", "ok": …}`, the same on every surface."""

from collections.abc import Iterator
from json import JSONEncoder

from stretto.problems.render import as_json
from stretto.report.conclusion import conclusion_of
from stretto.report.model import CallsReport, ChangesReport, PathStep, Report, StepReport
from stretto.vocabulary.amounts import iso, usage_as_json


def report_as_json(report: Report) -> dict[str, object]:
    return {**_head(report), "steps": dict(_steps(report)), **_tail(report)}


def report_as_json_text(report: Report, *, ensure_ascii: bool = True) -> Iterator[str]:
    """The same as text, piece by piece: the outputs of all steps may not fit into memory together."""
    write = JSONEncoder(ensure_ascii=ensure_ascii).encode
    yield f'{write(_head(report))[:-1]}, "steps": {{'
    for number, (id, step) in enumerate(_steps(report)):
        yield f"{', ' if number else ''}{write(id)}: {write(step)}"
    yield f"}}, {write(_tail(report))[1:]}"


def _steps(report: Report) -> Iterator[tuple[str, dict[str, object]]]:
    return ((step.id, _step(step)) for step in report.steps)


def _head(report: Report) -> dict[str, object]:
    return {
        "type": "report",
        "ok": report.is_ok,
        "run_id": report.run_id,
        "workflow": report.workflow,
        "status": report.status,
        "output": report.output,
    }


def _tail(report: Report) -> dict[str, object]:
    conclusion = conclusion_of(report)
    return {
        "warnings": list(report.warnings),
        "recipe_warnings": [as_json(warning) for warning in report.recipe_warnings],
        "usage": usage_as_json(report.usage),
        "duration_seconds": round(report.duration_seconds, 3),
        "started_at": iso(report.started_at),
        "ended_at": iso(report.ended_at),
        "critical_path": [_path_step(step) for step in report.critical_path],
        "resumed": bool(report.resumed_at),
        "retries": report.retries,
        "agents_deployed": report.agents_deployed,
        "parent": report.parent,
        "trigger": report.trigger or None,
        "summary": conclusion.says,
        "next": [each.command for each in conclusion.commands],
    }


def _step(step: StepReport) -> dict[str, object]:
    duration = step.duration_seconds
    return {
        "status": step.status,
        "output": step.output,
        "outputs": step.outputs,
        "attempts": len(step.attempts),
        "started_at": iso(step.started_at),
        "ended_at": iso(step.ended_at),
        "duration_seconds": None if duration is None else round(duration, 3),
        "error": step.error,
        "usage": usage_as_json(step.usage),
        "warnings": list(step.warnings),
        "tool_calls": _calls(step.calls),
        "playbooks": list(step.playbooks),
        **({"changes": _changes(step.changes)} if step.changes else {}),
        **_command(step),
    }


def _command(step: StepReport) -> dict[str, object]:
    """How the last command of the step ended; nothing for a step without one."""
    ended = [attempt for attempt in step.attempts if attempt.exit_code is not None]
    return {"exit_code": ended[-1].exit_code, "stderr": ended[-1].stderr} if ended else {}


def _calls(calls: CallsReport) -> dict[str, object]:
    return {"made": calls.made, "refused": calls.refused, "failed": calls.failed}


def _changes(changes: ChangesReport) -> dict[str, object]:
    return {
        "files": changes.files,
        "insertions": changes.insertions,
        "deletions": changes.deletions,
        "merged": changes.is_merged,
        "standing": changes.standing,
        "applied_by": changes.applied_by,
        "conflicts": list(changes.conflicts),
        "artifact": changes.artifact,
    }


def _path_step(step: PathStep) -> dict[str, object]:
    return {
        "step": step.step,
        "duration_seconds": round(step.duration_seconds, 3),
        "waited_seconds": round(step.waited_seconds, 3),
        "waited_for": step.waited_for,
    }
