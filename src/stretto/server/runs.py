"""`/api/runs` and `/api/workflows/NAME/run`: start runs, and see what they did."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse

from stretto.assembly.arguments import check_budget
from stretto.assembly.request import RunRequest
from stretto.problems.errors import NotFound
from stretto.server.service import OPERATOR, VIEWER, Asker, TheService

router = APIRouter(tags=["runs"])


class RunBody(BaseModel):
    """What a run is given."""

    model_config = ConfigDict(extra="forbid")

    inputs: dict[str, Any] = Field(default_factory=dict)
    dry_run: bool = False
    wait: bool = True
    model: str | None = None
    permission: str | None = None
    budget: dict[str, float] | None = None


@router.post("/api/workflows/{name}/run", dependencies=[OPERATOR])
async def run_workflow(name: str, body: RunBody, service: TheService, asker: Asker) -> JSONResponse:
    """Start a run of a saved workflow. It is in the journal before this answers."""
    stretto = service.stretto
    if stretto.project.saved(name) is None:
        raise NotFound(f"there is no workflow '{name[:100]}'", hint="GET /api/workflows lists them")
    if body.dry_run:
        plan = await stretto.plan(name, body.inputs)
        return JSONResponse({"ok": True, **plan.json})
    request = RunRequest(
        name,
        body.inputs,
        model=body.model,
        permission=body.permission,
        budget=check_budget(body.budget),
        owner=asker.name,
        trigger="http",
    )
    run = await stretto.launch(await stretto.prepare(request))
    if not body.wait:
        return JSONResponse({"ok": True, "run_id": run.id, "status": await run.status()}, 202)
    return JSONResponse((await run.report()).json())


@router.get("/api/runs/{run_id}", dependencies=[VIEWER])
async def show_run(run_id: str, service: TheService) -> JSONResponse:
    """How the run stands, as a report."""
    report = await service.stretto.open(run_id).report(wait=False)
    return JSONResponse(report.json())
