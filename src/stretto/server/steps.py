"""`/api/runs/RUN/steps/STEP`: what one step was asked, said, did and changed.

The id of a step may hold slashes, as that of a step in a workflow within a workflow: `outer/inner`.
"""

import asyncio
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

from stretto.assembly.changes import change_of, diff_of
from stretto.assembly.json_forms import change_as_json
from stretto.events.codec import UnknownEvent
from stretto.execution.history import History
from stretto.problems.errors import NotFound, StrettoError
from stretto.report.transcript import Log, LogEntry
from stretto.server.answers import JsonAnswer
from stretto.server.bodies import StepDetail, new_router
from stretto.server.service import VIEWER, Service, TheService
from stretto.text.short import shorten
from stretto.vocabulary.ids import StepId
from stretto.workspaces.change import ChangeSet, FileChange
from stretto.workspaces.content import Blobs
from stretto.workspaces.paths import escape_path

router = new_router("steps")
_MOST_PATCH = 200_000  # characters of a patch within an answer; GET …/diff gives all of it
_MOST_ENTRIES = 2_000
_MOST_FILE_BYTES = 32 * 2**20
Step = Annotated[str, Query(min_length=1, max_length=500)]


@router.get(
    "/api/runs/{run_id}/steps/{step:path}", dependencies=[VIEWER], response_model=StepDetail
)
async def show_step(run_id: str, step: str, service: TheService) -> JsonAnswer:
    """One step: its report, its prompt, its transcript, its change."""
    run = service.stretto.open(run_id)
    history = await run.history(with_speech=True)
    history.step(step)  # raises NotFound
    report = await run.report(wait=False)
    project = service.stretto.engine.project_of(history)
    entries = await asyncio.to_thread(_transcript, history, step)
    hide = project.redactor.text
    diff, artifacts = await asyncio.to_thread(_change, service, history, step)
    return JsonAnswer(
        {
            "ok": True,
            "run_id": run_id,
            "step": step,
            "report": report.json()["steps"][step],
            "prompt": hide(next((e.text for e in reversed(entries) if e.kind == "prompt"), "")),
            "transcript": [{**asdict(each), "text": hide(each.text)} for each in entries],
            "diff": diff,
            "artifacts": artifacts,
        }
    )


def _transcript(history: History, step: str) -> list[LogEntry]:
    log = Log(history.state.plan)
    found = [
        entry
        for event in history.events
        if not isinstance(event, UnknownEvent)
        for entry in log.read(event)
        if entry.step == step
    ]
    return found[-_MOST_ENTRIES:]


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
    content = await asyncio.to_thread(_file, changes, path)
    text = content.decode("utf-8", "surrogateescape")
    safe = project.redactor.text(text).encode("utf-8", "surrogateescape")
    return Response(
        safe, media_type="application/octet-stream", headers={"Content-Disposition": "attachment"}
    )


def _file(changes: ChangeSet, path: str) -> bytes:
    for each in changes.changes:
        if path in (each.path, escape_path(each.path)) and each.after is not None:
            if each.after.kind != "file" or each.after.size > _MOST_FILE_BYTES:
                raise NotFound(f"'{path[:200]}' is a link, or too large to be sent")
            return Blobs(changes.objects).read(each.after.digest)
    raise NotFound(f"the step left no file '{path[:200]}'")
