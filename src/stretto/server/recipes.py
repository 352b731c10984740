"""`/api/recipes`: what an editor asks while a recipe is written. Nothing is saved here, and nothing runs."""

import asyncio
import os
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import Field

from stretto.assembly.json_forms import draft_as_json, inputs_as_json
from stretto.assembly.local_models import LocalModels
from stretto.assembly.project import Project
from stretto.assembly.recipe_files import recipe_templates, text_of_template
from stretto.plan.check import ExaminedRecipe, examine
from stretto.plan.draft import DraftStep
from stretto.plan.known_references import references_at
from stretto.plan.step_changes import (
    AddStep,
    ConnectSteps,
    DisconnectSteps,
    DuplicateStep,
    RemoveStep,
    RenameStep,
    StepEdit,
    change_steps,
)
from stretto.problems import Problem
from stretto.problems.errors import InvalidUsage
from stretto.problems.render import as_json
from stretto.recipe.grammar import recipe_schema
from stretto.recipe.model import (
    Condition,
    Loop,
    Map,
    Parallel,
    Recipe,
    RecipeUse,
    ShellCommand,
    Switch,
    Work,
)
from stretto.recipe.read import read_recipe
from stretto.server.answers import JsonAnswer
from stretto.server.bodies import ApiAnswer, BodyText, ListAnswer, ShortText, StrictBody, new_router
from stretto.server.service import AUTHOR, IF_WORKFLOWS, VIEWER, Asker, Service, TheService
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import AgentId, is_id

router = new_router("recipes")
RecipeText: TypeAlias = Annotated[str, Field(max_length=2**20)]
_MOST_FOLDERS = 100
_MARK = "\ufeff"


class WrittenRecipe(StrictBody):
    """A recipe as far as it is written. `file`: the name of its file, which tells YAML from JSON."""

    recipe: RecipeText
    file: Annotated[str, Field(max_length=500)] = ""


class TextPlace(WrittenRecipe):
    """`line` and `column` count from 1, the column in characters."""

    line: int = Field(ge=1, le=2**20)
    column: int = Field(ge=1, le=2**21)


class StepEditBody(StrictBody):
    """One change: `connect` and `disconnect` take `before` and `step`; `add` takes `id`, `agent`,
    `instruction`, `depends_on` and `after`; `duplicate` and `rename` take `step` and `id`; `remove` takes
    `step`, and `force` where others name it."""

    do: Literal["connect", "disconnect", "add", "duplicate", "remove", "rename"]
    step: ShortText | None = None
    before: ShortText | None = None
    id: ShortText | None = None
    agent: ShortText | None = None
    instruction: BodyText = ""
    depends_on: list[ShortText] = Field(default_factory=list, max_length=500)
    after: ShortText | None = None
    force: bool = False


class EditedRecipe(WrittenRecipe):
    edit: StepEditBody


class NewRecipe(StrictBody):
    name: ShortText


@router.get("/api/recipes/schema", dependencies=[VIEWER], response_model=ListAnswer)
async def show_schema() -> JsonAnswer:
    """The JSON Schema of recipes, as `stretto schema` prints it: `schema`."""
    return JsonAnswer({"ok": True, "schema": recipe_schema()})


@router.get("/api/recipes/names", dependencies=[VIEWER, IF_WORKFLOWS], response_model=ListAnswer)
async def list_names(service: TheService) -> JsonAnswer:
    """What a recipe of this project may name: `tools` (of an MCP server all at once: no server is
    started), `models`, `workflows`, and the `folders` of the workspace; each a `name` and `about`."""
    in_use = await LocalModels(service.stretto.project).model_in_use()
    return JsonAnswer(
        {"ok": True, **await asyncio.to_thread(_names, service.stretto.project, in_use)}
    )


def _names(project: Project, in_use: str | None) -> dict[str, Any]:
    catalog = project.catalog()
    agents = list(catalog.agents.values())
    tools = {
        name: "may change files" * (name in catalog.changing_tools)
        for name in sorted(catalog.tools)
    }
    for server in sorted(project.settings.mcp_servers):
        tools[f"mcp__{server}__*"] = f"every tool of the MCP server {server}"
    for agent in agents:  # one tool of a server is known only by who uses it
        tools |= {tool: f"of {agent.id}" for tool in agent.tools if tool not in tools}
    models = {in_use: "the one in use"} if in_use else {}
    for weights in LocalModels(project).all():
        models.setdefault(weights.weights.name, "runs on this machine")
    for agent in agents:
        for model in (agent.model, *agent.fallback_models):
            models |= {model: f"of {agent.id}"} if model and model not in models else {}
    saved = {entry.name: entry.recipe.description.strip() for entry in project.workflows.entries()}
    kinds = {"tools": tools, "models": models, "workflows": saved, "folders": _folders(project)}
    return {
        kind: [{"name": name, "about": about[:200]} for name, about in names.items()]
        for kind, names in kinds.items()
    }


def _folders(project: Project) -> dict[str, str]:
    """The folders right below the workspace, to begin a set with."""
    try:
        with os.scandir(project.settings.project) as entries:
            found = [each.name for each in entries if _is_folder(each)]
    except OSError:
        return {}
    return {f"{name}/**": "" for name in sorted(found)[:_MOST_FOLDERS]}


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir() and not entry.name.startswith(".")
    except OSError:  # a link that leads to itself, or to where we may not look
        return False


@router.get("/api/recipes/templates", dependencies=[VIEWER], response_model=ListAnswer)
async def list_templates() -> JsonAnswer:
    """The recipes to start from: `templates`, each with its `template` and `description`."""

    def rows() -> list[dict[str, str]]:
        found = recipe_templates().items()
        texts = [(name, read_recipe(path.read_bytes(), path.name)) for name, path in found]
        return [{"template": name, "description": it.description.strip()} for name, it in texts]

    return JsonAnswer({"ok": True, "templates": await asyncio.to_thread(rows)})


@router.post("/api/recipes/templates/{template}", dependencies=[VIEWER], response_model=ApiAnswer)
async def fill_template(template: str, body: NewRecipe) -> JsonAnswer:
    """The text of a template under another name: `recipe`."""
    path = recipe_templates().get(template)
    if path is None or not is_id(body.name):
        wrong = (
            f"'{body.name[:100]}' is not a name"
            if path
            else f"there is no template '{template[:100]}'"
        )
        raise InvalidUsage(wrong, hint="GET /api/recipes/templates lists them")
    text = await asyncio.to_thread(text_of_template, path, body.name)
    return JsonAnswer({"ok": True, "recipe": text})


@router.post("/api/recipes/outline", dependencies=[VIEWER, IF_WORKFLOWS], response_model=ApiAnswer)
async def outline(body: WrittenRecipe, service: TheService) -> JsonAnswer:
    """What a text means by now: its `steps` with their edges, its `agents`, `problems` and `warnings`."""
    return JsonAnswer(await asyncio.to_thread(_outline, service, body))


def _outline(service: Service, body: WrittenRecipe) -> dict[str, Any]:
    project = service.stretto.project
    recipe = _recipe(service, body)
    found = examine(recipe, project.catalog(), project.settings.limits)
    return {
        "ok": True,
        "workflow": recipe.name,
        "dialect": recipe.dialect.name,
        "inputs": inputs_as_json(recipe),
        "agents": [
            {"id": id, "about": _about(found, id), "own": id in recipe.agents}
            for id in found.draft.agent_ids()
        ],
        "steps": [_step(found, each) for each in found.draft.steps],
        "problems": [_problem(each) for each in found.problems],
        "warnings": [_problem(each) for each in found.warnings],
    }


def _recipe(service: Service, body: WrittenRecipe) -> Recipe:
    text = body.recipe.removeprefix(_MARK)
    return read_recipe(text, body.file, service.stretto.project.settings.limits)


def _about(found: ExaminedRecipe, id: str) -> str:
    agent = found.draft.agent(AgentId(id))
    return (agent.role or agent.name).strip()[:200] if agent else ""


def _step(found: ExaminedRecipe, drafted: DraftStep) -> dict[str, Any]:
    step = drafted.step
    place = found.draft.place_of(step.at)
    befores = found.edges[drafted.id].items()
    return {
        "id": step.id,
        "line": place.line if place else None,
        "type": _kind(step.work),
        "agents": list(dict.fromkeys(str(use.agent) for use in drafted.uses)),
        "depends_on": [{"step": before, "why": reason} for before, reason in befores],
        "posture": drafted.posture,
        "gated": step.is_gated,
    }


def _kind(work: Work) -> str:
    match work:
        case ShellCommand():
            return "command"
        case Parallel():
            return "parallel"
        case Condition() | Switch():
            return "conditional"
        case Loop():
            return "loop"
        case Map():
            return "map"
        case RecipeUse():
            return "workflow"
        case _:
            return "sequential"


def _problem(problem: Problem) -> dict[str, object]:
    return {**as_json(problem), "width": problem.place.width if problem.place else None}


@router.post(
    "/api/recipes/references", dependencies=[VIEWER, IF_WORKFLOWS], response_model=ListAnswer
)
async def list_references(body: TextPlace, service: TheService) -> JsonAnswer:
    """What the text at a place may refer to, as the checker decides: `references`, each with its
    `text`, `kind` and `about`; `where`: what is filled in there, empty for a place without templates."""

    def find() -> dict[str, Any]:
        project = service.stretto.project
        recipe = _recipe(service, body)
        index = recipe.source.index_of(body.line, body.column)
        found = references_at(
            recipe.source.text, index, body.file, project.catalog(), project.settings.limits
        )
        rows = [{"text": it.text, "kind": it.kind, "about": it.about} for it in found.references]
        return {
            "ok": True,
            "where": found.where,
            "expression": found.is_expression,
            "references": rows,
        }

    return JsonAnswer(await asyncio.to_thread(find))


@router.post("/api/recipes/edit", dependencies=[VIEWER, IF_WORKFLOWS], response_model=ApiAnswer)
async def edit_steps(body: EditedRecipe, service: TheService) -> JsonAnswer:
    """Change the steps in a text, and leave all else of it as it is: `recipe`. What cannot be done
    safely is refused; a step that others name with `in_use`, and who they are among its problems."""
    change = _change(body.edit)

    def edit() -> str:
        project = service.stretto.project
        recipe = _recipe(service, body)
        return change_steps(recipe, change, project.catalog(), project.settings.limits)

    mark = _MARK if body.recipe.startswith(_MARK) else ""
    return JsonAnswer({"ok": True, "recipe": mark + await asyncio.to_thread(edit)})


def _change(edit: StepEditBody) -> StepEdit:
    match edit:
        case StepEditBody(do="connect", before=str() as before, step=str() as step):
            return ConnectSteps(before, step)
        case StepEditBody(do="disconnect", before=str() as before, step=str() as step):
            return DisconnectSteps(before, step)
        case StepEditBody(do="add", id=str() as id, agent=str() as agent):
            return AddStep(id, agent, edit.instruction, tuple(edit.depends_on), edit.after)
        case StepEditBody(do="duplicate", step=str() as step, id=str() as id):
            return DuplicateStep(step, id)
        case StepEditBody(do="rename", step=str() as step, id=str() as id):
            return RenameStep(step, id)
        case StepEditBody(do="remove", step=str() as step):
            return RemoveStep(step, edit.force)
        case _:
            raise InvalidUsage(
                f"the edit '{edit.do}' lacks a field that it needs",
                hint="see GET /api/openapi.json",
            )


class DraftBody(StrictBody):
    words: Annotated[str, Field(min_length=1, max_length=20_000)]
    model: ShortText | None = None


@router.post("/api/drafts", dependencies=[AUTHOR, IF_WORKFLOWS], response_model=ApiAnswer)
async def draft_recipe(body: DraftBody, service: TheService, asker: Asker) -> JsonAnswer:
    """Let a model write a recipe from words: `draft`. Nothing of it runs, and nothing is saved."""
    service.check_serving()
    model = service.named_model(asker, body.model)
    found = await service.stretto.draft(body.words, model=model)
    shown = service.stretto.project.redactor.json(cast(Json, draft_as_json(found)))
    return JsonAnswer({"ok": found.is_sound, "draft": shown})
