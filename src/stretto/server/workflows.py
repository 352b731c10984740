"""`/api/workflows`: the saved recipes."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from stretto.server.service import VIEWER, TheService

router = APIRouter(prefix="/api/workflows", tags=["workflows"])


class ListedRecipe(BaseModel):
    name: str
    description: str
    layer: str
    origin: str
    file: str
    inputs: list[str]
    problems: int


class WorkflowList(BaseModel):
    ok: bool = True
    workflows: list[ListedRecipe]


@router.get("", dependencies=[VIEWER])
async def list_workflows(service: TheService) -> WorkflowList:
    """The saved recipes, broken ones too."""
    found = await service.stretto.workflows.list()
    rows: list[Any] = [
        ListedRecipe(
            name=each.name,
            description=each.description,
            layer=each.layer,
            origin=each.origin,
            file=each.file,
            inputs=list(each.inputs),
            problems=each.problems,
        )
        for each in found
    ]
    return WorkflowList(workflows=rows)
