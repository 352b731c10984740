"""`/api/workflows`: the saved recipes, their text byte for byte, their versions; `/api/validate`."""

import asyncio
import difflib
import re
from hashlib import sha256
from typing import Annotated, Any

from fastapi import Header, Query, Request
from starlette.responses import PlainTextResponse, Response

from stretto.assembly.json_forms import version_as_json, workflow_as_json
from stretto.assembly.recipe_files import origins_of, version_of
from stretto.documents.node import plain
from stretto.documents.regular_file import NotRegular, TooLarge, read_regular
from stretto.plan.check import Problems
from stretto.problems.errors import InvalidRecipe, InvalidUsage, NotFound, StrettoError
from stretto.problems.render import as_json, count
from stretto.recipe.model import Recipe
from stretto.registry.workflows import Entry
from stretto.server.answers import JsonAnswer
from stretto.server.bodies import (
    ChecksAnswer,
    RecipeBody,
    Restore,
    SavedAnswer,
    SavedText,
    VersionsAnswer,
    WorkflowsAnswer,
    WorkflowText,
    new_router,
)
from stretto.server.service import AUTHOR, IF_WORKFLOWS, VIEWER, Asker, Service, TheService
from stretto.text.short import did_you_mean
from stretto.vocabulary.names import is_id

router = new_router("workflows")
_ETAG = re.compile(r'(?:W/)?"([0-9a-f]{64})"')
_MOST_BYTES = 4 * 2**20
_MOST_DIFF_LINES = 5_000  # of one version: finding a difference takes the longer the more there are
Number = Annotated[int, Query(ge=1, le=2**31)]
IfMatch = Annotated[str | None, Header(alias="If-Match")]
IfNoneMatch = Annotated[str | None, Header(alias="If-None-Match")]


def saved_entry(service: Service, name: str) -> Entry:
    """Raises NotFound with the nearest name. A path is no name; 'Weekly digest', in a file that a
    person wrote, is one."""
    project = service.stretto.project
    found = project.saved(name)
    if found is None:
        known = [entry.name for entry in project.workflows.entries()]
        hint = did_you_mean(name, known) or "GET /api/workflows lists them"
        raise NotFound(f"there is no workflow '{name[:100]}'", hint=hint)
    return found


def recipe_given(service: Service, written: str | dict[str, Any]) -> Recipe:
    """A recipe that a client has sent. Its text is never taken for the name of a file."""
    project = service.stretto.project
    if isinstance(written, str):
        return project.recipe_from_text(written)
    return project.read(written)[0]


@router.get("/api/workflows", dependencies=[VIEWER, IF_WORKFLOWS], response_model=WorkflowsAnswer)
async def list_workflows(service: TheService) -> JsonAnswer:
    """The saved recipes, broken ones too."""

    def rows() -> list[dict[str, object]]:
        project = service.stretto.project
        origins = origins_of(project)
        return [
            workflow_as_json(project, entry, origins.get(entry.file, "written"))
            for entry in project.workflows.entries()
        ]

    return JsonAnswer({"ok": True, "workflows": await asyncio.to_thread(rows)})


@router.get(
    "/api/workflows/{name}", dependencies=[VIEWER, IF_WORKFLOWS], response_model=WorkflowText
)
async def show_workflow(name: str, service: TheService) -> JsonAnswer:
    """One recipe: its text as it is in its file, and what is wrong with it."""
    found = await asyncio.to_thread(_whole, service, name)
    return JsonAnswer(found, headers={"ETag": f'"{found["etag"]}"'})


def _whole(service: Service, name: str) -> dict[str, Any]:
    entry, project = saved_entry(service, name), service.stretto.project
    content = _content(entry)
    row = workflow_as_json(project, entry, origins_of(project).get(entry.file, "written"))
    return {
        "ok": True,
        "workflow": row,
        "text": content.decode("utf-8", "replace"),
        "recipe": plain(entry.recipe.root) if entry.recipe.root else None,
        "etag": sha256(content).hexdigest(),
    }


def _content(entry: Entry) -> bytes:
    try:
        return read_regular(entry.file, _MOST_BYTES)
    except (NotRegular, TooLarge) as error:
        raise StrettoError(f"{entry.recipe.source.file} {error}") from None
    except OSError as error:
        raise NotFound(f"{entry.recipe.source.file} cannot be read: {error.strerror}") from None


@router.get(
    "/api/workflows/{name}/text",
    dependencies=[VIEWER, IF_WORKFLOWS],
    response_class=PlainTextResponse,
)
async def show_text(name: str, service: TheService) -> Response:
    """The file, byte for byte."""
    content = await asyncio.to_thread(lambda: _content(saved_entry(service, name)))
    etag = f'"{sha256(content).hexdigest()}"'
    return Response(content, media_type="application/yaml", headers={"ETag": etag})


@router.put(
    "/api/workflows/{name}", dependencies=[AUTHOR, IF_WORKFLOWS], response_model=SavedAnswer
)
async def save_workflow(
    name: str,
    body: SavedText,
    request: Request,
    service: TheService,
    asker: Asker,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> JsonAnswer:
    """Save a recipe; the version before it is kept. With If-Match, only if nobody changed it since."""
    _check_name(name)
    recipe = await asyncio.to_thread(recipe_given, service, body.recipe)
    saved = await service.stretto.workflows.save(
        recipe,
        name=name,
        emitted=body.emitted,
        read=request.state.session is not None,  # a person saves it in the console
        overwrite=not body.emitted,
        why=body.why,
        replaces=_replaces(if_match, if_none_match),
        by=asker.name,
    )
    content = await asyncio.to_thread(lambda: _content(saved_entry(service, name)))
    etag = sha256(content).hexdigest()
    found = {
        "ok": True,
        "name": saved.name,
        "version": saved.version,
        "replaced": saved.replaced,
        "etag": etag,
    }
    return JsonAnswer(found, headers={"ETag": f'"{etag}"'})


def _check_name(name: str) -> None:
    if not is_id(name) or len(name) > 100:
        hint = "use letters, digits, '-' and '_', at most 100"
        raise InvalidUsage(f"'{name[:100]}' is not a name for a recipe", hint=hint)


def _replaces(if_match: str | None, if_none_match: str | None) -> str | None:
    """The digest of what is to be there; empty for nothing, None where it does not matter."""
    if if_none_match is not None and if_none_match.strip() == "*":
        return ""
    if if_match is None or if_match.strip() == "*":
        return None
    found = _ETAG.fullmatch(if_match.strip())
    return found[1] if found else "?"  # an ETag that was never given out matches nothing


@router.delete(
    "/api/workflows/{name}", dependencies=[AUTHOR, IF_WORKFLOWS], response_model=SavedAnswer
)
async def delete_workflow(
    name: str, service: TheService, asker: Asker, if_match: IfMatch = None
) -> JsonAnswer:
    """Remove a recipe. What it was is kept as a version, and restored with POST …/restore."""
    await asyncio.to_thread(saved_entry, service, name)
    version = await service.stretto.workflows.delete(
        name, replaces=_replaces(if_match, None), by=asker.name
    )
    found = {"ok": True, "name": name, "version": version, "replaced": version, "etag": ""}
    return JsonAnswer(found)


@router.get(
    "/api/workflows/{name}/versions",
    dependencies=[VIEWER, IF_WORKFLOWS],
    response_model=VersionsAnswer,
)
async def list_versions(name: str, service: TheService) -> JsonAnswer:
    """The versions that were kept, oldest first; of a workflow that nobody has saved over, none."""
    try:
        found = await service.stretto.workflows.versions(name)
    except NotFound:
        # Raises NotFound where there is no such workflow.
        await asyncio.to_thread(saved_entry, service, name)
        found = ()
    rows = [version_as_json(each) for each in found]
    return JsonAnswer({"ok": True, "workflow": name, "versions": rows})


@router.get(
    "/api/workflows/{name}/versions/{number}",
    dependencies=[VIEWER, IF_WORKFLOWS],
    response_class=PlainTextResponse,
)
async def show_version(name: str, number: int, service: TheService) -> Response:
    """The text of one version."""
    found = await asyncio.to_thread(version_of, service.stretto.project, name, number)
    return Response(found.content, media_type="application/yaml")


@router.get(
    "/api/workflows/{name}/diff",
    dependencies=[VIEWER, IF_WORKFLOWS],
    response_class=PlainTextResponse,
)
async def diff_versions(
    name: str, service: TheService, old: Number, new: Annotated[int | None, Query(ge=1)] = None
) -> Response:
    """What differs between two versions, as a unified diff; without `new`, up to its file."""

    def differ() -> str:
        project = service.stretto.project
        before = version_of(project, name, old)
        if new is None:
            after, label = _content(saved_entry(service, name)).decode("utf-8", "replace"), "file"
        else:
            after, label = version_of(project, name, new).text, f"version {new}"
        lines = before.text.splitlines(), after.splitlines()
        if max(map(len, lines)) > _MOST_DIFF_LINES:
            raise InvalidUsage(f"a version has more than {_MOST_DIFF_LINES:,} lines")
        return "\n".join(
            difflib.unified_diff(*lines, f"{name} version {old}", f"{name} {label}", lineterm="")
        )

    return PlainTextResponse(await asyncio.to_thread(differ))


@router.post(
    "/api/workflows/{name}/restore",
    dependencies=[AUTHOR, IF_WORKFLOWS],
    response_model=SavedAnswer,
)
async def restore_workflow(
    name: str, service: TheService, asker: Asker, body: Restore | None = None
) -> JsonAnswer:
    """Make an earlier version the current one; without a number, the one before the current."""
    wanted = body.version if body else None
    saved = await service.stretto.workflows.restore(name, wanted, by=asker.name)
    content = await asyncio.to_thread(saved.file.read_bytes)
    return JsonAnswer(
        {
            "ok": True,
            "name": saved.name,
            "version": saved.version,
            "replaced": saved.replaced,
            "etag": sha256(content).hexdigest(),
        }
    )


@router.post("/api/validate", dependencies=[VIEWER, IF_WORKFLOWS], response_model=ChecksAnswer)
async def validate(body: RecipeBody, service: TheService) -> JsonAnswer:
    """Check a recipe: every problem at once, each with its place."""

    def check() -> dict[str, Any]:
        recipe = recipe_given(service, body.recipe)
        checked = service.stretto.project.check(recipe)
        if isinstance(checked, Problems):
            said = f"the recipe has {count(checked.problems)}"
            raise InvalidRecipe(said, checked.problems)
        warnings = [as_json(each) for each in checked.warnings]
        return {"ok": True, "workflow": recipe.name, "warnings": warnings}

    return JsonAnswer(await asyncio.to_thread(check))
