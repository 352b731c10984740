"""`/api/schedules`, `/api/hooks` and `/hooks/ID`: what starts runs by itself, and deliveries to webhooks."""

import asyncio
import logging
from itertools import islice
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import Query, Request
from pydantic import Field

from stretto.problems.errors import NotFound
from stretto.server.answers import BodyTooLarge, JsonAnswer
from stretto.server.bodies import (
    ApiAnswer,
    ListAnswer,
    Permission,
    ShortText,
    StrictBody,
    new_router,
)
from stretto.server.service import (
    AUTHOR,
    IF_WORKFLOWS,
    OPERATOR,
    VIEWER,
    Asker,
    Service,
    TheService,
)
from stretto.triggers.arrivals import MOST_BODY_BYTES
from stretto.triggers.cron import CronSchedule, in_words, next_fires
from stretto.triggers.trigger import Trigger, fire_as_json, trigger_as_json
from stretto.vocabulary.amounts import iso

router = new_router("schedules")
Overlap: TypeAlias = Literal["skip", "queue", "cancel-previous", "allow"]
_AGAIN_SECONDS = 5.0
_log = logging.getLogger("stretto.server")


class ScheduleBody(StrictBody):
    name: ShortText
    workflow: ShortText
    cron: ShortText
    zone: ShortText = "UTC"
    inputs: dict[str, Any] = Field(default_factory=dict)
    missed: Literal["skip", "once", "all"] = "once"
    overlap: Overlap = "skip"
    permission: Permission | None = None


class HookBody(StrictBody):
    name: ShortText
    workflow: ShortText
    mapping: dict[str, str] = Field(default_factory=dict, max_length=1000)
    inputs: dict[str, Any] = Field(default_factory=dict)
    overlap: Overlap = "allow"
    permission: Permission | None = None


class FolderBody(StrictBody):
    name: ShortText
    workflow: ShortText
    folder: ShortText
    input: ShortText
    pattern: ShortText = "*"
    settle_seconds: float = Field(2.0, gt=0, le=3600)
    existing: bool = False
    inputs: dict[str, Any] = Field(default_factory=dict)
    overlap: Overlap = "queue"
    permission: Permission | None = None


class ChangedTrigger(StrictBody):
    """What is to be otherwise; what is not named stays. `cron`, `zone` and `missed` are a schedule's,
    `mapping` is a webhook's; `folder`, `pattern`, `input` and `settle_seconds` are a folder's, and
    with `existing` files that are in another folder already count too."""

    workflow: ShortText | None = None
    inputs: dict[str, Any] | None = None
    overlap: Overlap | None = None
    permission: Permission | None = None
    cron: ShortText | None = None
    zone: ShortText | None = None
    missed: Literal["skip", "once", "all"] | None = None
    mapping: dict[str, str] | None = Field(None, max_length=1000)
    folder: ShortText | None = None
    pattern: ShortText | None = None
    input: ShortText | None = None
    settle_seconds: float | None = Field(None, gt=0, le=3600)
    existing: bool | None = None


class SchedulePreview(StrictBody):
    cron: ShortText
    zone: ShortText = "UTC"


async def fire_triggers(service: Service) -> None:
    """A chore of the server: fire until it is cancelled."""
    while True:
        try:
            await service.stretto.triggers.serve()
        except Exception:  # whatever it is, the server goes on, and the triggers are tried again
            _log.exception("stretto: the triggers have stopped, and begin again")
        await asyncio.sleep(_AGAIN_SECONDS)


@router.get("/api/schedules", dependencies=[VIEWER, IF_WORKFLOWS], response_model=ListAnswer)
async def list_schedules(service: TheService) -> JsonAnswer:
    """Schedules, webhooks and watched folders: `schedules`."""
    triggers = service.stretto.triggers
    return _answer_list([await _row(service, each) for each in await triggers.list()], "schedules")


@router.get("/api/hooks", dependencies=[VIEWER, IF_WORKFLOWS], response_model=ListAnswer)
async def list_hooks(service: TheService) -> JsonAnswer:
    """Webhooks alone: `hooks`. A secret is told when its hook is made, and never again."""
    found = [each for each in await service.stretto.triggers.list() if each.kind == "webhook"]
    return _answer_list([await _row(service, each) for each in found], "hooks")


def _answer_list(rows: list[dict[str, Any]], noun: str) -> JsonAnswer:
    return JsonAnswer({"ok": True, noun: rows})


async def _row(service: Service, trigger: Trigger) -> dict[str, Any]:
    coming = await service.stretto.triggers.next(trigger.name, 1)
    says = {"says": in_words(trigger.cron)} if trigger.kind == "schedule" else {}
    return {**trigger_as_json(trigger), **says, "next_at": iso(coming[0]) if coming else None}


@router.post("/api/schedules", dependencies=[AUTHOR, IF_WORKFLOWS], response_model=ApiAnswer)
async def add_schedule(body: ScheduleBody, service: TheService) -> JsonAnswer:
    """Run a saved workflow at the times of a cron expression."""
    given = body.model_dump(exclude={"name", "workflow", "cron"})
    made = await service.stretto.triggers.add_schedule(body.name, body.workflow, body.cron, **given)
    return JsonAnswer({"ok": True, "schedule": await _row(service, made)}, 201)


@router.post("/api/folders", dependencies=[AUTHOR, IF_WORKFLOWS], response_model=ApiAnswer)
async def add_folder(body: FolderBody, service: TheService, asker: Asker) -> JsonAnswer:
    """Run a saved workflow for each file that comes into a folder of the project; an admin names any."""
    service.check_folder(asker, body.folder)
    given = body.model_dump(exclude={"name", "workflow", "folder"})
    made = await service.stretto.triggers.add_folder(body.name, body.workflow, body.folder, **given)
    return JsonAnswer({"ok": True, "schedule": await _row(service, made)}, 201)


@router.post("/api/hooks", dependencies=[AUTHOR, IF_WORKFLOWS], response_model=ApiAnswer)
async def add_hook(body: HookBody, service: TheService) -> JsonAnswer:
    """Run a saved workflow when somebody posts to `/hooks/ID`. The answer has the `secret`, this once."""
    given = body.model_dump(exclude={"name", "workflow"})
    made = await service.stretto.triggers.add_webhook(body.name, body.workflow, **given)
    shown = await _row(service, made.trigger)
    return JsonAnswer({"ok": True, "hook": shown, "secret": made.secret}, 201)


@router.post(
    "/api/schedules/preview", dependencies=[VIEWER, IF_WORKFLOWS], response_model=ApiAnswer
)
async def preview_schedule(body: SchedulePreview, service: TheService) -> JsonAnswer:
    """What an expression would mean: `says` in words, and its `next` three fires. Nothing is added."""
    schedule = CronSchedule(body.cron, body.zone).check()
    coming = list(islice(next_fires(schedule, service.stretto.engine.now()), 3))
    return JsonAnswer({"ok": True, "says": in_words(body.cron), "next": list(map(iso, coming))})


@router.get("/api/schedules/{name}", dependencies=[VIEWER, IF_WORKFLOWS], response_model=ApiAnswer)
async def show_schedule(
    name: str, service: TheService, limit: Annotated[int, Query(ge=1, le=1000)] = 20
) -> JsonAnswer:
    """One of them, and what became of its fires, newest first: `schedule`, `fires`."""
    triggers = service.stretto.triggers
    found = await triggers.show(name)
    fires = [fire_as_json(each) for each in await triggers.fires(name, limit)]
    return JsonAnswer({"ok": True, "schedule": await _row(service, found), "fires": fires})


@router.get(
    "/api/schedules/{name}/next", dependencies=[VIEWER, IF_WORKFLOWS], response_model=ApiAnswer
)
async def show_next(
    name: str, service: TheService, count: Annotated[int, Query(ge=1, le=1000)] = 5
) -> JsonAnswer:
    """When a schedule fires next: `next`."""
    found = await service.stretto.triggers.next(name, count)
    return JsonAnswer({"ok": True, "next": [iso(at) for at in found]})


@router.put("/api/schedules/{name}", dependencies=[AUTHOR, IF_WORKFLOWS], response_model=ApiAnswer)
async def change_schedule(
    name: str, body: ChangedTrigger, service: TheService, asker: Asker
) -> JsonAnswer:
    """Set a trigger otherwise. What it has fired, and a webhook's address and secret, stay."""
    if body.folder is not None:
        service.check_folder(asker, body.folder)
    given = body.model_dump(exclude_unset=True)
    made = await service.stretto.triggers.change(name, **given)
    return JsonAnswer({"ok": True, "schedule": await _row(service, made)})


@router.delete(
    "/api/schedules/{name}", dependencies=[AUTHOR, IF_WORKFLOWS], response_model=ApiAnswer
)
async def remove_schedule(name: str, service: TheService) -> JsonAnswer:
    """Remove it. The runs that it has started stay."""
    await service.stretto.triggers.remove(name)
    return JsonAnswer({"ok": True})


@router.post(
    "/api/schedules/{name}/pause", dependencies=[AUTHOR, IF_WORKFLOWS], response_model=ApiAnswer
)
async def pause_schedule(name: str, service: TheService) -> JsonAnswer:
    """Fire no more until it is resumed."""
    found = await service.stretto.triggers.pause(name)
    return JsonAnswer({"ok": True, "schedule": await _row(service, found)})


@router.post(
    "/api/schedules/{name}/resume", dependencies=[AUTHOR, IF_WORKFLOWS], response_model=ApiAnswer
)
async def resume_schedule(name: str, service: TheService) -> JsonAnswer:
    """Fire again, from now on."""
    found = await service.stretto.triggers.resume(name)
    return JsonAnswer({"ok": True, "schedule": await _row(service, found)})


@router.post(
    "/api/schedules/{name}/run-now", dependencies=[OPERATOR, IF_WORKFLOWS], response_model=ApiAnswer
)
async def run_now(name: str, service: TheService, asker: Asker) -> JsonAnswer:
    """Fire now, for whoever asks. The run starts within a second; its id is told at once."""
    service.check_serving()
    fire = await service.stretto.triggers.fire(name, owner=asker.name)
    return JsonAnswer({"ok": True, "run_id": fire.run_id, "status": "queued"}, 202)


@router.post(
    "/api/hooks/{name}/rotate", dependencies=[AUTHOR, IF_WORKFLOWS], response_model=ApiAnswer
)
async def rotate_secret(name: str, service: TheService) -> JsonAnswer:
    """Give a webhook a new `secret`; the old one counts no more."""
    made = await service.stretto.triggers.rotate(name)
    return JsonAnswer({"ok": True, "secret": made.secret})


@router.post("/hooks/{hook}", response_model=ApiAnswer)
async def deliver(hook: str, request: Request, service: TheService) -> JsonAnswer:
    """A delivery, signed with the hook's secret. It is on record before this answers."""
    if not service.stretto.project.settings.are_workflows_served:
        raise NotFound("there is no such webhook")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BODY_BYTES:
            raise BodyTooLarge(f"a delivery has at most {MOST_BODY_BYTES:,} bytes")
    stamp = request.headers.get("x-stretto-timestamp", "")
    signed = request.headers.get("x-stretto-signature", "")
    fire = await service.stretto.triggers.deliver(hook, stamp, signed, bytes(body))
    return JsonAnswer({"ok": True, "run_id": fire.run_id, "status": "queued"}, 202)
