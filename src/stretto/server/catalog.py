"""What there is to work with: `/api/agents`, `/api/models`, `/api/playbooks`, `/api/doctor`."""

import asyncio
from typing import Annotated

from fastapi import Query

from stretto.assembly.doctor import examine
from stretto.assembly.json_forms import (
    agent_as_json,
    finding_as_json,
    playbook_as_json,
    weights_as_json,
)
from stretto.assembly.local_models import LocalModels
from stretto.problems.errors import NotFound
from stretto.server.answers import JsonAnswer
from stretto.server.bodies import ApiAnswer, ListAnswer, new_router
from stretto.server.service import ADMIN, AUTHOR, VIEWER, TheService
from stretto.text.short import did_you_mean

router = new_router("catalog")


@router.get("/api/agents", dependencies=[VIEWER], response_model=ListAnswer)
async def list_agents(service: TheService) -> JsonAnswer:
    """The agents that a recipe may name, broken ones too: `agents`."""
    agents = await asyncio.to_thread(service.stretto.project.agents)
    rows = [agent_as_json(each, agents) for each in agents if each.shadowed_by is None]
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
    shown = {**agent_as_json(found[-1], agents), "prompt": read.prompt if read else None}
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
    """One playbook in full: `playbook`."""
    found = await service.stretto.playbooks.show(name)
    more = {"body": found.body, "files": list(found.files), "origin": dict(found.origin)}
    return JsonAnswer({"ok": True, "playbook": {**playbook_as_json(found), **more}})


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
