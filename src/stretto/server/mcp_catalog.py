"""What the MCP server offers, as values: tools, and a tool and a prompt for each saved workflow.

In: the saved recipes. Out: the names, descriptions and JSON schemas that a client shows its model.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from stretto.text.short import shorten
from stretto.vocabulary.json_value import Json

if TYPE_CHECKING:
    from stretto.recipe.model import Input, Recipe

MOST_WORKFLOW_TOOLS = 200  # a client gives all of them to its model
_LONGEST_NAME = 64  # what clients accept
_LONGEST_DESCRIPTION = 1_000
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
_TYPES = {"string": "string", "number": "number", "boolean": "boolean", "file_path": "string"}

_TEXT: dict[str, Json] = {"type": "string"}
_FLAG: dict[str, Json] = {"type": "boolean"}
_RUN: dict[str, Json] = {"type": "string", "description": "the id of a run"}
_WAIT: dict[str, Json] = {
    "type": "boolean",
    "default": True,
    "description": "false: return as soon as the run is on record; get_run tells the rest",
}
_TASK: dict[str, Json] = {
    "type": "object",
    "properties": {
        "agent": {**_TEXT, "description": "who does it"},
        "prompt": {**_TEXT, "description": "what to do"},
        "description": {**_TEXT, "description": "a few words, for people who watch the run"},
    },
    "required": ["agent", "prompt"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """One tool, as a client sees it. `changes`: it starts work, or decides or saves something."""

    name: str
    description: str
    schema: Mapping[str, Json]
    changes: bool = False
    title: str = ""
    workflow: str = ""  # the saved recipe that this tool runs; empty for tools of our own


def _schema(required: Iterable[str] = (), **properties: Json) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


TOOLS = (
    OfferedTool(
        "list_workflows",
        "List the saved workflows: their names, what each does, and the inputs it takes.",
        _schema(),
    ),
    OfferedTool(
        "run_workflow",
        "Run a saved workflow to its answer. With dry_run: show what would run and in which order, "
        "without asking a model.",
        _schema(
            ["name"],
            name={**_TEXT, "description": "the name of a saved workflow"},
            inputs={"type": "object", "description": "its inputs by name"},
            dry_run={**_FLAG, "default": False},
            wait=_WAIT,
        ),
        changes=True,
    ),
    OfferedTool(
        "save_workflow",
        "Save a recipe as a workflow that can be run by its name. It is checked first, and one that "
        "a person wrote is not replaced.",
        _schema(
            ["recipe"],
            recipe={
                "type": ["string", "object"],
                "description": "the recipe: YAML or JSON text, or an object",
            },
            name={**_TEXT, "description": "a name other than the recipe's own"},
        ),
        changes=True,
    ),
    OfferedTool(
        "get_run",
        "Say how a run stands and what it gave: status, output, steps, and what awaits approval.",
        _schema(["run_id"], run_id=_RUN),
    ),
    OfferedTool(
        "cancel_run",
        "Stop a run. Steps that have ended keep their results.",
        _schema(["run_id"], run_id=_RUN, reason=_TEXT),
        changes=True,
    ),
    OfferedTool(
        "task",
        "Give one agent one task, and return its answer.",
        _schema(
            ["agent", "prompt"],
            agent={**_TEXT, "description": "who does it: researcher, writer, reviewer, …"},
            prompt={**_TEXT, "description": "what to do"},
            wait=_WAIT,
        ),
        changes=True,
    ),
    OfferedTool(
        "task_batch",
        "Give several agents tasks that do not depend on each other. The results come in the order "
        "of the tasks, and one that fails loses no other.",
        _schema(
            ["tasks"],
            tasks={"type": "array", "items": _TASK, "minItems": 1},
            wait=_WAIT,
        ),
        changes=True,
    ),
    OfferedTool(
        "list_approvals",
        "List the steps that await a person's approval, with what each would do.",
        _schema(run_id=_RUN),
    ),
    OfferedTool(
        "approve",
        "Approve a step that awaits approval, on behalf of the user, and go on with its run. Only "
        "after the user has said so.",
        _schema(
            ["run_id", "step"],
            run_id=_RUN,
            step=_TEXT,
            reason=_TEXT,
            prompt={**_TEXT, "description": "run this prompt instead of the one that was shown"},
            key={**_TEXT, "description": "approve only what list_approvals showed with this key"},
            wait=_WAIT,
        ),
        changes=True,
    ),
    OfferedTool(
        "reject",
        "Reject a step that awaits approval, on behalf of the user, and go on with its run.",
        _schema(
            ["run_id", "step"],
            run_id=_RUN,
            step=_TEXT,
            reason=_TEXT,
            key={**_TEXT, "description": "reject only what list_approvals showed with this key"},
            wait=_WAIT,
        ),
        changes=True,
    ),
)
_OWN_NAMES = frozenset(tool.name for tool in TOOLS)


def workflow_tools(recipes: "Iterable[Recipe]") -> tuple[OfferedTool, ...]:
    """A tool for each recipe, by the recipe's name where a client can take that name."""
    taken = set(_OWN_NAMES)
    found = []
    for recipe in list(recipes)[:MOST_WORKFLOW_TOOLS]:
        name = _tool_name(recipe.name, taken)
        taken.add(name)
        about = (recipe.description or recipe.title).strip() or f"Run the workflow {recipe.name}."
        found.append(
            OfferedTool(
                name,
                shorten(about, _LONGEST_DESCRIPTION),
                inputs_schema(recipe.inputs),
                changes=True,
                title=shorten(recipe.title or recipe.name, 200),
                workflow=recipe.name,
            )
        )
    return tuple(found)


def _tool_name(workflow: str, taken: set[str]) -> str:
    plain = _NOT_IN_NAMES.sub("-", workflow)
    if plain == workflow and len(plain) <= _LONGEST_NAME and plain not in taken:
        return plain
    mark = sha256(workflow.encode("utf-8", "replace")).hexdigest()[:8]
    for name in (f"workflow-{plain}", f"workflow-{plain[:40]}-{mark}"):
        if len(name) <= _LONGEST_NAME and name not in taken:
            return name
    return f"workflow-{mark}-{len(taken)}"


def inputs_schema(inputs: "Iterable[Input]") -> dict[str, Json]:
    """The inputs of a recipe as a JSON schema."""
    declared = tuple(inputs)
    required = [each.name for each in declared if each.is_required and not each.has_default]
    return _schema(required, **{each.name: _input_schema(each) for each in declared})


def _input_schema(declared: "Input") -> dict[str, Json]:
    found: dict[str, Json] = {}
    if declared.type == "json":
        if declared.shape:
            found["type"] = declared.shape
    else:
        found["type"] = _TYPES[declared.type]
    words = [declared.description.strip()]
    words += ["a file of the workspace, by its path"] if declared.type == "file_path" else []
    if said := "; ".join(filter(None, words)):
        found["description"] = shorten(said, _LONGEST_DESCRIPTION)
    if declared.enum:
        found["enum"] = list(declared.enum)
    if declared.has_default:
        found["default"] = declared.default
    return found


def prompt_text(workflow: str, inputs: Mapping[str, str]) -> str:
    """What a person's client sends to its model when they choose the workflow as a prompt."""
    import json

    call = json.dumps({"name": workflow, "inputs": dict(inputs)}, ensure_ascii=False)
    return (
        f"Run the workflow '{workflow}' with the tool run_workflow and these arguments, then tell me "
        f"its output:\n\n{call}"
    )
