"""`/api/runs`, and all that starts one: saved workflows, recipes as they are, tasks, batches."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import Header, Query
from fastapi.routing import APIRoute
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from stretto.assembly.arguments import check_budget, check_status
from stretto.assembly.json_forms import applied_as_json
from stretto.assembly.request import RunRequest
from stretto.assembly.run_list import RunFilter, page_of_runs, run_as_json
from stretto.execution.history import History
from stretto.lead.tasks import (
    BATCH,
    TASK_NAME,
    batch_as_json,
    batch_inputs,
    batch_recipe,
    read_tasks,
    task_recipe,
)
from stretto.plan.model import PlannedStep, briefs
from stretto.problems.errors import InvalidUsage, NotFound, StrettoError
from stretto.recipe.model import Recipe
from stretto.report.reasons import Standing, Why, standing_of
from stretto.server.answers import JsonAnswer
from stretto.server.bodies import (
    AgainBody,
    ApiAnswer,
    ApplyBody,
    BatchBody,
    CancelBody,
    ForkBody,
    InlineRun,
    ReportAnswer,
    ResumeBody,
    RunAnswer,
    RunBody,
    RunChanges,
    RunsAnswer,
    Started,
    TaskBody,
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
from stretto.server.starts import answer, digest_of_body, start
from stretto.server.workflows import recipe_given, saved_entry
from stretto.text.short import did_you_mean
from stretto.vocabulary.amounts import iso, parse_duration
from stretto.vocabulary.names import RunId
from stretto.vocabulary.statuses import INTERRUPTED

router = new_router("runs")
Key = Annotated[str | None, Header(alias="Idempotency-Key")]
_TRIGGER = "http"
_MOST_TOUCHES = 5_000  # events that are looked through for the steps that they are about
_OF_STARTS: dict[int | str, dict[str, Any]] = {
    200: {"model": ReportAnswer, "description": "The report; or what a dry run found"},
    202: {"model": Started, "description": "It has started; the request did not wait for its end"},
}
# A report is a page of its own, without scripts; what models said is text in it.
_PAGE = {
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Frame-Options": "SAMEORIGIN",
}


@router.post(
    "/api/workflows/{name}/run",
    dependencies=[OPERATOR, IF_WORKFLOWS],
    responses=_OF_STARTS,
    response_model=None,
)
async def run_workflow(
    name: str, body: RunBody, service: TheService, asker: Asker, key: Key = None
) -> Response:
    """Start a saved workflow. Its start is in the journal before this answers."""

    def find() -> Recipe:
        return saved_entry(service, name).recipe

    return await _run(service, asker, find, body, key, f"workflows/{name}")


def declared_start() -> APIRoute:
    """The route of `run_workflow`, as it was declared."""
    routes = (each for each in router.routes if isinstance(each, APIRoute))
    return next(each for each in routes if each.endpoint is run_workflow)


@router.post(
    "/api/runs", dependencies=[AUTHOR, IF_WORKFLOWS], responses=_OF_STARTS, response_model=None
)
async def run_recipe(
    body: InlineRun, service: TheService, asker: Asker, key: Key = None
) -> Response:
    """Start a run of a recipe that is not saved."""
    find = partial(recipe_given, service, body.recipe)
    return await _run(service, asker, find, body, key, "runs")


async def _run(
    service: Service,
    asker: Asker,
    find: Callable[[], Recipe],
    body: RunBody,
    key: str | None,
    route: str,
) -> Response:
    if body.dry_run:
        recipe, model = await asyncio.to_thread(find), service.named_model(asker, body.model)
        plan = await service.stretto.plan(
            recipe, body.inputs, model=model, permission=body.permission
        )
        return JsonAnswer(dict(plan.json))
    request = RunRequest(
        find,
        body.inputs,
        model=service.named_model(asker, body.model),
        permission=body.permission,
        budget=check_budget(body.budget.limits() if body.budget else None),
        owner=asker.name,
        trigger=_TRIGGER,
    )
    content = digest_of_body(route, body.model_dump()) if key is not None else ""
    run, was_begun = await start(service, request, key, content)
    return await answer(service, run, body.wait, was_begun)


@router.post("/api/tasks", dependencies=[AUTHOR], responses=_OF_STARTS, response_model=None)
async def run_task(body: TaskBody, service: TheService, asker: Asker, key: Key = None) -> Response:
    """Give one agent one task: a run of one step."""
    agents = service.stretto.project.catalog().agents
    if body.agent not in agents:
        hint = did_you_mean(body.agent, agents) or "GET /api/agents lists them"
        raise NotFound(f"there is no agent '{body.agent[:100]}'", hint=hint)
    if not body.prompt.strip():
        raise InvalidUsage("prompt must say what to do; it is empty")
    whole = RunBody(
        inputs={"prompt": body.prompt},
        model=body.model,
        permission=body.permission,
        budget=body.budget,
        wait=body.wait,
    )
    find = partial(recipe_given, service, dict(task_recipe(body.agent)))
    return await _run(service, asker, find, whole, key, f"tasks/{body.agent}")


@router.post("/api/batches", dependencies=[AUTHOR], responses=_OF_STARTS, response_model=None)
async def run_batch(
    body: BatchBody, service: TheService, asker: Asker, key: Key = None
) -> Response:
    """Give agents tasks side by side. Waited for, it answers `{"ok", "run_id", "results", "warnings"}`."""
    project = service.stretto.project
    text = body.model_dump_json(include={"tasks"}).removeprefix('{"tasks":').removesuffix("}")
    agents, limits = project.catalog().agents, project.settings.limits
    tasks = await asyncio.to_thread(read_tasks, text, "", agents, limits)
    find = partial(recipe_given, service, dict(batch_recipe(tasks)))
    whole = RunBody(
        inputs=dict(batch_inputs(tasks)),
        model=body.model,
        permission=body.permission,
        budget=body.budget,
        wait=False,
    )
    begun = await _run(service, asker, find, whole, key, "batches")
    run = service.stretto.open(begun.headers["location"].rpartition("/")[2])
    if not body.wait or not await service.until(run.wait()):
        return begun
    report = await run.report(wait=False)
    return JsonAnswer(batch_as_json(report), headers={"Location": begun.headers["location"]})


@router.get("/api/runs", dependencies=[VIEWER], response_model=RunsAnswer)
async def list_runs(
    service: TheService,
    status: Annotated[list[str], Query()] = [],  # noqa: B006
    workflow: str | None = None,
    since: Annotated[str | None, Query(description="such as 2h, or a time (ISO 8601)")] = None,
    text: Annotated[str | None, Query(max_length=500)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[str | None, Query(description="`next` of the page before")] = None,
) -> JsonAnswer:
    """The runs, newest first. `text`: in the id, the recipe's name or the inputs."""
    for word in status:
        check_status(word)
    engine = service.stretto.engine
    found = text.lower() if text else None
    wanted = RunFilter(tuple(status), workflow, _since(since, engine.now()), None, found)
    page = await page_of_runs(engine, wanted, limit, RunId(cursor) if cursor else None)
    return JsonAnswer(
        {"ok": True, "runs": [run_as_json(each) for each in page.runs], "next": page.next}
    )


@router.get("/api/tasks", dependencies=[VIEWER], response_model=RunsAnswer)
async def list_tasks(service: TheService, cursor: str | None = None) -> JsonAnswer:
    """The runs of single tasks, newest first."""
    return await list_runs(service, workflow=TASK_NAME, cursor=cursor)


@router.get("/api/batches", dependencies=[VIEWER], response_model=RunsAnswer)
async def list_batches(service: TheService, cursor: str | None = None) -> JsonAnswer:
    """The runs of batches, newest first."""
    return await list_runs(service, workflow=BATCH, cursor=cursor)


def _since(written: str | None, now: float) -> float | None:
    if written is None:
        return None
    seconds = parse_duration(written)
    if seconds is not None:
        return now - seconds
    try:
        moment = datetime.fromisoformat(written)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        hint = "such as 2h, 7d or 2026-11-18T09:00:00Z"
        raise InvalidUsage(f"since={written[:40]} is no time", hint=hint) from None


@router.get("/api/runs/{run_id}", dependencies=[VIEWER], response_model=RunAnswer)
async def show_run(run_id: str, service: TheService) -> JsonAnswer:
    """How the run stands: its report until now, what it began with, and its steps as planned."""
    whole = await whole_run(service, run_id)
    await asyncio.to_thread(service.told.note, whole)  # it digests all of every answer
    return JsonAnswer(whole)


@router.get("/api/runs/{run_id}/changes", dependencies=[VIEWER], response_model=RunChanges)
async def show_changes(
    run_id: str, service: TheService, after: Annotated[int, Query(ge=0, le=2**53)]
) -> JsonAnswer:
    """What of a run is otherwise than in the answer whose `cursor` was `after`: the fields that have
    changed, and of `steps` and `standing.steps` those steps alone. `touched`: steps with new events.
    `since`: 0 where that answer is not known any more, and all of the run is told."""
    whole = await whole_run(service, run_id)
    rows = await service.stretto.open(run_id).page(after=after, limit=_MOST_TOUCHES)
    touched = {step_of(row.event) for row in rows} & whole["steps"].keys()
    return JsonAnswer(await asyncio.to_thread(service.told.changes, whole, after, touched))


def step_of(event: object) -> str:
    """The step that an event is about; empty: none."""
    attempt = getattr(event, "attempt", None)
    return getattr(attempt, "step", None) or getattr(event, "step", None) or ""


async def whole_run(service: Service, run_id: str) -> dict[str, Any]:
    run = service.stretto.open(run_id)
    history = await run.history()
    report = await run.report_of(history)
    started = history.started
    is_interrupted = any(step.status == INTERRUPTED for step in report.steps)
    standing = standing_of(
        history.state, is_interrupted=is_interrupted or report.status == INTERRUPTED
    )
    return {
        **report.json(),
        "standing": standing_as_json(standing),
        "recipe": await asyncio.to_thread(_recipe_now, service, history),
        "inputs": dict(started.inputs),
        "owner": started.owner,
        "trigger": started.trigger,
        "cursor": history.last_seq,
        "plan": plan_of(history),
    }


def standing_as_json(standing: Standing) -> dict[str, Any]:
    steps = {id: why_as_json(why) for id, why in standing.steps.items()}
    return {**why_as_json(standing.run), "steps": steps}


def why_as_json(why: Why) -> dict[str, Any]:
    return {"says": why.says, "at": iso(why.at)}


def _recipe_now(service: Service, history: History) -> dict[str, Any]:
    """The recipe that the run began with, and whether the file of that name still says the same."""
    digest, name = history.started.digest, history.state.plan.name
    found = service.stretto.project.saved(name)
    same = "unchanged" if found and found.recipe.source.digest == digest else "edited"
    return {"digest": digest, "now": same if found else "not saved"}


def plan_of(history: History) -> list[dict[str, Any]]:
    return [_node(step) for step in history.state.plan.steps]


def _node(step: PlannedStep) -> dict[str, Any]:
    return {
        "id": step.id,
        "type": step.type,
        "depends_on": list(step.depends_on),
        "agents": list(dict.fromkeys(brief.agent for brief in briefs(step.work))),
        "posture": step.posture,
        "gated": step.is_gated,
        "timeout_seconds": step.timeout_seconds,
    }


@router.get(
    "/api/runs/{run_id}/report",
    dependencies=[VIEWER],
    response_model=None,
    responses={
        200: {
            "content": {
                "application/json": {"schema": ReportAnswer.model_json_schema()},
                "text/markdown": {"schema": {"type": "string"}},
                "text/html": {"schema": {"type": "string"}},
            }
        }
    },
)
async def show_report(
    run_id: str, service: TheService, format: Literal["json", "md", "html"] = "json"
) -> Response:
    """The report until now, as JSON, Markdown or a page."""
    report = await service.stretto.open(run_id).report(wait=False)
    match format:
        case "json":
            return JsonAnswer(report.json())
        case "md":
            text = await asyncio.to_thread(report.markdown)
            return PlainTextResponse(text, media_type="text/markdown")
        case "html":
            return HTMLResponse(await asyncio.to_thread(report.html), headers=_PAGE)


@router.post("/api/runs/{run_id}/cancel", dependencies=[OPERATOR], response_model=Started)
async def cancel_run(
    run_id: str, service: TheService, asker: Asker, body: CancelBody | None = None
) -> JsonAnswer:
    """End the run; what has ended is kept."""
    run = await service.own_run(run_id, asker)
    await run.cancel(body.reason if body else "")
    return JsonAnswer({"ok": True, "run_id": run.id, "status": await run.status()})


@router.post(
    "/api/runs/{run_id}/resume", dependencies=[OPERATOR], response_model=Started, status_code=202
)
async def resume_run(
    run_id: str, service: TheService, asker: Asker, body: ResumeBody | None = None
) -> JsonAnswer:
    """Go on with a run that was interrupted, driven by this server. One that has ended stays so."""
    run = await service.own_run(run_id, asker)
    given = body or ResumeBody()
    model = service.named_model(asker, given.model)
    await service.resume(run.id, model=model, permission=given.permission, accepted=given.accepted)
    run = service.stretto.open(run_id)
    return JsonAnswer({"ok": True, "run_id": run.id, "status": await run.status()}, 202)


@router.post(
    "/api/runs/{run_id}/retry",
    dependencies=[OPERATOR],
    responses=_OF_STARTS,
    response_model=None,
)
async def retry_run(
    run_id: str, service: TheService, asker: Asker, body: AgainBody | None = None, key: Key = None
) -> Response:
    """A new run that reuses every step that is unchanged."""
    return await _again(service, asker, run_id, body or AgainBody(), key, "retry")


@router.post(
    "/api/runs/{run_id}/fork", dependencies=[OPERATOR], responses=_OF_STARTS, response_model=None
)
async def fork_run(
    run_id: str, body: ForkBody, service: TheService, asker: Asker, key: Key = None
) -> Response:
    """A new run that shares all that comes before a step."""
    return await _again(service, asker, run_id, body, key, "fork")


async def _again(
    service: Service, asker: Asker, run_id: str, body: AgainBody, key: str | None, route: str
) -> Response:
    run = await service.own_run(run_id, asker)
    if (await run.history()).started.workflow not in (TASK_NAME, BATCH):
        service.check_workflows()
    request = RunRequest(
        None,
        body.inputs,
        of=RunId(run_id),
        from_step=body.from_step,
        part=body.part,
        model=service.named_model(asker, body.model),
        permission=body.permission,
        accepted=frozenset([body.accepted] if body.accepted else []),
        owner=asker.name,
        trigger=_TRIGGER,
    )
    content = digest_of_body(f"runs/{run_id}/{route}", body.model_dump())
    again, was_begun = await start(service, request, key, content)
    return await answer(service, again, body.wait, was_begun)


@router.post("/api/runs/{run_id}/apply", dependencies=[OPERATOR], response_model=ApiAnswer)
async def apply_change(
    run_id: str, body: ApplyBody, service: TheService, asker: Asker
) -> JsonAnswer:
    """Merge what a step changed into the workspace: all of it, or nothing."""
    run = await service.own_run(run_id, asker)
    given = body.model_dump(exclude={"step"})
    try:
        return JsonAnswer(applied_as_json(await run.apply(body.step, **given)))
    except OSError as error:
        raise StrettoError(f"the change cannot be merged: {error.strerror}") from error
