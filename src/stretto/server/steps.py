"""`/api/runs/RUN/steps/STEP`: what one step was asked, said, did and changed.

The id of a step may hold slashes, as that of a step in a workflow within a workflow: `outer/inner`.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

from stretto.assembly.changes import change_of, diff_of
from stretto.assembly.json_forms import change_as_json
from stretto.execution.history import History
from stretto.problems.errors import NotFound, StrettoError
from stretto.report.model import AttemptReport, StepReport
from stretto.report.reasons import Why, standing_of
from stretto.report.transcript import Log, LogEntry
from stretto.schedule.places import answerers
from stretto.schedule.state import NO_USAGE, PartState, StepState
from stretto.server.answers import JsonAnswer
from stretto.server.bodies import StepDetail, new_router
from stretto.server.runs import why_as_json
from stretto.server.service import VIEWER, Service, TheService
from stretto.templates.render import as_text
from stretto.text.short import did_you_mean, shorten
from stretto.vocabulary.amounts import iso, usage_as_json
from stretto.vocabulary.names import StepId
from stretto.vocabulary.statuses import INTERRUPTED
from stretto.workspaces.change import ChangeSet, FileChange
from stretto.workspaces.content import Blobs
from stretto.workspaces.paths import escape_path

router = new_router("steps")
_MOST_PATCH = 200_000  # characters of a patch within an answer; GET …/diff gives all of it
_MOST_ENTRIES = 2_000
_MOST_ATTEMPTS = 500
_MOST_OF_PART = 200  # characters of what a part answered; ?part= gives all of it
_MOST_FILE_BYTES = 32 * 2**20
Step = Annotated[str, Query(min_length=1, max_length=500)]


@router.get(
    "/api/runs/{run_id}/steps/{step:path}", dependencies=[VIEWER], response_model=StepDetail
)
async def show_step(
    run_id: str,
    step: str,
    service: TheService,
    part: Annotated[
        str | None, Query(max_length=500, description="of `parts`: its attempts and words alone")
    ] = None,
) -> JsonAnswer:
    """One step: its report, its prompt, its parts and attempts, its transcript, its change. A step has
    a part for each branch, try or element, and one without a name where it has no such parts."""
    run = service.stretto.open(run_id)
    history = await run.history(with_speech=True)
    found = history.step(step)  # raises NotFound
    if part is not None:
        _check_part(found, part)
    report = await run.report_of(history)
    project = service.stretto.engine.project_of(history)
    hide = project.redactor.text
    entries = await asyncio.to_thread(_transcript, history, step, part, hide)
    diff, artifacts = await asyncio.to_thread(_change, service, history, step)
    tried = [each for each in report.steps[step].attempts if part in (None, each.part)]
    standing = standing_of(history.state, is_interrupted=report.steps[step].status == INTERRUPTED)
    shown = {
        "report": report.json()["steps"][step],
        "prompt": next((e.text for e in reversed(entries) if e.kind == "prompt"), ""),
        "model": next((each.model for each in reversed(tried) if each.model), "")
        or ", ".join(_asked_models(history, report.steps[step])),
        "standing": why_as_json(standing.steps.get(StepId(step), Why(""))),
        **_parts(found, part),
        "attempts": [_attempt(each) for each in tried[-_MOST_ATTEMPTS:]],
        "transcript": [asdict(each) for each in entries],
    }
    place = {"ok": True, "run_id": run_id, "step": step, "cursor": history.last_seq}
    return JsonAnswer({**place, **shown, "diff": diff, "artifacts": artifacts})


def _asked_models(history: History, step: StepReport) -> Iterable[str]:
    """The models that are to answer, as long as none has."""
    models = (each.model or None for each in step.delegations)
    return dict.fromkeys(answerers(history.state, model, ())[0] for model in models)


def _parts(step: StepState, part: str | None) -> dict[str, object]:
    parts = step.parts.values()
    return {
        "validation": step.validation,
        "parts": [_part(each) for each in parts],
        "part_output": next((each.output for each in parts if each.name == part), None),
    }


def _check_part(step: StepState, part: str) -> None:
    names = [each.name for each in step.parts.values()]
    if part not in names:
        hint = did_you_mean(part, names) or "its `parts` are listed without this parameter"
        raise NotFound(f"step '{step.id}' has no part '{part[:100]}'", hint=hint)


def _part(part: PartState) -> dict[str, Any]:
    began = [each.started_at for each in part.attempts if each.started_at is not None]
    ended = [each.ended_at for each in part.attempts if each.ended_at is not None]
    is_over = part.status in ("succeeded", "failed", "cancelled")
    error = part.failure.error if part.failure else ""
    return {
        "part": part.name,
        "agent": part.agent,
        "status": part.status,
        "attempts": len(part.attempts),
        "started_at": iso(min(began, default=None)),
        "ended_at": iso(max(ended, default=None)) if is_over else None,
        "usage": usage_as_json(sum((each.usage for each in part.attempts), NO_USAGE)),
        "error": error or None,
        "says": shorten(as_text(part.output), _MOST_OF_PART) if part.status == "succeeded" else "",
    }


def _attempt(attempt: AttemptReport) -> dict[str, Any]:
    return {
        "part": attempt.part,
        "number": attempt.number,
        "agent": attempt.agent,
        "model": attempt.model,
        "status": attempt.status,
        "started_at": iso(attempt.started_at),
        "ended_at": iso(attempt.ended_at),
        "failure": attempt.failure,
        "error": attempt.error,
        "usage": usage_as_json(attempt.usage),
        "provider_retries": list(attempt.provider_retries),
        "playbooks": list(attempt.playbooks),
        "reused_from": attempt.reused_from,
    }


def _transcript(
    history: History, step: str, part: str | None, hide: Callable[[str], str]
) -> list[LogEntry]:
    """A model's words come in hundreds of pieces, which are one entry here. `hide`: redacts a text, which
    takes seconds where an answer has megabytes."""
    log = Log(history.state.plan)
    found: list[LogEntry] = []
    pieces: list[str] = []

    def close() -> None:
        if len(pieces) > 1:
            found[-1] = replace(found[-1], text="".join(pieces))
        pieces.clear()

    for event in history.events:
        for entry in log.read(event):
            if entry.step != step or part not in (None, entry.part):
                continue
            goes_on = bool(pieces) and entry.kind == "words" and found[-1].place == entry.place
            if not goes_on:
                close()
                found.append(entry)
            if entry.kind == "words":
                pieces.append(entry.text)
    close()
    return [replace(each, text=hide(each.text)) for each in found[-_MOST_ENTRIES:]]


def _change(
    service: Service, history: History, step: str
) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """None: it changed nothing, or what it changed is not kept any more."""
    if history.state.steps[StepId(step)].changes is None:
        return None, []
    project = service.stretto.engine.project_of(history)
    try:
        changes = change_of(project, history, step)
        diff: dict[str, Any] = change_as_json(diff_of(project, history, step))
    except StrettoError:
        return None, []
    diff["patch"] = shorten(str(diff["patch"]), _MOST_PATCH)
    return diff, [_artifact(each) for each in changes.changes]


def _artifact(each: FileChange) -> dict[str, Any]:
    was, now = each.before is not None, each.after is not None
    word = "changed" if was and now else "added" if now else "removed"
    return {"path": escape_path(each.path), "change": word, "renamed_from": each.renamed_from}


@router.get(
    "/api/runs/{run_id}/diff",
    dependencies=[VIEWER],
    response_model=None,
    responses={200: {"content": {"text/x-diff": {"schema": {"type": "string"}}}}},
)
async def show_diff(run_id: str, step: Step, service: TheService) -> Response:
    """What a step changed in its own copy of the workspace, as `git apply` takes it."""
    change = await service.stretto.open(run_id).diff(step)
    return Response(change.patch, media_type="text/x-diff")


@router.get(
    "/api/runs/{run_id}/artifacts",
    dependencies=[VIEWER],
    response_model=None,
    responses={200: {"content": {"application/octet-stream": {}}}},
)
async def show_artifact(
    run_id: str,
    step: Step,
    path: Annotated[str, Query(min_length=1, max_length=4096)],
    service: TheService,
) -> Response:
    """A file as a step left it. Values of secrets are shown as [redacted]."""
    history = await service.history(run_id)
    project = service.stretto.engine.project_of(history)
    changes = await asyncio.to_thread(change_of, project, history, step)
    safe = await asyncio.to_thread(_safe_file, changes, path, project.redactor.text)
    return Response(
        safe, media_type="application/octet-stream", headers={"Content-Disposition": "attachment"}
    )


def _safe_file(changes: ChangeSet, path: str, hide: Callable[[str], str]) -> bytes:
    text = _file(changes, path).decode("utf-8", "surrogateescape")
    return hide(text).encode("utf-8", "surrogateescape")


def _file(changes: ChangeSet, path: str) -> bytes:
    for each in changes.changes:
        if path in (each.path, escape_path(each.path)) and each.after is not None:
            if each.after.kind != "file" or each.after.size > _MOST_FILE_BYTES:
                raise NotFound(f"'{path[:200]}' is a link, or too large to be sent")
            return Blobs(changes.objects).read(each.after.digest)
    raise NotFound(f"the step left no file '{path[:200]}'")
