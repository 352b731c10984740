"""What there is to work with: `/api/agents`, `/api/models`, `/api/playbooks`, `/api/doctor`."""

import asyncio
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query

from stretto.assembly.doctor import examine
from stretto.assembly.json_forms import (
    agent_as_json,
    finding_as_json,
    playbook_as_json,
    trial_as_json,
    weights_as_json,
)
from stretto.assembly.local_models import LocalModels, try_model
from stretto.problems.errors import InvalidUsage, NotFound, StrettoError
from stretto.server.answers import JsonAnswer, status_of
from stretto.server.bodies import ApiAnswer, ListAnswer, ShortText, StrictBody, new_router
from stretto.server.service import ADMIN, AUTHOR, VIEWER, Asker, Service, TheService
from stretto.text.short import did_you_mean
from stretto.vocabulary.names import RunId

router = new_router("catalog")
EMBEDDED = "embedded"
_MOST_CHANGES = 100  # of one playbook
_MOST_USES = 50


@router.get("/api/agents", dependencies=[VIEWER], response_model=ListAnswer)
async def list_agents(service: TheService) -> JsonAnswer:
    """The agents that a recipe may name, broken ones too: `agents`."""
    agents = await asyncio.to_thread(service.stretto.project.agents)
    changing = (await asyncio.to_thread(service.stretto.project.catalog)).changing_tools
    rows = [agent_as_json(each, agents, changing) for each in agents if each.shadowed_by is None]
    return JsonAnswer({"ok": True, "agents": rows})


@router.get("/api/agents/{name}", dependencies=[VIEWER], response_model=ApiAnswer)
async def show_agent(name: str, service: TheService) -> JsonAnswer:
    """One agent with its prompt: `agent`."""
    agents = await asyncio.to_thread(service.stretto.project.agents)
    found = [each for each in agents if each.name == name]
    if not found:
        hint = did_you_mean(name, [each.name for each in agents]) or "GET /api/agents lists them"
        raise NotFound(f"there is no agent '{name[:100]}'", hint=hint)
    read = found[-1].read.agent
    changing = (await asyncio.to_thread(service.stretto.project.catalog)).changing_tools
    shown = agent_as_json(found[-1], agents, changing)
    shown["prompt"] = read.prompt if read else None
    return JsonAnswer({"ok": True, "agent": shown})


@router.get("/api/models", dependencies=[VIEWER], response_model=ListAnswer)
async def list_models(service: TheService) -> JsonAnswer:
    """The models of this machine (`models`), and the one that is used (`in_use`)."""
    models = LocalModels(service.stretto.project)
    rows = [weights_as_json(model) for model in await asyncio.to_thread(models.all)]
    in_use = await models.model_in_use()
    return JsonAnswer(
        {"ok": True, "folder": str(models.shelf.folder), "models": rows, "in_use": in_use}
    )


class ModelTest(StrictBody):
    """`model`: as `--model` takes it; left out, the one in use."""

    model: ShortText | None = None


@router.post("/api/models/test", dependencies=[AUTHOR], response_model=ListAnswer)
async def test_model(body: ModelTest, service: TheService, asker: Asker) -> JsonAnswer:
    """Ask a model two small questions, one in words and one that wants JSON: `tried`."""
    project = service.stretto.project
    name = (
        service.named_model(asker, body.model)
        or await LocalModels(project).model_in_use()
        or EMBEDDED
    )
    try:
        tried = await try_model(project, name, None)
    except StrettoError as error:  # whatever is wrong with it, whoever named it can name another
        raise error if status_of(error) < 500 else InvalidUsage(error.with_hint) from error
    rows = [trial_as_json(each) for each in tried]
    return JsonAnswer({"ok": all(each.is_ok for each in tried), "model": name, "tried": rows})


@router.get("/api/playbooks", dependencies=[VIEWER], response_model=ListAnswer)
async def list_playbooks(
    service: TheService,
    query: Annotated[str | None, Query(min_length=1, max_length=1000)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 10,
) -> JsonAnswer:
    """The playbooks (`playbooks`); with `query`, those that fit, the best first, with a `score`."""
    playbooks = service.stretto.playbooks
    if query is None:
        rows = [playbook_as_json(each) for each in await playbooks.list()]
    else:
        rows = [
            {**playbook_as_json(each.playbook), "score": float(f"{each.score:.3g}")}
            for each in await playbooks.search(query, limit)
        ]
    return JsonAnswer({"ok": True, "playbooks": rows})


@router.get("/api/playbooks/{name}", dependencies=[VIEWER], response_model=ApiAnswer)
async def show_playbook(name: str, service: TheService) -> JsonAnswer:
    """One playbook in full: `playbook`; who changed it: `audit`; the last steps it was given to:
    `used_by`."""
    found = await service.stretto.playbooks.show(name)
    more = {"body": found.body, "files": list(found.files), "origin": dict(found.origin)}
    audit = await service.stretto.playbooks.audit(_MOST_CHANGES, name)
    return JsonAnswer(
        {
            "ok": True,
            "playbook": {**playbook_as_json(found), **more},
            "audit": [asdict(each) for each in audit],
            "used_by": await _uses(service, name),
        }
    )


async def _uses(service: Service, name: str) -> list[dict[str, Any]]:
    """Where it was given to an agent, newest first; runs that were removed since are left out."""
    runs = await service.stretto.engine.runs_of()
    found: list[dict[str, Any]] = []
    for use in await service.stretto.playbooks.uses(name, _MOST_USES):
        row = await runs.row(RunId(use.run_id))
        if row is not None:
            found.append({**asdict(use), "workflow": row.workflow})
    return found


class StepToCapture(StrictBody):
    run_id: ShortText
    step: ShortText


@router.post("/api/playbooks", dependencies=[AUTHOR], response_model=ApiAnswer, status_code=201)
async def capture_playbook(body: StepToCapture, service: TheService) -> JsonAnswer:
    """Keep the prompt and the tools of a step that succeeded as an emitted playbook: `playbook`."""
    found = await service.stretto.playbooks.capture(body.run_id, body.step)
    return JsonAnswer({"ok": True, "playbook": playbook_as_json(found)}, 201)


@router.get("/api/playbook-changes", dependencies=[VIEWER], response_model=ListAnswer)
async def list_changes(
    service: TheService, limit: Annotated[int, Query(ge=1, le=500)] = 50
) -> JsonAnswer:
    """Who changed which playbook, newest first: `audit`."""
    audit = await service.stretto.playbooks.audit(limit)
    return JsonAnswer({"ok": True, "audit": [asdict(each) for each in audit]})


@router.post("/api/playbooks/{name}/pin", dependencies=[AUTHOR], response_model=ApiAnswer)
async def pin_playbook(name: str, service: TheService) -> JsonAnswer:
    """Let curation leave it alone."""
    found = await service.stretto.playbooks.pin(name)
    return JsonAnswer({"ok": True, "playbook": playbook_as_json(found)})


@router.post("/api/playbooks/{name}/unpin", dependencies=[AUTHOR], response_model=ApiAnswer)
async def unpin_playbook(name: str, service: TheService) -> JsonAnswer:
    """Let curation decide about it."""
    found = await service.stretto.playbooks.unpin(name)
    return JsonAnswer({"ok": True, "playbook": playbook_as_json(found)})


@router.delete("/api/playbooks/{name}", dependencies=[AUTHOR], response_model=ApiAnswer)
async def delete_playbook(name: str, service: TheService) -> JsonAnswer:
    """Use it no longer. POST …/restore undoes it."""
    found = await service.stretto.playbooks.delete(name)
    return JsonAnswer({"ok": True, "playbook": playbook_as_json(found)})


@router.post("/api/playbooks/{name}/restore", dependencies=[AUTHOR], response_model=ApiAnswer)
async def restore_playbook(name: str, service: TheService) -> JsonAnswer:
    """Use a deleted playbook again."""
    found = await service.stretto.playbooks.restore(name)
    return JsonAnswer({"ok": True, "playbook": playbook_as_json(found)})


@router.get("/api/doctor", dependencies=[ADMIN], response_model=ListAnswer)
async def show_health(service: TheService) -> JsonAnswer:
    """What the server's machine has and lacks: `checks`."""
    found = [each async for each in examine(service.stretto.project)]
    is_well = not any(each.is_essential and each.status == "missing" for each in found)
    return JsonAnswer({"ok": is_well, "checks": [finding_as_json(each) for each in found]})
